//! Events of an execution graph, and how they communicate: what each thread has done, which events are placed, where
//! each read takes its value, and the part of coherence that is chosen.
//!
//! Invariants: every event happens in every execution that contains the graph; `present` holds the placed events;
//! changes are undone in reverse order.

use super::event::Event;
use super::ids::{EventId, OpenRead};
use super::relations::{Places, enter};
use super::row;
use super::universe::Universe;
use crate::thread::event::lanes::LaneInfo;
use crate::thread::event::{CtaInfo, Emitted, Family, Kind, Needs, TokenInfo};
use crate::thread::flow::Flow;
use crate::thread::ids::{CellId, Id, Table};
use crate::thread::layout::Layout;
use crate::thread::may_write::Ahead;
use crate::thread::trace::{FrontEnd, Gate, Trace, TraceEnd};
use moire_cat::bits::{self, Row};
use moire_cat::eval::Inputs;
use moire_cat::vocabulary::{rels, sets};
use moire_execution::columns;
use moire_execution::leaf::*;
use moire_program::ir::*;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Index;
use std::rc::Rc;

/// Where a byte range of a read comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Write(EventId),
    Open,
}

/// One thread of the graph.
#[derive(Clone, Debug)]
pub(crate) struct ThreadState {
    pub(crate) flow: Rc<Flow>,
    pub(crate) trace: Rc<Trace>,
    /// For each index of the thread: its event, if the universe has it.
    pub(crate) ids: Vec<Option<EventId>>,
    pub(crate) gates: Vec<(u16, Gate)>,
    /// Writes that the code may still make, cached by [`Events::ahead`].
    pub(crate) ahead: Rc<OnceCell<Ahead>>,
}

/// The events of a graph, and how they communicate.
#[derive(Clone)]
pub(crate) struct Events<'a, const W: usize> {
    pub(crate) program: &'a Program,
    pub(crate) front: FrontEnd,
    pub(crate) layout: Rc<Layout>,
    places: Rc<Places>,
    pub(crate) threads: Table<ThreadId, ThreadState>,
    /// Number of threads that may still add events, or have a write whose address is not known yet.
    pub(crate) restless: usize,
    /// Replaced runs of threads, oldest first.
    replaced: Vec<(ThreadId, Rc<Trace>)>,
    all: Table<EventId, Event>,
    pub(crate) present: Row<W>,
    pub(crate) universe: Universe<W>,
    /// Reads without a source, ascending.
    pub(crate) open: Vec<OpenRead>,
    /// Per event and cell of a read: its source.
    pub(crate) sources: Table<EventId, Vec<Option<EventId>>>,
    /// Inputs of the model: base sets and relations, sources and writers.
    pub(crate) inputs: Inputs<W>,
    /// Number of rows of the inputs that are or were not empty.
    used: usize,
    /// Earlier contents of coherence rows, oldest first.
    ordered: Vec<(EventId, Row<W>)>,
    /// Number of changes. A result computed from the graph is valid as long as this number stays the same.
    pub(crate) edits: u64,
}

/// A mark to which [`Events::reset`] returns.
pub(crate) struct Point {
    events: usize,
    runs: usize,
}

impl<const W: usize> Index<EventId> for Events<'_, W> {
    type Output = Event;

    fn index(&self, id: EventId) -> &Event {
        &self.all[id]
    }
}

/// Threads that have not run.
fn fresh_threads(flows: &[Rc<Flow>]) -> Table<ThreadId, ThreadState> {
    let empty = Rc::new(Trace {
        events: vec![],
        unsure: vec![],
        regs: vec![],
        flags: BTreeSet::new(),
        end: TraceEnd::Done,
        pc: 0,
        run_ahead: OnceCell::new(),
    });
    let one = |flow| ThreadState {
        flow: Rc::clone(flow),
        trace: Rc::clone(&empty),
        ids: Vec::new(),
        gates: Vec::new(),
        ahead: Rc::default(),
    };
    flows.iter().map(one).collect()
}

impl<'a, const W: usize> Events<'a, W> {
    /// A graph without events, of threads that have not run.
    pub(crate) fn new(program: &'a Program, layout: Layout, front: FrontEnd, flows: &[Rc<Flow>]) -> Self {
        let mut inputs = Inputs::with_room(16);
        let cells = layout.cells.len();
        inputs.cells.writers = vec![bits::empty(); cells];
        Events {
            program,
            front,
            layout: Rc::new(layout),
            places: Rc::new(Places::new(program)),
            threads: fresh_threads(flows),
            restless: 0,
            replaced: Vec::new(),
            all: Table::default(),
            present: bits::empty(),
            universe: Universe::new(cells, program.threads.len()),
            open: Vec::new(),
            sources: Table::default(),
            inputs,
            used: 0,
            ordered: Vec::new(),
            edits: 0,
        }
    }

    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All events, by position.
    pub(crate) fn ids(&self) -> impl Iterator<Item = EventId> + Clone + use<W> {
        self.all.ids()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.all.iter()
    }

    /// The writes that are placed at a cell.
    pub(crate) fn writers(&self, cell: CellId) -> &Row<W> {
        &self.inputs.cells.writers[cell.index()]
    }

    /// The events to which a relation of [`rels`] leads from `from`.
    pub(crate) fn related(&self, relation: usize, from: EventId) -> &Row<W> {
        &self.inputs.rels[relation][from.index()]
    }

    /// The same row, mutable.
    pub(crate) fn related_mut(&mut self, relation: usize, from: EventId) -> &mut Row<W> {
        &mut self.inputs.rels[relation][from.index()]
    }

    /// Takes an event out of the rows and columns of these relations.
    pub(crate) fn unrelate(&mut self, relations: &[usize], event: EventId) {
        for relation in relations {
            let rows = &mut self.inputs.rels[*relation][..self.inputs.n];
            rows[event.index()] = bits::empty();
            rows.iter_mut().for_each(|row| row::clear(row, event));
        }
    }

    /// The events of threads, in the order of the scheduler.
    pub(crate) fn of_threads(&self) -> impl Iterator<Item = EventId> + Clone + '_ {
        self.threads.iter().flat_map(|t| t.ids.iter().flatten()).copied()
    }

    /// Replaces the run of a thread, and keeps the old one for [`Events::reset`].
    pub(crate) fn replace_run(&mut self, thread: ThreadId, trace: Rc<Trace>) {
        self.edits += 1;
        let old = self.settle_trace(thread, trace);
        self.replaced.push((thread, old));
    }

    /// Forgets the replaced runs, which cannot be restored any more.
    pub(crate) fn settle_all(&mut self) {
        self.replaced.clear();
    }

    /// An event for the initial bytes of each instance.
    pub(crate) fn initial_writes(&self) -> Vec<Event> {
        let mut out = Vec::new();
        for instance in self.layout.instances.ids() {
            let access = self.layout.whole(self.program, instance);
            let labels = [sets::ANY, sets::M, sets::W, sets::IW].iter().fold(0, |l, s| l | 1 << s);
            let emitted = Emitted {
                index: 0,
                unit: 0,
                pc: 0,
                line: 0,
                kind: Kind::Write,
                labels,
                scope: None,
                access: Some(access),
                value: None,
                needs: Needs::default(),
                mate: None,
                detached: false,
                ctas: CtaInfo::default(),
                lanes: LaneInfo::ALL,
                family: Family::Plain,
                token: TokenInfo::default(),
            };
            out.push(Event { thread: None, emitted });
        }
        out
    }

    /// Places the initial writes. There are no other events yet.
    pub(crate) fn place_initial_writes(&mut self) {
        debug_assert_eq!(
            self.all.len(),
            self.layout.instances.len(),
            "an event for each instance, and no other"
        );
        for instance in self.layout.instances.ids() {
            let write = EventId::initial(instance);
            row::set(&mut self.present, write);
            for cell in self.layout.cells_of(instance) {
                row::set(&mut self.inputs.cells.writers[cell.index()], write);
            }
        }
    }

    /// Adds an event to the universe; `None` when rows are too narrow.
    pub(crate) fn push(&mut self, mut event: Event) -> Option<EventId> {
        event.emitted.ctas.reaches = self.reached_cta(&event);
        let before = self.all.len();
        if before == 64 * W {
            return None;
        }
        let id = EventId::at(before);
        self.edits += 1;
        event.emitted.ctas.owner = event.emitted.access.and_then(|a| self.layout.instances[a.instance].owner);
        let far = event.emitted.ctas.home.zip(event.thread).is_some_and(|(h, t)| {
            let place = |t: ThreadId| &self.code(t).place;
            !place(h).same_cta(place(t))
        });
        let shared = event.emitted.labels >> sets::M & 1 == 1 && event.emitted.ctas.owner.is_some();
        event.emitted.labels |= u128::from(shared) << sets::SHARED | u128::from(far) << sets::FAR;
        let slots =
            event.emitted.access.filter(|_| event.emitted.kind == Kind::Read).map_or(0, |a| a.cells as usize);
        self.all.push(event);
        self.sources.push(vec![None; slots]);
        self.inputs.n = before + 1;
        self.inputs.make_room(before + 1);
        if self.universe.push(&self.all, id) {
            let used = before < self.used;
            self.used = self.used.max(before + 1);
            enter((self.program, &self.places), &mut self.inputs, &self.all, used);
        }
        Some(id)
    }

    pub(crate) fn mark(&self) -> Point {
        Point { events: self.all.len(), runs: self.replaced.len() }
    }

    pub(crate) fn reset(&mut self, mark: Point) {
        self.edits += 1;
        debug_assert!(
            mark.events <= self.all.len() && mark.runs <= self.replaced.len(),
            "marks are undone in order"
        );
        while self.replaced.len() > mark.runs {
            let (thread, trace) = self.replaced.pop().expect("longer than the mark");
            self.settle_trace(thread, trace);
        }
        while self.all.len() > mark.events {
            let event = self.all.pop().expect("longer than the mark");
            debug_assert!(
                !row::has(&self.present, EventId::at(self.all.len())),
                "an event that goes is not placed"
            );
            self.sources.pop();
            self.universe.pop(&event);
            if let Some(thread) = event.thread {
                self.threads[thread].ids[event.emitted.index as usize] = None;
            }
        }
        self.inputs.n = self.all.len();
    }

    /// Replaces the trace of a thread and returns the old one.
    fn settle_trace(&mut self, thread: ThreadId, trace: Rc<Trace>) -> Rc<Trace> {
        let old = std::mem::replace(&mut self.threads[thread].trace, trace);
        self.restless += usize::from(self.threads[thread].trace.restless());
        debug_assert!(self.restless >= usize::from(old.restless()), "each restless thread is counted");
        self.restless -= usize::from(old.restless());
        old
    }

    /// The text of a thread.
    pub(crate) fn code(&self, thread: ThreadId) -> &'a Thread {
        &self.program.threads[thread.index()]
    }

    /// The threads in the CTA of `thread`, itself included; none if there is no such thread.
    pub(crate) fn of_cta(&self, thread: Option<ThreadId>) -> impl Iterator<Item = ThreadId> + '_ {
        let same =
            move |t: &ThreadId| thread.is_some_and(|own| self.code(*t).place.same_cta(&self.code(own).place));
        self.threads.ids().filter(same)
    }

    /// Writes that a thread may make from each position of its code on.
    pub(crate) fn ahead(&self, thread: ThreadId) -> &Ahead {
        self.threads[thread].ahead.get_or_init(|| Ahead::new(self.program, &self.layout, thread))
    }

    /// A thread of the other CTA whose memory an event touches.
    pub(crate) fn reached_cta(&self, event: &Event) -> Option<ThreadId> {
        let own = columns::leader_id(self.program, event.thread.filter(|_| self.program.launched)?.index());
        let e = &event.emitted;
        let owner = e.access.and_then(|a| self.layout.instances[a.instance].owner);
        let owner = owner.map(|o| columns::leader_id(self.program, o.index()));
        let cells = e.tensor().into_iter().flat_map(|t| &t.cells).map(|c| c.cta);
        let taken = if let Kind::Allocator(used) = e.kind { used.takes_from() } else { None };
        owner.into_iter().chain(cells).chain(taken).find(|cta| *cta != own)
    }

    /// The least position of a thread's body that can be reached from `pc`.
    pub(crate) fn reachable_from(&self, thread: ThreadId, pc: usize) -> usize {
        let body = &self.code(thread).body;
        let back = |i: &Instr| if let Op::Bra { target } = i.op { target } else { usize::MAX };
        let mut least = pc.min(body.len());
        while let Some(lower) = body[least..].iter().map(back).min().filter(|t| *t < least) {
            least = lower;
        }
        least
    }

    /// Whether nothing depends on the value of a read.
    pub(crate) fn idle(&self, read: EventId) -> bool {
        let event = &self[read];
        event.thread.is_some_and(|t| self.threads[t].flow.idle[event.emitted.pc])
    }

    /// The reads that are not placed, in the order of the scheduler.
    pub(crate) fn unplaced_reads(&self) -> impl Iterator<Item = EventId> + '_ {
        self.of_threads().filter(|id| self[*id].emitted.kind == Kind::Read && !row::has(&self.present, *id))
    }

    /// An event as the latest run of its thread emits it, with its value if that is known.
    pub(crate) fn current(&self, id: EventId) -> Option<&Emitted> {
        let event = &self[id];
        let trace = &self.threads[event.thread?].trace;
        trace.events[event.emitted.index as usize].as_ref()
    }

    /// Whether a write can be placed: its value is known.
    pub(crate) fn ready(&self, id: EventId) -> bool {
        self.current(id).is_some_and(|e| e.value.is_some())
    }

    /// The writes of the universe that are not placed and may become the source of `read` at `cell`.
    pub(crate) fn waiting_writes(&self, cell: CellId, read: EventId) -> Row<W> {
        let absent = bits::minus(&self.universe.writes[cell], &self.present);
        bits::minus(&bits::minus(&absent, &self.universe.needing[read]), &self.universe.half[read])
    }

    /// Whether `read` is the read half of the write `id`, which it can never take.
    pub(crate) fn is_own_read(&self, id: EventId, read: EventId) -> bool {
        let (write, read) = (&self[id], &self[read]);
        write.thread == read.thread && write.emitted.mate() == Some(read.emitted.index)
    }

    /// Gives a cell of a read its source, or none yet.
    pub(crate) fn set_source(&mut self, read: EventId, cell: CellId, source: Source) {
        self.edits += 1;
        let open = OpenRead { read, cell };
        debug_assert!(row::has(&self.present, read), "only a placed read has a source");
        match source {
            Source::Open => {
                self.open.push(open);
                self.sort_open();
            }
            Source::Write(write) => {
                let slot = self.slot(read, cell);
                debug_assert_eq!(self.sources[read][slot], None, "a cell of a read has one source");
                debug_assert!(row::has(self.writers(cell), write), "a source has written the cell");
                self.sources[read][slot] = Some(write);
                row::set(self.related_mut(rels::RF, write), read);
                self.inputs.cells.reads.push((read.number(), cell.number(), write.number()));
            }
        }
    }

    pub(crate) fn unset_source(&mut self, read: EventId, cell: CellId, source: Source) {
        self.edits += 1;
        let open = OpenRead { read, cell };
        match source {
            Source::Open => self.open.retain(|o| *o != open),
            Source::Write(write) => {
                let slot = self.slot(read, cell);
                debug_assert_eq!(self.sources[read][slot], Some(write), "what is undone was done");
                self.sources[read][slot] = None;
                let taken = (read.number(), cell.number(), write.number());
                if let Some(at) = self.inputs.cells.reads.iter().rposition(|r| *r == taken) {
                    self.inputs.cells.reads.swap_remove(at);
                }
                let still = self.sources[read].iter().flatten().any(|w| *w == write);
                row::put(self.related_mut(rels::RF, write), read, still);
            }
        }
    }

    /// The slot of a cell of a read.
    fn slot(&self, read: EventId, cell: CellId) -> usize {
        self[read].emitted.access.expect("a placed read has an address").slot_of(cell)
    }

    pub(crate) fn sort_open(&mut self) {
        self.open.sort_unstable();
    }

    /// Places a write.
    pub(crate) fn add_write(&mut self, id: EventId) {
        self.edits += 1;
        debug_assert!(!row::has(&self.present, id), "a write is placed once");
        debug_assert!(self[id].is_write(), "only a write is placed as one");
        row::set(&mut self.present, id);
        let access = self[id].emitted.access.expect("a placed write has an address");
        for cell in access.positions() {
            row::set(&mut self.inputs.cells.writers[cell], id);
        }
        debug_assert!(bits::is_empty(self.related(rels::CO, id)), "nothing is ordered before it is placed");
        // Initial writes come first.
        row::set(self.related_mut(rels::CO, EventId::initial(access.instance)), id);
    }

    pub(crate) fn remove_write(&mut self, id: EventId) {
        self.edits += 1;
        debug_assert!(row::has(&self.present, id), "what is undone was done");
        debug_assert!(bits::is_empty(self.related(rels::RF, id)), "nobody reads a write that is taken back");
        row::clear(&mut self.present, id);
        let access = self[id].emitted.access.expect("a placed write has an address");
        for cell in access.positions() {
            row::clear(&mut self.inputs.cells.writers[cell], id);
        }
        row::clear(self.related_mut(rels::CO, EventId::initial(access.instance)), id);
    }

    /// Orders two writes and closes coherence transitively. Returns the mark for [`Events::restore_order`].
    pub(crate) fn order_writes(&mut self, a: EventId, b: EventId) -> usize {
        self.edits += 1;
        debug_assert!(a != b && !row::has(self.related(rels::CO, b), a), "coherence has no cycle");
        debug_assert!(
            row::has(&self.present, a) && row::has(&self.present, b),
            "only placed writes are ordered"
        );
        let before = self.ordered.len();
        let rows = &mut self.inputs.rels[rels::CO][..self.inputs.n];
        let mut after = rows[b.index()];
        row::set(&mut after, b);
        for (i, row) in rows.iter_mut().enumerate() {
            if (i == a.index() || row::has(row, a)) && !bits::is_empty(&bits::minus(&after, row)) {
                self.ordered.push((EventId::at(i), *row));
                bits::or(row, &after);
            }
        }
        before
    }

    pub(crate) fn restore_order(&mut self, before: usize) {
        self.edits += 1;
        debug_assert!(before <= self.ordered.len(), "what is undone was done");
        while self.ordered.len() > before {
            let Some((i, row)) = self.ordered.pop() else { return };
            *self.related_mut(rels::CO, i) = row;
        }
    }

    /// Whether the value of a placed write is unknown.
    pub(crate) fn writes_unknown(&self, write: EventId) -> bool {
        self.current(write).is_some_and(|e| e.needs.data.unknown())
    }

    /// Value of the bytes of a cell after a placed write.
    pub(crate) fn cell_value(&self, write: EventId, cell: CellId) -> Value {
        debug_assert!(
            self[write].emitted.access.is_some_and(|a| a.covers(cell)),
            "a write has values of its own cells"
        );
        let cell = self.layout.cells[cell];
        if self[write].thread.is_none() {
            let object = self.layout.instances[cell.instance].object;
            return self.program.objects[object.index()].init.value(cell.offset, cell.bytes);
        }
        if self.writes_unknown(write) {
            return 0;
        }
        let start = self[write].emitted.access.map_or(0, |a| a.offset);
        let value = self.current(write).and_then(|e| e.value).unwrap_or(0);
        truncate(value >> (8 * (cell.offset - start)), 8 * cell.bytes)
    }

    pub(crate) fn kind(&self) -> LeafKind {
        let done = self.threads.iter().all(|t| t.trace.end == TraceEnd::Done);
        if done { LeafKind::Complete } else { LeafKind::Blocked }
    }

    pub(crate) fn reference(&self, id: EventId) -> EventRef {
        let event = &self[id];
        event.thread.map_or(EventRef::init(), |t| EventRef { thread: t.0, index: event.emitted.index })
    }
}
