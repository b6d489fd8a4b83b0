//! Questions to any instruction: its name, the memory it names, its CTA group.

use super::{Address, CtaGroup, Op, Space};

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

    /// Address and state space of an ordinary access or of an mbarrier instruction.
    pub fn place(&self) -> Option<(Space, Address)> {
        match self {
            Op::Load { space, addr, .. } | Op::Store { space, addr, .. } | Op::Rmw { space, addr, .. } => {
                Some((*space, *addr))
            }
            Op::MultimemLoad { addr, .. } | Op::MultimemStore { addr, .. } | Op::MultimemRed { addr, .. } => {
                Some((Space::Generic, *addr))
            }
            Op::Mbarrier(m) => Some((m.space, m.addr)),
            _ => None,
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
