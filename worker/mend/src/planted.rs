//! Planted bugs: the search without one of the tests that an edit set must pass. They test the tests.

/// The test that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// The order of execution is not compared: a barrier may stand in the wrong direction.
    AnyDirection,
    /// Hangs count as nothing: a fix may turn a race into a hang.
    IgnoresHangs,
    /// No edit is left out again: some of them are there already.
    KeepsAll,
    /// Any access may become strong: a race of data goes, and its mistake stays.
    StrongPayload,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 4] =
        [Planted::AnyDirection, Planted::IgnoresHangs, Planted::KeepsAll, Planted::StrongPayload];
}
