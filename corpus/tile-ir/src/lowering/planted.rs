//! Planted bugs: the lowering with one of its obligations left out, to test the oracle.
//!
//! A passing comparison means something only if the comparison fails on each of these.

/// The obligation left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weakening {
    /// A token edge between threads gets no barrier.
    NoBarrier,
    /// A release does not wait for the other threads.
    ReleasesAhead,
    /// The other threads do not wait for an acquire.
    AcquiresAlone,
    /// A release is relaxed.
    RelaxedRelease,
    /// An acquire is relaxed.
    RelaxedAcquire,
    /// All scopes become `.cta`.
    NarrowScope,
    /// Each thread reads a scalar itself.
    EachReads,
    /// Values are handed over without a barrier.
    HastyHandover,
    /// An atomic becomes a load and a store.
    SplitAtomic,
    /// A compare-and-swap always swaps.
    AlwaysSwaps,
    /// Masked-off elements are accessed.
    NoMasks,
    /// An element stores what its neighbour should.
    Shuffled,
    /// Strong accesses are weak.
    WeakAccess,
    /// An access that waits for a chosen token does not wait for the value that chose it.
    NoChoice,
    /// A store or an atomic accesses only the first element of its tile.
    FirstOnly,
}

impl Weakening {
    /// All of them.
    pub const ALL: [Weakening; 15] = [
        Weakening::NoBarrier,
        Weakening::ReleasesAhead,
        Weakening::AcquiresAlone,
        Weakening::RelaxedRelease,
        Weakening::RelaxedAcquire,
        Weakening::NarrowScope,
        Weakening::EachReads,
        Weakening::HastyHandover,
        Weakening::SplitAtomic,
        Weakening::AlwaysSwaps,
        Weakening::NoMasks,
        Weakening::Shuffled,
        Weakening::WeakAccess,
        Weakening::NoChoice,
        Weakening::FirstOnly,
    ];
}
