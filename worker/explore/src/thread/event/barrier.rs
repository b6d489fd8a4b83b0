//! Use of a barrier by an event (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3).

/// A barrier event: which object, how many arrivals it wants, what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierUse {
    pub(crate) object: BarrierObject,
    /// Explicit count.
    pub(crate) count: Option<u32>,
    /// Counts as an arrival.
    pub(crate) arrives: bool,
    /// Blocks until its phase is complete.
    pub(crate) waits: bool,
    /// The predicate given to `bar.red`.
    pub(crate) pred: bool,
}

/// Identity of a barrier; the CTA, cluster or warp is that of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BarrierObject {
    /// CTA barrier: number, the instance of the Dat3M dialect, and the count where it is not that of all threads:
    /// phases of different counts are kept apart, and `bar-mixed` says which must not meet.
    Cta {
        id: i64,
        instance: Option<u32>,
        count: Option<u32>,
    },
    Cluster,
    /// Warp barrier: arrivals meet only under the same mask.
    Warp {
        mask: u32,
    },
}
