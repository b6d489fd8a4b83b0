//! Sorts of operations, as patterns: an operation belongs to one of them.
//!
//! What handles one sort names the others by their sort. A new operation is put into one, and then the compiler names
//! each place that has to tell what it does.

/// Computes values, without effects.
#[macro_export]
macro_rules! plain_op {
    () => {
        $crate::Op::Constant { .. }
            | $crate::Op::Iota
            | $crate::Op::Convert { .. }
            | $crate::Op::Extend { .. }
            | $crate::Op::Truncate { .. }
            | $crate::Op::Offset { .. }
            | $crate::Op::Integer { .. }
            | $crate::Op::Negate { .. }
            | $crate::Op::Float { .. }
            | $crate::Op::Compare { .. }
            | $crate::Op::Select { .. }
            | $crate::Op::Assume { .. }
            | $crate::Op::TileBlockId
            | $crate::Op::NumTileBlocks
            | $crate::Op::TensorView { .. }
            | $crate::Op::PartitionView { .. }
            | $crate::Op::StridedView { .. }
            | $crate::Op::GatherView { .. }
    };
}

/// Makes a token, or waits for one, without a memory access.
#[macro_export]
macro_rules! token_op {
    () => {
        $crate::Op::MakeToken
            | $crate::Op::JoinTokens { .. }
            | $crate::Op::AliasFence { .. }
            | $crate::Op::GdcWait { .. }
            | $crate::Op::GdcLaunch { .. }
    };
}

/// Accesses memory.
#[macro_export]
macro_rules! access_op {
    () => {
        $crate::Op::LoadPtr { .. }
            | $crate::Op::StorePtr { .. }
            | $crate::Op::LoadView { .. }
            | $crate::Op::StoreView { .. }
            | $crate::Op::AtomicRmw { .. }
            | $crate::Op::AtomicCas { .. }
            | $crate::Op::AtomicRedView { .. }
            | $crate::Op::MultimemLoadReduce { .. }
            | $crate::Op::MultimemReduce { .. }
            | $crate::Op::MultimemStore { .. }
    };
}

/// Has blocks inside.
#[macro_export]
macro_rules! block_op {
    () => {
        $crate::Op::If { .. } | $crate::Op::For { .. } | $crate::Op::Loop { .. }
    };
}

/// Ends a block.
#[macro_export]
macro_rules! end_op {
    () => {
        $crate::Op::Yield { .. }
            | $crate::Op::Continue { .. }
            | $crate::Op::Break { .. }
            | $crate::Op::Return { .. }
    };
}
