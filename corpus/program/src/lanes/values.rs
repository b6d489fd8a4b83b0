//! S5: lanes are apart if the result of a strong read matters.
//!
//! Lanes that read one flag may see different values of it. The joined thread has one. That is enough as long as the
//! result goes nowhere: a lane that waits in a loop leaves it with the only result that leaves it ([`super::waits`]).
//! Where the result guards something else, is part of an address or of the operand of a collective, is stored (somebody
//! may read it and be steered by it), or is asked for in the final condition, the lanes must be apart. A plain read is
//! the same in all lanes that read one place if the program has no race; and where lanes read different places the joined
//! thread keeps each result in a register of its lane.

use super::exchange;
use super::part::{Apart, Done, SomeLanes, State, agreed};
use super::planted::Planted;
use super::value::Val;
use crate::ir::{
    BarKind, Control, Expr, LoadOrder, MbarrierOp, Op, Operand, Part as Piece, Parts, Program, Reg, Role,
    Term,
};
use std::collections::BTreeSet;

/// Passes if no operand that an instruction uses is the result of a strong read.
pub(super) fn check(part: &SomeLanes<'_>, state: &State, op: &Op) -> Done<()> {
    let mut open = false;
    op.each(&mut |piece: Piece<&Operand, &Reg>| {
        let (operand, role) = match piece {
            Piece::Source(operand, role) => (*operand, role),
            Piece::Read(reg, role) => (Operand::Reg(*reg), role),
            Piece::Write(_) => return,
        };
        let stored = role == Role::Data && part.has(Planted::Stored);
        open |= role != Role::Opaque && !stored && part.operand(state, operand) == Val::Open;
    });
    if open { Err(Apart::All) } else { Ok(()) }
}

/// What an instruction that is no register instruction leaves in a register it writes.
pub(super) fn result(part: &SomeLanes<'_>, state: &State, op: &Op) -> Val {
    let open = if part.has(Planted::Values) || !part.several() { Val::Same } else { Val::Open };
    match op {
        Op::Load { order: LoadOrder::Weak, addr, .. } => {
            Val::mixed(&[&part.address(state, addr), &Val::Same])
        }
        Op::MultimemLoad { order: LoadOrder::Weak, .. } => Val::Same,
        Op::Bar { kind: BarKind::Red { .. }, .. } => Val::Same,
        Op::Mbarrier(m) if matches!(m.op, MbarrierOp::Arrive(_)) => Val::Same,
        Op::Load { .. } | Op::MultimemLoad { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => open,
        Op::Control(Control::Collective(collective)) => exchange::result(part, state, collective),
        // Data of tensor memory, of products and of answers: no engine has a value.
        Op::Tcgen05(_) | Op::Wgmma(_) | Op::Control(_) => Val::Same,
        Op::Store { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } | Op::AsyncCopy(_) => open,
        register_op!() | fence_op!() | barrier_op!() | Op::Tile(_) | jump_op!() => open,
        Op::Book(_) => open,
    }
}

/// The value that the predicate of `bar.red` has in all lanes.
pub(super) fn reduced(part: &SomeLanes<'_>, state: &State, op: &Op) -> Done<()> {
    let Op::Bar { kind: BarKind::Red { pred, .. }, .. } = op else { return Ok(()) };
    agreed(&part.operand(state, Operand::Reg(pred.reg)))
}

/// The registers of a thread that the conditions and the filter name: of its first lane.
pub(super) fn asked(program: &Program, thread: usize) -> BTreeSet<Reg> {
    let mut out = BTreeSet::new();
    let mut todo: Vec<&Expr> = program.conditions.iter().map(|c| &c.expr).chain(&program.filter).collect();
    while let Some(expr) = todo.pop() {
        match expr {
            Expr::Bool(_) => {}
            Expr::Not(e) => todo.push(e),
            Expr::And(es) | Expr::Or(es) => todo.extend(es),
            Expr::Cmp(_, a, b) => out.extend([a, b].into_iter().filter_map(|term| match term {
                Term::Reg(t, r) if t.index() == thread => Some(*r),
                _ => None,
            })),
        }
    }
    out
}

/// Passes if the first lane of the thread is not in the part, or no register that is asked for is a strong result at the end.
pub(super) fn final_values(part: &SomeLanes<'_>, end: Option<&State>) -> Done<()> {
    let first = part.code().place.lane() == part.lanes.first().copied();
    let open =
        |end: &State| asked(part.program, part.thread).iter().any(|r| end.regs[r.index()] == Val::Open);
    if !first || !end.is_some_and(open) || part.has(Planted::Asked) {
        return Ok(());
    }
    Err(Apart::By((0..part.lanes.len()).map(|l| usize::from(l > 0)).collect()))
}
