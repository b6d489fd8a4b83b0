//! The body of a part, run once on what is known of its registers: where lanes must be apart, and what is known where they
//! need not be.
//!
//! States of all ways to a place are joined until nothing changes. A condition that fails at any time puts lanes apart;
//! that is never wrong, only slower.

use super::control::{self, Runs};
use super::counts;
use super::objects;
use super::part::{Apart, Done, SomeLanes, State, States};
use super::planted::Planted;
use super::releases;
use super::sites::{Site, sites};
use super::value::{Known, Val, arithmetic, compare, low};
use super::values;
use super::waits::{Leave, leave};
use crate::ir::*;
use crate::registers::{only_registers, written};
use std::rc::Rc;

/// The states of a part, and its accesses.
///
/// # Errors
/// How its lanes must be apart.
pub(super) fn analyse(part: &SomeLanes<'_>) -> Done<(States, Vec<Site>)> {
    let states = run(part)?;
    values::final_values(part, states.last().and_then(Option::as_ref))?;
    let of = |(pc, state): (usize, &Option<State>)| {
        let state = state.as_ref().filter(|s| pc < part.code().body.len() && will_run(part, s, pc))?;
        Some(sites(part, state, pc))
    };
    let sites: Vec<Site> = states.iter().enumerate().filter_map(of).flatten().collect();
    releases::alike(part, &sites)?;
    Ok((states, sites))
}

/// Whether the instruction at `pc` may be executed.
pub(super) fn will_run(part: &SomeLanes<'_>, state: &State, pc: usize) -> bool {
    control::runs(part, state, part.code().body[pc].guard) != Ok(Runs::Never)
}

fn run(part: &SomeLanes<'_>) -> Done<States> {
    let mut states: States = vec![None; part.code().body.len() + 1];
    let mut todo = vec![(0, part.start())];
    while let Some((pc, state)) = todo.pop() {
        let joined = match &states[pc] {
            Some(old) => join(old, &state),
            None => state,
        };
        if states[pc].as_ref() == Some(&joined) {
            continue;
        }
        if pc < part.code().body.len() {
            todo.extend(step(part, pc, joined.clone())?);
        }
        states[pc] = Some(joined);
    }
    Ok(states)
}

fn join(a: &State, b: &State) -> State {
    let regs = a.regs.iter().zip(&b.regs).map(|(a, b)| a.join(b)).collect();
    State { regs, fenced: a.fenced || b.fenced, waited: a.waited || b.waited }
}

/// Where a part goes from a place, and what is known there.
fn step(part: &SomeLanes<'_>, pc: usize, state: State) -> Done<Vec<(usize, State)>> {
    let instr = &part.code().body[pc];
    if only_registers(&instr.op) {
        return Ok(vec![(pc + 1, register_step(part, pc, state)?)]);
    }
    if let Some(leave) = waited_out(part, pc, &state) {
        return Ok(left(&state, instr, leave));
    }
    let runs = control::runs(part, &state, instr.guard)?;
    let mut out = if runs == Runs::Always { Vec::new() } else { vec![(pc + 1, state.clone())] };
    if runs != Runs::Never {
        out.extend(executed(part, pc, state)?);
    }
    Ok(out)
}

/// How lanes leave a branch on the result of a strong read that puts none of them apart.
fn waited_out(part: &SomeLanes<'_>, pc: usize, state: &State) -> Option<Leave> {
    let instr = &part.code().body[pc];
    let (Op::Bra { target }, Some(guard)) = (&instr.op, instr.guard) else { return None };
    if state.regs[guard.reg.index()] != Val::Open {
        return None;
    }
    let any = || Leave { exit: *target, again: pc + 1, differ: Vec::new(), known: false };
    leave(part.code(), pc).or_else(|| part.has(Planted::Peeks).then(any))
}

/// Behind a wait or a peek: what lanes computed while they waited may differ.
fn left(state: &State, instr: &Instr, leave: Leave) -> Vec<(usize, State)> {
    let mut out = state.clone();
    for reg in leave.differ {
        let value = &mut out.regs[reg.index()];
        if !(leave.known && matches!(value, Val::Known(_))) {
            *value = Val::Open;
        }
    }
    if let (true, Some(guard)) = (leave.known, instr.guard) {
        out.regs[guard.reg.index()] = Val::Same;
    }
    vec![(leave.again, state.clone()), (leave.exit, out)]
}

/// The instruction is executed: all conditions, then its effect.
fn executed(part: &SomeLanes<'_>, pc: usize, state: State) -> Done<Vec<(usize, State)>> {
    let op = &part.code().body[pc].op;
    match op.goes() {
        Goes::To(target) => return Ok(vec![(target, state)]),
        Goes::End => return Ok(vec![(part.code().body.len(), state)]),
        Goes::On | Goes::Opens | Goes::Closes => {}
    }
    op.mask().map_or(Ok(()), |mask| control::mask(part, &state, mask))?;
    releases::check(part, &state, op)?;
    values::check(part, &state, op)?;
    values::reduced(part, &state, op)?;
    objects::check(part, &state, op)?;
    counts::check(part, &state, op)?;
    Ok(behind(pc, op, effect(part, state, pc), part.code()))
}

/// Where a loop with a number of trips may go on, or any other instruction.
fn behind(pc: usize, op: &Op, state: State, code: &Thread) -> Vec<(usize, State)> {
    let other = match op.goes() {
        Goes::Opens => end_of(code, pc),
        Goes::Closes => start_of(code, pc),
        Goes::On | Goes::To(_) | Goes::End => None,
    };
    other.into_iter().chain([pc]).map(|pc| (pc + 1, state.clone())).collect()
}

fn nesting(instr: &Instr) -> i32 {
    match instr.op.goes() {
        Goes::Opens => 1,
        Goes::Closes => -1,
        Goes::On | Goes::To(_) | Goes::End => 0,
    }
}

fn end_of(code: &Thread, start: usize) -> Option<usize> {
    let mut depth = 0;
    (start..code.body.len()).find(|pc| {
        depth += nesting(&code.body[*pc]);
        depth == 0
    })
}

fn start_of(code: &Thread, end: usize) -> Option<usize> {
    let mut depth = 0;
    (0..=end).rev().find(|pc| {
        depth += nesting(&code.body[*pc]);
        depth == 0
    })
}

fn effect(part: &SomeLanes<'_>, mut state: State, pc: usize) -> State {
    let op = &part.code().body[pc].op;
    let result = values::result(part, &state, op);
    written(op, &mut |reg| state.regs[reg.index()] = result.clone());
    let order = matches!(op, fence_op!());
    state.fenced |= order;
    state.waited = (state.waited && !meet(part, &state, op)) || waits(part.code(), pc);
    state
}

/// Whether an instruction asks in a loop for what others do: a late lane may find that what it waits for is over.
fn waits(code: &Thread, pc: usize) -> bool {
    let again = |(at, i): (usize, &Instr)| matches!(i.op, Op::Bra { target } if target <= pc && pc <= at);
    code.body[pc].op.is_strong_read() && code.body.iter().enumerate().any(again)
}

/// Whether all lanes of the part meet at an instruction. Behind it none is late for what stands before it.
fn meet(part: &SomeLanes<'_>, state: &State, op: &Op) -> bool {
    let inside = |mask: Known| part.lanes.iter().all(|l| mask.number >> l & 1 == 1);
    let named = op.mask().and_then(|mask| part.operand(state, mask).one());
    matches!(op, Op::Bar { kind: BarKind::Sync | BarKind::Red { .. }, .. }) || named.is_some_and(inside)
}

/// An instruction that touches registers only. A guard that differs among lanes is a selection in each.
fn register_step(part: &SomeLanes<'_>, pc: usize, state: State) -> Done<State> {
    let (instr, mut new) = (&part.code().body[pc], state.clone());
    let runs = control::runs(part, &state, instr.guard);
    if runs == Ok(Runs::Never) {
        return Ok(state);
    }
    new.waited &= runs != Ok(Runs::Always) || !meet(part, &state, &instr.op);
    if let Op::Control(Control::Elect { dst, pred, mask }) = &instr.op {
        elect(part, pc, &mut new, (*dst, *pred), *mask)?;
    } else {
        let result = computed(part, &state, &instr.op);
        written(&instr.op, &mut |reg| new.regs[reg.index()] = result.clone());
    }
    let Some(guard) = instr.guard else { return Ok(new) };
    if matches!(instr.op, Op::Control(_)) {
        control::runs(part, &state, Some(guard))?;
    }
    let held = control::holds(&state, guard);
    written(&instr.op, &mut |reg| {
        let (old, done) = (&state.regs[reg.index()], new.regs[reg.index()].clone());
        new.regs[reg.index()] = chosen(&held, &done, old);
    });
    Ok(new)
}

/// One value where a predicate holds, another where it does not.
fn chosen(held: &Val, yes: &Val, no: &Val) -> Val {
    match held.one() {
        Some(Known { number: 0, .. }) => no.clone(),
        Some(_) => yes.clone(),
        None => match Val::computed([held, yes, no], |[h, y, n]| Some(if h.number == 0 { n } else { y })) {
            known @ Val::Known(_) => known,
            _ if held.uniform() => yes.join(no),
            _ => Val::mixed(&[held, yes, no]),
        },
    }
}

/// The elected lane is the first of the mask that comes, the same every time (PTX ISA 9.2, 9.7.13.14).
fn elect(
    part: &SomeLanes<'_>,
    pc: usize,
    state: &mut State,
    (dst, pred): (Option<Reg>, Reg),
    mask: Operand,
) -> Done<()> {
    control::mask(part, state, mask)?;
    let leader = elected(part, state, pc, mask);
    if leader.is_none() && part.several() {
        return Err(Apart::All);
    }
    let known = |lane: u8, number: u128| Known::number((u128::from(lane) == number).into());
    let leader = leader.map(u128::from);
    let is = |leader| Val::Known(part.lanes.iter().map(|lane| known(*lane, leader)).collect());
    state.regs[pred.index()] = leader.map_or(Val::Same, is);
    if let Some(dst) = dst {
        state.regs[dst.index()] = leader.map_or(Val::Same, |l| part.constant(Known::number(l)));
    }
    Ok(())
}

/// The lane that an election at a place elects, if it is known that it comes there.
pub(super) fn elected(part: &SomeLanes<'_>, state: &State, pc: usize, mask: Operand) -> Option<u8> {
    let mask = part.operand(state, mask).one().filter(|k| k.base.is_none())?;
    let first = u32::try_from(mask.number & u128::from(part.warp())).ok()?.trailing_zeros();
    let first = u8::try_from(first).ok()?;
    (part.lanes.contains(&first) || comes(part, first, pc)).then_some(first)
}

/// The states of one lane, computed once. None if it is being run: an election that asks about itself is not known.
fn alone(part: &SomeLanes<'_>) -> Option<Rc<States>> {
    let lane = part.lanes[0];
    if let Some(known) = part.alone.borrow().get(&lane) {
        return known.clone();
    }
    part.alone.borrow_mut().insert(lane, None);
    let states = run(part).ok().map(Rc::new);
    part.alone.borrow_mut().insert(lane, states.clone());
    states
}

/// Whether a lane of the thread always comes to an instruction, and once in each round of a loop with a number of trips.
fn comes(part: &SomeLanes<'_>, lane: u8, pc: usize) -> bool {
    let (code, one) = (part.code(), part.of_lanes(vec![lane]));
    let Some(states) = alone(&one) else { return false };
    let runs = |at: usize| {
        states[at]
            .as_ref()
            .map_or(Runs::Never, |s| control::runs(&one, s, code.body[at].guard).unwrap_or(Runs::Maybe))
    };
    let straight = |(at, instr): (usize, &Instr)| match instr.op.goes() {
        Goes::To(target) => {
            let waits = leave(code, at).is_some();
            runs(at) == Runs::Never || waits || (runs(at) == Runs::Always && !(target <= pc && pc <= at))
        }
        Goes::End => runs(at) != Runs::Maybe,
        Goes::On | Goes::Opens | Goes::Closes => true,
    };
    code.place.lanes() >> lane & 1 == 1
        && runs(pc) == Runs::Always
        && code.body.iter().enumerate().all(straight)
}

fn computed(part: &SomeLanes<'_>, state: &State, op: &Op) -> Val {
    let value = |o: &Operand| part.operand(state, *o);
    let narrow = |ty: Ty, k: Known| match k.base {
        None => Some(Known::number(low(k.number, ty))),
        Some(_) => (ty.bytes() >= 8).then_some(k),
    };
    match op {
        Op::Mov { ty, src, .. } => Val::computed([&value(src)], |[k]| narrow(*ty, k)),
        Op::Alu { op, ty, a, b, .. } => {
            Val::computed([&value(a), &value(b)], |[a, b]| arithmetic(*op, *ty, a, b))
        }
        Op::Setp { op, ty, a, b, .. } => {
            Val::computed([&value(a), &value(b)], |[a, b]| compare(*op, *ty, a, b))
        }
        Op::Selp { ty, a, b, p, .. } => {
            let held = control::holds(state, Guard { reg: *p, negated: false });
            let narrow = |v: &Val| Val::computed([v], |[k]| narrow(*ty, k));
            chosen(&held, &narrow(&value(a)), &narrow(&value(b)))
        }
        Op::Mapa { src, rank, .. } => Val::computed([&value(src), &value(rank)], |[src, rank]| {
            let (symbol, _) = src.base?;
            let rank = Some(low(rank.number, Ty::B(32))).filter(|_| rank.base.is_none())?;
            Some(Known { base: Some((symbol, Some(rank))), ..src })
        }),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Control(_) => Val::Open,
        multimem_op!() | fence_op!() | barrier_op!() | unit_op!() | Op::Tile(_) | jump_op!() => Val::Open,
        Op::Book(_) => Val::Open,
    }
}
