//! Registers of an instruction in the explorer's form: inline lists, the guard included.

use moire_program::ir::{Instr, Op, Reg};
use moire_program::registers;
use smallvec::SmallVec;

/// Registers of one instruction.
pub(crate) type Regs = SmallVec<[Reg; 4]>;

/// Registers an instruction writes.
pub(crate) fn defines(op: &Op) -> Regs {
    let mut out = Regs::new();
    registers::written(op, &mut |reg| out.push(reg));
    out
}

/// Registers an instruction reads for whatever purpose, its guard included.
pub(crate) fn reads(instr: &Instr) -> Regs {
    let mut out: Regs = instr.guard.iter().map(|g| g.reg).collect();
    out.extend(registers::uses(&instr.op).0);
    out
}

/// Registers whose value an instruction uses, its guard included.
pub(crate) fn uses(instr: &Instr) -> Regs {
    let mut out: Regs = instr.guard.iter().map(|g| g.reg).collect();
    registers::used(&instr.op, &mut |reg| out.push(reg));
    out
}

/// Registers an instruction must know to take place, its guard included.
pub(crate) fn must_know(instr: &Instr) -> Regs {
    let mut out: Regs = instr.guard.iter().map(|g| g.reg).collect();
    registers::must_know(&instr.op, &mut |reg| out.push(reg));
    out
}
