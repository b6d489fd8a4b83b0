//! Registers of an operation as lists, by the table of [`moire_program::registers`].

use moire_program::ir::{Op, Reg};
use moire_program::registers;

/// Registers it writes.
pub(super) fn written(op: &Op) -> Vec<Reg> {
    registers::uses(op).1
}

/// Registers it reads, for whatever purpose.
pub(super) fn read(op: &Op) -> Vec<Reg> {
    registers::uses(op).0
}

/// Registers whose value it uses.
pub(super) fn used(op: &Op) -> Vec<Reg> {
    let mut out = Vec::new();
    registers::used(op, &mut |reg| out.push(reg));
    out
}

/// Registers it must know to take place.
pub(super) fn needed(op: &Op) -> Vec<Reg> {
    let mut out = Vec::new();
    registers::must_know(op, &mut |reg| out.push(reg));
    out
}
