//! A night, the rows of its findings in a report, and which of them fail it.
//!
//! Contract: suppressed findings, and differences between versions of a model, are shown but fail nothing.

use super::dates;
use moire_corpus::{Finding, FindingId, FindingState, Since, Snapshot, StoreError, Suppression, compare};
use std::collections::BTreeMap;
use std::io;

/// The rule of findings about differences between versions of a model. They are shown but fail nothing.
pub const DIFFERENCE: &str = "difference";

/// The grade of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// The score is as it should be.
    Good,
    /// Too little was run to say.
    Unsure,
    /// The score fails the night.
    Alarm,
}

/// A measure of the night's own quality, such as the share of planted bugs that it found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Score {
    /// The name of the measure.
    pub name: String,
    /// Its grade.
    pub grade: Grade,
    /// The numbers in a sentence.
    pub says: String,
}

/// A campaign in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CampaignLine {
    /// Its name.
    pub name: String,
    /// Programs of this night, and in all.
    pub programs: (u64, u64),
    /// Executions in all.
    pub executions: u64,
    /// Abstentions by reason.
    pub abstentions: BTreeMap<String, u64>,
    /// The reason why it ended before its budget; empty if it did not.
    pub cut: String,
}

impl CampaignLine {
    /// Why a campaign that no night runs has not ended as planned: it was left, is paused, or goes on.
    pub fn cut(done: bool) -> String {
        if done { String::new() } else { "not at its end".to_owned() }
    }
}

/// The subject of a report.
#[derive(Clone, Debug, Default)]
pub struct Night {
    /// The time, in Unix milliseconds.
    pub at_ms: u64,
    /// All findings, unless they stay in a store. [`Finding::replay`] must be set.
    pub findings: Vec<Finding>,
    /// The snapshot of the last report.
    pub last: Option<Snapshot>,
    /// The reasons why findings were not run again, if their records do not say.
    pub untested: BTreeMap<FindingId, String>,
    /// The campaigns.
    pub campaigns: Vec<CampaignLine>,
    /// The measures of its own quality.
    pub scores: Vec<Score>,
    /// What the store had and has no more, and what it cannot use, until somebody acknowledges it.
    pub losses: Vec<String>,
}

/// A finding in a report.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The change since the last report.
    pub since: Since,
    /// The finding.
    pub finding: &'a Finding,
    /// The suppression in force.
    pub suppressed: Option<&'a Suppression>,
    /// The reason why it was not run again, from [`Night::untested`].
    reason: &'a str,
    /// The time of the last report, in Unix milliseconds.
    last_ms: u64,
}

impl Row<'_> {
    /// Writes a short note: how often the finding showed, why it was not tested, its state, its suppression.
    pub fn note(&self) -> String {
        let f = self.finding;
        let mut out = Vec::new();
        let run = f.retest.as_ref().filter(|r| r.at_ms > self.last_ms);
        match run {
            _ if self.since == Since::NotRetested => {
                let own = run.map(|r| r.reason.as_str()).filter(|r| !r.is_empty());
                out.push(
                    own.or(Some(self.reason).filter(|r| !r.is_empty()))
                        .unwrap_or("it was not run")
                        .to_owned(),
                );
            }
            Some(r) if r.answered() => {
                out.push(format!("showed in {} of {} runs", r.seen, r.seen.saturating_add(r.held)))
            }
            _ => {}
        }
        if f.state != FindingState::Open {
            let why = f.history.last().map(|c| format!(" by {}: {}", c.who, c.why)).unwrap_or_default();
            out.push(format!("{}{why}", f.state.words()));
        }
        match (&f.suppressed, self.suppressed) {
            (_, Some(s)) => {
                out.push(format!("suppressed by {} until {}: {}", s.owner, dates::day(s.until_ms), s.why));
            }
            (Some(s), None) => out.push(format!(
                "suppressed by {} until {}, which has expired",
                s.owner,
                dates::day(s.until_ms)
            )),
            (None, None) => {}
        }
        out.join("; ")
    }
    /// Whether the finding fails the night.
    pub fn fails(&self) -> bool {
        let changed = matches!(self.since, Since::New | Since::Flaky);
        changed && self.suppressed.is_none() && self.finding.rule != DIFFERENCE
    }
    /// Whether the finding fails a night in which all open findings fail.
    pub fn open(&self) -> bool {
        self.finding.is_open() && self.suppressed.is_none() && self.finding.rule != DIFFERENCE
    }
    /// Names the sides that the finding compares: `ptx-7.5 / ptx:Q5=B`.
    pub fn models(&self) -> String {
        models(self.finding)
    }
}

/// Names the sides that a finding compares: `ptx-7.5 / ptx:Q5=B`.
pub fn models(finding: &Finding) -> String {
    let side = |m: &moire_corpus::ModelRef| {
        let variants: Vec<String> = m.variants.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if variants.is_empty() { m.name.clone() } else { format!("{}:{}", m.name, variants.join(",")) }
    };
    finding.models.iter().map(side).collect::<Vec<_>>().join(" / ")
}

/// Re-tests of fixed findings, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Regressions {
    /// Fixed findings that were run again since the last report and did not show.
    pub held: u64,
    /// Fixed findings that were not run again, or gave no answer.
    pub untested: u64,
}

impl Regressions {
    pub(super) fn add(&mut self, night: &Night, f: &Finding) {
        let last_ms = night.last.as_ref().map_or(0, |s| s.at_ms);
        if f.state == FindingState::Fixed {
            let held = f.retest.as_ref().is_some_and(|r| r.at_ms > last_ms && r.held > 0);
            self.held += u64::from(held);
            self.untested += u64::from(!held);
        }
    }
}

impl Night {
    /// Makes the row of a finding; `None` if it was closed before the last report.
    pub(super) fn row<'a>(&'a self, finding: &'a Finding) -> Option<Row<'a>> {
        let last_ms = self.last.as_ref().map_or(0, |s| s.at_ms);
        let since = compare(self.last.as_ref(), finding, self.at_ms)?;
        let reason = self.untested.get(&finding.id).map_or("", String::as_str);
        Some(Row { since, finding, suppressed: finding.suppression(self.at_ms), reason, last_ms })
    }
    /// Returns the rows of [`Night::findings`] that were open in the last report or are open now, by kind of change,
    /// then by id.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = self.findings.iter().filter_map(|f| self.row(f)).collect();
        rows.sort_by_key(|r| (r.since, r.finding.id));
        rows
    }
    /// Counts the re-tests of the fixed findings in [`Night::findings`].
    pub fn regressions(&self) -> Regressions {
        let mut out = Regressions::default();
        self.findings.iter().for_each(|f| out.add(self, f));
        out
    }
    /// Whether a score fails the night.
    pub fn alarm(&self) -> bool {
        self.scores.iter().any(|s| s.grade == Grade::Alarm)
    }
}

/// The reason why a report cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A record cannot be written as JSON.
    #[error("writing JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A text cannot be written as XML.
    #[error("writing JUnit: {0}")]
    Junit(#[from] quick_junit::SerializeError),
    /// A page cannot be written as HTML.
    #[error("writing HTML: {0}")]
    Page(#[from] askama::Error),
    /// The findings cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A finding has disappeared.
    #[error("finding {0} disappeared while the report was written")]
    Gone(FindingId),
    /// The JSON lines cannot be written.
    #[error("writing JSON lines: {0}")]
    Lines(#[from] io::Error),
}
