//! JUnit XML: parts shared by `moire check` and reports, and the report of a night.

use super::{DIFFERENCE, Grade, Night, ReportError, Row, Table};
use moire_corpus::Since;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;

/// Writes a document of these suites that fits the schema of Jenkins' xUnit plugin. It leaves out the number of skipped
/// cases that quick-junit writes on the outermost element.
///
/// # Errors
/// A text cannot be written as XML.
pub fn document(suites: impl IntoIterator<Item = TestSuite>) -> Result<String, ReportError> {
    let mut report = Report::new("moire");
    report.add_test_suites(suites);
    let text = report.to_string()?;
    let outer = text.find("<testsuites").and_then(|from| Some(from..from + text[from..].find('>')?));
    let skipped = outer.and_then(|o| Some(o.start + text[o.clone()].find(" skipped=\"")?));
    let end = skipped.and_then(|from| Some(from + 10 + text[from + 10..].find('"')? + 1));
    Ok(match (skipped, end) {
        (Some(from), Some(to)) => format!("{}{}", &text[..from], &text[to..]),
        _ => text,
    })
}

/// Makes the status of a test case that failed or could not be run.
pub fn failed(kind: NonSuccessKind, title: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(title);
    status.set_type(title);
    status.set_description(text);
    status
}

/// Makes the status of a test case that was skipped, with the reason.
pub fn skipped(kind: &str, why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_type(kind);
    status.set_message(why);
    status
}

/// Writes a suite for each oracle, with one test case for each finding, and one more suite for the scores:
///
/// * a finding that is gone passes;
/// * a finding that was not re-tested, is suppressed or is a difference is skipped; all others fail;
/// * if findings are left out, one skipped case says how many.
pub(super) fn night(night: &Night, table: &Table, rows: &[Row<'_>]) -> Result<String, ReportError> {
    let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
    for row in rows {
        let oracle = row.finding.oracle.as_str();
        let suite =
            suites.entry(oracle).or_insert_with(|| TestSuite::new(format!("moire findings: {oracle}")));
        suite.add_test_case(case(row));
    }
    let mut scores = TestSuite::new("moire scores");
    for score in &night.scores {
        let status = match score.grade {
            Grade::Good => TestCaseStatus::success(),
            Grade::Unsure => skipped("unsure", &score.says),
            Grade::Alarm => failed(NonSuccessKind::Failure, "alarm", &score.says),
        };
        scores.add_test_case(TestCase::new(score.name.as_str(), status));
    }
    if table.len() > rows.len() {
        let why = format!("{} more findings are in findings.jsonl", table.len() - rows.len());
        scores.add_test_case(TestCase::new("findings left out", skipped("left out", &why)));
    }
    document(suites.into_values().chain([scores]))
}

fn case(row: &Row<'_>) -> TestCase {
    let f = row.finding;
    let (word, note) = (row.since.word(), row.note());
    let title = if note.is_empty() { word.to_owned() } else { format!("{word}: {note}") };
    let status = match row.since {
        Since::Gone => TestCaseStatus::success(),
        _ if row.suppressed.is_some() => skipped("suppressed", &title),
        Since::NotRetested => skipped(word, &title),
        _ if f.rule == DIFFERENCE => skipped(word, &format!("{title}; a difference is not a failure")),
        Since::New | Since::Still | Since::Flaky => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(word);
            status.set_message(title.as_str());
            status.set_description(format!("{}\n{}", f.reduced, f.replay));
            status
        }
    };
    let mut case = TestCase::new(format!("{} {} {}", f.id.short(), f.rule, row.models()), status);
    case.set_classname(f.oracle.as_str());
    case.set_system_out(format!("{title}\n{}", f.replay));
    case
}
