//! Use of the allocator of tensor memory by an event (PTX ISA 9.2, 9.7.16.7).

use moire_program::ir::ThreadId;

/// An event of the allocator of a CTA, or of those of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocUse {
    pub(crate) act: AllocAct,
    /// First thread of the CTA.
    pub(crate) cta: ThreadId,
    /// First thread of the other CTA of the pair, with `.cta_group::2`.
    pub(crate) peer: Option<ThreadId>,
    pub(crate) exclusive: bool,
    pub(crate) columns: u32,
    /// The count is none.
    pub(crate) wrong_count: bool,
    /// Some lanes of the warp only.
    pub(crate) granularity: Option<&'static str>,
}

impl AllocUse {
    /// The other CTA, where columns are taken from both.
    pub(crate) fn takes_from(&self) -> Option<ThreadId> {
        self.peer.filter(|_| matches!(self.act, AllocAct::Get { .. }))
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocAct {
    /// Takes columns as the allocation of this number.
    Get { slot: u32 },
    /// Gives back columns of an allocation, from one of its columns on; none where the address has no allocation.
    Put { place: Option<(u32, u32)> },
    /// Gives up the right to take more.
    Release,
}
