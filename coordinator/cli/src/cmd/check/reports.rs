//! All answers in one document for other tools: SARIF 2.1.0 (code review), JUnit XML (continuous integration).

use super::text;
use anyhow::Result;
use moire_console::exit;
use moire_coordinator::report::junit::{self, failed, skipped};
use moire_coordinator::report::sarif::{self, result};
use moire_explore::judge::Verdict;
use moire_program::validate::{RULES, RuleKind};
use moire_verdict::answer::{Answer, Part};
use moire_verdict::input::{Rejected, UNREAD};
use moire_verdict::kernel::Launched;
use moire_verdict::readings::Unwritten;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

/// The verdicts that are results, with their meaning.
const VERDICTS: [(&str, &str); 12] = [
    ("condition", "the stated condition does not hold"),
    ("race", "conflicting accesses without the order the model wants"),
    ("hang", "a blocked end state"),
    ("lifetime", "an object used outside its life"),
    ("protocol", "a documented precondition is broken"),
    ("early-pass", "a wait returned before the event it stands for"),
    ("contested", "a disputed reading, or the readings of a profile, change the verdict"),
    ("undefined", "the model gives the program no meaning"),
    ("bounded", "a limit was hit"),
    ("abstained", "an unsupported construct that can reach the verdict"),
    ("rejected", "malformed or statically illegal"),
    ("unread", "the file cannot be read"),
];

/// OASIS SARIF 2.1.0: a result for each verdict but `clean`, each error and each piece of advice.
pub(super) fn sarif(answers: &[Answer]) -> Value {
    let verdicts = VERDICTS.iter().map(|(id, doc)| json!({"id": id, "shortDescription": {"text": doc}}));
    let rules = RULES.iter().map(|r| {
        let level = if r.kind != RuleKind::Lint { "error" } else { "warning" };
        json!({"id": r.id, "shortDescription": {"text": r.doc}, "help": {"text": r.source},
            "defaultConfiguration": {"level": level}})
    });
    let rules: Vec<Value> = verdicts.chain(rules).collect();
    let results: Vec<Value> = answers.iter().flat_map(results).collect();
    sarif::document(&rules, &results)
}

fn results(answer: &Answer) -> Vec<Value> {
    let file = &answer.file;
    let disputed = answer.contested.iter().map(|c| {
        let text = format!("{} gives {}", c.setting, c.verdicts.words().join(", "));
        result("contested", "warning", &text, file, 0, 0)
    });
    let coverage = answer.verdicts.0.iter().filter(|v| **v == Verdict::Bounded("coverage".to_owned()));
    let coverage = coverage.filter_map(|v| {
        let mut all = answer.launch.iter().flat_map(Launched::all).filter_map(|l| l.coverage.as_ref());
        let (text, line) = all.find_map(text::uncovered)?;
        let (file, line) = answer.place(line);
        Some(result(v.word(), "warning", &text, file, line, 0))
    });
    let parts = answer.parts.iter().flat_map(|p| part(answer, p));
    parts.chain(coverage).chain(disputed).chain(answer.remarks.iter().map(|r| remark(file, r))).collect()
}

fn part(answer: &Answer, part: &Part) -> Vec<Value> {
    let verdicts = part.verdicts.0.iter().filter(|v| !matches!(v, Verdict::Clean(_))).map(|v| {
        let level = if v.exit_code() == exit::INCOMPLETE { "warning" } else { "error" };
        let line = part.hang.as_ref().filter(|_| matches!(v, Verdict::Hang)).map_or(0, |h| h.line);
        let mend = mends(part).filter(|_| v.exit_code() == exit::FINDING).map(|l| format!("; {l}"));
        let (file, line) = answer.place(line);
        result(v.word(), level, &(said(v, part) + &mend.unwrap_or_default()), file, line, 0)
    });
    let unwritten = unwritten(part).into_iter();
    verdicts
        .chain(unwritten.map(|(text, line)| {
            let (file, line) = answer.place(line);
            result("contested", "warning", &text, file, line, 0)
        }))
        .collect()
}

fn remark(file: &str, r: &Rejected) -> Value {
    let hint = r.hint.iter().map(|h| format!("; {h}")).collect::<String>();
    let text = format!("{}{hint}", r.message);
    result(r.rule.unwrap_or("rejected"), r.severity, &text, file, r.line, r.column)
}

/// A sentence about the edits that mend a part.
fn mends(part: &Part) -> Option<String> {
    Some(format!("mend: {}", part.advice.as_ref()?.line()?))
}

/// Sentences about the findings that exist under the letter only, each with a line.
fn unwritten(part: &Part) -> Vec<(String, u32)> {
    let Some(profile) = &part.profile else { return Vec::new() };
    let one = |u: &Unwritten| {
        let places: Vec<String> = u.findings.iter().map(text::places).collect();
        let line = u.findings.iter().flat_map(|f| &f.places).map(|p| p.line).find(|l| *l > 0);
        let (against, relied) = (&profile.against, text::relied(u));
        let text = format!("under the letter only, {against} relies on {relied}: {}", places.join("; "));
        (text, line.unwrap_or(0))
    };
    profile.contested.iter().map(one).collect()
}

/// A verdict in a sentence, behind the command of the smaller launch that shows it.
fn said(verdict: &Verdict, part: &Part) -> String {
    let head = part.launch.as_ref().map_or(String::new(), |command| format!("{command}: "));
    let shown = || part.shown(verdict).into_iter().map(text::title).collect::<Vec<_>>().join("; ");
    head + &match (verdict, &part.hang) {
        (Verdict::Hang, Some(hang)) => hang.who.clone(),
        (Verdict::Race | Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass, _) => shown(),
        (Verdict::Condition(name), _) if !name.is_empty() => format!("the condition `{name}` does not hold"),
        (Verdict::Condition(_), _) => "the stated condition does not hold".to_owned(),
        (Verdict::Bounded(reason), _) => format!("a limit was hit: {reason}"),
        (Verdict::Abstained(reason), _) => format!("not modelled: {reason}"),
        (other, _) => other.word().to_owned(),
    }
}

/// One test case for each file: findings fail, an unreadable file is an error, an incomplete answer is skipped.
pub(super) fn junit(answers: &[Answer]) -> Result<String> {
    let mut suite = TestSuite::new("moire check");
    suite.add_test_cases(answers.iter().map(|a| TestCase::new(a.file.as_str(), status(a))));
    Ok(junit::document([suite])?)
}

fn status(answer: &Answer) -> TestCaseStatus {
    let title = answer.verdicts.words().join(", ");
    match exit::worst(answer.verdicts.codes()) {
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
    let mut out = Vec::new();
    for part in &answer.parts {
        out.extend(part.verdicts.0.iter().map(|v| said(v, part)));
        out.extend(mends(part));
        out.extend(unwritten(part).into_iter().map(|s| format!("contested(profile): {}", s.0)));
    }
    let contested = answer.contested.iter();
    out.extend(
        contested.map(|c| format!("contested: {} gives {}", c.setting, c.verdicts.words().join(", "))),
    );
    out
}
