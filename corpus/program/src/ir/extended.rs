//! What all instructions with a structure of their own share: their parts and their name.

use super::parts::{Parts, See};
use super::{CtaGroup, Op, Operand, Reg};

impl Op {
    /// The name of an instruction of the tensor cores, of the asynchronous copies, of their fences, of launch
    /// control or of a tile block; none for the others. An engine that has no model of one abstains by this name.
    pub fn extended(&self) -> Option<&'static str> {
        match self {
            Op::Tcgen05(op) => Some(op.name()),
            Op::AsyncCopy(op) => Some(op.name()),
            Op::Wgmma(op) => Some(op.name()),
            Op::ProxyOrder(op) => Some(op.name()),
            Op::Control(op) => Some(op.name()),
            Op::Tile(op) => Some(op.name()),
            _ => None,
        }
    }

    /// Calls `see` with every part of an instruction that [`Op::extended`] names.
    pub fn parts(&mut self, see: See<'_>) {
        match self {
            Op::Tcgen05(op) => op.parts(see),
            Op::AsyncCopy(op) => op.parts(see),
            Op::Wgmma(op) => op.parts(see),
            Op::ProxyOrder(op) => op.parts(see),
            Op::Control(op) => op.parts(see),
            Op::Tile(op) => op.parts(see),
            _ => {}
        }
    }

    /// Registers of an instruction that [`Op::extended`] names: `see(register, written)`, sources first.
    pub fn registers(&self, see: &mut dyn FnMut(Reg, bool)) {
        match self {
            Op::Tcgen05(op) => op.registers(see),
            Op::AsyncCopy(op) => op.registers(see),
            Op::Wgmma(op) => op.registers(see),
            Op::ProxyOrder(op) => op.registers(see),
            Op::Control(op) => op.registers(see),
            Op::Tile(op) => op.registers(see),
            _ => {}
        }
    }

    /// Source operands and bases of addresses of an instruction that [`Op::extended`] names.
    pub fn sources(&self) -> Vec<Operand> {
        match self {
            Op::Tcgen05(op) => op.sources(),
            Op::AsyncCopy(op) => op.sources(),
            Op::Wgmma(op) => op.sources(),
            Op::ProxyOrder(op) => op.sources(),
            Op::Control(op) => op.sources(),
            Op::Tile(op) => op.sources(),
            _ => Vec::new(),
        }
    }

    /// `.cta_group` of a `tcgen05` instruction that has it.
    pub fn cta_group(&self) -> Option<CtaGroup> {
        match self {
            Op::Tcgen05(op) => op.group(),
            _ => None,
        }
    }
}
