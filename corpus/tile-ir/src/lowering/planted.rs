//! Planted weakenings: the lowering with one of its obligations left out, for tests of the oracle.
//!
//! A comparison that passes says something only if it fails on each of these.

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weakening {
    /// A token edge between threads is no barrier.
    NoBarrier,
    /// Nothing waits for the other threads before a release.
    ReleasesAhead,
    /// The other threads do not wait behind an acquire.
    AcquiresAlone,
    /// A release is relaxed.
    RelaxedRelease,
    /// An acquire is relaxed.
    RelaxedAcquire,
    /// Scopes end at the CTA.
    NarrowScope,
    /// Each thread reads a scalar for itself.
    EachReads,
    /// Values are handed over without a barrier.
    HastyHandover,
    /// An atomic is a load and a store.
    SplitAtomic,
    /// A compare-and-swap always swaps.
    AlwaysSwaps,
    /// Masked elements are accessed.
    NoMasks,
    /// An element stores what its neighbour should.
    Shuffled,
    /// Strong accesses are weak.
    WeakAccess,
    /// Who waits for a token that was chosen does not wait for the choice.
    NoChoice,
    /// Of a tile only the first element is accessed.
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
