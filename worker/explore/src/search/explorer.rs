//! The explorer: every execution of a program under a model, each once.
//!
//! # Forward exploration with open reads
//!
//! Published stateless model checkers for weak memory (TruSt: Kokologiannakis, Marmanis, Gladstein, Vafeiadis, POPL
//! 2022; HMC: Kokologiannakis, Vafeiadis, ASPLOS 2020) let a read choose among the writes present and let a later
//! write *revisit* it, deleting what came between. Where `po | rf` may be cyclic, as in PTX, deciding which revisit to
//! take needs a completion search, and one wrong side condition silently loses executions. Here nothing is deleted:
//!
//! - a read takes a write that is present, or stays *open*;
//! - a write, when added, becomes the source of any subset of the open reads of its bytes;
//! - pairs of writes the model wants ordered and are not are branched on as soon as both are present;
//! - an arrival at a barrier joins any phase that can still take it;
//! - an operation on an mbarrier joins the current phase or is put off past it (`graph::mbarriers`);
//! - an agent in front of a spin iteration enters it with a write that is there, or waits for another one (`prune::gates`);
//! - a state with nothing left to add is a leaf if no read is open, and a dead end otherwise.
//!
//! The scheduler picks the lowest (thread, index) event that can be added; it is a function of the graph alone.
//! *Complete and without duplicates*: for a given execution every decision above is dictated by it, so exactly one
//! path leads to it; and the path never gets stuck, because a shipped model implies `acyclic(rf | xdep)` (xdep:
//! address, data, control, existence), so that some event of the execution can always be added. Pruning uses monotone
//! checks only, which hold on every part of a consistent execution. Memory is linear in the size of the program.
//!
//! The price is dead ends: a read left open that no write can satisfy. They are counted, and kept rare by asking,
//! whenever a write is placed, whether each open read still has a possible writer.
//!
//! Value-dependent control flow, awaits, mixed sizes and cyclic `po | rf` need no further argument; that is why forward
//! exploration is preferred to revisits here. A step that leaves one alternative is judged together with the next step.

use super::piece::Share;
use super::walk::{Shape, Walk};
use crate::finish::hang::hang_is_real;
use crate::finish::settle::{Raised, Settled};
use crate::finish::settle::{mbarrier_flags, settle};
use crate::graph::allocation::Turn;
use crate::graph::events::Source;
use crate::graph::ids::{EventId, OpenRead};
use crate::graph::row;
use crate::planted::Planted;
use crate::prune::mbarriers;
use crate::prune::state::State;
use crate::reduce::exchange::Exchange;
use crate::reduce::symmetry::Alike;
use crate::reduce::tail::Tail;
use crate::reduce::unobserved::Unobserved;
use crate::thread::event::Kind;
use crate::thread::ids::{CellId, Id};
use crate::thread::trace::TraceEnd;
use crate::visit::{Abstain, Bound, Limits, Summary, Visitor};
use moire_cat::bits::{self, Row};
use moire_cat::eval::Solution;
use moire_cat::vocabulary::rels;
use moire_execution::leaf::EventRef;
use moire_execution::leaf::LeafKind;
use moire_program::ir::ThreadId;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Why a search ended early.
pub(super) enum Stop {
    Visitor,
    Bound,
    TooWide,
    Abstain(Abstain),
}

/// The next event, as the scheduler picks it.
enum Next {
    Read(EventId),
    Write(EventId),
    Barrier(EventId),
    Gate(ThreadId),
    Mbarrier(EventId),
    /// One of the two before, where there is nothing to choose.
    SureMbarrier(EventId),
    SureGate(ThreadId),
    Allocation(Turn),
    Leaf,
    Dead,
}

pub(super) struct Search<'a, const W: usize> {
    pub(super) state: State<'a, W>,
    pub(super) share: Share<'a>,
    /// The visitor wants no more.
    pub(super) ended: bool,
    pub(super) path: Vec<u32>,
    pub(super) limits: &'a Limits,
    pub(super) summary: Summary,
    pub(super) steps: u64,
    /// Something was added without a choice, and the graph not judged since.
    pub(super) unjudged: bool,
    /// One alternative of each decision, drawn, instead of all.
    pub(super) walk: Option<Walk<'a>>,
    /// Accesses that wait until nothing else is left, and what is left then.
    pub(super) unobserved: Option<Unobserved>,
    pub(super) tail: Option<Tail>,
    /// Threads of which one order is enough.
    pub(super) alike: Alike,
    pub(super) visitor: &'a mut dyn Visitor,
}

pub(super) type Found = Result<(), Stop>;
type Reads = SmallVec<[OpenRead; 8]>;
/// The continuation of a step.
pub(super) type Then<S> = fn(&mut S) -> Found;

impl<'a, const W: usize> Search<'a, W> {
    fn bound(&mut self, bound: Bound) {
        self.summary.bounded.get_or_insert(bound);
    }

    pub(super) fn has(&self, bug: Planted) -> bool {
        self.state.graph.events.front.planted == Some(bug)
    }

    /// Whether alternative number `choice` of this decision is to be explored; pushes it if so.
    pub(super) fn take(&mut self, choice: u32) -> bool {
        self.take_as(choice, |_| None)
    }

    /// The same for one by which two events communicate.
    pub(super) fn take_as(&mut self, choice: u32, shape: impl FnOnce(&Self) -> Option<Shape>) -> bool {
        if self.walk.is_some() {
            return self.draw(choice, shape);
        }
        if self.ended || !self.share.takes(&self.path, choice) {
            return false;
        }
        self.steps += 1;
        self.path.push(choice);
        // A tail is explored in one go: what is left out of it depends on what was shown in it.
        let shared = self.tail.as_ref().map_or(self.path.len(), |tail| tail.depth);
        if let Some(until) = self.share.due(&self.path).filter(|_| self.tail.is_none()) {
            self.ended = self.visitor.reached(&until, &self.summary).is_break();
        }
        if self.ended {
            self.path.pop();
            return false;
        }
        self.share.give(&self.path[..shared]);
        true
    }

    pub(super) fn visit(&mut self) -> Found {
        if self.steps > self.limits.steps {
            self.bound(Bound::Steps);
            return Err(Stop::Bound);
        }
        let next = self.next();
        let sure = self.sure(&next);
        let then: Then<Self> = if sure { Self::judge_later } else { Self::judge };
        if self.unjudged && (!sure || self.begins_tail(&next)) {
            return self.judge();
        }
        self.step_into(next, then)
    }

    /// Does what the scheduler picked.
    fn step(&mut self, next: Next, then: Then<Self>) -> Found {
        match next {
            Next::Read(id) => self.place_read(id, 0, then),
            Next::Write(id) => self.place_write(id, then),
            Next::Barrier(id) => self.place_barrier(id, then),
            Next::Gate(thread) => self.place_gate(thread, false),
            Next::SureGate(thread) => self.place_gate(thread, true),
            Next::Mbarrier(id) => self.place_mbarrier(id, false),
            Next::SureMbarrier(id) => self.place_mbarrier(id, true),
            Next::Allocation(turn) => self.allocation(turn),
            Next::Leaf => self.leaf(),
            Next::Dead => {
                self.summary.dead_ends += 1;
                Ok(())
            }
        }
    }

    /// Whether a step leaves nothing to choose. The graph is judged before the next choice, not before: a check put off
    /// prunes the same, since it is monotone and nothing branches in between.
    fn sure(&mut self, next: &Next) -> bool {
        let state = &self.state;
        match next {
            Next::SureMbarrier(_) | Next::SureGate(_) => true,
            Next::Barrier(id) => match state.graph.events[*id].emitted.kind {
                Kind::Barrier(barrier) => {
                    state.graph.phases.phases_for(&state.graph.events, *id, &barrier).len() == 1
                }
                _ => false,
            },
            Next::Write(id) => state.graph.events[*id].emitted.access.is_some_and(|access| {
                let touched = |o: &&OpenRead| access.covers(o.cell);
                state.graph.events.open.iter().filter(touched).all(|open| {
                    let (read, cell) = (open.read, open.cell);
                    !state.graph.events.is_own_read(*id, read) && !state.may_be_written(cell, read, Some(*id))
                })
            }),
            Next::Read(id) => {
                let Some(access) = state.graph.events[*id].emitted.access.filter(|a| a.cells == 1) else {
                    return false;
                };
                let cell = access.cell;
                let open = usize::from(state.may_be_written(cell, *id, None));
                let writers = *state.graph.events.writers(cell);
                let free =
                    row::events(&writers).filter(|w| !self.source_is_taken(*id, *w, cell)).take(2).count();
                open + free <= 1
            }
            _ => false,
        }
    }

    fn next(&self) -> Next {
        let state = &self.state;
        if state.hopeless() {
            return Next::Dead;
        }
        let late = |id: EventId| self.unobserved.as_ref().is_some_and(|u| u.is_late(&state.graph.events[id]));
        for thread in state.graph.events.threads.ids() {
            for id in state.graph.events.threads[thread].ids.iter().flatten().copied() {
                if row::has(&state.graph.events.present, id) {
                    continue;
                }
                match state.graph.events[id].emitted.kind {
                    Kind::Fence => {}
                    _ if late(id) => {}
                    // Reads that stand for data come last: the later, the fewer writes are still to come.
                    Kind::Read if state.graph.events.program.launched && state.graph.events.idle(id) => {}
                    Kind::Read => return Next::Read(id),
                    Kind::Write if state.graph.events.ready(id) => return Next::Write(id),
                    Kind::Write => {}
                    Kind::Barrier(_) => return Next::Barrier(id),
                    Kind::Mbarrier(_) | Kind::Allocator(_) => {}
                }
            }
        }
        if state.graph.events.universe.special == 0 && state.graph.events.restless == 0 {
            return match self.next_late() {
                Some(next) => next,
                None if state.graph.events.open.is_empty() => Next::Leaf,
                None => Next::Dead,
            };
        }
        if let Some(turn) = state.graph.allocations.next_allocation(&state.graph.events, false) {
            return Next::Allocation(turn);
        }
        // What leaves no choice comes first: the less is open, the less a choice can be wrong.
        if let Some(id) = mbarriers::settled_mbarrier(&state.graph) {
            return Next::SureMbarrier(id);
        }
        if let Some(thread) = state.gates.openable_gate(&state.graph, true) {
            return Next::SureGate(thread);
        }
        if let Some(id) = mbarriers::next_mbarrier(&state.graph) {
            return Next::Mbarrier(id);
        }
        if let Some(thread) = state.gates.openable_gate(&state.graph, false) {
            return Next::Gate(thread);
        }
        if let Some(turn) = state.graph.allocations.next_allocation(&state.graph.events, true) {
            return Next::Allocation(turn);
        }
        if let Some(next) = self.next_late() {
            return next;
        }
        let settled = state.graph.events.open.is_empty()
            && mbarriers::mbarriers_settled(&state.graph)
            && state.graph.allocations.allocations_settled(&state.graph.events);
        if settled { Next::Leaf } else { Next::Dead }
    }

    /// Judges the graph, branches on unordered pairs, and goes on.
    pub(super) fn judge(&mut self) -> Found {
        let unjudged = std::mem::take(&mut self.unjudged);
        let result = self.judge_now();
        self.unjudged = unjudged;
        result
    }

    /// Goes on without judging the graph, until there is something to choose.
    pub(super) fn judge_later(&mut self) -> Found {
        let unjudged = std::mem::replace(&mut self.unjudged, true);
        let result = self.visit();
        self.unjudged = unjudged;
        result
    }

    fn judge_now(&mut self) -> Found {
        if self.state.hopeless() {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        self.summary.checks += 1;
        if self.summary.checks > self.limits.checks {
            self.bound(Bound::Checks);
            return Err(Stop::Bound);
        }
        let mark = self.state.enter();
        let result = self.judged();
        self.state.consistency.evaluator.back(&mark);
        result
    }

    fn judged(&mut self) -> Found {
        let solution = self.state.partial();
        match solution {
            Solution::Violated(_) => Ok(()),
            _ if self.tail.as_ref().is_some_and(|t| t.covers(&self.state)) => {
                self.summary.cut.unseen += 1;
                Ok(())
            }
            _ if self.is_exchanged() => {
                self.summary.cut.threads += 1;
                Ok(())
            }
            _ if self.state.waits_in_vain() => {
                self.summary.dead_ends += 1;
                Ok(())
            }
            Solution::Consistent { .. } if self.state.too_late() => {
                self.summary.dead_ends += 1;
                Ok(())
            }
            Solution::Consistent { .. } => self.visit(),
            Solution::Open { a, b } => self.decide(|search| search.order(EventId::at(a), EventId::at(b))),
        }
    }

    /// Orders two writes in both ways.
    fn order(&mut self, a: EventId, b: EventId) -> Found {
        for (choice, (x, y)) in [(a, b), (b, a)].into_iter().enumerate() {
            if choice == 1 && self.has(Planted::OneDirection) {
                continue;
            }
            if !self.take_as(u32::from(choice == 1), |search| Some(search.follows(x, y))) {
                continue;
            }
            let saved = self.state.graph.events.order_writes(x, y);
            let result = self.judge();
            self.state.graph.events.restore_order(saved);
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// Chooses the sources of a read, cell by cell; the last one resolves its value.
    fn place_read(&mut self, id: EventId, slot: usize, then: Then<Self>) -> Found {
        if slot == 0 {
            row::set(&mut self.state.graph.events.present, id);
        }
        let result = self.decide(|search| search.source(id, slot, then));
        if slot == 0 {
            row::clear(&mut self.state.graph.events.present, id);
        }
        result
    }

    /// Gives one cell of a read each source it can have.
    fn source(&mut self, id: EventId, slot: usize, then: Then<Self>) -> Found {
        let access = self.state.graph.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell_at(slot);
        let writers = *self.state.graph.events.writers(cell);
        let mut choice = 0;
        let mut result = Ok(());
        for write in row::events(&writers) {
            let initial = self.state.graph.events[write].thread.is_none();
            let forgotten = initial && bits::count(&writers) > 1 && self.has(Planted::ForgetsInitial);
            if result.is_ok()
                && !forgotten
                && !self.source_is_taken(id, write, cell)
                && self.take_as(choice, |search| Some(search.read_by(write, id)))
            {
                result = self.read_from(id, slot, Source::Write(write), then);
                self.path.pop();
            }
            choice += 1;
        }
        let never = self.has(Planted::NeverOpen);
        if result.is_ok() && !never && self.state.may_be_written(cell, id, None) && self.take(choice) {
            result = self.read_from(id, slot, Source::Open, then);
            self.path.pop();
        }
        result
    }

    /// Whether a read-modify-write reads this write already, and lets no other one.
    pub(super) fn source_is_taken(&mut self, read: EventId, write: EventId, cell: CellId) -> bool {
        if !self.state.graph.events[read].is_rmw() {
            return false;
        }
        let readers = *self.state.graph.events.related(rels::RF, write);
        row::events(&readers).any(|other| {
            self.state.graph.events[other].is_rmw() && self.state.exclusive(read, other, write, cell)
        })
    }

    pub(super) fn read_from(&mut self, id: EventId, slot: usize, source: Source, then: Then<Self>) -> Found {
        let access = self.state.graph.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell_at(slot);
        let more = slot + 1 < access.cells as usize;
        self.state.graph.events.set_source(id, cell, source);
        let result = match (more, source) {
            (true, Source::Write(_)) if self.contradicts() => Ok(()),
            (true, _) => self.place_read(id, slot + 1, then),
            (false, Source::Open) => self.visit(),
            (false, Source::Write(write))
                if self.state.graph.events.writes_unknown(write) && self.contradicts() =>
            {
                Ok(())
            }
            (false, Source::Write(_)) => self.resolved(&[id], then),
        };
        self.state.graph.events.unset_source(id, cell, source);
        result
    }

    /// Whether the graph, with a read half placed, is beyond repair.
    fn contradicts(&mut self) -> bool {
        self.summary.checks += 1;
        self.state.contradicts()
    }

    /// Re-interprets the threads of reads whose value just became known, then continues.
    pub(super) fn resolved(&mut self, reads: &[EventId], then: impl FnOnce(&mut Self) -> Found) -> Found {
        self.rerun(|state| state.graph.refresh(reads), then)
    }

    /// Runs threads again and continues, unless a run is part of no execution.
    pub(super) fn rerun(
        &mut self,
        refresh: impl FnOnce(&mut State<'a, W>) -> Result<(), TraceEnd>,
        then: impl FnOnce(&mut Self) -> Found,
    ) -> Found {
        let mark = self.state.graph.mark();
        let result = match refresh(&mut self.state) {
            Ok(()) => then(self),
            Err(TraceEnd::SpinFail) => Ok(()),
            Err(TraceEnd::Bound) => {
                self.bound(Bound::Loop);
                Ok(())
            }
            Err(TraceEnd::Unsupported(reason, line)) => {
                self.state.graph.reset(mark);
                return self.unsupported(reason, line);
            }
            Err(_) => Err(Stop::TooWide),
        };
        self.state.graph.reset(mark);
        result
    }

    /// An execution that cannot be is no reason to abstain.
    fn unsupported(&mut self, reason: String, line: u32) -> Found {
        if self.contradicts() { Ok(()) } else { Err(Stop::Abstain(Abstain { reason, line })) }
    }

    /// Adds a write as the source of every subset of the open reads of its cells.
    fn place_write(&mut self, id: EventId, then: Then<Self>) -> Found {
        let access = self.state.graph.events[id].emitted.access.expect("a placed write has an address");
        self.state.graph.events.add_write(id);
        let (mut must, mut may) = (Reads::new(), Reads::new());
        for &open in &self.state.graph.events.open {
            let (read, cell) = (open.read, open.cell);
            let own = self.state.graph.events.is_own_read(id, read);
            if access.covers(cell) {
                let later = self.state.may_be_written(cell, read, Some(id));
                match (own, later) {
                    (true, true) => {}
                    (true, false) => {
                        self.state.graph.events.remove_write(id);
                        self.summary.dead_ends += 1;
                        return Ok(());
                    }
                    (false, true) => may.push(open),
                    (false, false) => must.push(open),
                }
            }
        }
        let clash = (1..must.len()).any(|i| self.clashes(id, must[i], &must[..i]));
        let (count, all) = (must.len(), must.len() + may.len());
        let result = if clash {
            self.summary.dead_ends += 1;
            Ok(())
        } else {
            self.claim_some(id, &may, &mut must, (count, all), then)
        };
        self.state.graph.events.remove_write(id);
        result
    }

    /// Whether a read cannot take the write `id` beside these.
    fn clashes(&mut self, id: EventId, open: OpenRead, beside: &[OpenRead]) -> bool {
        let (read, cell) = (open.read, open.cell);
        if !self.state.graph.events[read].is_rmw() {
            return false;
        }
        beside.iter().filter(|other| other.cell == open.cell).any(|other| {
            let other = other.read;
            self.state.graph.events[other].is_rmw() && self.state.exclusive(read, other, id, cell)
        })
    }

    /// Claims `claimed` with each subset of `may`, one read after another; of `all` reads the first ones have no choice.
    fn claim_some(
        &mut self,
        id: EventId,
        may: &[OpenRead],
        claimed: &mut Reads,
        (sure, all): (usize, usize),
        then: Then<Self>,
    ) -> Found {
        let Some((&read, rest)) = may.split_first() else {
            let (every, none) = (claimed.len() == all, claimed.len() == sure);
            if (self.has(Planted::AllOrNothing) && !every && !none)
                || (self.has(Planted::ClaimsAll) && !every)
            {
                return Ok(());
            }
            let claimed = claimed.clone();
            return self.claim(id, &claimed, then);
        };
        self.decide(|search| {
            for takes in [true, false] {
                let shape = |search: &Self| takes.then(|| search.read_by(id, read.read));
                if (takes && search.clashes(id, read, claimed)) || !search.take_as(u32::from(!takes), shape) {
                    continue;
                }
                if takes {
                    claimed.push(read);
                }
                let result = search.claim_some(id, rest, claimed, (sure, all), then);
                if takes {
                    claimed.pop();
                }
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    fn claim(&mut self, write: EventId, claimed: &[OpenRead], then: Then<Self>) -> Found {
        for open in claimed {
            let (read, cell) = (open.read, open.cell);
            self.communicate(write, read);
            self.state.graph.events.unset_source(read, cell, Source::Open);
            self.state.graph.events.set_source(read, cell, Source::Write(write));
        }
        let mut reads: SmallVec<[EventId; 8]> = claimed.iter().map(|o| o.read).collect();
        reads.dedup();
        let unknown = !reads.is_empty() && self.state.graph.events.writes_unknown(write);
        let refused = unknown && self.contradicts();
        let result = if refused { Ok(()) } else { self.resolved(&reads, then) };
        for open in claimed.iter().rev() {
            let (read, cell) = (open.read, open.cell);
            self.state.graph.events.unset_source(read, cell, Source::Write(write));
            self.state.graph.events.set_source(read, cell, Source::Open);
        }
        self.state.graph.events.sort_open();
        result
    }

    fn leaf(&mut self) -> Found {
        if self.led_here() {
            return Ok(());
        }
        if self.state.graph.events.universe.special > 0
            && !self.state.graph.phases.phases_complete(&self.state.graph.events)
        {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        let kind = self.state.graph.events.kind();
        let (limit, model) = (self.limits.outcomes, self.state.model);
        self.summary.checks += 1;
        if kind == LeafKind::Complete && self.state.simple() {
            let mark = self.state.enter();
            if self.state.consistency.plain(&mut self.state.graph) {
                let result = self.show_plain(limit);
                self.state.consistency.evaluator.back(&mark);
                return result;
            }
            self.state.consistency.evaluator.back(&mark);
        }
        let (results, untried) = settle(&mut self.state);
        if untried {
            let some = self.state.graph.mbarriers.places.iter().any(Option::is_some);
            self.bound(if some { Bound::PhaseOrders } else { Bound::FenceOrders });
        }
        if results.is_empty() {
            self.summary.dead_ends += 1;
        }
        let own = mbarrier_flags(&self.state);
        for Settled { co, fence, flags, ends_badly } in results {
            if kind == LeafKind::Blocked
                && !self.has(Planted::AlwaysHangs)
                && !hang_is_real(&mut self.state, &co)
            {
                self.summary.dead_ends += 1;
                continue;
            }
            match kind {
                LeafKind::Complete => self.summary.complete += 1,
                LeafKind::Blocked => self.summary.blocked += 1,
            }
            self.note(&co, &flags);
            let name = |c: &moire_cat::CheckId| model.checks()[c.0].name.clone();
            let pairs = flags.iter().map(|(c, pairs)| (name(c), pairs.clone())).collect();
            let mut flags: BTreeSet<String> = flags.keys().map(name).chain(own.iter().cloned()).collect();
            if ends_badly {
                flags.insert(moire_execution::leaf::flag::NO_COMPLETE.to_owned());
            }
            let mut view = crate::finish::view::View {
                state: &self.state,
                co: &co,
                fence: &fence,
                flags,
                pairs,
                kind,
                limit,
                path: &self.path,
                cut: false,
            };
            let flow = self.visitor.leaf(&mut view);
            let cut = view.cut;
            self.shown(cut, flow)?;
        }
        Ok(())
    }

    /// Shows a complete execution of which there is nothing else to say.
    fn show_plain(&mut self, limit: usize) -> Found {
        self.summary.complete += 1;
        if self.tail.is_some() {
            let co = self.state.consistency.evaluator.coherence().to_vec();
            self.note(&co, &Raised::new());
        }
        let mut view = crate::finish::view::View {
            state: &self.state,
            co: self.state.consistency.evaluator.coherence(),
            fence: self.state.consistency.evaluator.fence_order(),
            flags: BTreeSet::new(),
            pairs: BTreeMap::new(),
            kind: LeafKind::Complete,
            limit,
            path: &self.path,
            cut: false,
        };
        let flow = self.visitor.leaf(&mut view);
        let cut = view.cut;
        self.shown(cut, flow)
    }

    fn shown(&mut self, cut: bool, flow: ControlFlow<()>) -> Found {
        if cut {
            self.bound(Bound::Outcomes);
        }
        if flow.is_break() {
            return Err(Stop::Visitor);
        }
        if self.summary.complete + self.summary.blocked >= self.limits.leaves {
            self.bound(Bound::Leaves);
            return Err(Stop::Bound);
        }
        Ok(())
    }

    /// The next event when nothing but accesses that no condition observes are left, and reads that stand for data.
    fn next_late(&self) -> Option<Next> {
        let events = &self.state.graph.events;
        if let Some(id) = self.unobserved.as_ref().and_then(|u| u.next(events)) {
            return Some(if events[id].is_write() { Next::Write(id) } else { Next::Read(id) });
        }
        events.next_read().map(Next::Read)
    }

    /// Whether nothing but a tail is left from here on.
    fn begins_tail(&self, next: &Next) -> bool {
        let (Next::Read(id) | Next::Write(id)) = next else { return false };
        let event = &self.state.graph.events[*id];
        self.tail.is_none() && self.unobserved.as_ref().is_some_and(|u| u.is_late(event))
    }

    /// Goes on with what the scheduler picked; where a tail begins, until it ends.
    fn step_into(&mut self, next: Next, then: Then<Self>) -> Found {
        if self.begins_tail(&next)
            && let Some(unobserved) = &self.unobserved
        {
            self.tail = Some(Tail::begin(&mut self.state, unobserved, self.path.len()));
        } else {
            return self.step(next, then);
        }
        let result = self.step(next, then);
        self.tail = None;
        result
    }

    /// Notes the effects of an execution that was shown, in a tail.
    fn note(&mut self, co: &[Row<W>], flags: &Raised) {
        if let Some(tail) = &mut self.tail {
            tail.note(&self.state, co, flags);
        }
    }

    /// Whether an execution with threads exchanged is visited instead; about the graph judged just now.
    fn is_exchanged(&self) -> bool {
        let coherence = self.state.consistency.evaluator.coherence();
        Exchange { alike: &self.alike, graph: &self.state.graph, coherence }.is_exchanged()
    }

    /// All descents.
    pub(super) fn descend(&mut self) -> Found {
        for _ in 0..self.walk.as_ref().map_or(0, Walk::wanted) {
            let before = self.summary.complete + self.summary.blocked;
            self.walk.iter_mut().for_each(Walk::start);
            let result = self.visit();
            let found = self.summary.complete + self.summary.blocked - before;
            self.walk.iter_mut().for_each(|walk| walk.count(found));
            result?;
        }
        Ok(())
    }

    /// Goes through the alternatives of a decision, or through one of them, drawn.
    pub(super) fn decide(&mut self, mut site: impl FnMut(&mut Self) -> Found) -> Found {
        if self.walk.is_none() {
            return site(self);
        }
        if self.led_here() {
            return Ok(());
        }
        self.walk.iter_mut().for_each(Walk::begin);
        site(self)?;
        let drawn = self.walk.as_mut().is_some_and(Walk::drawn);
        let result = if drawn { site(self) } else { Ok(()) };
        self.walk.iter_mut().for_each(Walk::end);
        result
    }

    /// Notes, where an alternative is only tried, that it led here; whether it is.
    fn led_here(&mut self) -> bool {
        self.walk.as_mut().is_some_and(Walk::led_here)
    }

    /// Whether the alternative is tried, or the one drawn; pushes it if so.
    fn draw(&mut self, choice: u32, shape: impl FnOnce(&Self) -> Option<Shape>) -> bool {
        let shape = if self.walk.as_ref().is_some_and(Walk::is_trying) { shape(self) } else { None };
        if !self.walk.as_mut().is_some_and(|walk| walk.takes(shape)) {
            return false;
        }
        self.steps += 1;
        self.path.push(choice);
        true
    }

    /// Notes that a read that was open takes a write, drawn or because nothing else is left to it.
    fn communicate(&mut self, write: EventId, read: EventId) {
        if self.walk.as_ref().is_some_and(|walk| !walk.is_trying()) {
            let shape = self.read_by(write, read);
            self.walk.iter_mut().for_each(|walk| walk.show(shape));
        }
    }

    /// The communication of a write with a read of it.
    pub(super) fn read_by(&self, write: EventId, read: EventId) -> Shape {
        Shape {
            reads: true,
            from: self.state.graph.events.reference(write),
            to: self.state.graph.events.reference(read),
        }
    }

    /// The same of a read that is no event of the graph yet.
    pub(super) fn awaited_by(&self, write: EventId, thread: ThreadId, index: u16) -> Shape {
        let to = EventRef { thread: thread.0, index };
        Shape { reads: true, from: self.state.graph.events.reference(write), to }
    }

    /// The communication of two writes by coherence.
    pub(super) fn follows(&self, first: EventId, second: EventId) -> Shape {
        Shape {
            reads: false,
            from: self.state.graph.events.reference(first),
            to: self.state.graph.events.reference(second),
        }
    }
}
