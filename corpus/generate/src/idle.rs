//! Whether a program synchronises anything. One that does not shows races and little else, so few of a stream are such.

use moire_program::ir::{
    AsyncCopy, Control, LoadOrder, MbarrierOp, Op, Program, RemoteOrder, StoreOrder, Tcgen05, TileKind,
    TileOp, Wgmma,
};
use moire_program::{barrier_op, fence_op, jump_op, register_op};

/// Whether some instruction may order what one thread or unit does with what another does: a strong access, a fence, a barrier,
/// an exchange of lanes, an arrival or a wait.
pub fn synchronises(program: &Program) -> bool {
    program.threads.iter().flat_map(|t| &t.body).any(|i| orders(&i.op))
}

fn orders(op: &Op) -> bool {
    match op {
        register_op!() | jump_op!() | Op::Book(_) => false,
        fence_op!() | barrier_op!() => true,
        Op::Load { order, .. } | Op::MultimemLoad { order, .. } => *order != LoadOrder::Weak,
        Op::Store { order, .. } | Op::MultimemStore { order, .. } => *order != StoreOrder::Weak,
        Op::Rmw { .. } | Op::MultimemRed { .. } => true,
        Op::Mbarrier(m) => !matches!(m.op, MbarrierOp::Init { .. } | MbarrierOp::Inval),
        Op::Tcgen05(op) => tensor(op),
        Op::AsyncCopy(op) => copy(op),
        Op::Wgmma(op) => matches!(op, Wgmma::Fence | Wgmma::Wait(_)),
        Op::Control(op) => control(op),
        Op::Tile(op) => tile(op),
    }
}

fn tensor(op: &Tcgen05) -> bool {
    match op {
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::Mma(_) => false,
        Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Relinquish { .. } => false,
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::WaitLoad | Tcgen05::WaitStore => true,
        Tcgen05::Commit(_) | Tcgen05::FenceBefore | Tcgen05::FenceAfter => true,
    }
}

fn copy(op: &AsyncCopy) -> bool {
    match op {
        AsyncCopy::Small(_) | AsyncCopy::Bulk(_) | AsyncCopy::Prefetch(_) => false,
        AsyncCopy::Commit | AsyncCopy::BulkCommit => false,
        AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::BulkWait { .. } | AsyncCopy::Arrive { .. } => {
            true
        }
        AsyncCopy::Remote(write) => !matches!(write.order, RemoteOrder::Mbarrier(_)),
    }
}

fn control(op: &Control) -> bool {
    match op {
        Control::Collective(_) | Control::LaunchDependents | Control::WaitDependencies => true,
        Control::Elect { .. } | Control::TryCancel { .. } | Control::QueryCancel { .. } => false,
        Control::Repeat(_) | Control::EndRepeat | Control::Ignored(_) => false,
    }
}

fn tile(op: &TileOp) -> bool {
    let TileOp::Access(access) = op else { return false };
    match access.kind {
        TileKind::Load(order) => order != LoadOrder::Weak,
        TileKind::Store(order) => order != StoreOrder::Weak,
        TileKind::Rmw { .. } => true,
    }
}
