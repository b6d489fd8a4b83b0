//! Runs one statement that does not branch.

use super::instruction::instruction;
use super::loaded::read_loaded;
use super::plain::plain;
use super::warpgroup::touch_registers;
use super::{Executing, Then};
use crate::Refusal;
use crate::ptx::{Statement, What};

/// Runs a statement by the lanes of the step for which its guard holds.
pub(crate) fn statement(step: &mut Executing<'_, '_>, statement: &Statement) -> Result<Then, Refusal> {
    touch_registers(step, statement)?;
    read_loaded(step, statement)?;
    match &statement.what {
        What::Plain(instr) => plain(step, statement, instr),
        What::Core(op) => {
            step.mask = step.guarded(statement.guard)?;
            if step.mask == 0 { Ok(Then::Next) } else { instruction(step, op) }
        }
        What::Branch { .. } | What::Table { .. } | What::Exit => Ok(Then::Next),
    }
}
