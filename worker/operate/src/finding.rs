//! What a run says: findings, abstentions, and the words for both.

use std::collections::BTreeSet;
use std::fmt;

/// What kind of mistake a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Conflicting accesses without order.
    Race,
    /// A thread waits for ever.
    Hang,
    /// An object used outside its life.
    Lifetime,
    /// A documented precondition is broken.
    Protocol,
}

impl Kind {
    /// The word of the vocabulary.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Race => "race",
            Kind::Hang => "hang",
            Kind::Lifetime => "lifetime",
            Kind::Protocol => "protocol",
        }
    }
}

/// A condition under which one run stands for all. A run that breaks one says nothing about other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// D1: an arrival comes after an observation of the previous phase of its mbarrier.
    Observed,
    /// D2: a phase completes after every wait that answered for the previous one.
    Lapped,
    /// D3: an arrival at a barrier comes after the previous generation.
    Generation,
    /// D4: a phase completes after every `expect_tx` that belongs to it.
    Expected,
    /// D5: a wait comes after the phase before the one that it answers for.
    Passed,
}

impl Condition {
    /// D1 to D5, and what it asks for.
    pub fn text(self) -> &'static str {
        match self {
            Condition::Observed => "D1: an arrival that is not ordered after the previous phase",
            Condition::Lapped => "D2: a wait that can be lapped",
            Condition::Generation => "D3: an arrival that is not ordered after the previous generation",
            Condition::Expected => "D4: a phase that may complete before an expect_tx",
            Condition::Passed => "D5: a wait that may answer for an earlier phase",
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// The condition it breaks, if it is no more than that.
    pub condition: Option<Condition>,
    /// One sentence.
    pub text: String,
    /// The instructions: position of the thread, line of the text.
    pub places: Vec<(usize, u32)>,
}

/// Something this engine does not decide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Abstain {
    /// What it is.
    pub what: String,
    /// Line of the text, 0 if it is about none.
    pub line: u32,
}

impl fmt::Display for Abstain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "not decided by the operational engine: {}", self.what)
    }
}

impl std::error::Error for Abstain {}

impl Abstain {
    /// Mistakes of runs in which a wait said "not yet" that may have had to say "over". There may be no such execution.
    pub(crate) fn doubt(findings: &BTreeSet<Finding>) -> Option<Self> {
        let first = findings.first()?;
        let what = format!(
            "a mistake behind a wait that may have had to answer ({}: {})",
            first.kind.word(),
            first.text
        );
        Some(Abstain { what, line: first.places.first().map_or(0, |(_, line)| *line) })
    }
}

/// Why a step could not be taken.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// For good.
    Abstain(Abstain),
    /// There are more records than columns: begin again with wider rows.
    Wider,
}

impl Stop {
    pub(crate) fn abstain(what: impl Into<String>, line: u32) -> Self {
        Stop::Abstain(Abstain { what: what.into(), line })
    }
}

/// Most findings that are kept, but for the first one of each kind: the first ones say what is wrong.
pub(crate) const FINDINGS: usize = 256;
