//! Instructions that touch registers only, and loops that only wait.

use crate::engine::{At, Engine, operand};
use crate::state::State;
use crate::value::{Val, by_lane, compare, compute as arithmetic, low, of_lanes};
use moire_program::ir::{AluOp, Control, Instr, Op, Operand, Reg, Ty};
use moire_program::registers::only_registers;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, unit_op};

/// Most instructions of a loop that only waits.
const SPIN: usize = 64;

/// The value that a register instruction writes.
fn result(e: &Engine<'_>, s: &State, at: At<'_>) -> Option<(Reg, Val)> {
    let of = |o: Operand| operand(e, s, at.thread, o);
    let lanes = s.threads[at.thread].active;
    let two = |f: &dyn Fn(u128, u128) -> u128, a: Operand, b: Operand| by_lane(lanes, (of(a), of(b)), f);
    let width = |ty: &Ty| 8 * ty.bytes();
    Some(match &at.instr.op {
        Op::Mov { ty, dst, src } => (
            *dst,
            match of(*src) {
                Val::Known(value) if *ty == Ty::Pred => Val::Known(u128::from(value != 0)),
                Val::Known(value) => Val::Known(low(value, width(ty))),
                other => other,
            },
        ),
        Op::Alu { op: AluOp::Shr, ty: Ty::U(32), dst, a, b } if of(*b) == Val::Lane => {
            let bits = of(*a).known().and_then(|bits| u32::try_from(low(bits, 32)).ok());
            (*dst, bits.map_or(Val::Unknown, Val::Shifted))
        }
        Op::Alu { op, ty, dst, a, b } => (*dst, two(&|a, b| arithmetic(*op, *ty, a, b), *a, *b)),
        Op::Setp { op, ty, dst, a, b } => (*dst, two(&|a, b| u128::from(compare(*op, *ty, a, b)), *a, *b)),
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
    let active = s.threads[at.thread].active;
    let leader = operand(e, s, at.thread, *mask).known().map(|m| low(m, 32).trailing_zeros());
    let (chosen, elected) = match leader {
        Some(leader) => (Val::Known(leader.into()), of_lanes(1u32.checked_shl(leader).unwrap_or(0), active)),
        None => (Val::Unknown, Val::Unknown),
    };
    let regs = &mut s.threads[at.thread].regs;
    regs[pred.index()] = elected;
    if let Some(dst) = dst {
        regs[dst.index()] = chosen;
    }
}

/// Whether there is nothing but branches on the answer between a wait and the same wait again: the usual loop.
fn only_asks(body: &[Instr], start: usize, answer: Reg) -> bool {
    let mut pc = start + 1;
    for _ in 0..SPIN {
        if pc == start {
            return true;
        }
        let Some(Instr { guard, op: Op::Bra { target }, .. }) = body.get(pc) else { return false };
        if guard.is_some_and(|guard| guard.reg != answer) {
            return false;
        }
        pc = if guard.is_none_or(|guard| guard.negated) { *target } else { pc + 1 };
    }
    false
}

/// Whether a thread whose wait is answered with no comes back to the wait with nothing changed.
pub(super) fn spins(e: &Engine<'_>, s: &State, at: At<'_>, answer: Reg) -> bool {
    let body = &e.program.threads[at.thread].body;
    let start = s.threads[at.thread].pc;
    if only_asks(body, start, answer) {
        return true;
    }
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
