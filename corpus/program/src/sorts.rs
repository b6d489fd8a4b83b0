//! Sorts of instructions, as patterns.
//!
//! What is told of all instructions of a sort alike names the sort. A new instruction is put into one here; where
//! instructions of its sort are told apart, the compiler names the place.

/// Touches registers of its thread only.
#[macro_export]
macro_rules! register_op {
    () => {
        $crate::ir::Op::Mov { .. }
            | $crate::ir::Op::Alu { .. }
            | $crate::ir::Op::Setp { .. }
            | $crate::ir::Op::Selp { .. }
            | $crate::ir::Op::Mapa { .. }
    };
}

/// Orders what its thread does.
#[macro_export]
macro_rules! fence_op {
    () => {
        $crate::ir::Op::Fence { .. }
            | $crate::ir::Op::ProxyFence { .. }
            | $crate::ir::Op::MbarrierInitFence
            | $crate::ir::Op::ProxyOrder { .. }
    };
}

/// Meets other threads at a barrier of the CTA, the cluster or the warp.
#[macro_export]
macro_rules! barrier_op {
    () => {
        $crate::ir::Op::Bar { .. }
            | $crate::ir::Op::ClusterArrive { .. }
            | $crate::ir::Op::ClusterWait
            | $crate::ir::Op::WarpSync { .. }
    };
}

/// Accesses several memories at once.
#[macro_export]
macro_rules! multimem_op {
    () => {
        $crate::ir::Op::MultimemLoad { .. }
            | $crate::ir::Op::MultimemStore { .. }
            | $crate::ir::Op::MultimemRed { .. }
    };
}

/// Is executed by a unit of the machine: the tensor cores, the engines of copies.
#[macro_export]
macro_rules! unit_op {
    () => {
        $crate::ir::Op::Tcgen05 { .. } | $crate::ir::Op::AsyncCopy { .. } | $crate::ir::Op::Wgmma { .. }
    };
}

/// Goes elsewhere, or nowhere.
#[macro_export]
macro_rules! jump_op {
    () => {
        $crate::ir::Op::Bra { .. } | $crate::ir::Op::Exit
    };
}
