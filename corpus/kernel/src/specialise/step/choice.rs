//! Predicates that depend on data: the exploration tries both answers.
//!
//! What ordinary loads read is not followed. A branch on it may go either way, so the residual program reads a word of its
//! own there, a *choice*, which one further thread sets at any time. The lanes of a warp are assumed to decide alike, and a
//! statement that is run again by the same path, in a loop that was closed, decides once for 0 and later for 1.

use super::{Executing, Made};
use crate::Refusal;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::{CmpOp, LoadOrder, Op, Operand, Proxy, Reg, Scope, Space, Ty};

/// Most choices of a warp; with more the kernel is abstained from.
const CHOICES: u32 = 24;
/// Numbers of the registers of a statement that hold the word and the answer.
const SLOTS: [usize; 2] = [2_000, 2_001];

/// Leaves a choice behind: the register that is true if the answer is yes. None if the warp has too many.
pub(in crate::specialise) fn choice(step: &mut Executing<'_, '_>) -> Result<Option<Reg>, Refusal> {
    let number = step.warp.choices;
    if number == CHOICES {
        return Ok(None);
    }
    step.warp.choices += 1;
    let line = step.line();
    step.note(format!("line {line} depends on data: both ways are explored, and the lanes of a warp are assumed to go the same way"));
    let (word, answer) = (step.slot(SLOTS[0])?, step.slot(SLOTS[1])?);
    let mut made = Made::default();
    let addr = made.touch(Touch::one(Mem::Choice(step.warp.out.warp, number), 0, 4, Kind::Word));
    let ty = Ty::U(32);
    let order = LoadOrder::Relaxed(Scope::Sys);
    let load = Op::Load { order, proxy: Proxy::Generic, space: Space::Global, ty, dst: vec![word], addr };
    step.leave(load, made)?;
    step.leave_op(Op::Setp { op: CmpOp::Ne, ty, dst: answer, a: Operand::Reg(word), b: Operand::Imm(0) })?;
    Ok(Some(answer))
}
