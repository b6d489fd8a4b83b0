//! Runs one warp ahead: chooses the next statement, tracks open ways, and splits and joins lanes.
//!
//! - A branch on known values is taken, so a loop with a known count is unrolled.
//! - If only the exploration knows a value, the run splits into *ways*: two for the answer of an mbarrier wait, and for a
//!   word of shared memory one for each value that some warp stores there.
//! - A way that comes back to a place with the same live registers becomes a jump, so every wait becomes a short loop.
//! - Lanes diverge at a branch on which they differ, and join at its immediate post-dominator. Each side is a *region*.
//!
//! Registers that affect no branch, address or operand of synchronisation are not evaluated.

use super::dependent;
use super::item::{Item, Note, Trace};
use super::known::arms::{moves_data, stores_shared};
use super::known::value::{Base, Lanes, Val, Why};
use super::lanes::{awaited, late, steered};
use super::launch::Here;
use super::periods::Open;
use super::practice::Practice;
use super::residual::tidy;
use super::step::choice::choice;
use super::step::statement::statement;
use super::step::{Executing, Then};
use super::warp::{Round, State, Ticket, Unread, Warp};
use crate::Refusal;
use crate::ptx::{Sort, Statement, What, sort};
use moire_program::ir::{Guard, Reg};
use moire_program::registers::only_registers;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// Deepest nesting of regions.
const DEPTH: usize = 64;

/// The progress of a way in its region.
enum Progress {
    Going,
    /// It has reached the end of the region.
    Arrived,
    /// It exits before the end, or continues as another way.
    Ended,
}

/// Labels of jump targets, by a hash of the state that the rest of the run depends on.
pub(super) type Memo = BTreeMap<(usize, u64, u64), u32>;

/// The numbers that registers of the items may hold.
type Numbers = BTreeMap<u16, BTreeSet<u64>>;
type Tickets = BTreeMap<usize, Ticket>;

/// Runs a warp ahead in one round.
pub(super) fn run(round: &Round<'_>, here: Here) -> Result<Trace, Refusal> {
    Run { warp: Warp::new(round, here), open: None, seen: BTreeMap::new(), opened: BTreeMap::new() }.run()
}

/// Whether a statement that moves data is an access: it does more than compute.
fn accesses(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(instr) => {
            matches!(sort(instr), Sort::Load(_) | Sort::Uniform(_) | Sort::Store(_) | Sort::LoadMatrix(_))
        }
        What::Core(op) => !only_registers(op),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// Loads of tensor memory that are equally unread at the end of two ways. Another one is forgotten: it never counts as
/// complete by being read.
fn unread_in_both(one: &[Unread], other: &[Unread]) -> Vec<Unread> {
    one.iter().filter(|load| other.contains(load)).cloned().collect()
}

/// The larger of the counts of two arms.
fn most(
    mut one: BTreeMap<(usize, u64), usize>,
    other: &BTreeMap<(usize, u64), usize>,
) -> BTreeMap<(usize, u64), usize> {
    for (place, n) in other {
        let own = one.entry(*place).or_default();
        *own = (*own).max(*n);
    }
    one
}

/// The tickets behind two arms that began with some: those that one arm at most has changed.
fn of_arms(before: &Tickets, one: &Tickets, other: &Tickets) -> Tickets {
    let updates: BTreeSet<usize> = one.keys().chain(other.keys()).copied().collect();
    let pick = |update: usize| {
        let [was, a, b] = [before, one, other].map(|all| all.get(&update));
        let kept = if a == was || a == b { b } else { a.filter(|_| b == was) };
        Some((update, kept?.clone()))
    };
    updates.into_iter().filter_map(pick).collect()
}

/// What is known of registers in the same way at the end of two ways.
fn in_both(one: &Numbers, mut other: Numbers) -> Numbers {
    other.retain(|register, numbers| one.get(register) == Some(numbers));
    other
}

pub(super) struct Run<'r> {
    pub(super) warp: Warp<'r>,
    /// The period that is being run.
    pub(super) open: Option<Open>,
    /// The registers at the start of a loop, one period before a period is run.
    pub(super) seen: BTreeMap<usize, Vec<Val>>,
    /// How often a period was run, by the first statement of the loop.
    pub(super) opened: BTreeMap<usize, usize>,
}

impl<'r> Run<'r> {
    fn round(&self) -> &'r Round<'r> {
        self.warp.round
    }

    fn run(mut self) -> Result<Trace, Refusal> {
        self.round().budget.looks(self.round().kernel.types.len());
        let env = vec![Val::Unknown(Why::Unset); self.round().kernel.types.len()];
        let start = State::new(0, self.warp.here.lanes, env);
        let end = self.round().kernel.body.len();
        self.region(start, end, 0)?;
        if self.round().launch.queued.grid == 0 {
            self.warp.out.notes.extend(dependent::assumed(&self.warp.out.items));
        }
        self.warp.out.regs = self.warp.slots();
        self.read_together();
        self.warp.out.items = tidy::items(self.warp.out.items);
        Ok(self.warp.out)
    }

    /// Asks where the items rely on lanes that wait or read together: the letter does not grant it.
    fn read_together(&mut self) {
        let items = &self.warp.out.items;
        let (late, steered) = (late(items), steered(items));
        self.warp.out.items = awaited(std::mem::take(&mut self.warp.out.items));
        if !self.round().launch.letter {
            let notes = late.iter().map(|l| Note::reading(l.line, Practice::InStep));
            let alike = steered.into_iter().map(|line| Note::reading(line, Practice::OneAnswer));
            self.warp.out.notes.extend(notes.chain(alike));
            return;
        }
        self.warp.out.late = late;
        self.warp.out.steered = steered.first().copied();
    }

    /// A hash of the state that the rest of the run depends on.
    fn key(&self, state: &State, pc: usize) -> (usize, u64, u64) {
        let hash = |seed: u64| {
            let mut h = std::collections::hash_map::DefaultHasher::new();
            (seed, state.active, &state.loads, &state.tickets, &state.answers).hash(&mut h);
            for r in &self.round().kernel.flow().live[pc] {
                let value = &state.env[r.index()];
                value.hash(&mut h);
                if let Val::Based(Base::Register(slot), _) = value {
                    state.numbers.get(slot).hash(&mut h);
                }
            }
            h.finish()
        };
        (pc, hash(1), hash(2))
    }

    /// Runs a region until all its lanes are at `stop` or have exited.
    fn region(&mut self, start: State, stop: usize, depth: usize) -> Result<Option<State>, Refusal> {
        if depth > DEPTH {
            return self.warp.abstain(&start, "lanes of a warp that diverge too deeply");
        }
        let outside = std::mem::replace(&mut self.warp.together, start.active);
        let mut memo = Memo::new();
        let end = self.warp.fresh();
        let mut result: Option<State> = None;
        let mut work = vec![(None, start)];
        while let Some((label, mut state)) = work.pop() {
            self.warp.together = state.active;
            if let Some(label) = label {
                self.warp.emit(&state, self.warp.together, Item::Label(label))?;
            }
            loop {
                match self.advance(&mut state, stop, &mut memo, &mut work, depth)? {
                    Progress::Going => {}
                    Progress::Ended => break,
                    Progress::Arrived => {
                        self.arrive(end, stop, state, &mut result)?;
                        break;
                    }
                }
            }
        }
        self.warp.together = outside;
        if self.is_open(depth) {
            let at = State::new(stop, 0, Vec::new());
            return self.warp.abstain(&at, "a loop of any number of rounds that is left in one of them");
        }
        if let Some(state) = &result {
            self.warp.emit(state, outside, Item::Label(end))?;
        }
        Ok(result)
    }

    /// Ends a way at the end of its region. All such ways must be in the same state, because one run continues for all.
    fn arrive(
        &mut self,
        end: u32,
        stop: usize,
        mut state: State,
        result: &mut Option<State>,
    ) -> Result<(), Refusal> {
        if let Some(other) = result {
            other.alive |= state.alive;
            state.alive = other.alive;
            let loads = unread_in_both(&other.loads, &state.loads);
            other.loads.clone_from(&loads);
            state.loads = loads;
            let numbers = in_both(&other.numbers, std::mem::take(&mut state.numbers));
            other.numbers.clone_from(&numbers);
            state.numbers = numbers;
            other.behind.join(state.behind);
            state.behind = other.behind;
            other.tickets.retain(|update, ticket| state.tickets.get(update) == Some(ticket));
            state.tickets.clone_from(&other.tickets);
            if self.key(other, stop) != self.key(&state, stop) {
                let what =
                    "lanes that diverge on a value only the exploration knows, and then continue differently";
                return self.warp.abstain(&state, what);
            }
        }
        self.warp.emit(&state, self.warp.together, Item::Jump(end))?;
        *result = Some(state);
        Ok(())
    }

    /// Runs one statement, unless the state is at `stop`.
    fn advance(
        &mut self,
        state: &mut State,
        stop: usize,
        memo: &mut Memo,
        work: &mut Vec<(Option<u32>, State)>,
        depth: usize,
    ) -> Result<Progress, Refusal> {
        if state.pc == stop {
            return Ok(Progress::Arrived);
        }
        let kernel = self.round().kernel;
        let Some(statement) = kernel.body.get(state.pc) else {
            self.warp.emit(state, state.active, Item::Exit)?;
            return Ok(Progress::Ended);
        };
        self.round().budget.statement()?;
        self.cover(state, statement);
        if self.round().kernel.flow().target[state.pc] {
            self.at_head(state, memo, work.is_empty(), depth)?;
            self.round().budget.looks(2 * self.round().kernel.flow().live[state.pc].len());
            let key = self.key(state, state.pc);
            let known = memo.get(&key).copied();
            self.enter(state, known.is_some());
            let label = known.unwrap_or_else(|| self.warp.fresh());
            if known.is_some() {
                self.warp.emit(state, self.warp.together, Item::Jump(label))?;
                return Ok(Progress::Ended);
            }
            memo.insert(key, label);
            self.warp.emit(state, self.warp.together, Item::Label(label))?;
        }
        if let (Some(guard), What::Branch { target }) = (statement.guard, &statement.what)
            && let Some(answer) = self.answered(state, guard)
        {
            return self.either(state, (guard, answer), *target, depth);
        }
        if let Some(guard) = statement.guard
            && self.is_data(state, guard)
            && let Some(progress) = self.undecided(state, statement, guard, work)?
        {
            return Ok(progress);
        }
        match &statement.what {
            What::Branch { target } => self.branch(state, statement, *target, depth),
            What::Table { index, table } => self.indexed(state, statement, *index, *table),
            What::Exit => {
                let mask = self.warp.guarded(state, statement.guard)?;
                if mask != 0 {
                    self.warp.emit(state, mask, Item::Exit)?;
                }
                state.active &= !mask;
                state.alive &= !mask;
                state.pc += 1;
                self.warp.together = state.active;
                Ok(if state.active == 0 { Progress::Ended } else { Progress::Going })
            }
            _ => match self.step(state, statement)? {
                Then::Next => {
                    state.pc += 1;
                    Ok(Progress::Going)
                }
                Then::End => Ok(Progress::Ended),
                Then::Ways(ways) => self.ways(state, ways, 1, work),
            },
        }
    }

    /// Whether the arms of a branch only move data that decides nothing.
    fn is_quiet(&self, pc: usize) -> bool {
        self.round().kernel.flow().quiet[pc].as_ref().is_some_and(|lines| !self.steers(lines))
    }

    /// Whether it is a store to shared memory that decides nothing.
    fn is_store(&self, statement: &Statement) -> bool {
        stores_shared(statement) && !self.steers(&[statement.line])
    }

    fn steers(&self, lines: &[u32]) -> bool {
        self.round().budget.looks(self.round().heap.size());
        self.round().heap.steers(lines)
    }

    /// Whether a guard depends on data or on what is not evaluated.
    fn is_data(&self, state: &State, guard: Guard) -> bool {
        matches!(
            state.env[guard.reg.index()],
            Val::Unknown(Why::Word(..) | Why::Loaded(_) | Why::Computed(_) | Why::Ticket { .. })
        )
    }

    /// Runs a statement of which it is not known whether its guard holds. A branch into a failed check is not taken. What
    /// only moves data is run in any case, because no order depends on it. For everything else both answers are tried.
    /// None if the statement can be run as it is.
    fn undecided(
        &mut self,
        state: &mut State,
        statement: &Statement,
        guard: Guard,
        work: &mut Vec<(Option<u32>, State)>,
    ) -> Result<Option<Progress>, Refusal> {
        let flow = self.round().kernel.flow();
        if let What::Branch { target } = statement.what {
            let (taken, passed) = (flow.fails[target.min(flow.fails.len() - 1)], flow.fails[state.pc + 1]);
            if taken != passed {
                let text = "the check that this branch makes is assumed to hold";
                self.warp.out.notes.insert(Note::new(statement.line, text));
                state.pc = if passed { target } else { state.pc + 1 };
                return Ok(Some(Progress::Going));
            }
            if self.is_quiet(state.pc) {
                return Ok(None);
            }
        } else if moves_data(statement) || self.is_store(statement) {
            if !accesses(statement) {
                return Ok(None);
            }
            let always = Statement { guard: None, ..statement.clone() };
            self.ran(state);
            return Ok(Some(match self.step(state, &always)? {
                Then::Next => {
                    state.pc += 1;
                    Progress::Going
                }
                Then::End => Progress::Ended,
                Then::Ways(ways) => self.ways(state, ways, 1, work)?,
            }));
        }
        if !self.round().choosing {
            return Ok(None);
        }
        let mask = state.active;
        let mut step = Executing { warp: &mut self.warp, state, mask };
        let Some(answer) = choice(&mut step)? else { return Ok(None) };
        let Then::Ways(ways) = step.both(answer, &[guard.reg]) else { return Ok(None) };
        self.ways(state, ways, 0, work).map(Some)
    }

    /// Notes that the statement is reached, and which ways its guard goes: a branch is reached if a lane stands at it, any other
    /// statement if a lane runs it. A guard that is not known goes no way.
    fn cover(&mut self, state: &mut State, statement: &Statement) {
        let pc = state.pc;
        let branches = matches!(statement.what, What::Branch { .. });
        let known = |g: &Guard| matches!(state.env[g.reg.index()], Val::Known(_));
        let mask = match statement.guard {
            Some(guard) if known(&guard) => self.warp.guarded(state, Some(guard)).unwrap_or(0),
            Some(_) if branches => return self.warp.out.course.reach(pc),
            Some(_) => return,
            None => state.active,
        };
        if statement.guard.is_some() {
            for (holds, lanes) in [(true, mask), (false, state.active & !mask)] {
                if lanes != 0 {
                    self.warp.out.course.go(pc, holds);
                }
            }
        }
        if branches {
            self.warp.out.course.reach(pc);
        } else if mask != 0 {
            self.ran(state);
        }
    }

    /// Notes that the statement runs, and in which loops it has done so in an earlier pass.
    fn ran(&mut self, state: &mut State) {
        let pc = state.pc;
        self.warp.out.course.reach(pc);
        for first in &self.round().kernel.flow().around[pc] {
            let passes = state.passes.iter().find(|p| p.0 == *first).map_or(0, |p| p.1);
            if *state.ran.entry((pc, *first)).or_insert(passes) != passes {
                self.warp.out.course.again(pc, *first);
            }
        }
    }

    /// Notes that the loop that starts here is entered. In a `known` state it waits.
    fn enter(&mut self, state: &mut State, known: bool) {
        let back = std::mem::take(&mut state.back);
        let at = state.pc;
        if !self.round().kernel.flow().spans.contains_key(&at) {
            return;
        }
        if !back {
            state.passes.retain(|p| p.0 != at);
            state.ran.retain(|ran, _| ran.1 != at);
            state.passes.push((at, 0));
        }
        self.warp.out.course.pass(at, 0);
        if known && back {
            self.warp.out.course.wait(at);
        }
    }

    /// Counts a pass of the loop that a branch leads back to, if it is taken or no later one leads there.
    fn pass(&mut self, state: &mut State, first: usize, taken: bool) {
        let last = self.round().kernel.flow().spans.get(&first) == Some(&state.pc);
        if !taken && !last {
            return;
        }
        if !state.passes.iter().any(|p| p.0 == first) {
            state.passes.push((first, 0));
        }
        if let Some((_, count)) = state.passes.iter_mut().find(|p| p.0 == first) {
            *count += 1;
            self.warp.out.course.pass(first, *count);
        }
    }

    /// Forgets the passes of loops that a jump enters behind their first statement.
    fn jump(&self, state: &mut State, to: usize) {
        let (from, spans) = (state.pc, &self.round().kernel.flow().spans);
        let inside =
            |first: usize, pc: usize| spans.get(&first).is_some_and(|last| (first..=*last).contains(&pc));
        state.passes.retain(|p| inside(p.0, from) || !inside(p.0, to));
        state.ran.retain(|ran, _| inside(ran.1, from) || !inside(ran.1, to));
    }

    /// Continues with the last way. Branches lead to the others, which are run later.
    fn ways(
        &mut self,
        state: &mut State,
        mut ways: Vec<(Option<Reg>, State)>,
        statements: usize,
        work: &mut Vec<(Option<u32>, State)>,
    ) -> Result<Progress, Refusal> {
        self.round().budget.looks(ways.len() * state.env.len());
        let Some((_, last)) = ways.pop() else { return Ok(Progress::Ended) };
        for (reg, mut other) in ways {
            other.behind.wait(false);
            let Some(reg) = reg else { continue };
            let to = self.warp.fresh();
            self.warp.emit(state, self.warp.together, Item::Branch { reg, to })?;
            other.pc += statements;
            work.push((Some(to), other));
        }
        *state = last;
        state.behind.wait(false);
        state.pc += statements;
        Ok(Progress::Going)
    }

    fn branch(
        &mut self,
        state: &mut State,
        statement: &Statement,
        target: usize,
        depth: usize,
    ) -> Result<Progress, Refusal> {
        if statement.guard.is_some_and(|g| self.is_data(state, g)) && self.is_quiet(state.pc) {
            return self.both_arms(state, target, depth);
        }
        let taken = self.warp.guarded(state, statement.guard)?;
        let rest = state.active & !taken;
        if target <= state.pc {
            self.pass(state, target, taken != 0);
        }
        if rest == 0 {
            self.jump(state, target);
            state.back = target <= state.pc;
            state.pc = target;
            return Ok(Progress::Going);
        }
        if taken == 0 {
            state.pc += 1;
            return Ok(Progress::Going);
        }
        let meet = self.round().kernel.flow().meets[state.pc];
        let other = self.warp.fresh();
        let end = self.warp.fresh();
        let leaves = |pc: usize| self.round().kernel.flow().leaves[pc];
        let mut arms = [(target, taken), (state.pc + 1, rest)];
        // Lanes of one arm may still meet those of the other, unless their arm is nothing but an exit. That one is run first.
        if leaves(arms[1].0) && !leaves(arms[0].0) {
            arms.swap(0, 1);
        }
        let gone = if leaves(arms[0].0) { arms[0].1 } else { 0 };
        let alive = state.alive & !gone;
        self.warp.emit(state, self.warp.together, Item::Others { mask: arms[0].1, to: other })?;
        self.round().budget.looks(2 * state.env.len());
        let way = |(pc, active): (usize, u32), state: &State| State {
            back: pc <= state.pc,
            pc,
            active,
            alive,
            ..state.clone()
        };
        let first = self.region(way(arms[0], state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Jump(end))?;
        self.warp.emit(state, self.warp.together, Item::Label(other))?;
        let second = self.region(way(arms[1], state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Label(end))?;
        let joined = match (first, second) {
            (Some(a), Some(b)) => self.joined(state, a, b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Ok(Progress::Ended),
        };
        *state = State { alive, ..joined };
        self.warp.together = state.active;
        Ok(Progress::Going)
    }

    /// The state behind two arms, where both ways meet.
    fn joined(&self, before: &State, a: State, b: State) -> State {
        let meet = b.pc;
        let mut env = b.env;
        for reg in &self.round().kernel.flow().live[meet] {
            let r = reg.index();
            let mine = std::mem::replace(&mut env[r], Val::Unknown(Why::Unset));
            env[r] = a.env[r].clone().over(a.active, &mine);
        }
        let mut waited = b.waited;
        waited.extend(a.waited.into_iter().filter(|w| !before.waited.contains(w)));
        let mut behind = a.behind;
        behind.join(b.behind);
        State {
            pc: meet,
            active: a.active | b.active,
            alive: before.alive,
            env,
            loads: unread_in_both(&a.loads, &b.loads),
            passes: b.passes,
            ran: b.ran,
            back: a.back || b.back,
            waited,
            behind,
            answers: most(a.answers, &b.answers),
            numbers: in_both(&a.numbers, b.numbers),
            tickets: of_arms(&before.tickets, &a.tickets, &b.tickets),
        }
    }

    /// The register of the items that says whether an mbarrier has answered, in a launch of any size: a round may ask for what the
    /// next one waits for.
    fn answered(&self, state: &State, guard: Guard) -> Option<Reg> {
        match state.env[guard.reg.index()] {
            Val::Based(Base::Register(r), Lanes::Same(0)) if self.round().plan.is_some() => Some(Reg(r)),
            _ => None,
        }
    }

    /// Runs both arms of a branch on such an answer to where they meet. One period then stands for both.
    fn either(
        &mut self,
        state: &mut State,
        (guard, answer): (Guard, Reg),
        target: usize,
        depth: usize,
    ) -> Result<Progress, Refusal> {
        let meet = self.round().kernel.flow().meets[state.pc];
        self.round().budget.looks(2 * state.env.len());
        let (yes, end) = (self.warp.fresh(), self.warp.fresh());
        let arm = |holds: bool, state: &State| {
            let pc = if holds == guard.negated { state.pc + 1 } else { target };
            let mut arm = State { pc, ..state.clone() };
            arm.env[guard.reg.index()] = Val::same(u64::from(holds));
            arm.behind.wait(false);
            arm
        };
        self.warp.emit(state, self.warp.together, Item::Branch { reg: answer, to: yes })?;
        let one = self.region(arm(false, state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Jump(end))?;
        self.warp.emit(state, self.warp.together, Item::Label(yes))?;
        let mut other = self.region(arm(true, state), meet, depth + 1)?;
        self.warp.emit(state, self.warp.together, Item::Label(end))?;
        if let (Some(one), Some(other)) = (&one, &mut other) {
            if one.active != other.active {
                return self.warp.abstain(state, "lanes that exit if an mbarrier has answered");
            }
            other.behind.join(one.behind);
        }
        self.met(state, one, other)
    }

    /// Runs both arms of a branch that only move data, one after the other. What they compute differently is unknown.
    fn both_arms(&mut self, state: &mut State, target: usize, depth: usize) -> Result<Progress, Refusal> {
        let meet = self.round().kernel.flow().meets[state.pc];
        self.round().budget.looks(2 * state.env.len());
        let first = self.region(State { pc: target, ..state.clone() }, meet, depth + 1)?;
        let second = self.region(State { pc: state.pc + 1, ..state.clone() }, meet, depth + 1)?;
        self.met(state, first, second)
    }

    /// Goes on behind two arms that the same lanes may take.
    fn met(
        &mut self,
        state: &mut State,
        first: Option<State>,
        second: Option<State>,
    ) -> Result<Progress, Refusal> {
        let line = self.warp.line(state.pc);
        let (Some(one), Some(mut other)) = (first, second) else {
            return self.warp.abstain(state, "an arm of a branch on data that ends the warp");
        };
        for (to, from) in other.env.iter_mut().zip(&one.env) {
            if to != from {
                *to = Val::Unknown(Why::Computed(line));
            }
        }
        other.alive |= one.alive;
        other.answers = most(other.answers, &one.answers);
        other.tickets = of_arms(&state.tickets, &one.tickets, &other.tickets);
        other.loads = unread_in_both(&one.loads, &other.loads);
        other.numbers = in_both(&one.numbers, other.numbers);
        *state = other;
        Ok(Progress::Going)
    }

    fn indexed(
        &mut self,
        state: &mut State,
        statement: &Statement,
        index: Reg,
        table: usize,
    ) -> Result<Progress, Refusal> {
        if self.warp.guarded(state, statement.guard)? != state.active {
            return self.warp.abstain(state, "brx.idx under a predicate");
        }
        let value = &state.env[index.index()];
        let Some(n) = value.known().and_then(|l| l.one(state.active)) else {
            return self.warp.abstain(state, format!("brx.idx on {}", self.warp.reason(value)));
        };
        let targets = self.round().kernel.tables.get(table).map(Vec::as_slice).unwrap_or_default();
        match usize::try_from(n).ok().and_then(|n| targets.get(n)) {
            Some(target) => {
                self.warp.out.course.choose(state.pc, *target);
                state.back = *target <= state.pc;
                if state.back {
                    self.pass(state, *target, true);
                }
                state.pc = *target;
                Ok(Progress::Going)
            }
            None => self.warp.abstain(state, format!("brx.idx with index {n} of {}", targets.len())),
        }
    }

    fn step(&mut self, state: &mut State, at: &Statement) -> Result<Then, Refusal> {
        let mask = state.active;
        statement(&mut Executing { warp: &mut self.warp, state, mask }, at)
    }
}
