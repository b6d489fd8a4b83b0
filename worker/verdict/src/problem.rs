//! What is wrong with a program, once each: the findings of one rule at the same places are one problem, whichever threads and
//! parts they are of. Code review tools, baselines and suppressions name problems.
//!
//! Contract: every verdict that is a finding has a problem. A fingerprint stays the same while lines move and registers of a compiler
//! are numbered in another way. It depends on the rule, the kernel and the instructions; of equal ones it says the how many.

use schemars::JsonSchema;
use serde::Serialize;

/// The rule of most races.
pub const PLAIN: &str = "uniform-race";

/// What is decided about a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Nothing: it fails.
    #[default]
    Open,
    /// The baseline has it.
    Known,
    /// A suppression is about it.
    Suppressed(Suppressed),
    /// A suppression was about it and is over: it fails.
    Expired(Suppressed),
}

/// A suppression, as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suppressed {
    /// Who is responsible.
    pub owner: String,
    /// The day on which it ends.
    pub until: String,
    /// Why it is there.
    pub reason: String,
    /// Where it is written.
    pub place: String,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Its name in baselines and suppressions.
    pub fingerprint: String,
    /// The word of the verdict.
    pub verdict: &'static str,
    /// The rule that is broken, the name of the condition, or the setting that changes the verdict; else the word of the verdict.
    pub rule: String,
    /// Whether it is wrong by the letter only, under a profile.
    pub letter: bool,
    /// The position of the first part that shows it.
    pub part: Option<usize>,
    /// The positions of its findings among those of that part; by the letter only: among all in `profile.contested`.
    pub findings: Vec<usize>,
    /// Its lines.
    pub lines: Vec<u32>,
    /// What is decided about it.
    pub standing: Standing,
}

impl Problem {
    /// Whether it fails. With `strict`, what is wrong by the letter only counts.
    pub fn fails(&self, strict: bool) -> bool {
        self.counts(strict) && matches!(self.standing, Standing::Open | Standing::Expired(_))
    }

    /// What readers call it: the rule, or the verdict where the rule says no more.
    pub fn name(&self) -> &str {
        if self.rule == PLAIN { self.verdict } else { &self.rule }
    }

    /// Whether it would fail if nothing were decided about it.
    pub(crate) fn counts(&self, strict: bool) -> bool {
        strict || !self.letter
    }
}
