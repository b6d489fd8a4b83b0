//! Planted bugs: the engine with one rule weakened ([`crate::operate_planted`]).
//!
//! They test the tests: agreement with other engines is evidence only if it fails for each of these.

/// The rule that is weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// D1 is not checked.
    Unobserved,
    /// D2 is not checked.
    Lapped,
    /// D3 is not checked.
    Generations,
    /// D4 is not checked.
    Expected,
    /// D4 is checked only of phases that complete.
    ExpectedAtEnd,
    /// D4 is not checked of an `expect_tx` that completes its phase, nor of bytes that are complete before.
    ExpectedLate,
    /// D5 is not checked.
    Passed,
    /// A barrier that names as many threads as the CTA has does not wait for those that exit.
    CountedExits,
    /// Uses of a barrier that name different counts need no order.
    CountsApart,
    /// Strong stores race with none, whatever their scope.
    StrongAnywhere,
    /// What lanes write where others do not go, all lanes know.
    ArmsKnow,
    /// All scopes include each other.
    AnyScope,
    /// Relaxed waits acquire.
    RelaxedWaits,
    /// Relaxed arrivals release.
    RelaxedArrivals,
    /// Nothing needs `fence::before_thread_sync`.
    FreeBefore,
    /// Nothing needs `fence::after_thread_sync`.
    FreeAfter,
    /// Nothing needs a proxy fence.
    FreeProxy,
    /// A commit follows nothing.
    EmptyCommit,
    /// The completion of a copy says nothing of the copy.
    EmptyCopy,
    /// All tensor-core instructions of a thread pipeline.
    AllPipeline,
    /// A wait for loads follows stores as well.
    AnyWait,
    /// What was known of an access is known of the next one of its kind.
    StaysKnown,
    /// A wait for groups follows all groups.
    AllGroups,
    /// A record is dropped when one of the threads that need it knows it.
    EagerForgetting,
    /// States are compared without registers, so that rounds of different parity count as one.
    WrongPeriod,
    /// A loop that may end always goes on.
    NeverLeaves,
    /// Loops in loops are never entered.
    NeverEnters,
    /// Lanes that meet order memory as well.
    MeetingsOrder,
    /// Nothing needs a `wgmma.fence` before the matrices of a product.
    FreeProducts,
    /// The registers of a product are free at once.
    FreeRegisters,
    /// Who asks once whether a phase is over waits until it is.
    AlwaysAnswers,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 31] = [
        Planted::Unobserved,
        Planted::Lapped,
        Planted::Generations,
        Planted::Expected,
        Planted::ExpectedAtEnd,
        Planted::ExpectedLate,
        Planted::Passed,
        Planted::CountedExits,
        Planted::CountsApart,
        Planted::StrongAnywhere,
        Planted::ArmsKnow,
        Planted::AnyScope,
        Planted::RelaxedWaits,
        Planted::RelaxedArrivals,
        Planted::FreeBefore,
        Planted::FreeAfter,
        Planted::FreeProxy,
        Planted::EmptyCommit,
        Planted::EmptyCopy,
        Planted::AllPipeline,
        Planted::AnyWait,
        Planted::StaysKnown,
        Planted::AllGroups,
        Planted::EagerForgetting,
        Planted::WrongPeriod,
        Planted::NeverLeaves,
        Planted::NeverEnters,
        Planted::MeetingsOrder,
        Planted::FreeProducts,
        Planted::FreeRegisters,
        Planted::AlwaysAnswers,
    ];
}
