//! Operands whose values a path must know: all except those that are only moved or computed with.

use moire_program::ir::{AsyncCopy, AtomOp, Control, Op, Operand, Reg};

/// Registers an instruction reads for an address, a count or a comparison.
pub(super) fn needed(op: &Op) -> Vec<Reg> {
    let moved: Vec<Operand> = match op {
        Op::Store { src, .. } => src.clone(),
        Op::MultimemStore { src, .. } | Op::MultimemRed { src, .. } => vec![*src],
        Op::Rmw { a, op, .. } if *op != AtomOp::Cas => vec![*a],
        Op::AsyncCopy(AsyncCopy::Remote(w)) => w.src.clone(),
        Op::Control(Control::QueryCancel { src, .. }) => vec![*src],
        _ => vec![],
    };
    let mut out = super::flow::read_registers(op);
    for operand in moved {
        if let Some(at) = out.iter().position(|r| operand == Operand::Reg(*r)) {
            out.remove(at);
        }
    }
    out
}
