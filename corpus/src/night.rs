//! One night against the one before: which findings are new, still there, gone, flaky, or were not tested.
//!
//! A pure function of the records and of the last snapshot.

use crate::finding::Finding;
use crate::hash::{FindingId, Hash};
use crate::items::Counters;
use crate::life::FindingState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The findings as a report showed them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// State of each finding then. A finding that is not listed was not open.
    pub findings: BTreeMap<FindingId, FindingState>,
    /// Totals over all campaigns then.
    #[serde(default)]
    pub counters: Counters,
    /// The bundles with the rest of the findings; only in a stored snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Hash>,
}

impl Snapshot {
    /// The snapshot of these findings: those that are open.
    pub fn of<'a>(at_ms: u64, findings: impl IntoIterator<Item = &'a Finding>, counters: Counters) -> Self {
        let mut snapshot = Self { at_ms, counters, ..Self::default() };
        findings.into_iter().for_each(|f| snapshot.add(f));
        snapshot
    }
    /// Adds a finding, if it is open.
    pub fn add(&mut self, finding: &Finding) {
        if finding.is_open() {
            self.findings.insert(finding.id, finding.state.clone());
        }
    }
}

/// A finding relative to the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// Not open in the last report, closed and reopened since, or suppressed then and not any more.
    New,
    /// Seen again since the last report.
    Still,
    /// Seen and not seen since the last report: its runs disagree.
    Flaky,
    /// Tested since and not seen, or closed since.
    Gone,
    /// In the last report, not tested since.
    NotRetested,
}

impl Since {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [Self::New, Self::Still, Self::Flaky, Self::Gone, Self::NotRetested];

    /// The word of reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Still => "still",
            Self::Flaky => "flaky",
            Self::Gone => "gone",
            Self::NotRetested => "not re-tested",
        }
    }
}

/// The change of `finding` between `last` and `at_ms`; `None` for one that was closed before.
pub fn compare(last: Option<&Snapshot>, finding: &Finding, at_ms: u64) -> Option<Since> {
    let was_open = last.and_then(|s| s.findings.get(&finding.id)).is_some_and(FindingState::is_open);
    let Some(last) = last.filter(|_| was_open) else { return finding.is_open().then_some(Since::New) };
    if !finding.is_open() {
        return Some(Since::Gone);
    }
    let ended = finding.suppressed.as_ref().is_some_and(|s| last.at_ms < s.until_ms && s.until_ms <= at_ms);
    let back = finding.history.last().is_some_and(|c| c.to == FindingState::Reopened && c.at_ms > last.at_ms);
    if ended || back {
        return Some(Since::New);
    }
    let (seen, tested) = (finding.last_seen_ms, finding.last_tested_ms.max(finding.last_seen_ms));
    let run = finding.retest.as_ref().filter(|r| r.at_ms > last.at_ms);
    let held = run.is_some_and(|r| r.held > 0);
    match () {
        () if tested <= last.at_ms => Some(Since::NotRetested),
        () if held && seen > last.at_ms => Some(Since::Flaky),
        // It is open, because some of its runs gave no answer.
        () if seen <= last.at_ms && run.is_some_and(|r| r.silent > 0) => Some(Since::NotRetested),
        () if seen <= last.at_ms => Some(Since::Gone),
        () => Some(Since::Still),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::life::{Retest, Suppression};

    #[test]
    fn changes_since_the_last_report() {
        let at = |seen, tested| Finding { last_seen_ms: seen, last_tested_ms: tested, ..Finding::default() };
        let run = |seen, held| Some(Retest { at_ms: 9, seen, held, ..Retest::default() });
        let over = Some(Suppression { until_ms: 8, ..Suppression::default() });
        let last = Snapshot::of(5, [&Finding::default()], Counters::default());
        let fixed = Finding { state: FindingState::Fixed, ..at(3, 9) };
        let mut reopened = at(9, 9);
        reopened.change(7, FindingState::Fixed, "p", "w");
        reopened.shown(8, "p");
        let cases = [
            (at(9, 9), Since::Still),
            (Finding { retest: run(3, 0), ..at(9, 9) }, Since::Still),
            (Finding { retest: run(2, 1), ..at(9, 9) }, Since::Flaky),
            (Finding { retest: run(0, 3), ..at(9, 9) }, Since::Flaky),
            (Finding { retest: run(0, 3), ..at(3, 9) }, Since::Gone),
            (Finding { retest: run(0, 0), ..at(3, 3) }, Since::NotRetested),
            (
                Finding { retest: run(0, 2).map(|r| Retest { silent: 1, ..r }), ..at(3, 9) },
                Since::NotRetested,
            ),
            (at(3, 3), Since::NotRetested),
            (Finding { suppressed: over, ..at(9, 9) }, Since::New),
            (fixed.clone(), Since::Gone),
            (reopened, Since::New),
        ];
        for (finding, expected) in cases {
            assert_eq!(compare(Some(&last), &finding, 10), Some(expected), "{finding:?}");
        }
        let none = Snapshot::default();
        assert_eq!(compare(Some(&none), &at(3, 3), 10), Some(Since::New));
        assert_eq!(compare(None, &at(3, 3), 10), Some(Since::New));
        assert_eq!(compare(Some(&none), &fixed, 10), None, "closed before");
        let expected = Snapshot::of(5, [&fixed], Counters::default());
        assert_eq!(
            compare(Some(&expected), &Finding { state: FindingState::Reopened, ..fixed }, 10),
            Some(Since::New)
        );
    }
}
