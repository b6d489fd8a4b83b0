//! The report as one HTML page that works offline, and the parts shared with the coordinator's live pages: the view of
//! a finding, the style sheet, the script.
//!
//! Contract: the page is complete and readable without the script, which filters, copies and reloads. Nothing is loaded
//! from elsewhere. The templates escape text from records.

use super::table::{shares, take};
use super::{Grade, Night, ReportError, Row, Table, dates, graph, models};
use crate::words::seen_again;
use askama::Template;
use moire_corpus::{Finding, Since};
use std::collections::BTreeSet;

/// The style sheet.
pub const STYLE: &str = include_str!("../../templates/style.css");
/// The script.
pub const SCRIPT: &str = include_str!("../../templates/script.js");
/// Most findings shown in one page. The JSON lines have all findings.
const SHOWN_MAX: usize = 2_000;

/// A finding in full: facts, program, execution graph, replay line, history.
#[derive(Template)]
#[template(path = "finding.html")]
pub(crate) struct Full<'a> {
    f: &'a Finding,
    models: String,
    again: Option<&'static str>,
    allowed: String,
    axioms: String,
    first: String,
    last: String,
    tested: String,
    suppressed: String,
    svg: Option<String>,
    history: Vec<(String, String, &'a str, &'a str)>,
}

impl<'a> Full<'a> {
    /// Collects the texts of a finding. `at_ms` is the time of the page, which decides whether a suppression has
    /// expired.
    pub(crate) fn new(f: &'a Finding, at_ms: u64) -> Self {
        let sets: Vec<String> = f.axioms.iter().map(|set| set.join(" + ")).collect();
        let tested = f.retest.as_ref().map(|r| {
            let silent = match r.silent {
                0 => String::new(),
                n => format!(", {n} without an answer: {}", r.reason),
            };
            format!(
                "{}: {} of {} runs showed it{silent}",
                dates::minute(r.at_ms),
                r.seen,
                r.seen.saturating_add(r.held)
            )
        });
        let suppressed = f.suppressed.as_ref().map(|s| {
            let over = if f.suppression(at_ms).is_some() { "" } else { " (expired)" };
            format!("by {} until {}{over}: {}", s.owner, dates::day(s.until_ms), s.why)
        });
        Self {
            f,
            models: models(f),
            again: seen_again(f),
            allowed: f.allowed().unwrap_or_default(),
            axioms: sets.join(" or "),
            first: dates::minute(f.first_seen_ms),
            last: dates::minute(f.last_seen_ms),
            tested: tested.unwrap_or_default(),
            suppressed: suppressed.unwrap_or_default(),
            svg: graph::svg(&f.witness, &format!("Execution of finding {}", f.id.short())),
            history: f
                .history
                .iter()
                .map(|c| (dates::minute(c.at_ms), c.to.words(), c.who.as_str(), c.why.as_str()))
                .collect(),
        }
    }
}

/// A finding in one line of the report.
struct FindingLine<'a> {
    word: &'static str,
    class: String,
    fails: bool,
    note: String,
    models: String,
    suppressed: bool,
    f: &'a Finding,
    full: Full<'a>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    night: &'a Night,
    at: String,
    before: Option<String>,
    verdict: &'static str,
    says: String,
    counts: [(Since, usize); 5],
    suppressed: usize,
    /// The kinds of change of which some finding fails the night.
    failing: BTreeSet<Since>,
    held: u64,
    untested: u64,
    oracles: BTreeSet<&'a str>,
    lines: Vec<FindingLine<'a>>,
    hidden: usize,
    style: &'static str,
    script: &'static str,
}

/// Returns the class of a change in the style sheet.
fn class(since: &Since) -> String {
    since.word().replace(' ', "-")
}

/// Returns the class of a grade in the style sheet.
fn grade(grade: &Grade) -> &'static str {
    match grade {
        Grade::Good => "good",
        Grade::Unsure => "unsure",
        Grade::Alarm => "alarm",
    }
}

pub(super) fn report(night: &Night, table: &Table, rows: &[Row<'_>]) -> Result<String, ReportError> {
    let (counts, suppressed) = table.counts();
    let failing = table.failing();
    let kinds = table.failing_kinds();
    let mut left = shares(table.kinds(), SHOWN_MAX);
    let shown = rows.iter().filter(|row| take(&mut left, row.since));
    let lines: Vec<_> = shown.map(|row| line(row, night.at_ms)).collect();
    let mut says = match failing {
        0 => "Nothing fails this night".to_owned(),
        1 => "1 finding is new or flaky".to_owned(),
        n => format!("{n} findings are new or flaky"),
    };
    if night.alarm() {
        says.push_str("; planted bugs are missed");
    }
    let page = Page {
        night,
        at: dates::minute(night.at_ms),
        before: night.last.as_ref().map(|s| dates::minute(s.at_ms)),
        verdict: if failing > 0 || night.alarm() { "alarm" } else { "good" },
        says,
        counts,
        suppressed,
        failing: kinds,
        held: table.regressions.held,
        untested: table.regressions.untested,
        oracles: lines.iter().map(|l| l.f.oracle.as_str()).collect(),
        hidden: table.len() - lines.len(),
        lines,
        style: STYLE,
        script: SCRIPT,
    };
    Ok(page.render()?)
}

fn line<'a>(row: &Row<'a>, at_ms: u64) -> FindingLine<'a> {
    FindingLine {
        word: row.since.word(),
        class: class(&row.since),
        fails: row.fails(),
        note: row.note(),
        models: row.models(),
        suppressed: row.suppressed.is_some(),
        f: row.finding,
        full: Full::new(row.finding, at_ms),
    }
}
