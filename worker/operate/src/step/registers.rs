//! Instructions that touch registers only, and loops that only wait.

use crate::engine::{At, Engine, operand};
use crate::state::State;
use crate::value::{Val, compare, compute as arithmetic, low, of_lanes};
use moire_program::ir::{AluOp, CmpOp, Control, Op, Operand, Reg, Ty};
use moire_program::registers::only_registers;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, unit_op};

/// Most instructions of a loop that only waits.
const SPIN: usize = 64;

/// The value that a register instruction writes.
fn result(e: &Engine<'_>, s: &State, at: At<'_>) -> Option<(Reg, Val)> {
    let of = |o: Operand| operand(e, s, at.thread, o);
    let two = |f: &dyn Fn(u128, u128) -> u128, a: Operand, b: Operand| match (of(a), of(b)) {
        (Val::Known(a), Val::Known(b)) => Val::Known(f(a, b)),
        _ => Val::Unknown,
    };
    let width = |ty: &Ty| 8 * ty.bytes();
    Some(match &at.instr.op {
        Op::Mov { ty, dst, src } => (
            *dst,
            match of(*src) {
                Val::Known(value) => Val::Known(low(value, width(ty))),
                other => other,
            },
        ),
        Op::Alu { op, ty: Ty::Pred, dst, a, b } => (*dst, truth(e, s, at, (*op, *a, *b))),
        Op::Alu { op, ty, dst, a, b } => (*dst, two(&|a, b| arithmetic(*op, *ty, a, b), *a, *b)),
        Op::Setp { op, ty, dst, a, b } => (*dst, compared(e, s, at, (*op, *ty, *a, *b))),
        Op::Selp { ty, dst, a, b, p } => {
            let chosen = match of(Operand::Reg(*p)) {
                Val::Known(p) => of(if p != 0 { *a } else { *b }),
                _ => Val::Unknown,
            };
            (*dst, chosen.known().map_or(Val::Unknown, |v| Val::Known(low(v, width(ty)))))
        }
        Op::Mapa { dst, src, rank, .. } => {
            (*dst, two(&|a, r| e.layout.mapped(a, low(r, 32), at.thread).unwrap_or(0), *src, *rank))
        }
        // These touch more than registers.
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => return None,
        multimem_op!() | Op::Control(_) => {
            return None;
        }
        fence_op!() | barrier_op!() | unit_op!() | jump_op!() => return None,
        Op::Book(book) => return super::book::result(e, s, at, book),
    })
}

/// A comparison; one with the number of the lane holds in some lanes.
fn compared(e: &Engine<'_>, s: &State, at: At<'_>, (op, ty, a, b): (CmpOp, Ty, Operand, Operand)) -> Val {
    let (a, b) = (operand(e, s, at.thread, a), operand(e, s, at.thread, b));
    if let (Val::Known(a), Val::Known(b)) = (a, b) {
        return Val::Known(compare(op, ty, a, b).into());
    }
    let in_lane = |value: Val, lane: u32| if value == Val::Lane { Some(lane.into()) } else { value.known() };
    let lanes = e.program.threads[at.thread].place.lanes();
    let mut some = 0;
    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
        let (Some(a), Some(b)) = (in_lane(a, lane), in_lane(b, lane)) else { return Val::Unknown };
        some |= u32::from(compare(op, ty, a, b)) << lane;
    }
    of_lanes(some, lanes)
}

/// Predicates together, lane by lane.
fn truth(e: &Engine<'_>, s: &State, at: At<'_>, (op, a, b): (AluOp, Operand, Operand)) -> Val {
    let lanes = e.program.threads[at.thread].place.lanes();
    let some = |of: Operand| match operand(e, s, at.thread, of) {
        Val::Known(bits) => Some(if bits & 1 == 1 { u32::MAX } else { 0 }),
        Val::Lanes(some) => Some(some),
        Val::Lane | Val::Unknown => None,
    };
    if let (Val::Known(a), Val::Known(b)) = (operand(e, s, at.thread, a), operand(e, s, at.thread, b)) {
        return Val::Known(arithmetic(op, Ty::Pred, a, b));
    }
    let (Some(a), Some(b)) = (some(a), some(b)) else { return Val::Unknown };
    match op {
        AluOp::And => of_lanes(a & b, lanes),
        AluOp::Or => of_lanes(a | b, lanes),
        AluOp::Xor => of_lanes(a ^ b, lanes),
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Div | AluOp::Rem | AluOp::Min | AluOp::Max => {
            Val::Unknown
        }
        AluOp::Shl | AluOp::Shr => Val::Unknown,
    }
}

/// Executes a register instruction.
pub(super) fn compute(e: &Engine<'_>, s: &mut State, at: At<'_>) {
    if let Some((dst, value)) = result(e, s, at) {
        s.threads[at.thread].regs[dst.index()] = value;
        return;
    }
    let Op::Control(Control::Elect { dst, pred, mask }) = &at.instr.op else {
        // What lanes give each other is not followed.
        let regs = &mut s.threads[at.thread].regs;
        return moire_program::registers::written(&at.instr.op, &mut |reg| regs[reg.index()] = Val::Unknown);
    };
    let place = &e.program.threads[at.thread].place;
    let leader = operand(e, s, at.thread, *mask).known().map(|m| low(m, 32).trailing_zeros());
    let (chosen, elected) = match leader {
        Some(leader) => {
            (Val::Known(leader.into()), of_lanes(1u32.checked_shl(leader).unwrap_or(0), place.lanes()))
        }
        None => (Val::Unknown, Val::Unknown),
    };
    let regs = &mut s.threads[at.thread].regs;
    regs[pred.index()] = elected;
    if let Some(dst) = dst {
        regs[dst.index()] = chosen;
    }
}

/// Whether a thread whose wait is answered with no comes back to the wait with nothing changed.
pub(super) fn spins(e: &Engine<'_>, s: &State, at: At<'_>, answer: Reg) -> bool {
    let body = &e.program.threads[at.thread].body;
    let start = s.threads[at.thread].pc;
    let mut trial = State { rows: Default::default(), ..s.clone() };
    trial.threads[at.thread].regs[answer.index()] = Val::Known(0);
    let mut pc = start + 1;
    for _ in 0..SPIN {
        if pc == start {
            let live = |n: &usize| e.flows.threads[at.thread].is_live(start, Reg::at(*n));
            let (old, new) = (&s.threads[at.thread].regs, &trial.threads[at.thread].regs);
            return (0..old.len()).filter(live).all(|n| old[n] == new[n]);
        }
        let Some(instr) = body.get(pc) else { return false };
        let runs = match instr.guard.map(|g| (trial.threads[at.thread].regs[g.reg.index()], g.negated)) {
            None => true,
            Some((Val::Known(value), negated)) => (value != 0) != negated,
            Some(_) => return false,
        };
        pc += 1;
        if let Op::Bra { target } = instr.op {
            pc = if runs { target } else { pc };
        } else if runs && only_registers(&instr.op) {
            compute(e, &mut trial, At { instr, ..at });
        } else if runs && !matches!(instr.op, Op::Control(Control::Ignored(_))) {
            return false;
        }
    }
    false
}
