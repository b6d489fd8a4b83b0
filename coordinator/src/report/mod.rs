//! The report of a night or of a store, in five formats: the changes since the last report.
//!
//! Contract: a report is a function of the records. Findings are sorted by kind of change, then by id, so equal stores
//! give equal reports. All text from records is escaped. Suppressed findings, and differences between versions of a
//! model, are shown but fail nothing.
//!
//! | file | for |
//! |---|---|
//! | `report.html` | people: works offline, graphs drawn, filters; at most 2,000 findings |
//! | `summary.md` | people who read mail or a pull request |
//! | `findings.jsonl` | scripts: a line for the report and one for each finding, versioned (`deploy/schema/findings.json`) |
//! | `report.sarif` | code review tools: one result per finding, with its change since the last report; at most 10,000 |
//! | `junit.xml` | continuous integration: one test case per finding; at most 10,000 |

pub mod dates;
mod graph;
mod json;
pub mod junit;
mod night;
mod outcome;
pub mod page;
pub mod sarif;
mod summary;
mod table;

pub use json::VERSION as JSON_VERSION;
pub use moire_program::words::escape;
pub use night::{CampaignLine, DIFFERENCE, Grade, Night, Regressions, ReportError, Row, Score, models};
pub use outcome::Outcome;
pub use table::{Findings, LISTED_MAX, Stored, Table};

use std::io;

impl Night {
    /// Makes the report of `findings`. Its JSON lines are written to `lines`, one at a time; the other files are
    /// returned, each with name and text.
    ///
    /// # Errors
    /// A record cannot be read, or cannot be written in one of the formats.
    pub fn write(
        &self,
        findings: &dyn Findings,
        lines: &mut dyn io::Write,
    ) -> Result<Vec<(&'static str, String)>, ReportError> {
        let table = Table::of(self, findings)?;
        json::head(self, &table, lines)?;
        let kept = table.read(
            findings,
            |finding, out| self.row(finding).map_or(Ok(()), |row| json::line(&row, out)),
            lines,
        )?;
        let rows: Vec<Row<'_>> = kept.iter().filter_map(|f| self.row(f)).collect();
        Ok(vec![
            ("report.html", page::report(self, &table, &rows)?),
            ("summary.md", summary::markdown(self, &table, &rows)),
            ("report.sarif", sarif::night(self, &table, &rows).to_string()),
            ("junit.xml", junit::night(self, &table, &rows)?),
        ])
    }

    /// Makes the report of [`Night::findings`]. Returns all files, each with name and text.
    ///
    /// # Errors
    /// See [`Night::write`].
    pub fn files(&self) -> Result<Vec<(&'static str, String)>, ReportError> {
        let mut lines = Vec::new();
        let mut files = self.write(&self.findings, &mut lines)?;
        files.push(("findings.jsonl", String::from_utf8_lossy(&lines).into_owned()));
        Ok(files)
    }
}
