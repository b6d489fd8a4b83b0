//! All findings of a report in one table. A row holds no text, so a million findings fit in memory.
//!
//! Contract: [`Table::of`] reads every finding once; the texts are read again for the formats. `findings.jsonl` has all
//! findings. The other formats list at most [`LISTED_MAX`], a share of each kind of change, and say how many they leave
//! out.

use super::{Night, Regressions, ReportError};
use moire_corpus::{Finding, FindingId, Since, Snapshot, Store};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Most findings in the formats of bounded size.
pub const LISTED_MAX: usize = 10_000;

/// Findings read and written by all threads before their lines are put in order.
const AT_ONCE: usize = 4_096;
/// Most threads that read findings.
const THREADS_MAX: usize = 8;

/// A source of the findings of a report.
pub trait Findings: Sync {
    /// Iterates over all findings in a fixed order. Their texts may be missing.
    fn each(&self) -> Box<dyn Iterator<Item = Result<Cow<'_, Finding>, ReportError>> + '_>;
    /// Reads the finding with this id, which [`Findings::each`] gave at this position.
    ///
    /// # Errors
    /// The finding cannot be read.
    fn at(&self, place: usize, id: &FindingId) -> Result<Cow<'_, Finding>, ReportError>;
}

impl Findings for Vec<Finding> {
    fn each(&self) -> Box<dyn Iterator<Item = Result<Cow<'_, Finding>, ReportError>> + '_> {
        Box::new(self.iter().map(|f| Ok(Cow::Borrowed(f))))
    }
    fn at(&self, place: usize, id: &FindingId) -> Result<Cow<'_, Finding>, ReportError> {
        self.get(place).map(Cow::Borrowed).ok_or(ReportError::Gone(*id))
    }
}

/// The findings of a store that were seen or tested since a moment, each with its replay line.
pub struct Stored<'a> {
    store: &'a Store,
    since_ms: u64,
    /// The snapshot that the next report compares with.
    snapshot: Mutex<Snapshot>,
}

impl<'a> Stored<'a> {
    /// Takes the findings since `since_ms` (Unix milliseconds), and a snapshot without findings.
    pub fn new(store: &'a Store, since_ms: u64, snapshot: Snapshot) -> Self {
        Self { store, since_ms, snapshot: Mutex::new(snapshot) }
    }
    /// Returns the snapshot. Once the report is written, it has all findings of the store.
    pub fn snapshot(self) -> Snapshot {
        self.snapshot.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Findings for Stored<'_> {
    fn each(&self) -> Box<dyn Iterator<Item = Result<Cow<'_, Finding>, ReportError>> + '_> {
        let wanted = |f: &Finding| f.last_seen_ms.max(f.last_tested_ms) >= self.since_ms;
        let note = |f: &Finding| self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).add(f);
        let all = self.store.findings_briefly().map(|f| f.map_err(ReportError::from));
        let all = all.inspect(move |f| f.iter().for_each(note));
        Box::new(all.filter(move |f| f.as_ref().map_or(true, wanted)).map(|f| f.map(Cow::Owned)))
    }
    fn at(&self, _: usize, id: &FindingId) -> Result<Cow<'_, Finding>, ReportError> {
        let mut finding = self.store.finding(id)?.ok_or(ReportError::Gone(*id))?;
        finding.replay = crate::line::command(&finding);
        Ok(Cow::Owned(finding))
    }
}

/// The row of one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) since: Since,
    pub(super) id: FindingId,
    pub(super) place: usize,
    fails: bool,
    suppressed: bool,
}

/// The table of all findings of a report.
#[derive(Debug, Default)]
pub struct Table {
    /// The rows, by kind of change, then by id.
    pub(super) entries: Vec<Entry>,
    /// Oracles and directions.
    pub(super) rules: BTreeSet<(String, String)>,
    pub(super) regressions: Regressions,
}

impl Table {
    pub(super) fn of(night: &Night, findings: &dyn Findings) -> Result<Self, ReportError> {
        let mut table = Self::default();
        for (place, finding) in findings.each().enumerate() {
            let finding = finding?;
            table.regressions.add(night, &finding);
            let Some(row) = night.row(&finding) else { continue };
            let (fails, suppressed) = (row.fails(), row.suppressed.is_some());
            table.entries.push(Entry { since: row.since, id: finding.id, place, fails, suppressed });
            let rule = (finding.oracle.as_str(), finding.rule.as_str());
            if !table.rules.iter().any(|(oracle, name)| (oracle.as_str(), name.as_str()) == rule) {
                table.rules.insert((rule.0.to_owned(), rule.1.to_owned()));
            }
        }
        table.entries.sort_unstable();
        Ok(table)
    }

    /// Reads the findings in order. Writes a line for each, and returns those that the formats of bounded size list.
    pub(super) fn read<'f>(
        &self,
        findings: &'f dyn Findings,
        line: impl Fn(&Finding, &mut Vec<u8>) -> Result<(), ReportError> + Sync,
        out: &mut dyn io::Write,
    ) -> Result<Vec<Cow<'f, Finding>>, ReportError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let (mut kept, mut left) = (Vec::new(), shares(self.kinds(), LISTED_MAX));
        let part = |entries: &[Entry]| {
            let (mut lines, mut read) = (Vec::new(), Vec::new());
            for entry in entries {
                let finding = findings.at(entry.place, &entry.id)?;
                line(&finding, &mut lines)?;
                read.push(finding);
            }
            Ok::<_, ReportError>((lines, read))
        };
        for entries in self.entries.chunks(AT_ONCE) {
            let parts = std::thread::scope(|scope| {
                let parts = entries.chunks(entries.len().div_ceil(threads));
                let running: Vec<_> = parts.map(|p| scope.spawn(move || part(p))).collect();
                running
                    .into_iter()
                    .map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
                    .collect::<Vec<_>>()
            });
            let mut since = entries.iter().map(|e| e.since);
            for part in parts {
                let (lines, read) = part?;
                out.write_all(&lines)?;
                for finding in read {
                    if since.next().is_some_and(|since| take(&mut left, since)) {
                        kept.push(finding);
                    }
                }
            }
        }
        Ok(kept)
    }

    /// Returns the number of findings in the report.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether the report has no finding.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Counts the findings that fail the night.
    pub(super) fn failing(&self) -> usize {
        self.entries.iter().filter(|e| e.fails).count()
    }
    /// The kinds of change of which some finding fails the night.
    pub(super) fn failing_kinds(&self) -> BTreeSet<Since> {
        self.entries.iter().filter(|e| e.fails).map(|e| e.since).collect()
    }
    /// Counts all findings by kind of change.
    pub(super) fn kinds(&self) -> [usize; 5] {
        Since::ALL.map(|since| self.entries.iter().filter(|e| e.since == since).count())
    }
    /// Counts the findings that are not suppressed by kind of change, and the suppressed ones.
    pub(super) fn counts(&self) -> ([(Since, usize); 5], usize) {
        let of = |since| self.entries.iter().filter(|e| e.since == since && !e.suppressed).count();
        (Since::ALL.map(|since| (since, of(since))), self.entries.iter().filter(|e| e.suppressed).count())
    }
}

/// Divides a list of at most `max` findings among the kinds of change. Each kind has a fifth for itself; the first
/// kinds take the places that the others leave.
pub(super) fn shares(kinds: [usize; 5], max: usize) -> [usize; 5] {
    let mut shares = kinds.map(|n| n.min(max / 5));
    let mut left = max - shares.iter().sum::<usize>();
    for (share, n) in shares.iter_mut().zip(kinds) {
        let more = (n - *share).min(left);
        *share += more;
        left -= more;
    }
    shares
}

/// Whether one more finding of this kind is listed; if so, uses one place.
pub(super) fn take(left: &mut [usize; 5], since: Since) -> bool {
    let kind = Since::ALL.iter().position(|s| *s == since).unwrap_or(0);
    let listed = left[kind] > 0;
    left[kind] -= usize::from(listed);
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_change_has_a_share_of_the_list() {
        assert_eq!(shares([0, 1_000_000, 3, 0, 0], 10_000), [0, 9_997, 3, 0, 0]);
        assert_eq!(shares([5, 6, 7, 8, 9], 10_000), [5, 6, 7, 8, 9]);
        assert_eq!(shares([900, 900, 900, 900, 900], 1_000), [200; 5]);
        assert_eq!(shares([0; 5], 10), [0; 5]);
        let kinds = [Since::New, Since::New, Since::Still, Since::Still, Since::Flaky];
        let mut left = [1, 0, 1, 0, 0];
        assert_eq!(kinds.map(|k| take(&mut left, k)), [true, false, false, false, true]);
    }
}
