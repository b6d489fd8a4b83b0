//! All answers in one document for other tools: SARIF 2.1.0 (code review), JUnit XML (continuous integration).

use super::render;
use anyhow::Result;
use moire_console::input::Rejected;
use moire_coordinator::report::junit::{self, failed, skipped};
use moire_coordinator::report::sarif::{self, result};
use moire_explore::judge::{Judgement, Verdict, flag_verdict};
use moire_program::ir::Program;
use moire_program::text::Severity;
use moire_program::validate::{RULES, RuleKind};
use moire_verdict::answer::{Answer, Judged, Part};
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
pub(super) fn sarif(answers: &[Answer<'_>]) -> Value {
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

fn results(answer: &Answer<'_>) -> Vec<Value> {
    match answer {
        Answer::Unread(file, error) => vec![result("unread", "error", &format!("{error:#}"), file, 0, 0)],
        Answer::Rejected(errors) => errors.iter().map(remark).collect(),
        Answer::Judged(judged) => {
            let disputed = judged.contested.iter().map(|c| {
                let text = format!("{} gives {}", c.setting, c.verdicts.join(", "));
                result("contested", "warning", &text, &judged.name, 0, 0)
            });
            let coverage =
                judged.verdicts().into_iter().filter(|v| *v == Verdict::Bounded("coverage".to_owned()));
            let coverage = coverage.filter_map(|v| {
                let (text, line) = judged.launch.as_ref()?.left_out()?;
                Some(result(v.word(), "warning", &text, &judged.name, line, 0))
            });
            let parts = judged.parts.iter().flat_map(part);
            parts.chain(coverage).chain(disputed).chain(judged.advice.iter().map(remark)).collect()
        }
    }
}

fn part(part: &Part) -> Vec<Value> {
    let Part { source, judgement, notes, launch, .. } = part;
    let verdicts = judgement.verdicts.iter().filter(|v| !matches!(v, Verdict::Clean(_))).map(|v| {
        let level = if v.exit_code() == 11 { "warning" } else { "error" };
        let line = if matches!(v, Verdict::Hang) { waiting(judgement) } else { 0 };
        let mend = notes.mends().filter(|_| v.exit_code() == 10).map(|l| format!("; {l}"));
        let text = said(v, &source.program, (judgement, launch.as_ref())) + &mend.unwrap_or_default();
        result(v.word(), level, &text, &source.name, line, 0)
    });
    let unwritten = notes.sentences(&source.program).into_iter();
    let unwritten =
        unwritten.map(|(text, line)| result("contested", "warning", &text, &source.name, line, 0));
    verdicts.chain(unwritten).collect()
}

/// The line of the first event at which a thread waits; 0 if there is none.
fn waiting(judgement: &Judgement) -> u32 {
    let Some((ends, witness)) = &judgement.hang else { return 0 };
    let last = |thread: usize| witness.events.iter().rev().find(|e| e.event.thread as usize == thread);
    let blocked = ends.iter().enumerate().filter(|(_, end)| **end != moire_execution::leaf::End::Done);
    blocked.filter_map(|(t, _)| last(t)).map(|e| e.line).next().unwrap_or_default()
}

fn remark(r: &Rejected) -> Value {
    let d = &r.diagnostic;
    let hint = d.hint.iter().map(|h| format!("; {h}")).collect::<String>();
    let level = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    result(d.rule.unwrap_or("rejected"), level, &format!("{}{hint}", d.message), &r.file, d.line, r.column())
}

/// A verdict in a sentence, behind the command of the smaller launch that shows it.
fn said(verdict: &Verdict, program: &Program, (judgement, launch): (&Judgement, Option<&String>)) -> String {
    let head = launch.map_or(String::new(), |command| format!("{command}: "));
    head + &match (verdict, &judgement.hang, &judgement.race) {
        (Verdict::Hang, Some((ends, _)), _) => render::hang(program, ends, judgement),
        (Verdict::Race, _, Some((flag, _))) => flag.clone(),
        (Verdict::Lifetime | Verdict::Protocol | Verdict::EarlyPass, ..) => {
            let broken = judgement.broken.keys().filter(|flag| flag_verdict(flag) == *verdict);
            broken.cloned().collect::<Vec<_>>().join(", ")
        }
        (Verdict::Condition(name), ..) if !name.is_empty() => format!("the condition `{name}` does not hold"),
        (Verdict::Condition(_), ..) => "the stated condition does not hold".to_owned(),
        (Verdict::Bounded(reason), ..) => format!("a limit was hit: {reason}"),
        (Verdict::Abstained(reason), ..) => format!("not modelled: {reason}"),
        (other, ..) => other.word().to_owned(),
    }
}

/// One test case for each file: findings fail, an unreadable file is an error, an incomplete answer is skipped.
pub(super) fn junit(answers: &[Answer<'_>]) -> Result<String> {
    let mut suite = TestSuite::new("moire check");
    for answer in answers {
        let (name, status) = match answer {
            Answer::Unread(file, error) => {
                (file.as_str(), failed(NonSuccessKind::Error, "unread", &format!("{error:#}")))
            }
            Answer::Rejected(errors) => {
                let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
                let file = errors.first().map_or("", |e| e.file.as_str());
                (file, failed(NonSuccessKind::Error, "rejected", &text.join("\n")))
            }
            Answer::Judged(answer) => (answer.name.as_str(), judged(answer)),
        };
        suite.add_test_case(TestCase::new(name, status));
    }
    Ok(junit::document([suite])?)
}

fn judged(judged: &Judged<'_>) -> TestCaseStatus {
    let mut text = Vec::new();
    for Part { source, judgement, notes, launch, .. } in &judged.parts {
        let verdicts = judgement.verdicts.iter();
        text.extend(verdicts.map(|v| said(v, &source.program, (judgement, launch.as_ref()))));
        text.extend(notes.mends());
        let unwritten = notes.sentences(&source.program).into_iter();
        text.extend(unwritten.map(|s| format!("contested(profile): {}", s.0)));
    }
    let contested = judged.contested.iter();
    text.extend(contested.map(|c| format!("contested: {} gives {}", c.setting, c.verdicts.join(", "))));
    let worst = moire_console::exit::worst(judged.verdicts().iter().map(Verdict::exit_code));
    let title = judged.words().join(", ");
    match worst {
        moire_console::exit::CLEAN => TestCaseStatus::success(),
        moire_console::exit::INCOMPLETE => skipped("incomplete", &title),
        _ => failed(NonSuccessKind::Failure, &title, &text.join("\n")),
    }
}
