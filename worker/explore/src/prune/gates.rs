//! Await gating: when a thread may enter an iteration of a loop that may spin.
//!
//! A thread stops at a *gate* in front of each such iteration. It enters with the write that its first read takes, and only
//! with a write that may end the loop. Until such a write is placed it waits at the gate; when one is placed, the thread
//! takes it or waits for another. So:
//!
//! - no read of a spin is ever open;
//! - an execution in which the thread does not wait for ever holds nothing of its failed iterations;
//! - cycles of `po | rf` do no harm: an event behind the loop depends for its existence on what was read there, and that
//!   dependency is never cyclic.
//!
//! If something happens behind the gate whatever is read, the thread enters with its reads open.
//!
//! A thread may wait for ever only if one more iteration, with all reads from writes that nothing is coherence-after, can
//! fail (`finish::hang`). If the last write at each place the iteration reads is known already and ends the loop in any
//! case, waiting is not tried. The threads that may still write there are those that do not wait, and those that one of them
//! may let in: two threads that only let in each other would be a cycle of existence.

use super::consistency::Consistency;
use super::outlook::{Without, may_advance, outlook};
use crate::graph::graph::{Answers, Graph, Trial};
use crate::graph::ids::EventId;
use crate::graph::mbarriers::{Floor, Stage};
use crate::graph::row;
use crate::planted::Planted;
use crate::thread::event::mbarrier::{Act, MbarUse};
use crate::thread::event::{Emitted, Kind};
use crate::thread::ids::{CellId, Id, Table};
use crate::thread::may_write::{Written, may_write};
use crate::thread::run::run;
use crate::thread::trace::{Trace, TraceEnd};
use moire_cat::bits::{self, Row};
use moire_cat::eval::Solution;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Most reads of an iteration whose answers are tried; an iteration with more is taken to fail in some way.
const MAX_TRIED_READS: usize = 4;

/// Most iterations tried to find out whether a thread leaves its loop; beyond it the answer is no.
const MAX_TRIALS: usize = 64;

/// Runs behind gates, by the run that leads to the gate and the answers given. The first run is kept with them, so that its
/// address stays its own.
type Trials = FxHashMap<(usize, SmallVec<[(u16, Value); 2]>), (Rc<Trace>, Rc<Trace>)>;

/// Most runs behind gates kept at one time.
const MAX_CACHED_RUNS: usize = 1 << 12;

/// Threads in front of loops that may spin.
#[derive(Clone)]
pub(crate) struct Gates<const W: usize> {
    /// For each thread, the writes that it refuses at the gate where it waits.
    pub(crate) refused: Table<ThreadId, Row<W>>,
    /// Cache of [`Gates::may_be_let_in`]: the number of edits of the graph, and the threads that may go on, one bit each.
    moves: Cell<Option<(u64, u64)>>,
    trials: RefCell<Trials>,
}

impl<const W: usize> Gates<W> {
    pub(crate) fn new(threads: usize) -> Self {
        Gates {
            refused: vec![bits::empty(); threads].into_iter().collect(),
            moves: Cell::new(None),
            trials: RefCell::default(),
        }
    }

    /// The first thread at a gate that can be let in. With `sure` only a thread with one way in that cannot wait instead.
    pub(crate) fn openable_gate(&self, g: &Graph<'_, W>, sure: bool) -> Option<ThreadId> {
        g.events.threads.ids().find(|t| {
            let TraceEnd::Gate(index) = g.events.threads[*t].trace.end else { return false };
            let ways = self.entry(g, *t, index).ways();
            ways > 0 && (!sure || (ways == 1 && !self.may_miss(g, *t, index, &[])))
        })
    }

    /// The run of a thread behind a gate, given answers to its reads. It depends only on these and on the run so far.
    fn behind_gate(
        &self,
        g: &Graph<'_, W>,
        thread: ThreadId,
        gate: u16,
        given: &[(u16, Value)],
    ) -> Rc<Trace> {
        let here = &g.events.threads[thread].trace;
        let key = (Rc::as_ptr(here) as usize, SmallVec::from_slice(given));
        if let Some((_, known)) = self.trials.borrow().get(&key) {
            return Rc::clone(known);
        }
        let flow = &g.events.threads[thread].flow;
        let view = Trial { inner: Answers { graph: g, thread }, gate, given };
        let trace = Rc::new(run(g.events.program, &g.events.layout, flow, thread, g.events.front, &view));
        let mut trials = self.trials.borrow_mut();
        if trials.len() >= MAX_CACHED_RUNS {
            trials.clear();
        }
        trials.insert(key, (Rc::clone(here), Rc::clone(&trace)));
        trace
    }

    /// How a thread can be let in now.
    pub(crate) fn entry(&self, g: &Graph<'_, W>, thread: ThreadId, gate: u16) -> Entry {
        let vain =
            |given: &[(u16, Value)]| self.behind_gate(g, thread, gate, given).end == TraceEnd::SpinFail;
        let blind = self.behind_gate(g, thread, gate, &[]);
        if blind.end == TraceEnd::SpinFail {
            return Entry::Vain(None);
        }
        // A read behind the loop decides nothing about it.
        let (flow, head) = (&g.events.threads[thread].flow, g.events.threads[thread].trace.pc);
        let decides = |e: &&Emitted| flow.leads(e.pc, head) && depends_on(&blind, gate, e.index);
        let first = asked(&blind, gate, &[]).filter(decides);
        if let Some(Emitted { index, kind: Kind::Mbarrier(used), lanes, .. }) = first {
            let places = g.mbarriers.places_for(
                &g.events,
                *used,
                (thread, *index, &lanes.arms, false),
                &Floor::default(),
            );
            let values: BTreeSet<Value> =
                places.iter().map(|p| g.mbarriers.answer_at(&g.events, *used, *p)).collect();
            return if values.into_iter().any(|v| !vain(&[(*index, v)])) { Entry::Free } else { Entry::Asks };
        }
        let Some((read, access)) = first.and_then(|e| e.access.map(|a| (e.index, a))) else {
            return Entry::Free;
        };
        if access.cells != 1 {
            return Entry::Free;
        }
        let cell = access.cell;
        let writers = bits::minus(g.events.writers(cell), &self.refused[thread]);
        let ends =
            |w: &EventId| g.events.writes_unknown(*w) || !vain(&[(read, g.events.cell_value(*w, cell))]);
        let writes: SmallVec<[EventId; 4]> = row::events(&writers).filter(ends).collect();
        if writes.is_empty() { Entry::Vain(Some(cell)) } else { Entry::Reads { read, cell, writes } }
    }

    /// Lets a thread wait for a write other than these. Returns the writes it had refused before.
    pub(crate) fn refuse(&mut self, g: &mut Graph<'_, W>, thread: ThreadId, writes: &[EventId]) -> Row<W> {
        g.events.edits += 1;
        let before = self.refused[thread];
        debug_assert!(matches!(g.events.threads[thread].trace.end, TraceEnd::Gate(_)), "it stands at a gate");
        writes.iter().for_each(|w| row::set(&mut self.refused[thread], *w));
        before
    }

    /// Whether a thread that could pass its gate now may still wait there for ever. If its loop only waits for an mbarrier:
    /// the mbarrier may complete further phases, so that the wait fails at last. Otherwise: some last values of the cells
    /// that the iteration reads may keep it in the loop. `known`: coherence pairs of this graph beyond the chosen ones.
    fn may_miss(&self, g: &Graph<'_, W>, thread: ThreadId, index: u16, known: &[Row<W>]) -> bool {
        if !g.events.threads[thread].flow.waits_only[g.events.threads[thread].trace.pc] {
            return !self.passes_in_the_end(g, thread, index, known);
        }
        self.awaited(g, thread, index).is_none_or(|used| {
            let era = g.mbarriers.eras(&g.events, used.object);
            let now = Stage { era, level: g.mbarriers.level(&g.events, used.object, era) };
            let outlook = || outlook(g, Without { event: None, thread: Some(thread) });
            g.mbarriers.answer_at(&g.events, used, now) == 0 || may_advance(g, used.object, &outlook())
        })
    }

    /// The same, with the coherence pairs that the model implies.
    pub(crate) fn may_be_stuck(
        &self,
        g: &mut Graph<'_, W>,
        consistency: &mut Consistency<W>,
        thread: ThreadId,
        index: u16,
    ) -> bool {
        if !self.may_miss(g, thread, index, &[]) {
            return false;
        }
        let mark = consistency.enter(g);
        let wrong = matches!(consistency.partial(g), Solution::Violated(_));
        let may = wrong || self.may_miss(g, thread, index, consistency.evaluator.coherence());
        consistency.evaluator.back(&mark);
        may
    }

    /// The wait at the start of the iteration behind a gate.
    pub(crate) fn awaited(&self, g: &Graph<'_, W>, thread: ThreadId, index: u16) -> Option<MbarUse> {
        let trace = self.behind_gate(g, thread, index, &[]);
        let first = trace.events.get(usize::from(index)..)?.iter().flatten().next()?;
        match first.kind {
            Kind::Mbarrier(used @ MbarUse { act: Act::Wait { .. }, .. }) => Some(used),
            _ => None,
        }
    }

    /// Whether some thread waits in front of a loop that it would leave in the end. `coherence` is that of this graph.
    pub(crate) fn waits_in_vain(&self, g: &Graph<'_, W>, coherence: &[Row<W>]) -> bool {
        g.events.threads.entries().any(|(t, thread)| {
            let index = match thread.trace.end {
                TraceEnd::Stuck(index) => index,
                TraceEnd::Gate(index) if !bits::is_empty(&self.refused[t]) => index,
                _ => return false,
            };
            let let_in = thread.trace.end == TraceEnd::Gate(index) && self.entry(g, t, index).ways() > 0;
            !let_in && self.passes_in_the_end(g, t, index, coherence)
        })
    }

    /// Whether the iteration behind a gate takes the thread out of its loop, whichever write comes last at each cell it
    /// reads. False in case of doubt.
    fn passes_in_the_end(&self, g: &Graph<'_, W>, thread: ThreadId, gate: u16, known: &[Row<W>]) -> bool {
        let last = |cell: CellId| self.last_values(g, thread, cell, known);
        g.events.front.planted != Some(Planted::AlwaysHangs)
            && self.leaves(g, (thread, gate), &last, &mut Vec::new(), &mut 0)
    }

    fn leaves(
        &self,
        g: &Graph<'_, W>,
        (thread, gate): (ThreadId, u16),
        last: &dyn Fn(CellId) -> Option<BTreeSet<Value>>,
        given: &mut Vec<(u16, Value)>,
        trials: &mut usize,
    ) -> bool {
        *trials += 1;
        let trace = self.behind_gate(g, thread, gate, given);
        if trace.end == TraceEnd::SpinFail || *trials > MAX_TRIALS {
            return false;
        }
        if !g.events.threads[thread].flow.leads(trace.pc, g.events.threads[thread].trace.pc) {
            return true;
        }
        let Some(read) = asked(&trace, gate, given).filter(|e| e.kind == Kind::Read) else { return false };
        let Some(access) = read.access.filter(|a| a.cells == 1 && given.len() < MAX_TRIED_READS) else {
            return false;
        };
        let Some(values) = last(access.cell) else { return false };
        let leaves = |value: Value| {
            given.push((read.index, value));
            let leaves = self.leaves(g, (thread, gate), last, given, trials);
            given.pop();
            leaves
        };
        match g.events.front.planted {
            Some(Planted::SomeLast) => values.into_iter().any(leaves),
            _ => values.into_iter().all(leaves),
        }
    }

    /// The last values that a cell can have if `thread` does nothing more; `None` if they are not known.
    fn last_values(
        &self,
        g: &Graph<'_, W>,
        thread: ThreadId,
        cell: CellId,
        known: &[Row<W>],
    ) -> Option<BTreeSet<Value>> {
        let waiting = bits::minus(&g.events.universe.writes[cell], &g.events.present);
        if !bits::is_empty(&waiting) || self.others_may_write(g, thread, cell) {
            return None;
        }
        let writers = *g.events.writers(cell);
        let last = |w: EventId| {
            let chosen = bits::and(g.events.related(rels::CO, w), &writers);
            let implied = known.get(w.index()).map_or(chosen, |row| bits::and(row, &writers));
            bits::is_empty(&chosen) && bits::is_empty(&implied)
        };
        row::events(&writers)
            .filter(|w| last(*w))
            .map(|w| (!g.events.writes_unknown(w)).then(|| g.events.cell_value(w, cell)))
            .collect()
    }

    /// Whether, while a thread waits, another one may still make a write to a cell that the universe does not hold.
    fn others_may_write(&self, g: &Graph<'_, W>, thread: ThreadId, cell: CellId) -> bool {
        if g.events.restless == 0 || g.events.front.planted == Some(Planted::NobodyElse) {
            return false;
        }
        let moving = self.moving(g, Some(thread));
        self.may_come(g, cell, |t| moving[t])
    }

    /// Whether the remaining code of one of these threads may write a cell, or a write that is not known to happen may.
    fn may_come(&self, g: &Graph<'_, W>, cell: CellId, moves: impl Fn(ThreadId) -> bool) -> bool {
        let touches = |e: &Emitted| e.access.is_none_or(|a| a.covers(cell));
        g.events.threads.entries().any(|(t, thread)| {
            let writes = |of: &Written| may_write(of, thread.trace.pc, cell);
            (moves(t) && writes(&g.events.ahead(t).all)) || thread.trace.unsure.iter().any(touches)
        })
    }

    /// Whether a thread that waits at a gate may be let in some time.
    pub(crate) fn may_be_let_in(&self, g: &Graph<'_, W>, thread: ThreadId) -> bool {
        let known = self.moves.get().filter(|(edits, _)| *edits == g.events.edits);
        let moves = known.map_or_else(
            || {
                let moving = self.moving(g, None);
                moving.iter().enumerate().fold(0, |all, (t, m)| all | u64::from(*m && t < 64) << t.min(63))
            },
            |(_, moves)| moves,
        );
        self.moves.set(Some((g.events.edits, moves)));
        thread.index() >= 64 || moves >> thread.index() & 1 == 1
    }

    /// Threads that may add events to the universe, provided that `still` adds none.
    fn moving(&self, g: &Graph<'_, W>, still: Option<ThreadId>) -> Table<ThreadId, bool> {
        let at = |t: ThreadId| match g.events.threads[t].trace.end {
            _ if Some(t) == still => Entry::Vain(None),
            TraceEnd::Pending(_) | TraceEnd::Barrier(_) => Entry::Free,
            TraceEnd::Gate(_) if g.events.threads[t].flow.waits_only[g.events.threads[t].trace.pc] => {
                Entry::Asks
            }
            TraceEnd::Gate(index) => self.entry(g, t, index),
            _ => Entry::Vain(None),
        };
        let entries: Table<ThreadId, Entry> = g.events.threads.ids().map(at).collect();
        let mut moving: Table<ThreadId, bool> =
            entries.iter().map(|e| !matches!(e, Entry::Vain(_))).collect();
        if g.events.front.planted == Some(Planted::StaysInFront) {
            return moving;
        }
        loop {
            let next = moving.ids().find(|t| match entries[*t] {
                Entry::Vain(Some(cell)) if !moving[*t] => {
                    let waiting = bits::minus(&g.events.universe.writes[cell], &g.events.present);
                    !bits::is_empty(&waiting) || self.may_come(g, cell, |u| moving[u])
                }
                _ => false,
            });
            match next {
                Some(thread) => moving[thread] = true,
                None => return moving,
            }
        }
    }
}

/// How a thread can be let in.
pub(crate) enum Entry {
    /// Its first read, of this cell, takes one of these writes.
    Reads {
        /// By index.
        read: u16,
        cell: CellId,
        writes: SmallVec<[EventId; 4]>,
    },
    /// Its reads are decided behind the gate.
    Free,
    /// Not now: it asks an mbarrier.
    Asks,
    /// Not now: the iteration fails with every write to the cell that it reads first. `None`: it reads no cell, and always
    /// fails.
    Vain(Option<CellId>),
}

impl Entry {
    pub(crate) fn ways(&self) -> usize {
        match self {
            Entry::Reads { writes, .. } => writes.len(),
            Entry::Free => 1,
            Entry::Asks | Entry::Vain(_) => 0,
        }
    }
}

/// The first read or mbarrier operation behind a gate without an answer.
fn asked<'t>(trace: &'t Trace, gate: u16, given: &[(u16, Value)]) -> Option<&'t Emitted> {
    let asks = |e: &&Emitted| matches!(e.kind, Kind::Mbarrier(_) | Kind::Read);
    let mut all = trace.events.get(usize::from(gate)..)?.iter().flatten().filter(asks);
    all.find(|e| given.iter().all(|g| g.0 != e.index))
}

/// Whether nothing behind a gate takes effect, or may, before the first read there has its value, except the write of that
/// read itself. Then nothing behind the gate can be the cause of that value.
fn depends_on(blind: &Trace, gate: u16, first: u16) -> bool {
    let acts = |e: &Emitted| match e.kind {
        Kind::Read | Kind::Fence => false,
        Kind::Mbarrier(used) => !matches!(used.act, Act::Wait { .. }),
        Kind::Write | Kind::Barrier(_) | Kind::Allocator(_) => true,
    };
    let may_act = |e: &Emitted| e.index >= gate && e.index != first + 1;
    matches!(&blind.end, TraceEnd::Pending(needed) if needed.has(first))
        && !blind.events.iter().skip(usize::from(gate)).flatten().any(acts)
        && !blind.unsure.iter().any(may_act)
}
