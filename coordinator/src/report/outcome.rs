//! The outcome of a night: the numbers that decide its exit code. Each finding is read once.

use super::{DIFFERENCE, Findings, Night, Regressions, ReportError};
use moire_corpus::{Finding, FindingId, Since};
use std::collections::BTreeMap;

/// Most failing findings that are listed by name.
const NAMED_MAX: usize = 1_000;

/// The numbers of a night, which decide its exit code.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Number of findings by kind of change, without suppressed ones.
    pub counts: BTreeMap<Since, usize>,
    /// How many of the new ones are differences between models or readings, which fail nothing.
    pub differences: usize,
    /// Number of suppressed findings.
    pub suppressed: usize,
    /// Number of findings that fail the night.
    pub failing: usize,
    /// The first of the failing findings, by kind of change, then by id, with a line of text for each.
    pub named: BTreeMap<(Since, FindingId), String>,
    /// Whether a finding is open and not suppressed.
    pub open: bool,
    /// Whether a finding that is not suppressed was not tested.
    pub silent: bool,
    /// Re-tests of fixed findings.
    pub regressions: Regressions,
}

impl Night {
    /// Computes the outcome of a night with these findings; `why` says what is wrong with one, where that is known.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn outcome(
        &self,
        findings: &dyn Findings,
        why: &dyn Fn(&Finding) -> Option<String>,
    ) -> Result<Outcome, ReportError> {
        let mut out = Outcome::default();
        for finding in findings.each() {
            let finding = finding?;
            out.regressions.add(self, &finding);
            let Some(row) = self.row(&finding) else { continue };
            match row.suppressed {
                Some(_) => out.suppressed += 1,
                None => *out.counts.entry(row.since).or_default() += 1,
            }
            let new = row.since == Since::New && row.suppressed.is_none();
            out.differences += usize::from(new && finding.rule == DIFFERENCE);
            out.open |= row.open();
            out.silent |= row.since == Since::NotRetested && row.suppressed.is_none();
            if row.fails() {
                out.failing += 1;
                let why = why(&finding).map_or_else(String::new, |why| format!(": {why}"));
                let note = Some(row.note())
                    .filter(|n| !n.is_empty())
                    .map_or_else(String::new, |n| format!(" ({n})"));
                let (since, id, f) = (row.since.word(), finding.id.short(), row.finding);
                let line = format!("{since} {id} {} {} {}{why}{note}", f.oracle, f.rule, row.models());
                out.named.insert((row.since, finding.id), line);
                if out.named.len() > NAMED_MAX {
                    out.named.pop_last();
                }
            }
        }
        Ok(out)
    }
}
