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
//! The scheduler is a function of the graph alone. It picks the first kind of event that there is, and of this kind the
//! lowest (thread, index). The kinds in their order: a write, a read that [comes early](Search::comes_early) or an arrival at
//! a barrier; what leaves no choice at an mbarrier or a gate; a read that no later write can reach; a choice at an mbarrier or
//! a gate; any other read. So few reads are left open: while a read waits, the writes that could reach it are placed, or
//! there turn out to be none.
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
use crate::graph::allocation::Turn;
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
use crate::thread::ids::Id;
use crate::thread::trace::TraceEnd;
use crate::visit::{Abstain, Bound, Limits, Summary, Visitor};
use moire_cat::eval::Solution;
use moire_execution::leaf::EventRef;
use moire_program::ir::ThreadId;

/// Bytes of the stack that are left when more are taken, and how many more: a search is as deep as an execution has events.
const LEFT: usize = 128 << 10;
const MORE: usize = 4 << 20;

/// Why a search ended early.
pub(super) enum Stop {
    Visitor,
    Bound,
    TooWide,
    Abstain(Abstain),
}

/// Consistency checks from one call of [`Visitor::meanwhile`] to the next.
const MEANWHILE: u64 = 8;

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
    /// Checks at which the visitor is asked whether to go on.
    pub(super) meanwhile: u64,
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
/// The continuation of a step.
pub(super) type Then<S> = fn(&mut S) -> Found;

impl<'a, const W: usize> Search<'a, W> {
    pub(super) fn bound(&mut self, bound: Bound) {
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
        stacker::maybe_grow(LEFT, MORE, || self.visit_next())
    }

    fn visit_next(&mut self) -> Found {
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

    /// Whether a step leaves nothing to choose. Then the graph is judged only before the next choice. A check that is put off
    /// prunes the same: it is monotone, and nothing branches in between.
    fn sure(&mut self, next: &Next) -> bool {
        let state = &self.state;
        match next {
            Next::SureMbarrier(_) | Next::SureGate(_) => true,
            Next::Barrier(id) => match state.graph.events[*id].emitted.kind {
                Kind::Barrier(barrier) => state.phases_for(*id, &barrier).len() == 1,
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
        let mut waiting = None;
        for thread in state.graph.events.threads.iter() {
            for id in thread.ids.iter().flatten().copied() {
                if row::has(&state.graph.events.present, id) {
                    continue;
                }
                match state.graph.events[id].emitted.kind {
                    Kind::Fence => {}
                    _ if self.is_late(id) => {}
                    Kind::Read if self.comes_early(id) => return Next::Read(id),
                    Kind::Read => waiting = waiting.or(Some(id)),
                    Kind::Write if state.graph.events.ready(id) => return Next::Write(id),
                    Kind::Write => {}
                    Kind::Barrier(_) => return Next::Barrier(id),
                    Kind::Mbarrier(_) | Kind::Allocator(_) => {}
                }
            }
        }
        if state.graph.events.universe.special == 0 && state.graph.events.restless == 0 {
            return match self.next_late(waiting) {
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
        if let Some(id) = self.next_closed() {
            return Next::Read(id);
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
        if let Some(next) = self.next_late(waiting) {
            return next;
        }
        let settled = state.graph.events.open.is_empty()
            && mbarriers::mbarriers_settled(&state.graph)
            && state.graph.allocations.allocations_settled(&state.graph.events);
        if settled { Next::Leaf } else { Next::Dead }
    }

    /// Whether an access waits until nothing else is left.
    fn is_late(&self, id: EventId) -> bool {
        self.unobserved.as_ref().is_some_and(|u| u.is_late(&self.state.graph.events[id]))
    }

    /// Whether a read is placed as soon as its address is known. The read of a read-modify-write is. So is one that its thread
    /// uses, where there are barriers or mbarriers: choices there are few only if it is known what each thread does.
    fn comes_early(&self, id: EventId) -> bool {
        let events = &self.state.graph.events;
        events[id].is_rmw() || (events.universe.special > 0 && !events.idle(id))
    }

    /// The first read that no write to come can reach.
    fn next_closed(&self) -> Option<EventId> {
        let events = &self.state.graph.events;
        let open = |id: EventId| {
            let access = events[id].emitted.access;
            access.is_none_or(|a| a.each_cell().any(|cell| self.state.may_be_written(cell, id, None)))
        };
        let stands_for_data = |id: EventId| events.program.launched && events.idle(id);
        events.unplaced_reads().find(|id| !self.is_late(*id) && !stands_for_data(*id) && !open(*id))
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
        debug_assert!(!self.unjudged, "the graph is judged now");
        if self.state.hopeless() {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        self.summary.checks += 1;
        if self.summary.checks > self.limits.checks {
            self.bound(Bound::Checks);
            return Err(Stop::Bound);
        }
        if self.summary.checks >= self.meanwhile {
            self.meanwhile = self.summary.checks + MEANWHILE;
            if self.visitor.meanwhile().is_break() {
                self.bound(Bound::Ended);
                return Err(Stop::Bound);
            }
        }
        let mark = self.state.enter();
        let result = stacker::maybe_grow(LEFT, MORE, || self.judged());
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

    /// Whether the graph, with a read half placed, is beyond repair.
    pub(super) fn contradicts(&mut self) -> bool {
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
        let (placed, open) = (self.state.graph.events.present, self.state.graph.events.open.len());
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
        debug_assert_eq!(self.state.graph.events.present, placed, "what was placed in between is taken back");
        debug_assert_eq!(
            self.state.graph.events.open.len(),
            open,
            "reads that were opened in between are taken back"
        );
        result
    }

    /// An execution that cannot be is no reason to abstain.
    pub(super) fn unsupported(&mut self, reason: String, line: u32) -> Found {
        if self.contradicts() { Ok(()) } else { Err(Stop::Abstain(Abstain { reason, line })) }
    }

    /// The next event when nothing is left but the reads that wait, of which `waiting` is the first, and accesses that no
    /// condition observes.
    fn next_late(&self, waiting: Option<EventId>) -> Option<Next> {
        if let Some(read) = waiting {
            return Some(Next::Read(read));
        }
        let events = &self.state.graph.events;
        if let Some(id) = self.unobserved.as_ref().and_then(|u| u.next(events)) {
            return Some(if events[id].is_write() { Next::Write(id) } else { Next::Read(id) });
        }
        events.unplaced_reads().next().map(Next::Read)
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
    pub(super) fn led_here(&mut self) -> bool {
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
    pub(super) fn communicate(&mut self, write: EventId, read: EventId) {
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
