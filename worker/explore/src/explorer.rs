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
//! - an agent in front of a spin iteration enters it with a write that is there, or waits for another one (`gate`);
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

mod entry;
mod exchange;
mod objects;
mod tail;
mod walk;

use crate::alike::Alike;
use crate::allocator::Turn;
use crate::event::Kind;
use crate::interp::TraceEnd;
use crate::leaf::LeafKind;
use crate::mbarrier_leaf::{Raised, Settled};
use crate::planted::Planted;
use crate::share::Share;
use crate::state::{Source, State};
use crate::unseen::Unseen;
pub use crate::visit::{Abstain, Bound, LeafView, Limits, Summary, Visitor};
pub use entry::explore;
pub(crate) use entry::{Part, explore_part, explore_with};
use moire_cat::bits;
use moire_cat::eval::Solution;
use moire_cat::vocabulary::rels;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use tail::Tail;
pub use walk::{Descents, Estimate, Sample, descend};
use walk::{Shape, Walk};

/// Why a search ended early.
pub(crate) enum Stop {
    Visitor,
    Bound,
    TooWide,
    Abstain(Abstain),
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
    share: Share<'a>,
    /// The visitor wants no more.
    ended: bool,
    path: Vec<u32>,
    limits: &'a Limits,
    summary: Summary,
    steps: u64,
    /// Something was added without a choice, and the graph not judged since.
    unjudged: bool,
    /// One alternative of each decision, drawn, instead of all.
    walk: Option<Walk<'a>>,
    /// Accesses that wait until nothing else is left, and what is left then.
    unseen: Option<Unseen>,
    tail: Option<Tail>,
    /// Threads of which one order is enough.
    alike: Alike,
    visitor: &'a mut dyn Visitor,
}

type Found = Result<(), Stop>;
/// Reads with a cell of each.
type Reads = SmallVec<[(u16, u16); 8]>;
/// How to go on.
type Then<S> = fn(&mut S) -> Found;

impl<'a, const W: usize> Search<'a, W> {
    fn bound(&mut self, bound: Bound) {
        self.summary.bounded.get_or_insert(bound);
    }

    fn has(&self, bug: Planted) -> bool {
        self.state.front.planted == Some(bug)
    }

    /// Whether alternative number `choice` of this decision is to be explored; pushes it if so.
    fn take(&mut self, choice: u32) -> bool {
        self.take_as(choice, |_| None)
    }

    /// The same for one by which two events communicate.
    fn take_as(&mut self, choice: u32, shape: impl FnOnce(&Self) -> Option<Shape>) -> bool {
        if self.walk.is_some() {
            return self.draw(choice, shape);
        }
        if self.ended || !self.share.takes(&self.path, choice) {
            return false;
        }
        self.steps += 1;
        self.path.push(choice);
        // A tail is explored in one go: what is left out of it hangs on what was shown in it.
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

    fn visit(&mut self) -> Found {
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
            Next::Barrier(id) => match state.events[*id].emitted.kind {
                Kind::Barrier(barrier) => state.phases_for(*id, &barrier).len() == 1,
                _ => false,
            },
            Next::Write(id) => state.events[*id].emitted.access.is_some_and(|access| {
                state.open.iter().filter(|(_, cell)| access.cell_range().contains(&(*cell as usize))).all(
                    |(read, cell)| {
                        let (read, cell) = (*read as usize, *cell as usize);
                        !state.is_own_read(*id, read) && !state.may_be_written(cell, read, Some(*id))
                    },
                )
            }),
            Next::Read(id) => {
                let Some(access) = state.events[*id].emitted.access.filter(|a| a.cells == 1) else {
                    return false;
                };
                let cell = access.cell as usize;
                let open = usize::from(state.may_be_written(cell, *id, None));
                let writers = state.inputs.cells.writers[cell];
                let free =
                    bits::iter(&writers).filter(|w| !self.source_is_taken(*id, *w, cell)).take(2).count();
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
        for thread in 0..state.threads.len() {
            for id in state.threads[thread].ids.iter().flatten() {
                let id = *id as usize;
                if bits::has(&state.present, id) {
                    continue;
                }
                match state.events[id].emitted.kind {
                    Kind::Fence => {}
                    _ if self.is_late(id) => {}
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
        if state.universe.special == 0 && state.restless == 0 {
            return match self.next_late() {
                Some(next) => next,
                None if state.open.is_empty() => Next::Leaf,
                None => Next::Dead,
            };
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
        if let Some(next) = self.next_late() {
            return next;
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
        if self.state.hopeless() {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        self.summary.checks += 1;
        if self.summary.checks > self.limits.checks {
            self.bound(Bound::Checks);
            return Err(Stop::Bound);
        }
        let mark = self.state.judged();
        let result = self.judged();
        self.state.evaluator.back(&mark);
        result
    }

    fn judged(&mut self) -> Found {
        let solution = self.state.partial();
        match solution {
            Solution::Violated(_) => Ok(()),
            _ if self.is_covered() => {
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
            Solution::Open { a, b } => self.decide(|search| search.order(a, b)),
        }
    }

    /// Orders two writes in both ways.
    fn order(&mut self, a: usize, b: usize) -> Found {
        for (choice, (x, y)) in [(a, b), (b, a)].into_iter().enumerate() {
            if choice == 1 && self.has(Planted::OneDirection) {
                continue;
            }
            if !self.take_as(u32::from(choice == 1), |search| Some(search.follows(x, y))) {
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

    /// Chooses the sources of a read, cell by cell; the last one resolves its value.
    fn place_read(&mut self, id: usize, slot: usize, then: Then<Self>) -> Found {
        if slot == 0 {
            bits::set(&mut self.state.present, id);
        }
        let result = self.decide(|search| search.source(id, slot, then));
        if slot == 0 {
            bits::clear(&mut self.state.present, id);
        }
        result
    }

    /// Gives one cell of a read each source it can have.
    fn source(&mut self, id: usize, slot: usize, then: Then<Self>) -> Found {
        let access = self.state.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell as usize + slot;
        let writers = self.state.inputs.cells.writers[cell];
        let mut choice = 0;
        let mut result = Ok(());
        for write in bits::iter(&writers) {
            let initial = self.state.events[write].thread.is_none();
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
    fn source_is_taken(&mut self, read: usize, write: usize, cell: usize) -> bool {
        if !self.state.is_rmw(read) {
            return false;
        }
        let readers = self.state.inputs.rels[rels::RF][write];
        bits::iter(&readers)
            .any(|other| self.state.is_rmw(other) && self.state.exclusive(read, other, write, cell))
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
        self.state.contradicts()
    }

    /// Re-interprets the threads of reads whose value just became known, then continues.
    fn resolved(&mut self, reads: &[usize], then: impl FnOnce(&mut Self) -> Found) -> Found {
        self.rerun(|state| state.refresh(reads), then)
    }

    /// Runs threads again and goes on, unless what they do is no part of an execution.
    fn rerun(
        &mut self,
        refresh: impl FnOnce(&mut State<'a, W>) -> Result<(), TraceEnd>,
        then: impl FnOnce(&mut Self) -> Found,
    ) -> Found {
        let mark = self.state.mark();
        let result = match refresh(&mut self.state) {
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
        self.state.add_write(id);
        let (mut must, mut may) = (Reads::new(), Reads::new());
        for &(read, cell) in &self.state.open {
            let own = self.state.is_own_read(id, read as usize);
            if access.cell_range().contains(&(cell as usize)) {
                let later = self.state.may_be_written(cell as usize, read as usize, Some(id));
                match (own, later) {
                    (true, true) => {}
                    (true, false) => {
                        self.state.remove_write(id);
                        self.summary.dead_ends += 1;
                        return Ok(());
                    }
                    (false, true) => may.push((read, cell)),
                    (false, false) => must.push((read, cell)),
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
        self.state.remove_write(id);
        result
    }

    /// Whether a read cannot take the write `id` beside these.
    fn clashes(&mut self, id: usize, (read, cell): (u16, u16), beside: &[(u16, u16)]) -> bool {
        if !self.state.is_rmw(usize::from(read)) {
            return false;
        }
        let others = beside.iter().filter(|(_, at)| *at == cell);
        others.into_iter().any(|(other, _)| {
            self.state.is_rmw(usize::from(*other))
                && self.state.exclusive(usize::from(read), usize::from(*other), id, usize::from(cell))
        })
    }

    /// Claims `claimed` with each subset of `may`, one read after another; of `all` reads the first ones have no choice.
    fn claim_some(
        &mut self,
        id: usize,
        may: &[(u16, u16)],
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
                let shape = |search: &Self| takes.then(|| search.read_by(id, usize::from(read.0)));
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

    fn claim(&mut self, write: usize, claimed: &[(u16, u16)], then: Then<Self>) -> Found {
        for &(read, cell) in claimed {
            self.communicate(write, usize::from(read));
            self.state.unset_source(read as usize, cell as usize, Source::Open);
            self.state.set_source(read as usize, cell as usize, Source::Write(write));
        }
        let mut reads: SmallVec<[usize; 8]> = claimed.iter().map(|c| c.0 as usize).collect();
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

    fn leaf(&mut self) -> Found {
        if self.led_here() {
            return Ok(());
        }
        if self.state.universe.special > 0 && !self.state.phases_complete() {
            self.summary.dead_ends += 1;
            return Ok(());
        }
        let kind = self.state.kind();
        let (limit, model) = (self.limits.outcomes, self.state.model);
        self.summary.checks += 1;
        if kind == LeafKind::Complete && self.state.simple() {
            let mark = self.state.judged();
            if self.state.plain() {
                let result = self.show_plain(limit);
                self.state.evaluator.back(&mark);
                return result;
            }
            self.state.evaluator.back(&mark);
        }
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
            self.note(&co, &flags);
            let name = |c: &moire_cat::CheckId| model.checks()[c.0].name.clone();
            let pairs = flags.iter().map(|(c, pairs)| (name(c), pairs.clone())).collect();
            let mut flags: BTreeSet<String> = flags.keys().map(name).chain(own.iter().cloned()).collect();
            if ends_badly {
                flags.insert(crate::leaf::flag::NO_COMPLETE.to_owned());
            }
            let mut view = crate::view::View {
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
            let co = self.state.evaluator.coherence().to_vec();
            self.note(&co, &Raised::new());
        }
        let mut view = crate::view::View {
            state: &self.state,
            co: self.state.evaluator.coherence(),
            fence: self.state.evaluator.fence_order(),
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
}
