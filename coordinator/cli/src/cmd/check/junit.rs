//! Answers for continuous integration: JUnit XML.

use anyhow::Result;
use moire_console::exit;
use moire_coordinator::report::junit::{self, failed, skipped};
use moire_shown::problems::said;
use moire_verdict::answer::Answer;
use moire_verdict::input::UNREAD;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

/// One test case for each file: findings fail, an unreadable file is an error, an incomplete answer is skipped.
pub(super) fn junit(answers: &[Answer], strict: bool) -> Result<String> {
    let mut suite = TestSuite::new("moire check");
    suite.add_test_cases(answers.iter().map(|a| TestCase::new(a.title(), status(a, strict))));
    Ok(junit::document([suite])?)
}

fn status(answer: &Answer, strict: bool) -> TestCaseStatus {
    let title = answer.verdicts.words().join(", ");
    match exit::worst(answer.codes(strict)) {
        exit::CLEAN if answer.verdicts.has_finding() => skipped("known", &wrong(answer).join("; ")),
        exit::CLEAN => TestCaseStatus::success(),
        exit::INCOMPLETE => skipped("incomplete", &title),
        exit::USAGE => {
            let text: Vec<String> = answer.remarks.iter().map(ToString::to_string).collect();
            let unread = answer.remarks.iter().any(|r| r.rule == Some(UNREAD));
            failed(NonSuccessKind::Error, if unread { UNREAD } else { &title }, &text.join("\n"))
        }
        _ => failed(NonSuccessKind::Failure, &title, &wrong(answer).join("\n")),
    }
}

/// What is wrong, in sentences.
fn wrong(answer: &Answer) -> Vec<String> {
    answer.problems.iter().map(|p| said(answer, p)).collect()
}
