//! Gates: threads in front of an iteration of a loop that may spin.
//!
//! A thread is let in with the write that its first read takes, and only with one that may end the loop; until such a write
//! is there it waits in front, and when one comes it takes it or waits for another one. So no read of a spin is ever open,
//! and an execution in which the thread does not wait for ever has nothing of its failed iterations. That `po | rf` may be
//! cyclic is no matter: what comes behind the loop exists by what was read there, and existence is never cyclic. Where
//! something happens behind the gate whatever is read, the thread is let in with its reads open.
//!
//! A thread may wait for ever only if one more iteration with all reads from writes that nothing is coherence-after may be
//! in vain (`hang`). Where it is known already what can come last at each place the iteration reads, and it ends the loop
//! in any case, waiting leads nowhere. Who may still write there: of the threads that wait too, only those that somebody
//! may let in, since two that only let in each other would be a cycle of existence.

use crate::event::{Emitted, Kind, has_dep};
use crate::flow::successors;
use crate::future::Without;
use crate::held::Written;
use crate::interp::{Trace, TraceEnd, run};
use crate::mbarrier::{Act, Floor, MbarUse, Place};
use crate::planted::Planted;
use crate::state::State;
use crate::view::{ThreadView, Trial};
use moire_cat::bits::{self, Row};
use moire_cat::eval::Solution;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Reads of an iteration whose answers are tried, and iterations that are: with more it may be in vain.
const READS: usize = 4;
const TRIALS: usize = 64;

/// Where threads got behind gates, by the run that led there and answers; the run is kept so that its address stays its own.
pub(crate) type Trials = FxHashMap<(usize, SmallVec<[(u16, Value); 2]>), (Rc<Trace>, Rc<Trace>)>;

/// Of these, at one time.
const KEPT: usize = 1 << 12;

impl<const W: usize> State<'_, W> {
    /// First thread at a gate that can be let in; with `sure`, in one way, and that cannot wait.
    pub(crate) fn openable_gate(&self, sure: bool) -> Option<usize> {
        (0..self.threads.len()).find(|t| {
            let TraceEnd::Gate(index) = self.threads[*t].trace.end else { return false };
            let ways = self.entry(*t, index).ways();
            ways > 0 && (!sure || (ways == 1 && !self.may_miss(*t, index, &[])))
        })
    }

    /// Where a thread gets behind a gate, if these reads get these answers; a function of these and of where it is.
    fn behind_gate(&self, thread: usize, gate: u16, given: &[(u16, Value)]) -> Rc<Trace> {
        let here = &self.threads[thread].trace;
        let key = (Rc::as_ptr(here) as usize, SmallVec::from_slice(given));
        if let Some((_, known)) = self.trials.borrow().get(&key) {
            return Rc::clone(known);
        }
        let id = ThreadId(u16::try_from(thread).unwrap_or(u16::MAX));
        let flow = &self.threads[thread].flow;
        let view = Trial { inner: ThreadView { state: self, thread }, gate, given };
        let trace = Rc::new(run(self.program, &self.layout, flow, id, self.front, &view));
        let mut trials = self.trials.borrow_mut();
        if trials.len() >= KEPT {
            trials.clear();
        }
        trials.insert(key, (Rc::clone(here), Rc::clone(&trace)));
        trace
    }

    /// How a thread can be let in now.
    pub(crate) fn entry(&self, thread: usize, gate: u16) -> Entry {
        let vain = |given: &[(u16, Value)]| self.behind_gate(thread, gate, given).end == TraceEnd::SpinFail;
        let blind = self.behind_gate(thread, gate, &[]);
        if blind.end == TraceEnd::SpinFail {
            return Entry::Vain(None);
        }
        let first = asked(&blind, gate, &[]).filter(|first| hangs_on(&blind, gate, first.index));
        if let Some(Emitted { index, kind: Kind::Mbarrier(used), arms, .. }) = first {
            let places = self.places_for(*used, (thread, *index, arms, false), &Floor::default());
            let values: BTreeSet<Value> = places.iter().map(|p| self.answer_at(*used, *p)).collect();
            return if values.into_iter().any(|v| !vain(&[(*index, v)])) { Entry::Free } else { Entry::Asks };
        }
        let Some((read, access)) = first.and_then(|e| e.access.map(|a| (e.index, a))) else {
            return Entry::Free;
        };
        if access.cells != 1 {
            return Entry::Free;
        }
        let cell = usize::from(access.cell);
        let writers = bits::minus(&self.inputs.cells.writers[cell], &self.refused[thread]);
        let ends = |w: &usize| self.writes_unknown(*w) || !vain(&[(read, self.cell_value(*w, cell))]);
        let writes: SmallVec<[usize; 4]> = bits::iter(&writers).filter(ends).collect();
        if writes.is_empty() { Entry::Vain(Some(cell)) } else { Entry::Reads { read, cell, writes } }
    }

    /// Has a thread wait for another write than these; returns those it did not take before.
    pub(crate) fn refuse(&mut self, thread: usize, writes: &[usize]) -> Row<W> {
        self.edits += 1;
        let before = self.refused[thread];
        writes.iter().for_each(|w| bits::set(&mut self.refused[thread], *w));
        before
    }

    /// Whether a thread at a gate can be stuck there though it could pass now: its loop only waits for an mbarrier, and
    /// the phase it waits for may not be the one just completed in the end; or what reads get in the end may keep it.
    /// `known`: coherence pairs of this graph, if any are known beside those that were chosen.
    fn may_miss(&self, thread: usize, index: u16, known: &[Row<W>]) -> bool {
        if !self.threads[thread].flow.waits_only[self.threads[thread].trace.pc] {
            return !self.passes_in_the_end(thread, index, known);
        }
        self.awaited(thread, index).is_none_or(|used| {
            let era = self.eras(used.object);
            let now = Place { era, level: self.level(used.object, era) };
            let outlook = || self.outlook(Without { event: None, thread: Some(thread) });
            self.answer_at(used, now) == 0 || self.may_advance(used.object, &outlook())
        })
    }

    /// The same, asking the model what comes last.
    pub(crate) fn may_be_stuck(&mut self, thread: usize, index: u16) -> bool {
        if !self.may_miss(thread, index, &[]) {
            return false;
        }
        let mark = self.judged();
        let wrong = matches!(self.partial(), Solution::Violated(_));
        let may = wrong || self.may_miss(thread, index, self.evaluator.coherence());
        self.evaluator.back(&mark);
        may
    }

    /// The wait at the start of the iteration behind a gate.
    pub(crate) fn awaited(&self, thread: usize, index: u16) -> Option<MbarUse> {
        let trace = self.behind_gate(thread, index, &[]);
        let first = trace.events.get(usize::from(index)..)?.iter().flatten().next()?;
        match first.kind {
            Kind::Mbarrier(used @ MbarUse { act: Act::Wait { .. }, .. }) => Some(used),
            _ => None,
        }
    }

    /// Whether some thread waits in front of a loop that it leaves in the end; of the graph judged just now.
    pub(crate) fn waits_in_vain(&self) -> bool {
        (0..self.threads.len()).any(|t| {
            let index = match self.threads[t].trace.end {
                TraceEnd::Stuck(index) => index,
                TraceEnd::Gate(index) if !bits::is_empty(&self.refused[t]) => index,
                _ => return false,
            };
            let let_in =
                self.threads[t].trace.end == TraceEnd::Gate(index) && self.entry(t, index).ways() > 0;
            !let_in && self.passes_in_the_end(t, index, self.evaluator.coherence())
        })
    }

    /// Whether the iteration behind a gate takes the thread out of its loop whatever write comes last at each place it
    /// reads. In doubt it does not.
    fn passes_in_the_end(&self, thread: usize, gate: u16, known: &[Row<W>]) -> bool {
        let last = |cell: usize| self.last_values(thread, cell, known);
        self.front.planted != Some(Planted::AlwaysHangs)
            && self.leaves((thread, gate), &last, &mut Vec::new(), &mut 0)
    }

    fn leaves(
        &self,
        (thread, gate): (usize, u16),
        last: &dyn Fn(usize) -> Option<BTreeSet<Value>>,
        given: &mut Vec<(u16, Value)>,
        trials: &mut usize,
    ) -> bool {
        *trials += 1;
        let trace = self.behind_gate(thread, gate, given);
        if trace.end == TraceEnd::SpinFail || *trials > TRIALS {
            return false;
        }
        if !self.comes_to(thread, trace.pc, self.threads[thread].trace.pc) {
            return true;
        }
        let Some(read) = asked(&trace, gate, given).filter(|e| e.kind == Kind::Read) else { return false };
        let Some(access) = read.access.filter(|a| a.cells == 1 && given.len() < READS) else { return false };
        let Some(values) = last(usize::from(access.cell)) else { return false };
        let leaves = |value: Value| {
            given.push((read.index, value));
            let leaves = self.leaves((thread, gate), last, given, trials);
            given.pop();
            leaves
        };
        match self.front.planted {
            Some(Planted::SomeLast) => values.into_iter().any(leaves),
            _ => values.into_iter().all(leaves),
        }
    }

    /// Whether a thread at `from` can come to `to`.
    fn comes_to(&self, thread: usize, from: usize, to: usize) -> bool {
        let body = &self.program.threads[thread].body;
        let (mut todo, mut seen) = (vec![from], BTreeSet::new());
        while let Some(pc) = todo.pop() {
            if pc == to {
                return true;
            }
            if pc < body.len() && seen.insert(pc) {
                todo.extend(successors(body, pc));
            }
        }
        false
    }

    /// What a cell can hold in the end if `thread` does nothing more; `None` if nobody knows.
    fn last_values(&self, thread: usize, cell: usize, known: &[Row<W>]) -> Option<BTreeSet<Value>> {
        let waiting = bits::minus(&self.universe.writes[cell], &self.present);
        if !bits::is_empty(&waiting) || self.others_may_write(thread, cell) {
            return None;
        }
        let writers = self.inputs.cells.writers[cell];
        let last = |w: usize| {
            let chosen = bits::and(&self.inputs.rels[rels::CO][w], &writers);
            let implied = known.get(w).map_or(chosen, |row| bits::and(row, &writers));
            bits::is_empty(&chosen) && bits::is_empty(&implied)
        };
        bits::iter(&writers)
            .filter(|w| last(*w))
            .map(|w| (!self.writes_unknown(w)).then(|| self.cell_value(w, cell)))
            .collect()
    }

    /// Whether, while a thread waits, another one may still write a cell in a way the universe does not hold.
    fn others_may_write(&self, thread: usize, cell: usize) -> bool {
        if self.restless == 0 || self.front.planted == Some(Planted::NobodyElse) {
            return false;
        }
        let moving = self.moving(Some(thread));
        self.may_come(cell, |t| moving[t])
    }

    /// Whether some of these threads may write a cell with what they still do, or somebody with what may have happened.
    fn may_come(&self, cell: usize, moves: impl Fn(usize) -> bool) -> bool {
        let touches = |e: &Emitted| e.access.is_none_or(|a| a.cell_range().contains(&cell));
        self.threads.iter().enumerate().any(|(t, thread)| {
            let writes = |of: &Written| of[thread.trace.pc].as_ref().is_none_or(|cells| cells[cell]);
            (moves(t) && writes(&self.ahead(t).all)) || thread.trace.unsure.iter().any(touches)
        })
    }

    /// Whether a thread that waits at a gate may be let in some time.
    pub(crate) fn may_be_let_in(&self, thread: usize) -> bool {
        let known = self.moves.get().filter(|(edits, _)| *edits == self.edits);
        let moves = known.map_or_else(
            || {
                let moving = self.moving(None);
                moving.iter().enumerate().fold(0, |all, (t, m)| all | u64::from(*m && t < 64) << t.min(63))
            },
            |(_, moves)| moves,
        );
        self.moves.set(Some((self.edits, moves)));
        thread >= 64 || moves >> thread & 1 == 1
    }

    /// Threads that may do more than the universe holds, if `still` does not.
    fn moving(&self, still: Option<usize>) -> Vec<bool> {
        let at = |t: usize| match self.threads[t].trace.end {
            _ if Some(t) == still => Entry::Vain(None),
            TraceEnd::Pending(_) | TraceEnd::Barrier(_) => Entry::Free,
            TraceEnd::Gate(_) if self.threads[t].flow.waits_only[self.threads[t].trace.pc] => Entry::Asks,
            TraceEnd::Gate(index) => self.entry(t, index),
            _ => Entry::Vain(None),
        };
        let entries: Vec<Entry> = (0..self.threads.len()).map(at).collect();
        let mut moving: Vec<bool> = entries.iter().map(|e| !matches!(e, Entry::Vain(_))).collect();
        if self.front.planted == Some(Planted::StaysInFront) {
            return moving;
        }
        loop {
            let next = (0..moving.len()).find(|t| match entries[*t] {
                Entry::Vain(Some(cell)) if !moving[*t] => {
                    let waiting = bits::minus(&self.universe.writes[cell], &self.present);
                    !bits::is_empty(&waiting) || self.may_come(cell, |u| moving[u])
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
        cell: usize,
        writes: SmallVec<[usize; 4]>,
    },
    /// What it reads is decided behind the gate.
    Free,
    /// Not now: it asks an mbarrier.
    Asks,
    /// Not now: the iteration is in vain with all that is in the cell it reads first; for ever, if it reads none.
    Vain(Option<usize>),
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

/// The first event behind a gate that asks memory or an mbarrier and has no answer.
fn asked<'t>(trace: &'t Trace, gate: u16, given: &[(u16, Value)]) -> Option<&'t Emitted> {
    let asks = |e: &&Emitted| matches!(e.kind, Kind::Mbarrier(_) | Kind::Read);
    let mut all = trace.events.get(usize::from(gate)..)?.iter().flatten().filter(asks);
    all.find(|e| given.iter().all(|g| g.0 != e.index))
}

/// Whether nothing behind a gate happens, or may happen but for its own write, before the first question there is answered:
/// then nothing of it can be what gives the answer.
fn hangs_on(blind: &Trace, gate: u16, first: u16) -> bool {
    let acts = |e: &Emitted| match e.kind {
        Kind::Read | Kind::Fence => false,
        Kind::Mbarrier(used) => !matches!(used.act, Act::Wait { .. }),
        Kind::Write | Kind::Barrier(_) | Kind::Allocator(_) => true,
    };
    let may_act = |e: &Emitted| e.index >= gate && e.index != first + 1;
    matches!(&blind.end, TraceEnd::Pending(needed) if has_dep(needed, first))
        && !blind.events.iter().skip(usize::from(gate)).flatten().any(acts)
        && !blind.unsure.iter().any(may_act)
}
