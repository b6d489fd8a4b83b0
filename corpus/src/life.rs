//! The life of a finding: open, closed by a person or by a night in which it no longer showed, reopened when it comes back.
//!
//! Contract: every change of state says who made it and why, and the latest [`CHANGES_MAX`] are kept with the first. A closed
//! finding that shows again is reopened only if it was `fixed`: who marked it invalid or a duplicate has judged it, not
//! its absence. A fixed finding is a regression program: it keeps its text and its rule, and each night runs it again.
//! A suppression changes no state: it keeps an open finding from failing a night until it expires. No clock: times are
//! passed in.

use crate::record::{Finding, FindingId};
use crate::store::{Store, StoreError, Write};
use serde::{Deserialize, Serialize};

/// Changes of state that are kept.
const CHANGES_MAX: usize = 12;
/// Longest reason, or name of a person, that is kept.
pub const REASON_BYTES_MAX: usize = 400;
/// Duplicates of duplicates that are followed.
const CHAIN_MAX: usize = 32;

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
    /// The word for it, and of what a duplicate is one.
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

/// Why a finding fails no night for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppression {
    /// The person who answers for it.
    pub owner: String,
    /// The reason.
    pub why: String,
    /// Since when, Unix milliseconds.
    pub since_ms: u64,
    /// It is over from then on, Unix milliseconds.
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
    /// Runs that could not say, or had no answer.
    pub silent: u64,
    /// Why those were silent, as the first of them says it.
    pub reason: String,
}

impl Retest {
    /// Whether some run said something.
    pub fn answered(&self) -> bool {
        self.seen > 0 || self.held > 0
    }
    /// Whether runs disagree among themselves.
    pub fn disagrees(&self) -> bool {
        self.seen > 0 && self.held > 0
    }
}

/// A change of a finding's life cycle, by a person or by a night.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is a bug after all.
    Open,
    /// It is no bug.
    Invalid,
    /// It is resolved.
    Fixed,
    /// It is the bug of the finding with this id, or prefix of an id.
    Duplicate(String),
    /// It fails no night until then.
    Suppress {
        /// Unix milliseconds.
        until_ms: u64,
    },
    /// It fails nights again.
    Unsuppress,
}

impl std::str::FromStr for Mark {
    type Err = MarkError;
    /// `open`, `invalid`, `fixed`, `duplicate:ID`, `unsuppress`; `suppress` needs a time and is not read here.
    fn from_str(text: &str) -> Result<Self, MarkError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("open", "") => Ok(Self::Open),
            ("invalid", "") => Ok(Self::Invalid),
            ("fixed", "") => Ok(Self::Fixed),
            ("unsuppress", "") => Ok(Self::Unsuppress),
            ("duplicate", of) => Ok(Self::Duplicate(of.to_owned())),
            _ => Err(MarkError::Word(text.chars().take(40).collect())),
        }
    }
}

/// Why a finding was not marked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkError {
    /// No such mark.
    #[error("`{0}` is no state; write open, invalid, fixed, duplicate:ID, suppress or unsuppress")]
    Word(String),
    /// Closing a finding needs a reason.
    #[error("say why: a finding is closed or suppressed with a reason")]
    NoReason,
    /// Suppressing one needs an owner.
    #[error("say who answers for it: a finding is suppressed with an owner")]
    NoOwner,
    /// The suppression would be over already.
    #[error("a suppression ends in the future")]
    Past,
    /// Not an id.
    #[error("`{0}` is no id of a finding: at least eight hexadecimal digits")]
    NoId(String),
    /// Nothing by this name.
    #[error("no finding starts with {0}; `moire findings list` shows them")]
    Unknown(String),
    /// More than one by this name.
    #[error("several findings start with {0}; give more digits")]
    Ambiguous(String),
    /// A finding is no duplicate of itself.
    #[error("{0} would be a duplicate of itself")]
    Itself(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One line of at most [`REASON_BYTES_MAX`] bytes.
fn line(text: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    out.truncate((0..=REASON_BYTES_MAX.min(out.len())).rfind(|i| out.is_char_boundary(*i)).unwrap_or(0));
    out.trim().to_owned()
}

impl Finding {
    /// Enters state `to` and records who and why. What lies between the first change and the latest is dropped.
    pub fn change(&mut self, at_ms: u64, to: FindingState, who: &str, why: &str) {
        self.state = to.clone();
        self.history.push(Change { at_ms, to, who: line(who), why: line(why) });
        while self.history.len() > CHANGES_MAX {
            self.history.remove(1);
        }
    }
    /// Whether it still counts as a bug.
    pub fn is_open(&self) -> bool {
        self.state.is_open()
    }
    /// Whether a night runs it again: open ones to see whether they still show, fixed ones to see that they do not.
    pub fn is_retested(&self) -> bool {
        self.is_open() || self.state == FindingState::Fixed
    }
    /// The suppression in force at this time.
    pub fn suppression(&self, at_ms: u64) -> Option<&Suppression> {
        self.suppressed.as_ref().filter(|s| at_ms < s.until_ms)
    }
    /// It showed: a fixed one is open again.
    pub fn shown(&mut self, at_ms: u64, who: &str) {
        self.last_seen_ms = self.last_seen_ms.max(at_ms);
        self.last_tested_ms = self.last_tested_ms.max(at_ms);
        if self.state == FindingState::Fixed {
            self.change(at_ms, FindingState::Reopened, who, "seen again");
        }
    }
    /// Takes what came of running it again. One that did not show in any run is fixed; a fixed one that showed is open
    /// again.
    pub fn retested(&mut self, retest: Retest) {
        let at_ms = retest.at_ms;
        if retest.seen > 0 {
            self.count = self.count.saturating_add(1);
            self.shown(at_ms, "nightly");
        } else if retest.held > 0 {
            self.last_tested_ms = self.last_tested_ms.max(at_ms);
            if self.is_open() && retest.silent == 0 {
                let why = format!("did not show in {} of {} runs", retest.held, retest.held);
                self.change(at_ms, FindingState::Fixed, "nightly", &why);
            }
        }
        self.retest = Some(Retest { reason: line(&retest.reason), ..retest });
    }
}

impl Store {
    /// The finding of an id, or of a prefix of at least eight digits.
    ///
    /// # Errors
    /// None or several have it, or the store cannot be read.
    pub fn named(&self, id: &str) -> Result<Finding, MarkError> {
        let id = id.to_ascii_lowercase();
        if id.len() < 8 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(MarkError::NoId(id.chars().take(80).collect()));
        }
        let mut matching = self.findings_from(&id)?;
        match (matching.pop(), matching.pop()) {
            (Some(finding), None) => Ok(finding),
            (Some(_), Some(_)) => Err(MarkError::Ambiguous(id)),
            (None, _) => Err(MarkError::Unknown(id)),
        }
    }

    /// Marks the finding named `id`; durable when it returns. `who` owns a suppression.
    ///
    /// # Errors
    /// See [`MarkError`]; nothing has changed then.
    pub fn mark(
        &mut self,
        at_ms: u64,
        id: &str,
        mark: &Mark,
        who: &str,
        why: &str,
    ) -> Result<Finding, MarkError> {
        let mut finding = self.named(id)?;
        let closes = !matches!(mark, Mark::Open | Mark::Unsuppress);
        if closes && line(why).is_empty() {
            return Err(MarkError::NoReason);
        }
        match mark {
            Mark::Open => finding.change(at_ms, FindingState::Open, who, why),
            Mark::Invalid => finding.change(at_ms, FindingState::Invalid, who, why),
            Mark::Fixed => finding.change(at_ms, FindingState::Fixed, who, why),
            Mark::Duplicate(of) => {
                let of = self.original(of, finding.id)?;
                finding.change(at_ms, FindingState::Duplicate(of), who, why);
            }
            Mark::Suppress { .. } if line(who).is_empty() => return Err(MarkError::NoOwner),
            Mark::Suppress { until_ms } if *until_ms <= at_ms => return Err(MarkError::Past),
            Mark::Suppress { until_ms } => {
                let (owner, why) = (line(who), line(why));
                finding.suppressed = Some(Suppression { owner, why, since_ms: at_ms, until_ms: *until_ms });
            }
            Mark::Unsuppress => finding.suppressed = None,
        }
        self.commit(vec![Write::Finding(Box::new(finding.clone()))])?;
        Ok(finding)
    }

    /// What `of` is in the end a duplicate of, itself where it is none; never `not`.
    fn original(&self, of: &str, not: FindingId) -> Result<FindingId, MarkError> {
        let mut at = self.named(of)?;
        for _ in 0..CHAIN_MAX {
            if at.id == not {
                break;
            }
            let FindingState::Duplicate(next) = at.state else { return Ok(at.id) };
            match self.finding(&next)? {
                Some(finding) => at = finding,
                None => return Ok(at.id),
            }
        }
        Err(MarkError::Itself(not.short()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_kept_short_and_clean() {
        let mut finding = Finding::default();
        for n in 0..100 {
            finding.change(n, FindingState::Fixed, "a\nb", &"\u{1}é".repeat(1000));
        }
        assert_eq!((finding.history.len(), finding.history[0].at_ms), (CHANGES_MAX, 0));
        assert_eq!(finding.history[CHANGES_MAX - 1].at_ms, 99);
        assert_eq!(finding.history[1].who, "a b");
        assert!(finding.history.iter().all(|c| c.why.len() <= REASON_BYTES_MAX));
    }

    #[test]
    fn runs_open_and_close() {
        let run = |at_ms, seen, held, silent| Retest { at_ms, seen, held, silent, ..Retest::default() };
        let mut finding = Finding { count: 1, ..Finding::default() };
        finding.retested(run(1, 0, 0, 3));
        assert_eq!((finding.last_tested_ms, finding.is_open()), (0, true), "nobody could say");
        finding.retested(run(2, 1, 2, 0));
        assert_eq!((finding.last_seen_ms, finding.is_open(), finding.count), (2, true, 2));
        finding.retested(run(3, 0, 2, 1));
        assert!(finding.is_open(), "one run did not say");
        finding.retested(run(4, 0, 3, 0));
        assert_eq!((finding.state.clone(), finding.last_tested_ms), (FindingState::Fixed, 4));
        finding.retested(run(5, 0, 3, 0));
        assert_eq!(finding.history.len(), 1);
        finding.retested(run(6, 1, 2, 0));
        assert_eq!(finding.state, FindingState::Reopened);
        finding.change(7, FindingState::Invalid, "p", "q");
        finding.retested(run(8, 3, 0, 0));
        assert_eq!(finding.state, FindingState::Invalid, "judged, not absent");
    }
}
