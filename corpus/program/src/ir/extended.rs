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
            Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Mapa { .. } => None,
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Bra { .. } | Op::Exit => None,
            Op::MultimemLoad { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } => None,
            Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => None,
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => None,
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
            Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Mapa { .. } => None,
            Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) => None,
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => None,
            Op::Tcgen05(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) => None,
            Op::Bra { .. } | Op::Exit => None,
        }
    }

    /// `.cta_group` of a `tcgen05` instruction that has it.
    pub fn cta_group(&self) -> Option<CtaGroup> {
        if let Op::Tcgen05(op) = self { op.group() } else { None }
    }
}
