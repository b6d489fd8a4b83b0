//! Mistakes of the reduction that the comparison with literal lanes must find: one for each condition.

/// A condition that is left out, or a wrong statement of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Planted {
    /// S1: guards and branches do not put lanes apart.
    Control,
    /// S2: strong operations on objects that differ by lane do not put lanes apart.
    Objects,
    /// S3: strong stores and atomics stay joined.
    Releases,
    /// S3: a reduction behind a fence counts as quiet.
    FencedReduction,
    /// S3: a reduction behind a wait for which another lane may be late counts as quiet.
    LateReduction,
    /// S3: reductions of different numbers on one word count as quiet.
    MixedReductions,
    /// S3: joined reductions are one.
    OneReduction,
    /// S4: lanes that may arrive at a named barrier in different phases stay joined.
    Steps,
    /// S5: results of strong reads that steer do not put lanes apart.
    Values,
    /// S5: results of strong reads that are stored do not put lanes apart.
    Stored,
    /// S5: any branch on a try-wait counts as a wait.
    Peeks,
    /// S5: a register that a condition names does not put its lane apart.
    Asked,
    /// Twins: none.
    NoTwins,
    /// Twins: only for conflicts between two writes.
    OnlyWrites,
    /// Twins: only for conflicts between a write and a read.
    OnlyReads,
    /// Twins: not for conflicts within one instruction.
    NotItself,
    /// Twins: the first lane alone, whatever lanes conflict.
    FirstTwin,
    /// Idle parts are dropped though nobody comes to the same rendezvous.
    IdleMeetings,
    /// Idle parts are dropped though nobody executes the same waits.
    IdleWaits,
    /// Idle parts are dropped though they may be late for a wait that the other part has passed.
    IdleLate,
    /// Idle parts are dropped though the mbarrier that they wait for ends its life.
    IdleLives,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 21] = [
        Planted::Control,
        Planted::Objects,
        Planted::Releases,
        Planted::FencedReduction,
        Planted::LateReduction,
        Planted::MixedReductions,
        Planted::OneReduction,
        Planted::Steps,
        Planted::Values,
        Planted::Stored,
        Planted::Peeks,
        Planted::Asked,
        Planted::NoTwins,
        Planted::OnlyWrites,
        Planted::OnlyReads,
        Planted::NotItself,
        Planted::FirstTwin,
        Planted::IdleMeetings,
        Planted::IdleWaits,
        Planted::IdleLate,
        Planted::IdleLives,
    ];
}
