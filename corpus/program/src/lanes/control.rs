//! S1: every instruction is executed by whole parts.
//!
//! Lanes for which a guard holds go another way than the others, and a mask says which lanes wait for each other. The
//! argument of the reduction lets all lanes of a part do what one of them does, so they must be able to: one guard, one
//! way, and all inside a mask or none. (A mask that cuts a part would be undefined, and is reported as that.)

use super::part::{Apart, Done, SomeLanes, State, agreed};
use super::planted::Planted;
use super::value::{Known, Val};
use crate::ir::{Guard, Operand};

/// Whether the lanes of a part execute an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    Always,
    Never,
    Maybe,
}

/// A guard in each lane: 1 where it holds.
pub(super) fn holds(state: &State, guard: Guard) -> Val {
    let held = |[k]: [Known; 1]| {
        let holds = (k.number != 0) != guard.negated;
        k.base.is_none().then(|| Known::number(holds.into()))
    };
    Val::computed([&state.regs[guard.reg.index()]], held)
}

/// Whether the lanes run what stands behind a guard.
pub(super) fn runs(part: &SomeLanes<'_>, state: &State, guard: Option<Guard>) -> Done<Runs> {
    let Some(guard) = guard else { return Ok(Runs::Always) };
    let value = holds(state, guard);
    match value.one() {
        Some(Known { number: 0, .. }) => return Ok(Runs::Never),
        Some(_) => return Ok(Runs::Always),
        None if part.has(Planted::Control) && value.differs() => return Ok(Runs::Maybe),
        None => agreed(&value)?,
    }
    Ok(Runs::Maybe)
}

/// One mask, with all lanes of the part inside or none.
pub(super) fn mask(part: &SomeLanes<'_>, state: &State, mask: Operand) -> Done<()> {
    let value = part.operand(state, mask);
    agreed(&value)?;
    let inside = |mask: Known| part.lanes.iter().map(|l| usize::from(mask.number >> l & 1 == 1)).collect();
    match value.one() {
        _ if !part.several() => Ok(()),
        Some(mask) if mask.base.is_none() => {
            let inside: Vec<usize> = inside(mask);
            if inside.iter().all(|i| *i == inside[0]) { Ok(()) } else { Err(Apart::By(inside)) }
        }
        _ => Err(Apart::All),
    }
}
