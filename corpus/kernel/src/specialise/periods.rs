//! A loop of a warp as one period that is repeated any number of times.
//!
//! A launch whose size is `base + step * u` (`Plan`) is run ahead once for all `u >= 0`. A number that depends on `u` is a
//! form in it (`known/line`). A loop that goes round more often with a larger `u` is unrolled for its first rounds. At the
//! start of round `first + period` the run ahead supposes that the warp stands there for the `t`-th time after so many periods,
//! and that the registers that matter have the values `S(t)`: each has the same value each time, or grows by the same number
//! each time, or may have any value. What grows and by how much is taken from the period before, or from the same loop of a larger launch, so that
//! a small one needs few rounds (`every`). That is a guess, and it is checked:
//!
//! 1. *Start.* `S(0)` is the state in which the first rounds end.
//! 2. *Step.* One period is run ahead from `S(t)` for all `t >= 0` and `u > t`. Each branch goes one way for all of them,
//!    each operand of what stays is one number for all of them, and the state behind it lies in `S(t + 1)`.
//! 3. *End.* The run ahead goes on in `S(u)`, for all `u >= 0`, to the end of the warp.
//!
//! By induction the warp does, for each `u` for which no number overflows its register (`Reach`), what is written before the period, then the period `u` times, then what is written
//! behind it. That the loop is left after `u` periods and not before is part of it: the branches inside are decided
//! for `u > t`, and those behind for `t = u`. If a branch or an operand is not decided, the run ahead refuses as it does for any
//! value that it does not know, and there is no proof.
//!
//! Between the start and the end of a period no other way of the run may be open, and nothing else may be different that
//! the run ahead keeps of a warp: loads of tensor memory on the way, copies that are not committed, choices. An answer about a phase
//! that a round asks for and the next one uses stays in a register of the program (`either` in `run`).

use super::item::Item;
use super::known::alu::Int;
use super::known::line::{Cone, Line, memory, parts, whole};
use super::known::value::{Base, Lanes, Val, Why, lanes};
use super::plan::{Growth, Planted};
use super::run::{Memo, Run};
use super::warp::{Copying, State};
use crate::Refusal;

/// A period that is being run.
pub(super) struct Open {
    head: usize,
    depth: usize,
    /// Rounds of the loop at its start.
    passes: u32,
    /// The label of its start.
    again: u32,
    /// The label behind it.
    past: u32,
    start: State,
    /// The labels before it: no jump leads there from inside, or from behind it to the inside.
    outside: Memo,
    copying: Copying,
    choices: u32,
}

impl Run<'_> {
    /// At the first statement of a loop: starts a period there, or ends it. `alone`: no other way of the region is open.
    pub(super) fn at_head(
        &mut self,
        state: &mut State,
        memo: &mut Memo,
        alone: bool,
        depth: usize,
    ) -> Result<(), Refusal> {
        let head = state.pc;
        let Some(plan) = self.warp.round.plan else { return Ok(()) };
        let Some(rounds) = plan.rounds.get(&head).copied() else { return Ok(()) };
        let passes = state.passes.iter().find(|p| p.0 == head && state.back).map_or(0, |p| p.1);
        if let Some(open) = &self.open {
            if open.head != head {
                return self.warp.abstain(state, "a loop of any number of rounds inside another one");
            }
            return if passes == open.passes + rounds {
                self.close(state, memo, alone, depth)
            } else {
                Ok(())
            };
        }
        let start = if plan.known { plan.first } else { plan.first + rounds };
        if passes == start {
            return self.open(state, memo, alone, depth);
        }
        if passes == plan.first {
            self.seen.insert(head, state.env.clone());
        }
        Ok(())
    }

    /// How the registers that matter change in a period from here on: what a larger launch has shown, or what the period before
    /// shows. None if that is not known.
    fn growths(&mut self, state: &State) -> Option<Vec<Growth>> {
        let (head, round) = (state.pc, self.warp.round);
        let plan = round.plan?;
        let times = self.opened.entry(head).or_default();
        let key = (self.warp.out.warp, head, *times);
        *times += 1;
        if plan.known {
            return plan.growths.borrow().get(&key).cloned();
        }
        let before = self.seen.remove(&head)?;
        let bit = |v: &Val| v.known().and_then(|l| l.one(state.active)).is_some_and(|n| n < 2);
        let short = plan.planted == Some(Planted::ShortPeriod);
        let of = |r: &moire_program::ir::Reg| {
            let (before, now) = (&before[r.index()], &state.env[r.index()]);
            let kept = short && bit(before) && bit(now);
            if kept { Growth::Same } else { growth(before, now, (state.active, self.bits(r.index()))) }
        };
        let all: Vec<Growth> = round.kernel.flow().live[head].iter().map(of).collect();
        plan.growths.borrow_mut().insert(key, all.clone());
        Some(all)
    }

    fn open(&mut self, state: &mut State, memo: &mut Memo, alone: bool, depth: usize) -> Result<(), Refusal> {
        let (head, round) = (state.pc, self.warp.round);
        let Some(growths) = self.growths(state).filter(|_| alone) else {
            return self.warp.abstain(state, "a loop whose rounds start in several ways");
        };
        for (r, growth) in round.kernel.flow().live[head].iter().zip(&growths) {
            let guess = guessed(growth, &state.env[r.index()], self.bits(r.index()));
            state.env[r.index()] = guess.unwrap_or(Val::Unknown(Why::Computed(self.warp.line(head))));
        }
        state.behind.wait(false);
        let outside = std::mem::take(memo);
        let (again, past) = (self.warp.fresh(), self.warp.fresh());
        self.warp.emit(state, self.warp.together, Item::Label(again))?;
        self.warp.emit(state, self.warp.together, Item::Open { past })?;
        self.warp.cone = Cone::Inside;
        let passes = state.passes.iter().find(|p| p.0 == head).map_or(0, |p| p.1);
        let (copying, choices) = (self.warp.copying.clone(), self.warp.choices);
        let start = state.clone();
        self.open = Some(Open { head, depth, passes, again, past, start, outside, copying, choices });
        Ok(())
    }

    fn close(
        &mut self,
        state: &mut State,
        memo: &mut Memo,
        alone: bool,
        depth: usize,
    ) -> Result<(), Refusal> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if !alone || open.depth != depth {
            return self.warp.abstain(state, "a loop whose rounds end in several ways");
        }
        let planted = self.warp.round.plan.and_then(|p| p.planted);
        let short = planted == Some(Planted::ShortPeriod);
        if let Some(what) = self.changed(state, &open).filter(|_| !short) {
            return self.warp.abstain(state, format!("a loop in which {what} is different each time"));
        }
        *memo = open.outside;
        self.warp.cone = Cone::Outside;
        self.warp.emit(state, self.warp.together, Item::Close { again: open.again })?;
        self.warp.emit(state, self.warp.together, Item::Label(open.past))?;
        let bits = |n: usize| self.bits(n);
        let earlier = |v: Val| match v {
            Val::Based(Base::Line(l), _) if planted == Some(Planted::LeavesLate) => {
                v.add(&Lanes::Same(l.turn.wrapping_neg().cast_unsigned()))
            }
            v => v,
        };
        state.env =
            open.start.env.into_iter().enumerate().map(|(n, v)| passed(earlier(v), bits(n))).collect();
        Ok(())
    }

    /// The bits of a register.
    fn bits(&self, n: usize) -> u32 {
        let ty = self.warp.round.kernel.types.get(n);
        ty.map_or(64, |t| (8 * t.bytes()).clamp(1, 64))
    }

    /// What is not as supposed at the end of a period.
    fn changed(&self, state: &State, open: &Open) -> Option<String> {
        let (start, warp) = (&open.start, &self.warp);
        if (start.active, &start.loads, start.behind) != (state.active, &state.loads, state.behind) {
            return Some("what the warp waits for".to_owned());
        }
        // Numbers that a counter hands out are told apart by how often they are asked for.
        if start.alive != state.alive || !start.tickets.is_empty() || !state.tickets.is_empty() {
            return Some("what a counter hands out, or which lanes there are".to_owned());
        }
        let copying = |c: &Copying| (c.copied, c.committed);
        if (&start.numbers, &start.answers) != (&state.numbers, &state.answers)
            || copying(&open.copying) != copying(&warp.copying)
            || open.choices != warp.choices
        {
            return Some("what the warp has under way".to_owned());
        }
        let broken =
            |r: &&moire_program::ir::Reg| !holds(&start.env[r.index()], &state.env[r.index()], state.active);
        let reg = warp.round.kernel.flow().live[open.head].iter().find(broken)?;
        Some(warp.round.kernel.program.threads[0].regs[reg.index()].name.clone())
    }

    /// Whether a period is open that started at this depth of regions.
    pub(super) fn is_open(&self, depth: usize) -> bool {
        self.open.as_ref().is_some_and(|open| open.depth == depth)
    }
}

/// How a register of so many bits changes, given what it had one period earlier and now.
fn growth(before: &Val, now: &Val, (active, bits): (u32, u32)) -> Growth {
    if same(before, now, active) || matches!(now, Val::Unknown(_)) {
        return Growth::Same;
    }
    let turn = || {
        let ((param, line, a), (other, like, b)) = (parts(before)?, parts(now)?);
        let plain = param.is_none() && line.is_none();
        if (param, line) != (other, like) || (plain && bits < 32) {
            return None;
        }
        let (a, b) = if plain { (signed(a, bits), signed(b, bits)) } else { (a.clone(), b.clone()) };
        Some(Growth::Turn(b.zip(&a, u64::wrapping_sub).one(active)?.cast_signed()))
    };
    let points = memory(before).is_some() && memory(before) == memory(now);
    turn().unwrap_or(if points { Growth::Somewhere } else { Growth::Unknown })
}

/// Numbers of so many bits with their signs.
fn signed(all: &Lanes, bits: u32) -> Lanes {
    all.map(|v| (v << (64 - bits)).cast_signed().wrapping_shr(64 - bits).cast_unsigned())
}

/// What a register of so many bits has each time, given what it has now and how it changes. None if it is not known.
fn guessed(growth: &Growth, now: &Val, bits: u32) -> Option<Val> {
    match growth {
        Growth::Same => Some(now.clone()),
        Growth::Turn(turn) => {
            let (param, line, at) = parts(now)?;
            let plain = param.is_none() && line.is_none();
            let at = if plain { signed(at, bits) } else { at.clone() };
            (!plain || bits >= 32).then(|| whole(param, Line { turn: *turn, ..line }, at))
        }
        Growth::Somewhere => Some(Val::Based(Base::Behind(memory(now)?), Lanes::Same(0))),
        Growth::Unknown => None,
    }
}

/// Whether two values are the same for these lanes.
fn same(a: &Val, b: &Val, active: u32) -> bool {
    let alike = |a: &Lanes, b: &Lanes| lanes(active).all(|l| a.get(l) == b.get(l));
    match (a, b) {
        (Val::Known(a), Val::Known(b)) => alike(a, b),
        (Val::Based(p, a), Val::Based(q, b)) => p == q && alike(a, b),
        _ => a == b,
    }
}

/// Whether a value at the end of a period is the one that is supposed for the next time.
fn holds(start: &Val, end: &Val, active: u32) -> bool {
    match start {
        Val::Unknown(Why::Word(..) | Why::Loaded(_) | Why::Computed(_)) => true,
        Val::Based(Base::Behind(n), _) => memory(end) == Some(*n),
        Val::Based(Base::Line(line) | Base::Along(_, line), _) => {
            same(&start.add(&Lanes::Same(line.turn.cast_unsigned())), end, active)
        }
        other => same(other, end, active),
    }
}

/// A value of a register of so many bits behind the loop.
fn passed(value: Val, bits: u32) -> Val {
    let Some((param, line, offset)) = parts(&value).filter(|p| !p.1.is_none()) else { return value };
    match line.passed() {
        Some(line) if param.is_none() && line.is_none() => {
            Val::Known(offset.map(|n| Int { bits, signed: false }.cut(n)))
        }
        Some(line) => whole(param, line, offset.clone()),
        None => Val::Unknown(Why::Computed(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_taken_from_two_rounds_and_checked() {
        let known = |v: i64| Val::same(v.cast_unsigned() & 0xffff_ffff);
        let turn = growth(&known(-64), &known(0), (1, 32));
        let grown = guessed(&turn, &known(0), 32).expect("both are known");
        assert_eq!(grown, Val::Based(Base::Line(Line { turn: 64, size: 0 }), Lanes::Same(0)));
        assert!(holds(&grown, &grown.add(&Lanes::Same(64)), 1));
        assert!(!holds(&grown, &grown.add(&Lanes::Same(128)), 1));
        assert!(!holds(&grown, &known(64), 1));
        assert!(holds(&known(3), &known(3), 1) && !holds(&known(3), &known(4), 1));
        assert!(holds(&Val::Unknown(Why::Computed(1)), &known(3), 1));
        assert!(!holds(&known(3), &Val::Unknown(Why::Computed(1)), 1));
        // What is left of a count of `u` periods is a number behind the loop.
        let left = Val::Based(Base::Line(Line { turn: -2, size: 2 }), Lanes::Same(5));
        assert_eq!(passed(left, 32), known(5));
        assert_eq!(passed(grown, 32), Val::Based(Base::Line(Line { turn: 0, size: 64 }), Lanes::Same(0)));
    }
}
