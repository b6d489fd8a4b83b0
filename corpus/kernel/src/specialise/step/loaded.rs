//! Registers that loads from tensor memory wrote and no instruction has read yet.
//!
//! Under one reading of PTX ISA 9.2, 9.7.16.6.4 (pattern 5), a `tcgen05.ld` is complete once the whole warp has read all
//! of its registers. What the kernel does with the data is not followed, so the instructions that read it are not left
//! behind. In the residual program one register therefore stands for all registers of a load, and a `mov` reads it where
//! the kernel reads the last of them. A load of which a register is overwritten unread gets no such `mov`; one that
//! `tcgen05.wait::ld` covers needs none.

use super::Executing;
use crate::Refusal;
use crate::ptx::Statement;
use crate::specialise::known::flow::effects;
use crate::specialise::warp::Unread;
use moire_program::ir::{Op, Operand, Reg, Ty};

/// Notes which loaded registers a statement reads and overwrites.
pub(super) fn read_loaded(step: &mut Executing<'_, '_>, statement: &Statement) -> Result<(), Refusal> {
    if step.state.loads.is_empty() {
        return Ok(());
    }
    let (writes, mut reads) = effects(statement);
    reads.extend(statement.guard.map(|g| g.reg));
    let whole = step.warp.here.lanes;
    if step.mask == whole && step.guarded(statement.guard).is_ok_and(|mask| mask == whole) {
        for load in &mut step.state.loads {
            load.left.retain(|r| !reads.contains(r));
        }
    }
    let (spent, left) = std::mem::take(&mut step.state.loads).into_iter().partition(|l| l.left.is_empty());
    step.state.loads = left;
    step.state.loads.retain(|load| load.left.iter().all(|r| !writes.contains(r)));
    let spent: Vec<Unread> = spent;
    for Unread { stands, .. } in spent {
        step.leave_op(Op::Mov { ty: Ty::B(32), dst: stands, src: Operand::Reg(stands) })?;
    }
    Ok(())
}

/// Remembers a load into `registers`, for which `stands` stands in the residual program.
pub(super) fn loaded(step: &mut Executing<'_, '_>, registers: Vec<Reg>, stands: Reg) {
    step.state.loads.push(Unread { stands, left: registers });
}

/// All loads of the warp so far are complete.
pub(super) fn waited(step: &mut Executing<'_, '_>) {
    if step.mask == step.warp.here.lanes {
        step.state.loads.clear();
    }
}
