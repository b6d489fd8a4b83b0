//! Registers and operands of an instruction, each once, in the order of the text, so that renaming, liveness and
//! canonical forms need no knowledge of the instructions that have many of them.

use super::{Address, Guard, Operand, Reg};

/// One place of an instruction that holds a register or an operand.
#[derive(Debug)]
pub enum Part<'a> {
    /// A source operand or the base of an address.
    Source(&'a mut Operand),
    /// A register that is read and cannot be anything else: a predicate, an element of a vector.
    Read(&'a mut Reg),
    /// A register that is written.
    Write(&'a mut Reg),
}

/// What is called with each part.
pub type See<'s> = &'s mut dyn FnMut(Part<'_>);

/// Instructions that know their parts.
pub trait Parts: Clone {
    /// Calls `see` with every part.
    fn parts(&mut self, see: See<'_>);

    /// Calls `see(register, written)` with every register, sources first.
    fn registers(&self, see: &mut dyn FnMut(Reg, bool)) {
        let mut written = Vec::new();
        self.clone().parts(&mut |part| match part {
            Part::Source(Operand::Reg(reg)) | Part::Read(reg) => see(*reg, false),
            Part::Source(_) => {}
            Part::Write(reg) => written.push(*reg),
        });
        written.into_iter().for_each(|reg| see(reg, true));
    }

    /// All source operands and bases of addresses.
    fn sources(&self) -> Vec<Operand> {
        let mut out = Vec::new();
        self.clone().parts(&mut |part| {
            if let Part::Source(operand) = part {
                out.push(*operand);
            }
        });
        out
    }
}

pub(super) fn address(address: &mut Address, see: See<'_>) {
    see(Part::Source(&mut address.base));
}

pub(super) fn sources<'a>(all: impl IntoIterator<Item = &'a mut Operand>, see: See<'_>) {
    all.into_iter().for_each(|o| see(Part::Source(o)));
}

pub(super) fn reads(all: &mut [Reg], see: See<'_>) {
    all.iter_mut().for_each(|r| see(Part::Read(r)));
}

pub(super) fn writes<'a>(all: impl IntoIterator<Item = &'a mut Reg>, see: See<'_>) {
    all.into_iter().for_each(|r| see(Part::Write(r)));
}

pub(super) fn guard(guard: &mut Guard, see: See<'_>) {
    see(Part::Read(&mut guard.reg));
}
