//! A finding: a discrepancy that was verified and stored once, and its life.
//!
//! It is open until a person closes it or a night no longer shows it. Contract: every change of state says who made it and
//! why; the first change and the latest [`CHANGES_MAX`] - 1 are kept. A closed finding that shows again is reopened only
//! if it was `fixed`: a person who marked it invalid or a duplicate has judged the finding, not its absence. A fixed
//! finding is a regression program: it keeps its text and its rule, and each night runs it again. A suppression changes no
//! state: it keeps an open finding from failing a night until it expires. No clock: times are passed in.

use crate::hash::{FindingId, Hash};
use crate::life::{Change, FindingState, Retest, Suppression, line};
use crate::record::{ModelRef, Provenance};
use serde::{Deserialize, Serialize};

/// Most changes of state that are kept.
const CHANGES_MAX: usize = 12;

/// Most bytes of a finding's record that its life takes: changes of state, suppression, re-test, times and counts. The
/// record of a finding that leaves this room free never exceeds the limit later.
pub const LIFE_BYTES_MAX: usize = 25 * 1024;

/// The worker that confirmed a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// Nobody yet.
    #[default]
    Unverified,
    /// The worker that claimed it (there was only one).
    #[serde(rename = "self")]
    Itself,
    /// Another worker.
    Other,
}

/// A stored, deduplicated discrepancy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// BLAKE3 of the dedupe key ([`Finding::dedupe_id`]).
    pub id: FindingId,
    /// Campaign that saw it first.
    pub campaign: String,
    /// Oracle whose rule is broken.
    pub oracle: String,
    /// The rule's direction: `equal`, `subset`, ...
    pub rule: String,
    /// The engines' models.
    pub models: Vec<ModelRef>,
    /// Reduced program, native litmus text.
    pub reduced: String,
    /// Program as generated.
    pub original: String,
    /// Origin of the original program.
    pub provenance: Provenance,
    /// Witness, as text.
    pub witness: String,
    /// Minimal sets of checks whose removal admits the outcome.
    pub axioms: Vec<Vec<String>>,
    /// Verdict word.
    pub verdict: String,
    /// Life cycle.
    pub state: FindingState,
    /// The worker that confirmed it.
    pub verified: Verified,
    /// First sighting, Unix milliseconds.
    pub first_seen_ms: u64,
    /// Last sighting, Unix milliseconds.
    pub last_seen_ms: u64,
    /// Last time it was looked for, seen or not; Unix milliseconds.
    pub last_tested_ms: u64,
    /// Number of sightings.
    pub count: u64,
    /// All changes of state, oldest first.
    pub history: Vec<Change>,
    /// Its bundle file.
    pub bundle: Option<Hash>,
    /// The line that replays it.
    pub replay: String,
    /// The time in which it fails no night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppression>,
    /// The result of the last re-test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retest: Option<Retest>,
}

impl Finding {
    /// Identity from the oracle, the minimal check sets (order does not matter) and the canonical program; where the checks alone
    /// tell which bug it is, the hash of the program is zero.
    pub fn dedupe_id(oracle: &str, axioms: &[Vec<String>], program: &Hash) -> FindingId {
        let mut sets: Vec<Vec<&str>> =
            axioms.iter().map(|s| s.iter().map(String::as_str).collect()).collect();
        sets.iter_mut().for_each(|s| s.sort_unstable());
        sets.sort();
        let key = serde_json::to_vec(&(oracle, sets, program)).expect("strings and hashes always serialise");
        Hash::of(&key)
    }
    /// `once`, `twice`, `3 times`, ...
    pub fn sightings(&self) -> String {
        match self.count {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            n => format!("{n} times"),
        }
    }
    /// The model and the outcome that it allows, from the witness; `None` if the witness names none.
    pub fn allowed(&self) -> Option<String> {
        let witness: serde_json::Value = serde_json::from_str(&self.witness).ok()?;
        Some(format!("{} allows {}", witness.get("model")?.as_str()?, witness.get("outcome")?.as_str()?))
    }

    /// Enters state `to` and records who changed it and why. If there are too many changes, the oldest but the first are
    /// dropped.
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
    /// Notes a sighting. A fixed finding is open again.
    pub fn shown(&mut self, at_ms: u64, who: &str) {
        self.last_seen_ms = self.last_seen_ms.max(at_ms);
        self.last_tested_ms = self.last_tested_ms.max(at_ms);
        if self.state == FindingState::Fixed {
            self.change(at_ms, FindingState::Reopened, who, "seen again");
        }
    }
    /// Notes the result of a re-test. A finding that showed in no run becomes fixed, if every run gave an answer; a fixed one
    /// that showed is open again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::REASON_BYTES_MAX;

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
    fn the_longest_life_has_room() {
        let (text, far) = ("\"".repeat(1000), u64::MAX);
        let empty = serde_json::to_vec(&Finding::default()).unwrap().len();
        let mut finding =
            Finding { count: far, first_seen_ms: far, bundle: Some(Hash([7; 32])), ..Finding::default() };
        finding.retested(Retest { at_ms: far, seen: 0, held: far, silent: far, reason: text.clone() });
        for _ in 0..=CHANGES_MAX {
            finding.change(far, FindingState::Duplicate(Hash([9; 32])), &text, &text);
        }
        finding.shown(far, &text);
        let (owner, why) = (line(&text), line(&text));
        finding.suppressed = Some(Suppression { owner, why, since_ms: far, until_ms: far });
        let life = serde_json::to_vec(&finding).unwrap().len() - empty;
        assert!((LIFE_BYTES_MAX - 2048..=LIFE_BYTES_MAX).contains(&life), "{life}");
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
