//! Planted bugs: the explorer without one of its side conditions ([`crate::search::explore_planted`]).
//!
//! They test the tests: a comparison of engines is evidence only if it fails for each of these.

/// The side condition that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A read never stays open: no load buffering.
    NeverOpen,
    /// A write becomes the source of all open reads of its bytes or of none.
    AllOrNothing,
    /// A write leaves no read open.
    ClaimsAll,
    /// A pair of writes the model wants ordered is ordered one way only.
    OneDirection,
    /// A read never takes its value from the initial write once there is another.
    ForgetsInitial,
    /// A thread in front of a loop always enters it.
    NeverStuck,
    /// A barrier arrival joins the first phase it can.
    FirstPhase,
    /// An operation on an mbarrier takes the first place it can.
    FirstPlace,
    /// An allocation of tensor memory is granted as soon as it fits.
    FirstCome,
    /// Every spin is a hang, whatever it could still read.
    AlwaysHangs,
    /// A thread in front of a loop leaves it for sure where one of the writes that may come last takes it out.
    SomeLast,
    /// What is written last where a thread waits is what is there: no other thread writes any more.
    NobodyElse,
    /// A thread that no write lets in now stays in front of its loop, whatever others may still write.
    StaysInFront,
    /// A thread of which nobody knows what it does next arrives at no barrier.
    LostArrivesNot,
    /// The write half of an exchange is taken to wait for its read.
    HalfWaits,
    /// Read-modify-writes of different bytes are taken to compete for their source.
    SharesAnywhere,
    /// Lanes that exchange values are ordered, as by `bar.warp.sync`.
    ExchangeOrders,
    /// Lanes that exchange values wait for nobody.
    ExchangePasses,
    /// `bar.warp.sync` orders nothing.
    WarpSyncBare,
    /// All lanes of the warp are waited for, whatever the mask.
    MasksIgnored,
    /// Lanes that are joined arrive at an mbarrier as one.
    LanesOnce,
    /// Exchanges wait for lanes that have exited.
    ExitedAwaited,
    /// Threads count as alike wherever they are.
    AlikeAnywhere,
    /// Threads count as alike whatever conditions ask of them.
    AlikeAsked,
    /// Registers that conditions name are not needed.
    UnseenAsked,
    /// Writes are not seen by loads that are.
    UnseenRead,
    /// An access of a tile is unseen if its first element is.
    FirstElement,
    /// All atomics commute with each other.
    MixedFamilies,
    /// The model is not asked whether atomics commute.
    CommutesUnasked,
    /// A tail ends whatever memory it may still leave.
    TailMemory,
    /// A tail ends whatever flags it may still raise.
    TailFlags,
}

impl Planted {
    /// Those that a comparison of small drawn programs finds. The other bugs need programs made for them.
    pub const ALL: [Planted; 8] = [
        Planted::NeverOpen,
        Planted::AllOrNothing,
        Planted::ClaimsAll,
        Planted::OneDirection,
        Planted::ForgetsInitial,
        Planted::NeverStuck,
        Planted::FirstPhase,
        Planted::AlwaysHangs,
    ];

    /// Those of what lanes of a warp do together. A comparison of drawn warps finds them.
    pub const LANES: [Planted; 6] = [
        Planted::ExchangeOrders,
        Planted::ExchangePasses,
        Planted::WarpSyncBare,
        Planted::MasksIgnored,
        Planted::LanesOnce,
        Planted::ExitedAwaited,
    ];

    /// Those of what is pruned in front of loops that may spin.
    pub const GATES: [Planted; 3] = [Planted::SomeLast, Planted::NobodyElse, Planted::StaysInFront];

    /// Those of [`crate::reduce`]: they do something where reductions are on.
    pub const REDUCING: [Planted; 9] = [
        Planted::AlikeAnywhere,
        Planted::AlikeAsked,
        Planted::UnseenAsked,
        Planted::UnseenRead,
        Planted::FirstElement,
        Planted::MixedFamilies,
        Planted::CommutesUnasked,
        Planted::TailMemory,
        Planted::TailFlags,
    ];
}
