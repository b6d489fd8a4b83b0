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
//! - an operation on an mbarrier joins the current phase or is put off past it (`mbarrier`);
//! - an agent in front of a spin iteration enters it, or is stuck there for ever;
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

use crate::allocator::Turn;
use crate::event::{BarrierUse, Kind};
use crate::interp::{FrontEnd, Gate, TraceEnd};
use crate::leaf::{LeafFacts, LeafKind};
use crate::mbarrier_leaf::Settled;
use crate::planted::Planted;
use crate::state::{Source, State};
use crate::unmodelled::unmodelled;
use moire_cat::Model;
use moire_cat::bits;
use moire_cat::eval::Solution;
use moire_program::ir::Program;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Bounds on one exploration. Hitting one is reported, never silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Finished executions.
    pub leaves: u64,
    /// Consistency checks.
    pub checks: u64,
    /// Decisions: what an exploration does between checks is bounded too.
    pub steps: u64,
    /// Iterations of a loop that changes state.
    pub loop_bound: u32,
    /// Final states of one execution.
    pub outcomes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            leaves: 10_000_000,
            checks: 100_000_000,
            steps: 1_000_000_000,
            loop_bound: 2,
            outcomes: 4_096,
        }
    }
}

/// Which limit cut an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// A loop ran longer than [`Limits::loop_bound`].
    Loop,
    /// [`Limits::leaves`].
    Leaves,
    /// [`Limits::checks`].
    Checks,
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::outcomes`].
    Outcomes,
    /// More orders of `fence.sc` than are tried at one leaf.
    FenceOrders,
    /// More orders of the operations of one mbarrier phase than are tried at one leaf.
    PhaseOrders,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bound::Loop => "a loop that changes state ran past the loop bound",
            Bound::Leaves => "the limit on executions",
            Bound::Checks => "the limit on consistency checks",
            Bound::Steps => "the limit on decisions",
            Bound::Outcomes => "the limit on final states of one execution",
            Bound::FenceOrders => "the limit on orders of fence.sc at one execution",
            Bound::PhaseOrders => {
                "the limit on orders of fence.sc and of mbarrier operations at one execution"
            }
        })
    }
}

/// Why an engine gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason} is not supported")]
pub struct Abstain {
    /// What is not supported.
    pub reason: String,
    /// Line of the program; 0 when it is no single line.
    pub line: u32,
}

/// Totals of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Complete executions.
    pub complete: u64,
    /// Executions that end blocked.
    pub blocked: u64,
    /// States that led to no execution.
    pub dead_ends: u64,
    /// Consistency checks.
    pub checks: u64,
    /// The first limit hit.
    pub bounded: Option<Bound>,
}

/// A finished execution, as long as the visitor looks at it.
pub trait LeafView {
    /// Complete or blocked.
    fn kind(&self) -> LeafKind;
    /// Final states; none when blocked.
    fn states(&mut self) -> Vec<crate::leaf::FinalState>;
    /// Names of the flags the model raises.
    fn flags(&self) -> &BTreeSet<String>;
    /// What the flags are about: events by thread and line.
    fn findings(&self) -> BTreeSet<crate::leaf::Finding>;
    /// Everything two engines compare.
    fn facts(&mut self) -> LeafFacts;
    /// The execution in full, for people.
    fn witness(&mut self) -> crate::leaf::Witness;
    /// The decisions that lead here; [`explore`] with them visits this leaf again.
    fn path(&self) -> &[u32];
    /// Threads that wait for columns of tensor memory, or for the other CTA of a pair, for ever.
    fn column_stalls(&self) -> Vec<crate::leaf::ColumnStall>;
    /// Threads that wait at an mbarrier for ever, and for what.
    fn stalls(&self) -> Vec<crate::leaf::Stall>;
}

/// Receives executions one after another.
pub trait Visitor {
    /// Called once a leaf; `Break` ends the exploration.
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()>;
}

impl<F: FnMut(&mut dyn LeafView) -> ControlFlow<()>> Visitor for F {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self(leaf)
    }
}

/// Visits every execution of `program` under `model` whose decisions start with `prefix` (empty: all).
pub fn explore(
    program: &Program,
    model: &Model,
    prefix: &[u32],
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_with(program, model, prefix, None, limits, visitor)
}

/// [`explore`], possibly with a bug planted for tests.
pub(crate) fn explore_with(
    program: &Program,
    model: &Model,
    prefix: &[u32],
    planted: Option<Planted>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    if let Some((reason, line)) = unmodelled(program, model) {
        return Err(Abstain { reason, line });
    }
    let front = FrontEnd {
        planted,
        wide_whole: model.variant("Q2") == Some("A"),
        cas_writes_back: ["Q16", "CAS"].iter().any(|q| model.variant(q) == Some("B")),
        reconverging: model.variant("Q14") == Some("B"),
        both_arms: model.variant("TOKIF") == Some("B"),
        masked_too: model.variant("TQ21") == Some("B"),
        loop_bound: limits.loop_bound,
    };
    match attempt::<1>(program, model, front, prefix, limits, visitor)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<2>(program, model, front, prefix, limits, visitor)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<4>(program, model, front, prefix, limits, visitor)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<10>(program, model, front, prefix, limits, visitor)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<16>(program, model, front, prefix, limits, visitor)? {
        Attempt::Finished(summary) => Ok(summary),
        Attempt::TooWide => Err(Abstain { reason: "an execution of more than 1024 events".into(), line: 0 }),
    }
}

enum Attempt {
    Finished(Summary),
    TooWide,
}

/// Why a search ended early.
pub(crate) enum Stop {
    Visitor,
    Bound,
    TooWide,
    Abstain(Abstain),
}

fn attempt<const W: usize>(
    program: &Program,
    model: &Model,
    front: FrontEnd,
    prefix: &[u32],
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Attempt, Abstain> {
    // A wider attempt must not show leaves again, so a narrow one first finds out whether it can hold every event.
    if W < 16 && !State::<W>::fits(program, model, front, limits) {
        return Ok(Attempt::TooWide);
    }
    let state = match State::<W>::new(program, model, front) {
        Ok(state) => state,
        Err(Stop::Abstain(a)) => return Err(a),
        Err(_) => return Ok(Attempt::TooWide),
    };
    let mut search = Search {
        state,
        prefix,
        path: Vec::new(),
        limits,
        summary: Summary::default(),
        steps: 0,
        unjudged: false,
        visitor,
    };
    match search.visit() {
        Ok(()) | Err(Stop::Visitor | Stop::Bound) => Ok(Attempt::Finished(search.summary)),
        Err(Stop::TooWide) => Ok(Attempt::TooWide),
        Err(Stop::Abstain(a)) => Err(a),
    }
}

/// What the scheduler picks.
enum Next {
    Read(usize),
    Write(usize),
    Barrier(usize),
    Gate(usize),
    Mbarrier(usize),
    /// One of the two before, where there is nothing to choose.
    SureMbarrier(usize),
    SureGate(usize),
    Allocation(Turn),
    Leaf,
    Dead,
}

struct Search<'a, const W: usize> {
    state: State<'a, W>,
    prefix: &'a [u32],
    path: Vec<u32>,
    limits: &'a Limits,
    summary: Summary,
    steps: u64,
    /// Something was added without a choice, and the graph not judged since.
    unjudged: bool,
    visitor: &'a mut dyn Visitor,
}

type Found = Result<(), Stop>;
/// How to go on.
type Then<S> = fn(&mut S) -> Found;

impl<const W: usize> Search<'_, W> {
    fn bound(&mut self, bound: Bound) {
        self.summary.bounded.get_or_insert(bound);
    }

    fn has(&self, bug: Planted) -> bool {
        self.state.front.planted == Some(bug)
    }

    /// Whether alternative number `choice` of this decision is to be explored; pushes it if so.
    fn take(&mut self, choice: u32) -> bool {
        let wanted = self.prefix.get(self.path.len()).is_none_or(|p| *p == choice);
        if wanted {
            self.steps += 1;
            self.path.push(choice);
        }
        wanted
    }

    fn visit(&mut self) -> Found {
        if self.steps > self.limits.steps {
            self.bound(Bound::Steps);
            return Err(Stop::Bound);
        }
        let next = self.next();
        let then: Then<Self> = if self.sure(&next) { Self::judge_later } else { Self::judge };
        if self.unjudged && !self.sure(&next) {
            return self.judge();
        }
        match next {
            Next::Read(id) => self.place_read(id, 0, then),
            Next::Write(id) => self.place_write(id, then),
            Next::Barrier(id) => self.place_barrier(id, then),
            Next::Gate(thread) => self.place_gate(thread),
            Next::SureGate(thread) => self.set_gate(thread, Gate::Open),
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
    fn sure(&self, next: &Next) -> bool {
        let state = &self.state;
        match next {
            Next::SureMbarrier(_) | Next::SureGate(_) => true,
            Next::Barrier(id) => match state.events[*id].emitted.kind {
                Kind::Barrier(barrier) => state.phases_for(*id, &barrier).len() == 1,
                _ => false,
            },
            Next::Write(id) => state.events[*id].emitted.access.is_some_and(|access| {
                state.open.iter().all(|(_, cell)| !access.cell_range().contains(&(*cell as usize)))
            }),
            Next::Read(id) => state.events[*id].emitted.access.is_some_and(|access| {
                let cell = access.cell as usize;
                let one = access.cells == 1 && bits::count(&state.inputs.cells.writers[cell]) == 1;
                one && !state.may_be_written(cell, *id, None)
            }),
            _ => false,
        }
    }

    fn next(&self) -> Next {
        let state = &self.state;
        if state.hopeless() {
            return Next::Dead;
        }
        for thread in 0..state.threads.len() {
            for id in state.threads[thread].ids.iter().flatten() {
                let id = *id as usize;
                if bits::has(&state.present, id) {
                    continue;
                }
                match state.events[id].emitted.kind {
                    Kind::Fence => {}
                    // Reads that stand for data come last: the later, the fewer writes are still to come.
                    Kind::Read if state.program.launched && state.idle(id) => {}
                    Kind::Read => return Next::Read(id),
                    Kind::Write if state.ready(id) => return Next::Write(id),
                    Kind::Write => {}
                    Kind::Barrier(_) => return Next::Barrier(id),
                    Kind::Mbarrier(_) | Kind::Allocator(_) => {}
                }
            }
        }
        if let Some(turn) = state.next_allocation(false) {
            return Next::Allocation(turn);
        }
        // What leaves no choice comes first: the less is open, the less a choice can be wrong.
        if let Some(id) = state.settled_mbarrier() {
            return Next::SureMbarrier(id);
        }
        if let Some(thread) = state.openable_gate(true) {
            return Next::SureGate(thread);
        }
        if let Some(id) = state.next_mbarrier() {
            return Next::Mbarrier(id);
        }
        if let Some(thread) = state.openable_gate(false) {
            return Next::Gate(thread);
        }
        if let Some(turn) = state.next_allocation(true) {
            return Next::Allocation(turn);
        }
        if let Some(id) = state.next_read() {
            return Next::Read(id);
        }
        let settled = state.open.is_empty() && state.mbarriers_settled() && state.allocations_settled();
        if settled { Next::Leaf } else { Next::Dead }
    }

    /// Judges the graph, branches on unordered pairs, and goes on.
    fn judge(&mut self) -> Found {
        let unjudged = std::mem::take(&mut self.unjudged);
        let result = self.judge_now();
        self.unjudged = unjudged;
        result
    }

    /// Goes on without judging the graph, until there is something to choose.
    fn judge_later(&mut self) -> Found {
        let unjudged = std::mem::replace(&mut self.unjudged, true);
        let result = self.visit();
        self.unjudged = unjudged;
        result
    }

    fn judge_now(&mut self) -> Found {
        self.summary.checks += 1;
        if self.summary.checks > self.limits.checks {
            self.bound(Bound::Checks);
            return Err(Stop::Bound);
        }
        match self.state.partial() {
            Solution::Violated(_) => Ok(()),
            Solution::Consistent { .. } if self.state.too_late() => {
                self.summary.dead_ends += 1;
                Ok(())
            }
            Solution::Consistent { .. } => self.visit(),
            Solution::Open { a, b } => {
                for (choice, (x, y)) in [(a, b), (b, a)].into_iter().enumerate() {
                    if choice == 1 && self.has(Planted::OneDirection) {
                        continue;
                    }
                    if !self.take(u32::from(choice == 1)) {
                        continue;
                    }
                    let saved = self.state.order_writes(x, y);
                    let result = self.judge();
                    self.state.restore_order(saved);
                    self.path.pop();
                    result?;
                }
                Ok(())
            }
        }
    }

    /// Chooses the sources of a read, cell by cell; the last one resolves its value.
    fn place_read(&mut self, id: usize, slot: usize, then: Then<Self>) -> Found {
        if slot == 0 {
            bits::set(&mut self.state.present, id);
        }
        let access = self.state.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell as usize + slot;
        let writers = self.state.inputs.cells.writers[cell];
        let mut choice = 0;
        let mut result = Ok(());
        for write in bits::iter(&writers) {
            let initial = self.state.events[write].thread.is_none();
            let forgotten = initial && bits::count(&writers) > 1 && self.has(Planted::ForgetsInitial);
            if result.is_ok() && !forgotten && self.take(choice) {
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
        if slot == 0 {
            bits::clear(&mut self.state.present, id);
        }
        result
    }

    fn read_from(&mut self, id: usize, slot: usize, source: Source, then: Then<Self>) -> Found {
        let access = self.state.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell as usize + slot;
        let more = slot + 1 < access.cells as usize;
        self.state.set_source(id, cell, source);
        let result = match (more, source) {
            (true, Source::Write(_)) if self.contradicts() => Ok(()),
            (true, _) => self.place_read(id, slot + 1, then),
            (false, Source::Open) => self.visit(),
            (false, Source::Write(write)) if self.state.writes_unknown(write) && self.contradicts() => Ok(()),
            (false, Source::Write(_)) => self.resolved(&[id], then),
        };
        self.state.unset_source(id, cell, source);
        result
    }

    /// Whether the graph, with a read half placed, is beyond repair.
    fn contradicts(&mut self) -> bool {
        self.summary.checks += 1;
        matches!(self.state.partial(), Solution::Violated(_))
    }

    /// Re-interprets the threads of reads whose value just became known, then continues.
    fn resolved(&mut self, reads: &[usize], then: impl FnOnce(&mut Self) -> Found) -> Found {
        let mark = self.state.mark();
        let result = match self.state.refresh(reads) {
            Ok(()) => then(self),
            Err(TraceEnd::SpinFail) => Ok(()),
            Err(TraceEnd::Bound) => {
                self.bound(Bound::Loop);
                Ok(())
            }
            Err(TraceEnd::Unsupported(reason, line)) => {
                self.state.reset(mark);
                return self.unsupported(reason, line);
            }
            Err(_) => Err(Stop::TooWide),
        };
        self.state.reset(mark);
        result
    }

    /// An execution that cannot be is no reason to abstain.
    fn unsupported(&mut self, reason: String, line: u32) -> Found {
        if self.contradicts() { Ok(()) } else { Err(Stop::Abstain(Abstain { reason, line })) }
    }

    /// Adds a write as the source of every subset of the open reads of its cells.
    fn place_write(&mut self, id: usize, then: Then<Self>) -> Found {
        let access = self.state.events[id].emitted.access.expect("a placed write has an address");
        let saved = self.state.add_write(id);
        let (mut must, mut may) = (Vec::new(), Vec::new());
        for &(read, cell) in &self.state.open {
            let own = self.state.is_own_read(id, read as usize);
            if access.cell_range().contains(&(cell as usize)) {
                let later = self.state.may_be_written(cell as usize, read as usize, Some(id));
                match (own, later) {
                    (true, true) => {}
                    (true, false) => {
                        self.state.remove_write(id, saved);
                        self.summary.dead_ends += 1;
                        return Ok(());
                    }
                    (false, true) => may.push((read, cell)),
                    (false, false) => must.push((read, cell)),
                }
            }
        }
        let mut result = Ok(());
        let subsets = 1u64.checked_shl(u32::try_from(may.len()).unwrap_or(64)).unwrap_or(u64::MAX);
        for subset in (0..subsets).rev() {
            let (all, some) = (subset + 1 == subsets, subset != 0);
            if (self.has(Planted::AllOrNothing) && some && !all) || (self.has(Planted::ClaimsAll) && !all) {
                continue;
            }
            let choice = u32::try_from(subset).unwrap_or(u32::MAX);
            if result.is_err() || !self.take(choice) {
                continue;
            }
            let chosen = may.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).map(|(_, r)| *r);
            let claimed: Vec<(u16, u16)> = must.iter().copied().chain(chosen).collect();
            result = self.claim(id, &claimed, then);
            self.path.pop();
        }
        self.state.remove_write(id, saved);
        result
    }

    fn claim(&mut self, write: usize, claimed: &[(u16, u16)], then: Then<Self>) -> Found {
        for &(read, cell) in claimed {
            self.state.unset_source(read as usize, cell as usize, Source::Open);
            self.state.set_source(read as usize, cell as usize, Source::Write(write));
        }
        let mut reads: Vec<usize> = claimed.iter().map(|c| c.0 as usize).collect();
        reads.dedup();
        let vain = !reads.is_empty() && self.state.writes_unknown(write) && self.contradicts();
        let result = if vain { Ok(()) } else { self.resolved(&reads, then) };
        for &(read, cell) in claimed.iter().rev() {
            self.state.unset_source(read as usize, cell as usize, Source::Write(write));
            self.state.set_source(read as usize, cell as usize, Source::Open);
        }
        self.state.sort_open();
        result
    }

    /// Lets a barrier event join each phase it can.
    fn place_barrier(&mut self, id: usize, then: Then<Self>) -> Found {
        let Kind::Barrier(barrier) = self.state.events[id].emitted.kind else { return Ok(()) };
        let phases = self.state.phases_for(id, &barrier);
        for (choice, phase) in phases.into_iter().enumerate() {
            if choice > 0 && self.has(Planted::FirstPhase) {
                continue;
            }
            if !self.take(u32::try_from(choice).unwrap_or(u32::MAX)) {
                continue;
            }
            let result = self.join_phase(id, &barrier, phase, then);
            self.path.pop();
            result?;
        }
        Ok(())
    }

    fn join_phase(&mut self, id: usize, barrier: &BarrierUse, phase: u16, then: Then<Self>) -> Found {
        self.state.join_phase(id, barrier, phase);
        let result = self.wake(then);
        self.state.leave_phase(id);
        result
    }

    /// Re-interprets every thread that waits at a barrier, as long as that moves one; then continues.
    fn wake(&mut self, then: impl FnOnce(&mut Self) -> Found) -> Found {
        let mark = self.state.mark();
        let result = match self.state.refresh_waiting() {
            Ok(()) => then(self),
            Err(TraceEnd::SpinFail) => Ok(()),
            Err(TraceEnd::Bound) => {
                self.bound(Bound::Loop);
                Ok(())
            }
            Err(TraceEnd::Unsupported(reason, line)) => {
                self.state.reset(mark);
                return self.unsupported(reason, line);
            }
            Err(_) => Err(Stop::TooWide),
        };
        self.state.reset(mark);
        result
    }

    /// Gives an operation on an mbarrier each place it can have now, and puts it off; if `sure`, it has one place.
    fn place_mbarrier(&mut self, id: usize, sure: bool) -> Found {
        let places = self.state.choices_for(id);
        let wide = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        for (choice, place) in places.iter().enumerate() {
            if self.has(Planted::FirstPlace) && choice > 0 {
                continue;
            }
            if !self.take(wide(choice)) {
                continue;
            }
            self.state.take_place(id, *place);
            let result = self.close_phase(id, sure);
            self.state.leave_place(id);
            self.path.pop();
            result?;
        }
        if !sure && self.state.may_put_off(id) && self.take(wide(places.len())) {
            let old = self.state.put_off(id);
            let result = self.visit();
            self.state.floors[id] = old;
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// The phase that `id` joined completes as soon as it adds up, or stays open for a later operation.
    fn close_phase(&mut self, id: usize, sure: bool) -> Found {
        let Some(open) = self.state.may_stay_open(id) else { return self.answered(id, sure) };
        self.state.kept_open.push(open);
        let joined = self.state.may_join_open(&open);
        self.state.kept_open.pop();
        if !joined {
            return self.answered(id, sure);
        }
        for choice in 0..2 {
            if !self.take(choice) {
                continue;
            }
            if choice == 1 {
                self.state.kept_open.push(open);
            }
            let result = self.answered(id, false);
            if choice == 1 {
                self.state.kept_open.pop();
            }
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// Hands its answer to the thread of `id`, if it wants one, and goes on.
    fn answered(&mut self, id: usize, sure: bool) -> Found {
        let answers = self.state.mbar_use(id).is_some_and(|u| u.act.answers());
        let then = if sure { Self::judge_later } else { Self::judge };
        if answers { self.resolved(&[id], then) } else { then(self) }
    }

    /// Decides something at the allocators of tensor memory.
    fn allocation(&mut self, turn: Turn) -> Found {
        match turn {
            Turn::Meeting => {
                for meeting in self.state.meetings() {
                    if self.take(u32::from(*meeting)) {
                        self.state.meeting = Some(*meeting);
                        let result = self.wake(Self::visit);
                        self.state.meeting = None;
                        self.path.pop();
                        result?;
                    }
                }
                Ok(())
            }
            Turn::Grant(id) => self.grant(id),
            Turn::Offer(id) => {
                if self.take(0) {
                    let result = self.grant(id);
                    self.path.pop();
                    result?;
                }
                if !self.has(Planted::FirstCome) && self.state.may_wait(id) && self.take(1) {
                    let later = self.state.after_next(id);
                    let old = std::mem::replace(&mut self.state.put_off[id], later);
                    let result = self.visit();
                    self.state.put_off[id] = old;
                    self.path.pop();
                    result?;
                }
                Ok(())
            }
        }
    }

    fn grant(&mut self, id: usize) -> Found {
        let line = self.state.events[id].emitted.line;
        let unsupported = |reason: &str| Stop::Abstain(Abstain { reason: reason.to_owned(), line });
        let granted = self.state.grant(id).map_err(unsupported)?;
        let result = self.wake(Self::judge);
        for get in granted {
            self.state.granted[get] = None;
        }
        result
    }

    fn place_gate(&mut self, thread: usize) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        for (choice, gate) in [Gate::Open, Gate::Stuck].into_iter().enumerate() {
            if gate == Gate::Stuck && (self.has(Planted::NeverStuck) || !self.state.may_miss(thread, index)) {
                continue;
            }
            if !self.take(u32::try_from(choice).unwrap_or(0)) {
                continue;
            }
            let result = self.set_gate(thread, gate);
            self.path.pop();
            result?;
        }
        Ok(())
    }

    fn set_gate(&mut self, thread: usize, gate: Gate) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        self.state.threads[thread].gates.push((index, gate));
        let result = self.wake_thread(thread);
        self.state.threads[thread].gates.pop();
        result
    }

    fn wake_thread(&mut self, thread: usize) -> Found {
        let mark = self.state.mark();
        let result = match self.state.refresh_thread(thread).and_then(|()| self.state.refresh_waiting()) {
            Ok(()) => self.visit(),
            Err(TraceEnd::SpinFail) => Ok(()),
            Err(TraceEnd::Bound) => {
                self.bound(Bound::Loop);
                Ok(())
            }
            Err(TraceEnd::Unsupported(reason, line)) => {
                self.state.reset(mark);
                return self.unsupported(reason, line);
            }
            Err(_) => Err(Stop::TooWide),
        };
        self.state.reset(mark);
        result
    }

    fn leaf(&mut self) -> Found {
        if !self.state.phases_complete() {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        let kind = self.state.kind();
        let (limit, model) = (self.limits.outcomes, self.state.model);
        self.summary.checks += 1;
        let (results, untried) = self.state.settle();
        if untried {
            let some = self.state.mbarriers.iter().any(Option::is_some);
            self.bound(if some { Bound::PhaseOrders } else { Bound::FenceOrders });
        }
        if results.is_empty() {
            self.summary.dead_ends += 1;
        }
        let own = self.state.mbarrier_flags();
        for Settled { co, fence, flags, ends_badly } in results {
            if kind == LeafKind::Blocked && !self.has(Planted::AlwaysHangs) && !self.state.hang_is_real(&co) {
                self.summary.dead_ends += 1;
                continue;
            }
            match kind {
                LeafKind::Complete => self.summary.complete += 1,
                LeafKind::Blocked => self.summary.blocked += 1,
            }
            let name = |c: &moire_cat::CheckId| model.checks()[c.0].name.clone();
            let pairs = flags.iter().map(|(c, pairs)| (name(c), pairs.clone())).collect();
            let mut flags: BTreeSet<String> = flags.keys().map(name).chain(own.iter().cloned()).collect();
            if ends_badly {
                flags.insert(crate::leaf::flag::NO_COMPLETE.to_owned());
            }
            let mut view = crate::view::View {
                state: &self.state,
                co,
                fence,
                flags,
                pairs,
                kind,
                limit,
                path: &self.path,
                cut: false,
            };
            let flow = self.visitor.leaf(&mut view);
            if view.cut {
                self.summary.bounded.get_or_insert(Bound::Outcomes);
            }
            if flow.is_break() {
                return Err(Stop::Visitor);
            }
            if self.summary.complete + self.summary.blocked >= self.limits.leaves {
                self.bound(Bound::Leaves);
                return Err(Stop::Bound);
            }
        }
        Ok(())
    }
}
