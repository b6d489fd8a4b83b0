//! Use of a barrier by an event (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3), or of a rendezvous of lanes that orders nothing.

use moire_program::ir::Exchange;

/// A barrier event: which object, how many arrivals it wants, what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierUse {
    pub(crate) object: BarrierObject,
    /// The number of arrivals of a phase, if the instruction names one.
    pub(crate) count: Option<u32>,
    /// Counts as an arrival.
    pub(crate) arrives: bool,
    /// Blocks until its phase is complete.
    pub(crate) waits: bool,
    /// The lanes whose predicate, given to `bar.red` or a vote, holds.
    pub(crate) votes: u32,
    /// What each lane gives to another collective.
    pub(crate) given: u32,
    /// Of a shuffle: the lane or distance, and the clamp.
    pub(crate) from: [u32; 2],
}

/// Identity of a barrier; the CTA, cluster or warp is that of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BarrierObject {
    /// CTA barrier: its number, its instance (Dat3M dialect), and its count unless that is all threads. Phases with
    /// different counts are kept apart; the model relation `bar-mixed` finds those that must not overlap.
    Cta {
        id: i64,
        instance: Option<u32>,
        count: Option<u32>,
    },
    Cluster,
    /// Warp barrier: only arrivals with the same mask are of one phase.
    Warp {
        mask: u32,
    },
    /// Collective instruction of a warp: only equal forms with equal masks are of one phase.
    Collective {
        form: Form,
        mask: u32,
    },
}

/// Which collective instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    Elect,
    Exchange(Exchange),
}
