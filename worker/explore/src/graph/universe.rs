//! The universe: the events known to happen in every execution that contains the graph.
//!
//! Contract: rows speak of the events pushed and not popped; a *name* stands for one sequence of events with all that
//! is fixed about them, so that what was computed for a universe holds whenever its name comes back. Names are bounded in
//! number ([`MAX_NAMES`]): beyond that each universe gets one of its own.

use super::digest::mixed;
use super::event::Event;
use super::ids::EventId;
use super::row;
use crate::thread::event::{Emitted, Family, Kind};
use crate::thread::ids::{CellId, Id, Table};
use moire_cat::bits::{self, Row};
use moire_program::ir::ThreadId;
use rustc_hash::FxHashMap;

/// Most universes that are recognised when they come again.
const MAX_NAMES: usize = 65_536;

/// Most events of one thread and position that differ in what is fixed about them.
const MAX_FORMS: usize = 64;

/// The events known to happen, as rows of bits.
#[derive(Clone, Debug)]
pub(crate) struct Universe<const W: usize> {
    /// Per cell: the writes of threads that cover it.
    pub(crate) writes: Table<CellId, Row<W>>,
    /// Per event: the writes that cannot be before this read has its value.
    pub(crate) needing: Table<EventId, Row<W>>,
    /// Per event: its write half, which is no source of it either.
    pub(crate) half: Table<EventId, Row<W>>,
    /// Per thread: its events.
    pub(crate) of_thread: Table<ThreadId, Row<W>>,
    /// Events in program order that all lanes take part in.
    pub(crate) whole: Row<W>,
    /// Events on barriers, mbarriers and allocators, and of asynchronous instructions.
    pub(crate) special: usize,
    /// Name of the universe after each event.
    names: Table<EventId, u64>,
    /// A number for the events up to each one that does not depend on what was explored before.
    identities: Vec<u64>,
    /// What the static relations in the engine's rows were entered for, event by event.
    entered: Vec<u64>,
    /// By thread and position: the events there were, each with a number.
    forms: FxHashMap<(Option<ThreadId>, u16), Vec<(Emitted, u32)>>,
    next_form: u32,
    /// By name and number of the event that comes next: the name they led to.
    known: FxHashMap<(u64, u32), u64>,
    next_name: u64,
}

impl<const W: usize> Universe<W> {
    pub(crate) fn new(cells: usize, threads: usize) -> Self {
        Universe {
            writes: vec![bits::empty(); cells].into_iter().collect(),
            of_thread: vec![bits::empty(); threads].into_iter().collect(),
            whole: bits::empty(),
            needing: Table::default(),
            half: Table::default(),
            special: 0,
            names: Table::default(),
            identities: Vec::new(),
            entered: Vec::new(),
            forms: FxHashMap::default(),
            next_form: 0,
            known: FxHashMap::default(),
            next_name: 0,
        }
    }

    /// Name of the universe.
    pub(crate) fn name(&self) -> u64 {
        self.names.last().copied().unwrap_or(0)
    }

    /// A number for its events, by thread and position.
    pub(crate) fn identity(&self) -> u64 {
        self.identities.last().copied().unwrap_or(1)
    }

    /// Name it had when this event was its last.
    pub(crate) fn name_after(&self, event: EventId) -> u64 {
        self.names[event]
    }

    /// Adds the event `id`, with which `events` ends; whether its static relations must be entered.
    pub(crate) fn push(&mut self, events: &Table<EventId, Event>, id: EventId) -> bool {
        debug_assert!(
            id.index() == self.names.len() && events.len() == id.index() + 1,
            "the last event is added"
        );
        let event = &events[id];
        let emitted = &event.emitted;
        let name = self.named(event);
        self.names.push(name);
        let place = event.thread.map_or(0, |t| u64::from(t.0) + 1) << 16 | u64::from(event.emitted.index);
        self.identities.push(mixed(self.identity() ^ place));
        self.special += usize::from(special(emitted));
        let whole = !emitted.detached && emitted.lanes.whole();
        row::put(&mut self.whole, id, whole);
        self.needing.push(bits::empty());
        self.half.push(bits::empty());
        if let Some(thread) = event.thread {
            for other in row::events(&self.of_thread[thread]) {
                self.wait(id, emitted, other, &events[other].emitted);
                self.wait(other, &events[other].emitted, id, emitted);
            }
            row::set(&mut self.of_thread[thread], id);
        }
        if event.thread.is_some() && event.is_write() {
            match emitted.access {
                Some(access) => access.each_cell().for_each(|cell| row::set(&mut self.writes[cell], id)),
                None => self.writes.iter_mut().for_each(|row| row::set(row, id)),
            }
        }
        let fresh = self.entered.get(id.index()) != Some(&name);
        if fresh {
            self.entered.truncate(id.index());
            self.entered.push(name);
        }
        fresh
    }

    /// Notes whether a write waits for a read of its thread, or is its other half.
    fn wait(&mut self, write: EventId, w: &Emitted, read: EventId, r: &Emitted) {
        if w.kind != Kind::Write {
            return;
        }
        if w.needs.has(r.index) {
            row::set(&mut self.needing[read], write);
        }
        if w.mate() == Some(r.index) {
            row::set(&mut self.half[read], write);
        }
    }

    /// Removes the last event.
    pub(crate) fn pop(&mut self, event: &Event) {
        self.names.pop();
        self.identities.pop();
        self.needing.pop();
        self.half.pop();
        let id = EventId::at(self.names.len());
        debug_assert_eq!(self.names.len(), self.identities.len(), "a name and a number an event");
        debug_assert!(self.special >= usize::from(special(&event.emitted)), "each special event is counted");
        self.special -= usize::from(special(&event.emitted));
        if let Some(thread) = event.thread {
            row::clear(&mut self.of_thread[thread], id);
            for other in row::events(&self.of_thread[thread]) {
                row::clear(&mut self.needing[other], id);
                row::clear(&mut self.half[other], id);
            }
        }
        if event.thread.is_some() && event.is_write() {
            match event.emitted.access {
                Some(access) => access.each_cell().for_each(|cell| row::clear(&mut self.writes[cell], id)),
                None => self.writes.iter_mut().for_each(|row| row::clear(row, id)),
            }
        }
    }

    fn named(&mut self, event: &Event) -> u64 {
        let form = self.form(event);
        let next = form.and_then(|form| self.known.get(&(self.name(), form)).copied());
        next.unwrap_or_else(|| {
            let before = self.name();
            self.next_name += 1;
            if let Some(form) = form.filter(|_| self.known.len() < MAX_NAMES) {
                self.known.insert((before, form), self.next_name);
            }
            self.next_name
        })
    }

    /// The number of all that is fixed about an event; `None` if it has none.
    fn form(&mut self, event: &Event) -> Option<u32> {
        let there = self.forms.entry((event.thread, event.emitted.index)).or_default();
        if let Some((_, form)) = there.iter().find(|known| known.0.has_form_of(&event.emitted)) {
            return Some(*form);
        }
        (there.len() < MAX_FORMS).then(|| {
            self.next_form += 1;
            there.push((event.emitted.clone(), self.next_form));
            self.next_form
        })
    }
}

fn special(emitted: &Emitted) -> bool {
    matches!(emitted.kind, Kind::Barrier(_) | Kind::Mbarrier(_) | Kind::Allocator(_))
        || matches!(emitted.family, Family::Copy(_) | Family::Tensor(_))
        || emitted.detached
}
