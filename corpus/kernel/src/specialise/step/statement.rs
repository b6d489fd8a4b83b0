//! A statement that does not branch, by the lanes that stand at it.

use super::instruction::instruction;
use super::plain::plain;
use super::warpgroup::touch_registers;
use super::{Step, Then};
use crate::Refusal;
use crate::ptx::{Statement, What};

/// Runs the statement the state is at. The lanes of the step are those that are there; its guard may leave fewer.
pub(crate) fn statement(step: &mut Step<'_, '_>, statement: &Statement) -> Result<Then, Refusal> {
    touch_registers(step, statement)?;
    match &statement.what {
        What::Plain(words) => plain(step, statement, words),
        What::Core(op) => {
            step.mask = step.guarded(statement.guard)?;
            if step.mask == 0 { Ok(Then::Next) } else { instruction(step, op) }
        }
        What::Branch { .. } | What::Table { .. } | What::Exit => Ok(Then::Next),
    }
}
