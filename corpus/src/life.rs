//! States of a finding, and the records of its life: changes of state, suppressions, re-tests.

use crate::hash::FindingId;
use serde::{Deserialize, Serialize};

/// Longest reason, or name of a person, that is kept.
pub const REASON_BYTES_MAX: usize = 400;

/// Life cycle of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// Unresolved.
    #[default]
    Open,
    /// The same bug as another finding.
    Duplicate(FindingId),
    /// Not a bug.
    Invalid,
    /// Resolved.
    Fixed,
    /// Seen again after it was fixed.
    Reopened,
}

impl FindingState {
    /// Whether a finding in it counts as a bug.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Reopened)
    }
    /// The word for it, as records write it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Duplicate(_) => "duplicate",
            Self::Invalid => "invalid",
            Self::Fixed => "fixed",
            Self::Reopened => "reopened",
        }
    }
    /// The word for it; for a duplicate also the start of the other finding's id.
    pub fn words(&self) -> String {
        match self {
            Self::Duplicate(of) => format!("duplicate of {}", of.short()),
            other => other.word().to_owned(),
        }
    }
}

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// The state entered.
    pub to: FindingState,
    /// A person, or a part of the system.
    pub who: String,
    /// The reason.
    pub why: String,
}

/// A time in which an open finding fails no night, and who decided so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppression {
    /// The person who answers for it.
    pub owner: String,
    /// The reason.
    pub why: String,
    /// Since when, Unix milliseconds.
    pub since_ms: u64,
    /// When it ends, Unix milliseconds.
    pub until_ms: u64,
}

/// The result of running a finding again a few times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retest {
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// Runs in which the rule was broken.
    pub seen: u64,
    /// Runs in which it held.
    pub held: u64,
    /// Runs without an answer.
    pub silent: u64,
    /// Why there was no answer: the reason of the first such run.
    pub reason: String,
}

impl Retest {
    /// Whether some run gave an answer.
    pub fn answered(&self) -> bool {
        self.seen > 0 || self.held > 0
    }
    /// Whether runs disagree among themselves.
    pub fn disagrees(&self) -> bool {
        self.seen > 0 && self.held > 0
    }
}

/// One line of at most [`REASON_BYTES_MAX`] bytes.
pub(crate) fn line(text: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    out.truncate((0..=REASON_BYTES_MAX.min(out.len())).rfind(|i| out.is_char_boundary(*i)).unwrap_or(0));
    out.trim().to_owned()
}
