//! The graph under construction: universe of events, choices made, and how to undo them.
//!
//! Invariants: `events[..]` are known to happen in every execution below this state; `present` holds the placed ones;
//! every choice is undone in the reverse order it was made, so that a state costs no copy.

use crate::columns;
use crate::event::{Emitted, Kind, has_dep};
use crate::explorer::{Abstain, Stop};
use crate::flow::Flow;
use crate::gate::Trials;
use crate::held::{Ahead, Written};
use crate::interp::{FrontEnd, Gate, Trace, TraceEnd, View as _, run};
use crate::leaf::*;
use crate::mbarrier::{Floor, Open, Place};
use crate::memory::{Access, Layout};
use crate::planted::Planted;
use crate::relate::{Event, Places, enter};
use crate::runs::Runs;
use crate::universe::Universe;
use crate::unknown::marked;
use crate::view::ThreadView;
use moire_cat::bits::{self, Row};
use moire_cat::eval::{Evaluator, Inputs, Solution};
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{CheckId, Mark, Model, NodeId};
use moire_program::ir::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Where a byte range of a read comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Write(usize),
    Open,
}

/// One thread of the graph.
#[derive(Clone, Debug)]
pub(crate) struct ThreadState {
    pub(crate) flow: Rc<Flow>,
    pub(crate) trace: Rc<Trace>,
    /// Event of each index, where it is in the universe.
    pub(crate) ids: Vec<Option<u16>>,
    pub(crate) gates: Vec<(u16, Gate)>,
    /// What the code from some place on may write, once asked ([`State::ahead`]).
    ahead: Rc<OnceCell<Ahead>>,
}

/// See the module header.
#[derive(Clone)]
pub(crate) struct State<'a, const W: usize> {
    pub(crate) program: &'a Program,
    pub(crate) model: &'a Model,
    pub(crate) front: FrontEnd,
    pub(crate) layout: Rc<Layout>,
    pub(crate) threads: Vec<ThreadState>,
    places: Rc<Places>,
    pub(crate) events: Vec<Event>,
    pub(crate) present: Row<W>,
    /// (read, cell) without a source, ascending.
    pub(crate) open: Vec<(u16, u16)>,
    /// Per event and cell of a read: its source.
    pub(crate) sources: Vec<Vec<Option<u16>>>,
    /// Phase of each placed barrier event.
    pub(crate) phases: Vec<Option<u16>>,
    /// Place of each placed operation on an mbarrier.
    pub(crate) mbarriers: Vec<Option<Place>>,
    /// What each event on an mbarrier was put off past.
    pub(crate) floors: Vec<Floor>,
    /// Phases that add up and stay open all the same: object, era, level, operations at the time.
    pub(crate) kept_open: Vec<Open>,
    /// Place of each granted allocation of tensor memory among those of its CTA.
    pub(crate) granted: Vec<Option<u16>>,
    /// Allocations of its CTA that must be granted before each one.
    pub(crate) put_off: Vec<u16>,
    /// Whether `dealloc` and `relinquish` of a pair wait for the other CTA; open until the first.
    pub(crate) meeting: Option<bool>,
    /// By thread: whether the order of allocations of its CTA matters.
    pub(crate) contended: Vec<bool>,
    pub(crate) inputs: Inputs<W>,
    /// Rows of the inputs that hold something, or held it.
    used: usize,
    pub(crate) evaluator: Evaluator<W>,
    pub(crate) universe: Universe<W>,
    /// By thread, writes that it does not take at the gate where it waits.
    pub(crate) refused: Vec<Row<W>>,
    /// Threads that may go on, as [`State::may_be_let_in`] found them after so many edits.
    pub(crate) moves: Cell<Option<(u64, u64)>>,
    pub(crate) trials: RefCell<Trials>,
    /// Threads that may do more than the universe says, or write where nobody knows yet.
    pub(crate) restless: usize,
    /// Rows of the coherence choices before they grew, oldest first.
    ordered: Vec<(u16, Row<W>)>,
    /// Counts changes of the choices of sources and orders, and which were judged last.
    pub(crate) edits: u64,
    judged: Option<u64>,
    /// No object has two names.
    pub(crate) one_name: bool,
    /// What [`State::too_late`] asks the model for.
    pub(crate) timely: (Option<NodeId>, Option<NodeId>),
    log: Vec<(usize, Rc<Trace>)>,
    runs: Runs,
    /// Answers of [`State::exclusive`].
    pub(crate) shared: FxHashMap<(u64, u64, u64, u64), bool>,
    pub(crate) initial: Vec<Rc<Vec<u8>>>,
}

/// A point to return to.
pub(crate) struct Point {
    events: usize,
    log: usize,
}

/// Threads that have not run.
fn fresh_threads(flows: &[Rc<Flow>]) -> Vec<ThreadState> {
    let empty = Rc::new(Trace {
        events: vec![],
        unsure: vec![],
        regs: vec![],
        flags: BTreeSet::new(),
        end: TraceEnd::Done,
        pc: 0,
        future: OnceCell::new(),
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

impl<'a, const W: usize> State<'a, W> {
    pub(crate) fn new(
        program: &'a Program,
        model: &'a Model,
        front: FrontEnd,
        flows: &[Rc<Flow>],
    ) -> Result<Self, Stop> {
        let too_big = || Stop::Abstain(Abstain { reason: "memory of more than 65535 cells".into(), line: 0 });
        let layout = Layout::new(program).ok_or_else(too_big)?;
        let mut inputs = Inputs::with_room(16);
        let cells = layout.cells.len();
        inputs.cells.writers = vec![bits::empty(); cells];
        let initial = layout
            .instances
            .iter()
            .map(|i| Rc::new(initial_bytes(&program.objects[i.object.index()])))
            .collect();
        let threads = fresh_threads(flows);
        let mut state = State {
            program,
            model,
            front,
            layout: Rc::new(layout),
            threads,
            places: Rc::new(Places::new(program)),
            events: Vec::new(),
            present: bits::empty(),
            open: Vec::new(),
            sources: Vec::new(),
            phases: Vec::new(),
            mbarriers: Vec::new(),
            floors: Vec::new(),
            kept_open: Vec::new(),
            granted: Vec::new(),
            put_off: Vec::new(),
            meeting: None,
            contended: (0..program.threads.len()).map(|t| columns::contended(program, t)).collect(),
            inputs,
            used: 0,
            evaluator: Evaluator::new(model),
            universe: Universe::new(cells, program.threads.len()),
            restless: 0,
            refused: vec![bits::empty(); program.threads.len()],
            moves: Cell::new(None),
            trials: RefCell::default(),
            ordered: Vec::new(),
            edits: 0,
            judged: None,
            one_name: program
                .symbols
                .iter()
                .all(|s| program.symbols.iter().filter(|t| t.object == s.object).count() == 1),
            timely: (model.definition("core-causality"), model.definition("slot-settled")),
            log: Vec::new(),
            runs: Runs::default(),
            shared: FxHashMap::default(),
            initial,
        };
        let watched: Vec<NodeId> = [state.timely.0, state.timely.1].into_iter().flatten().collect();
        state.evaluator.watch(&watched);
        state.initial_writes()?;
        for thread in 0..state.threads.len() {
            match state.refresh_thread(thread) {
                Ok(()) => {}
                Err(TraceEnd::Unsupported(reason, line)) => {
                    return Err(Stop::Abstain(Abstain { reason, line }));
                }
                Err(TraceEnd::Bound | TraceEnd::SpinFail) => {
                    return Err(Stop::Abstain(Abstain {
                        reason: "an endless loop without memory operations".into(),
                        line: 0,
                    }));
                }
                Err(_) => return Err(Stop::TooWide),
            }
        }
        state.log.clear();
        Ok(state)
    }

    /// What a thread may write from some place on.
    pub(crate) fn ahead(&self, thread: usize) -> &Ahead {
        self.threads[thread].ahead.get_or_init(|| Ahead::new(self.program, &self.layout, thread))
    }

    fn initial_writes(&mut self) -> Result<(), Stop> {
        for i in 0..self.layout.instances.len() {
            let cells = self.layout.cells_of(i);
            let bytes = self.program.objects[self.layout.instances[i].object.index()].bytes;
            let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            let access = Access {
                instance: narrow(i),
                virt: SymbolId(u16::MAX),
                offset: 0,
                bytes,
                cell: narrow(cells.start),
                cells: narrow(cells.len()),
            };
            let labels = [sets::ANY, sets::M, sets::W, sets::IW].iter().fold(0, |l, s| l | 1 << s);
            let emitted = Emitted {
                index: 0,
                pc: 0,
                line: 0,
                kind: Kind::Write,
                access: Some(access),
                value: None,
                labels,
                scope: None,
                addr: [0; 4],
                data: [0; 4],
                ctrl: [0; 4],
                ctrl_reconv: [0; 4],
                mate: None,
                rmw_dep: false,
                unit: 0,
                detached: false,
                reaches: None,
                home: None,
                lanes: u32::MAX,
                arms: None,
                owner: None,
                copy: None,
                covers: None,
                tensor: None,
                token: [0; 4],
                token_direct: [0; 4],
            };
            let id = self.push(Event { thread: None, emitted }).ok_or(Stop::TooWide)?;
            bits::set(&mut self.present, id);
            for cell in cells {
                bits::set(&mut self.inputs.cells.writers[cell], id);
            }
        }
        Ok(())
    }

    /// Adds an event to the universe; `None` when rows are too narrow.
    fn push(&mut self, mut event: Event) -> Option<usize> {
        event.emitted.reaches = self.reached_cta(&event);
        let id = self.events.len();
        if id == 64 * W {
            return None;
        }
        self.edits += 1;
        event.emitted.owner =
            event.emitted.access.and_then(|a| self.layout.instances[a.instance as usize].owner);
        let far = event.emitted.home.zip(event.thread).is_some_and(|(h, t)| {
            let place = |t: usize| &self.program.threads[t].place;
            !place(h.index()).same_cta(place(t as usize))
        });
        let shared = event.emitted.labels >> sets::M & 1 == 1 && event.emitted.owner.is_some();
        event.emitted.labels |= u128::from(shared) << sets::SHARED | u128::from(far) << sets::FAR;
        let slots =
            event.emitted.access.filter(|_| event.emitted.kind == Kind::Read).map_or(0, |a| a.cells as usize);
        self.events.push(event);
        self.sources.push(vec![None; slots]);
        self.phases.push(None);
        self.mbarriers.push(None);
        self.floors.push(Floor::default());
        self.granted.push(None);
        self.put_off.push(0);
        self.inputs.n = id + 1;
        self.inputs.make_room(id + 1);
        if self.universe.push(&self.events) {
            let used = id < self.used;
            self.used = self.used.max(id + 1);
            enter((self.program, &self.places), &mut self.inputs, &self.events, used);
        }
        Some(id)
    }

    pub(crate) fn mark(&self) -> Point {
        Point { events: self.events.len(), log: self.log.len() }
    }

    pub(crate) fn reset(&mut self, mark: Point) {
        self.edits += 1;
        while self.log.len() > mark.log {
            let (thread, trace) = self.log.pop().expect("longer than the mark");
            self.settle_trace(thread, trace);
        }
        while self.events.len() > mark.events {
            let event = self.events.pop().expect("longer than the mark");
            self.sources.pop();
            self.phases.pop();
            self.mbarriers.pop();
            self.floors.pop();
            self.granted.pop();
            self.put_off.pop();
            self.universe.pop(&event);
            if let Some(thread) = event.thread {
                self.threads[thread as usize].ids[event.emitted.index as usize] = None;
            }
        }
        self.inputs.n = self.events.len();
    }

    /// Puts a trace in the place of the one a thread has; returns that.
    fn settle_trace(&mut self, thread: usize, trace: Rc<Trace>) -> Rc<Trace> {
        let old = std::mem::replace(&mut self.threads[thread].trace, trace);
        self.restless += usize::from(self.threads[thread].trace.restless());
        self.restless -= usize::from(old.restless());
        old
    }

    /// Re-interprets the threads of these reads, and every thread a barrier then lets go.
    pub(crate) fn refresh(&mut self, reads: &[usize]) -> Result<(), TraceEnd> {
        let mut done: SmallVec<[usize; 8]> = SmallVec::new();
        for read in reads {
            let thread = self.events[*read].thread.expect("reads belong to threads") as usize;
            let idle =
                !self.threads[thread].flow.uses_loads && self.threads[thread].trace.end == TraceEnd::Done;
            if !idle && !done.contains(&thread) {
                done.push(thread);
                self.refresh_thread(thread)?;
            }
        }
        if done.is_empty() { Ok(()) } else { self.refresh_waiting() }
    }

    /// Re-interprets threads that wait at barriers until none moves.
    pub(crate) fn refresh_waiting(&mut self) -> Result<(), TraceEnd> {
        loop {
            let mut moved = false;
            for thread in 0..self.threads.len() {
                if let TraceEnd::Barrier(index) = self.threads[thread].trace.end {
                    let view = ThreadView { state: self, thread };
                    if view.passed(index).is_some() {
                        self.refresh_thread(thread)?;
                        moved = true;
                    }
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Runs one thread again and takes its new events into the universe. The error says why the run is no part of an
    /// execution (its events are in the universe all the same, until the caller resets).
    pub(crate) fn refresh_thread(&mut self, thread: usize) -> Result<(), TraceEnd> {
        let flow = Rc::clone(&self.threads[thread].flow);
        let id = ThreadId(u16::try_from(thread).unwrap_or(u16::MAX));
        let mut runs = std::mem::take(&mut self.runs);
        let trace = runs.of((thread, &flow), &ThreadView { state: self, thread }, |view| {
            run(self.program, &self.layout, &flow, id, self.front, view)
        });
        self.runs = runs;
        self.edits += 1;
        let old = self.settle_trace(thread, Rc::clone(&trace));
        self.log.push((thread, old));
        for (index, event) in trace.events.iter().enumerate() {
            if self.threads[thread].ids.len() <= index {
                self.threads[thread].ids.push(None);
            }
            let (None, Some(emitted)) = (self.threads[thread].ids[index], event) else { continue };
            let event = Event { thread: Some(id.0), emitted: emitted.clone() };
            let Some(new) = self.push(event) else { return Err(TraceEnd::Done) };
            self.threads[thread].ids[index] = Some(u16::try_from(new).unwrap_or(u16::MAX));
        }
        match &trace.end {
            end @ (TraceEnd::SpinFail | TraceEnd::Bound | TraceEnd::Unsupported(..)) => Err(end.clone()),
            _ => Ok(()),
        }
    }

    pub(crate) fn current(&self, id: usize) -> Option<&Emitted> {
        let event = &self.events[id];
        let trace = &self.threads[event.thread? as usize].trace;
        trace.events[event.emitted.index as usize].as_ref()
    }

    /// Whether a write can be placed: its value is known.
    pub(crate) fn ready(&self, id: usize) -> bool {
        self.current(id).is_some_and(|e| e.value.is_some())
    }

    /// The writes of the universe that are not placed and may become the source of `read` at `cell`.
    pub(crate) fn waiting_writes(&self, cell: usize, read: usize) -> Row<W> {
        let absent = bits::minus(&self.universe.writes[cell], &self.present);
        bits::minus(&bits::minus(&absent, &self.universe.needing[read]), &self.universe.half[read])
    }

    /// Whether some write not yet placed (and not `except`) may still become the source of `read` at `cell`.
    pub(crate) fn may_be_written(&self, cell: usize, read: usize, except: Option<usize>) -> bool {
        let mut waiting = self.waiting_writes(cell, read);
        if let Some(except) = except {
            bits::clear(&mut waiting, except);
        }
        !bits::is_empty(&waiting) || (self.restless > 0 && self.may_be_written_unseen(cell, read))
    }

    /// The same of writes the universe does not hold.
    fn may_be_written_unseen(&self, cell: usize, read: usize) -> bool {
        let reader = &self.events[read];
        let needs = |d: &crate::event::Deps, thread: usize| {
            reader.thread == u16::try_from(thread).ok() && has_dep(d, reader.emitted.index)
        };
        self.threads.iter().enumerate().any(|(t, thread)| {
            let serves = |e: &Emitted| {
                e.access.is_none_or(|a| a.cell_range().contains(&cell))
                    && !(needs(&e.addr, t) || needs(&e.data, t) || needs(&e.ctrl, t))
                    && !(e.mate == Some(reader.emitted.index) && reader.thread == u16::try_from(t).ok())
            };
            let unseen = match &thread.trace.end {
                TraceEnd::Pending(d) if needs(d, t) => false,
                TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_) => {
                    let unless = |of: &Written| of[thread.trace.pc].as_ref().is_none_or(|cells| cells[cell]);
                    let waits = matches!(thread.trace.end, TraceEnd::Gate(_));
                    let ahead = self.ahead(t);
                    unless(&ahead.all)
                        && (unless(&ahead.near) || !self.held(reader, t))
                        && (!waits || self.may_be_let_in(t))
                }
                _ => false,
            };
            unseen || thread.trace.unsure.iter().any(serves)
        })
    }

    /// Whether some open read has no write left that could become its source: each must get one from a write that waits
    /// for no open read, or only for some that get theirs without it, since `rf | xdep` has no cycle.
    pub(crate) fn hopeless(&self) -> bool {
        let mut left: SmallVec<[(u16, u16); 16]> = self.open.iter().copied().collect();
        loop {
            let mut held = bits::empty();
            for (read, _) in &left {
                bits::or(&mut held, &self.universe.needing[*read as usize]);
                if self.front.planted == Some(Planted::HalfWaits) {
                    bits::or(&mut held, &self.universe.half[*read as usize]);
                }
            }
            let before = left.len();
            left.retain(|(read, cell)| {
                let (read, cell) = (*read as usize, *cell as usize);
                let free = bits::minus(&self.waiting_writes(cell, read), &held);
                bits::is_empty(&free) && !(self.restless > 0 && self.may_be_written_unseen(cell, read))
            });
            if left.is_empty() || left.len() == before {
                return !left.is_empty();
            }
        }
    }

    /// Whether `read` is the read half of the write `id`, which it can never take.
    pub(crate) fn is_own_read(&self, id: usize, read: usize) -> bool {
        let (write, read) = (&self.events[id], &self.events[read]);
        write.thread == read.thread && write.emitted.mate == Some(read.emitted.index)
    }

    pub(crate) fn set_source(&mut self, read: usize, cell: usize, source: Source) {
        self.edits += 1;
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        match source {
            Source::Open => {
                self.open.push((narrow(read), narrow(cell)));
                self.sort_open();
            }
            Source::Write(write) => {
                let slot = cell - self.events[read].emitted.access.map_or(0, |a| a.cell as usize);
                self.sources[read][slot] = Some(narrow(write));
                bits::set(&mut self.inputs.rels[rels::RF][write], read);
                self.inputs.cells.reads.push((narrow(read), narrow(cell), narrow(write)));
            }
        }
    }

    pub(crate) fn unset_source(&mut self, read: usize, cell: usize, source: Source) {
        self.edits += 1;
        let wide = |n: u16| n as usize;
        match source {
            Source::Open => self.open.retain(|(r, c)| (wide(*r), wide(*c)) != (read, cell)),
            Source::Write(write) => {
                let slot = cell - self.events[read].emitted.access.map_or(0, |a| a.cell as usize);
                self.sources[read][slot] = None;
                let same = |r: &(u16, u16, u16)| (wide(r.0), wide(r.1), wide(r.2)) == (read, cell, write);
                if let Some(at) = self.inputs.cells.reads.iter().rposition(same) {
                    self.inputs.cells.reads.swap_remove(at);
                }
                let still = self.sources[read].iter().flatten().any(|w| wide(*w) == write);
                bits::put(&mut self.inputs.rels[rels::RF][write], read, still);
            }
        }
    }

    pub(crate) fn sort_open(&mut self) {
        self.open.sort_unstable();
    }

    /// Places a write.
    pub(crate) fn add_write(&mut self, id: usize) {
        self.edits += 1;
        bits::set(&mut self.present, id);
        let access = self.events[id].emitted.access.expect("a placed write has an address");
        for cell in access.cell_range() {
            bits::set(&mut self.inputs.cells.writers[cell], id);
        }
        debug_assert!(
            bits::is_empty(&self.inputs.rels[rels::CO][id]),
            "nothing is ordered before it is placed"
        );
        // Initial writes come first.
        bits::set(&mut self.inputs.rels[rels::CO][access.instance as usize], id);
    }

    pub(crate) fn remove_write(&mut self, id: usize) {
        self.edits += 1;
        bits::clear(&mut self.present, id);
        let access = self.events[id].emitted.access.expect("a placed write has an address");
        for cell in access.cell_range() {
            bits::clear(&mut self.inputs.cells.writers[cell], id);
        }
        bits::clear(&mut self.inputs.rels[rels::CO][access.instance as usize], id);
    }

    /// Orders two writes, and what follows; returns what `restore_order` needs.
    pub(crate) fn order_writes(&mut self, a: usize, b: usize) -> usize {
        self.edits += 1;
        let before = self.ordered.len();
        let rows = &mut self.inputs.rels[rels::CO][..self.inputs.n];
        let mut after = rows[b];
        bits::set(&mut after, b);
        for (i, row) in rows.iter_mut().enumerate() {
            if (i == a || bits::has(row, a)) && !bits::is_empty(&bits::minus(&after, row)) {
                self.ordered.push((u16::try_from(i).unwrap_or(u16::MAX), *row));
                bits::or(row, &after);
            }
        }
        before
    }

    pub(crate) fn restore_order(&mut self, before: usize) {
        self.edits += 1;
        while self.ordered.len() > before {
            let Some((i, row)) = self.ordered.pop() else { return };
            self.inputs.rels[rels::CO][i as usize] = row;
        }
    }

    /// The graph judged last of this universe; [`Evaluator::back`] returns to it.
    pub(crate) fn judged(&mut self) -> Mark {
        self.evaluator.enter(self.universe.name(), &self.inputs);
        self.evaluator.mark()
    }

    pub(crate) fn partial(&mut self) -> Solution {
        self.evaluator.enter(self.universe.name(), &self.inputs);
        self.inputs.present = self.present;
        self.judged = Some(self.edits);
        self.evaluator.partial(&self.inputs)
    }

    /// Whether the graph is beyond repair.
    pub(crate) fn contradicts(&mut self) -> bool {
        let mark = self.judged();
        let wrong = matches!(self.partial(), Solution::Violated(_));
        self.evaluator.back(&mark);
        wrong
    }

    /// Whether a finished graph without [`State::plain`] has nothing to it that only [`State::settle`] knows.
    pub(crate) fn simple(&self) -> bool {
        self.universe.special == 0 && self.threads.iter().all(|t| t.trace.flags.is_empty())
    }

    /// Whether the finished graph has one coherence and raises no flag; it stays loaded.
    pub(crate) fn plain(&mut self) -> bool {
        self.evaluator.enter(self.universe.name(), &self.inputs);
        self.inputs.present = self.present;
        self.evaluator.plain(&self.inputs, self.judged == Some(self.edits))
    }

    /// Visits every coherence the finished graph can have; whether some order of the fence.sc was left untried.
    pub(crate) fn evaluate_leaf(
        &mut self,
        mut visit: impl FnMut(&[Row<W>], &[Row<W>], &[(CheckId, Vec<Row<W>>)]),
    ) -> bool {
        let mark = self.judged();
        self.inputs.present = self.present;
        let found = self.evaluator.completions(&self.inputs, &mut |c| {
            visit(c.coherence, c.fences, c.flags);
        });
        self.evaluator.back(&mark);
        found.bounded
    }

    /// Whether nobody knows what a placed write left.
    pub(crate) fn writes_unknown(&self, write: usize) -> bool {
        self.current(write).is_some_and(|e| marked(&e.data))
    }

    /// Value of the bytes of a cell as a placed write left them.
    pub(crate) fn cell_value(&self, write: usize, cell: usize) -> Value {
        let cell = self.layout.cells[cell];
        let (from, to) = (cell.offset as usize, (cell.offset + cell.bytes) as usize);
        if self.events[write].thread.is_none() {
            return assemble(&self.initial[cell.instance as usize][from..to.min(from + 16)]);
        }
        if self.writes_unknown(write) {
            return 0;
        }
        let start = self.events[write].emitted.access.map_or(0, |a| a.offset);
        let value = self.current(write).and_then(|e| e.value).unwrap_or(0);
        truncate(value >> (8 * (cell.offset - start)), 8 * cell.bytes)
    }

    pub(crate) fn kind(&self) -> LeafKind {
        let done = self.threads.iter().all(|t| t.trace.end == TraceEnd::Done);
        if done { LeafKind::Complete } else { LeafKind::Blocked }
    }

    pub(crate) fn reference(&self, id: usize) -> EventRef {
        let event = &self.events[id];
        event.thread.map_or(EventRef::init(), |thread| EventRef { thread, index: event.emitted.index })
    }
}
