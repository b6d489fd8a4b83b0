//! What is assumed of a parameter that has no value: only launches with values for which it holds are chosen.
//!
//! Numbers are those of the register that the parameter is read into, without a sign. Beyond the values that are tried, the least
//! ones that may be are looked for up to a bound.

use super::launch::Launch;
use crate::Refusal;
use crate::ptx::Kernel;
use moire_program::ir::CmpOp;

/// Values up to here are looked for where no other one may be.
const LEAST: u64 = 1 << 20;
/// How far the nearest ones are looked for.
const NEAR: u64 = 1 << 12;
/// How many of them are tried.
const FEW: usize = 5;

/// Comparisons with their texts, the longer ones first.
pub const COMPARISONS: [(&str, CmpOp); 6] = [
    ("==", CmpOp::Eq),
    ("!=", CmpOp::Ne),
    ("<=", CmpOp::Le),
    (">=", CmpOp::Ge),
    ("<", CmpOp::Lt),
    (">", CmpOp::Gt),
];

/// A comparison of a parameter, or of what is left of it by a division, with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The parameter by position, and the first byte of the field.
    pub place: (u16, u32),
    /// What it is divided by.
    pub divisor: Option<u64>,
    /// How it compares.
    pub compared: CmpOp,
    /// With what.
    pub number: u64,
}

impl Assumed {
    /// Whether it holds for a value.
    fn holds(&self, value: u64) -> bool {
        let left = self.divisor.map_or(Some(value), |by| value.checked_rem(by));
        let number = self.number;
        left.is_some_and(|left| match self.compared {
            CmpOp::Eq => left == number,
            CmpOp::Ne => left != number,
            CmpOp::Lt => left < number,
            CmpOp::Le => left <= number,
            CmpOp::Gt => left > number,
            CmpOp::Ge => left >= number,
        })
    }
}

impl Launch {
    /// Whether something is assumed of a parameter.
    pub fn assumes(&self, place: (u16, u32)) -> bool {
        self.assumed.iter().any(|a| a.place == place)
    }

    /// The values of a list that a parameter may have; the least that it may have, if there is none.
    pub(super) fn allowed(&self, place: (u16, u32), values: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let may = |value: &u64| self.assumed.iter().filter(|a| a.place == place).all(|a| a.holds(*value));
        let out: Vec<u64> = values.into_iter().filter(may).collect();
        if out.is_empty() { (0..LEAST).filter(may).take(FEW).collect() } else { out }
    }

    /// The next smaller and the next larger value that a parameter may have, up to some distance.
    pub(super) fn nearest(&self, place: (u16, u32), value: u64) -> Vec<u64> {
        let may = |value: &u64| self.assumed.iter().filter(|a| a.place == place).all(|a| a.holds(*value));
        let below = (value.saturating_sub(NEAR)..value).rev().find(may);
        let above = (value..value.saturating_add(NEAR)).find(may);
        below.into_iter().chain(above).collect()
    }

    /// Checks what is assumed of the values that parameters have.
    pub(super) fn as_assumed(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let wrong = |a: &&Assumed| self.value(kernel, a.place).is_some_and(|value| !a.holds(value));
        match self.assumed.iter().find(wrong) {
            Some(a) => {
                let why = format!("the value of parameter {} is not what is assumed of it", a.place.0);
                Err(Refusal::Launch(why))
            }
            None => self.is_possible(kernel),
        }
    }

    /// Refuses assumptions that hold for no value that would be chosen.
    fn is_possible(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let none =
            |a: &&Assumed| self.value(kernel, a.place).is_none() && self.allowed(a.place, []).is_empty();
        match self.assumed.iter().find(none) {
            Some(a) => Err(Refusal::Launch(format!(
                "no value below {LEAST} is what is assumed of parameter {0}; a larger one is given with --param {0}=VALUE",
                a.place.0
            ))),
            None => Ok(()),
        }
    }
}
