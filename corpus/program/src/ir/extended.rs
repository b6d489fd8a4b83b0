//! Questions to any instruction: its name, where it goes on, the memory it names, its order, its mask, its CTA group.

use super::{Address, Control, CtaGroup, LoadOrder, MbarrierOp, Op, Operand, Space, StoreOrder, Tcgen05};

/// Where a thread goes on behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// To the next one.
    On,
    /// To the one at this position.
    To(usize),
    /// Into the body of a `repeat`, or behind it.
    Opens,
    /// To the next round of a `repeat`, or behind it.
    Closes,
    /// Nowhere: the thread ends.
    End,
}

/// What an access to memory does that is over when its instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads.
    Load(LoadOrder),
    /// Writes.
    Store(StoreOrder),
    /// Reads and writes, or is an operation on an mbarrier: always strong.
    Update,
}

impl Access {
    /// Whether it is no weak one (PTX ISA 9.2, 8.2.1).
    pub fn is_strong(self) -> bool {
        self != Access::Load(LoadOrder::Weak) && self != Access::Store(StoreOrder::Weak)
    }
}

impl Op {
    /// Where a thread goes on that executes it.
    pub fn goes(&self) -> Goes {
        match self {
            Op::Bra { target } => Goes::To(*target),
            Op::Exit => Goes::End,
            Op::Control(Control::Repeat(_)) => Goes::Opens,
            Op::Control(Control::EndRepeat) => Goes::Closes,
            Op::Control(Control::Elect { .. } | Control::Collective(_) | Control::Ignored(_)) => Goes::On,
            Op::Control(Control::TryCancel { .. } | Control::QueryCancel { .. }) => Goes::On,
            Op::Control(Control::LaunchDependents | Control::WaitDependencies) => Goes::On,
            register_op!() => Goes::On,
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => Goes::On,
            multimem_op!() | fence_op!() | barrier_op!() | unit_op!() | Op::Tile(_) => Goes::On,
            Op::Book(_) => Goes::On,
        }
    }

    /// The access that it is, if it is over when the instruction is.
    pub fn access(&self) -> Option<Access> {
        match self {
            Op::Load { order, .. } | Op::MultimemLoad { order, .. } => Some(Access::Load(*order)),
            Op::Store { order, .. } | Op::MultimemStore { order, .. } => Some(Access::Store(*order)),
            Op::Rmw { .. } | Op::MultimemRed { .. } | Op::Mbarrier(_) => Some(Access::Update),
            register_op!() | fence_op!() | barrier_op!() => None,
            unit_op!() | Op::Tile(_) | Op::Control(_) | jump_op!() => None,
            Op::Book(_) => None,
        }
    }

    /// Whether it only reads, and something strong: a load with an order, or a wait for an mbarrier.
    pub fn is_strong_read(&self) -> bool {
        match self.access() {
            Some(Access::Load(order)) => order != LoadOrder::Weak,
            Some(Access::Update) => matches!(self, Op::Mbarrier(m) if matches!(m.op, MbarrierOp::Wait(_))),
            Some(Access::Store(_)) | None => false,
        }
    }

    /// The mask of the lanes of a warp that meet at it.
    pub fn mask(&self) -> Option<Operand> {
        match self {
            Op::WarpSync { mask } | Op::Control(Control::Elect { mask, .. }) => Some(*mask),
            Op::Control(Control::Collective(collective)) => Some(collective.mask),
            Op::Control(Control::TryCancel { .. } | Control::QueryCancel { .. } | Control::Ignored(_)) => {
                None
            }
            Op::Control(Control::LaunchDependents | Control::WaitDependencies) => None,
            Op::Control(Control::Repeat(_) | Control::EndRepeat) | jump_op!() => None,
            register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => None,
            multimem_op!() | fence_op!() => None,
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | unit_op!() | Op::Tile(_) => None,
            Op::Book(_) => None,
        }
    }

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
            register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | jump_op!() => None,
            multimem_op!() => None,
            Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => None,
            barrier_op!() => None,
            Op::Book(book) => Some(book.name()),
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
            register_op!() | fence_op!() | barrier_op!() => None,
            unit_op!() | Op::Tile(_) | Op::Control(_) | jump_op!() => None,
            Op::Book(_) => None,
        }
    }

    /// The mbarrier that it is about, or where its completion is told.
    pub fn mbarrier_mut(&mut self) -> Option<&mut Address> {
        match self {
            Op::Mbarrier(m) => Some(&mut m.addr),
            Op::AsyncCopy(copy) => copy.mbarrier_mut(),
            Op::Tcgen05(Tcgen05::Commit(commit)) => Some(&mut commit.addr),
            Op::Tcgen05(Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. }) => None,
            Op::Tcgen05(Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore) => {
                None
            }
            Op::Tcgen05(Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_)) => None,
            Op::Tcgen05(Tcgen05::FenceBefore | Tcgen05::FenceAfter) => None,
            Op::Control(Control::TryCancel { mbarrier, .. }) => Some(mbarrier),
            Op::Control(Control::Elect { .. } | Control::Collective(_) | Control::Ignored(_)) => None,
            Op::Control(Control::QueryCancel { .. } | Control::Repeat(_) | Control::EndRepeat) => None,
            Op::Control(Control::LaunchDependents | Control::WaitDependencies) => None,
            register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | jump_op!() => None,
            multimem_op!() | fence_op!() | barrier_op!() | Op::Wgmma(_) | Op::Tile(_) => None,
            Op::Book(_) => None,
        }
    }

    /// `.cta_group` of a `tcgen05` instruction that has it.
    pub fn cta_group(&self) -> Option<CtaGroup> {
        if let Op::Tcgen05(op) = self { op.group() } else { None }
    }
}
