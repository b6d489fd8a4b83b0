//! Answers for code review: OASIS SARIF 2.1.0, a result for each problem, each error and each piece of advice, and each verdict that
//! leaves something open.
//!
//! Contract: a document stays within what GitHub takes and shows: [`RESULTS`], [`LOCATIONS`] and [`STEPS`]. What is left out is
//! counted in the properties of the run. A result has both accesses of a race or the waits of a hang as related locations, the
//! execution as a code flow, and a fingerprint that stays while lines move.

mod flows;
pub(super) mod places;
mod rules;

use super::{Told, known};
use moire_console::exit;
use moire_coordinator::report::sarif::document;
use moire_explore::judge::Verdict;
use moire_shown::problems::{self, About};
use moire_shown::text;
use moire_verdict::answer::{Answer, Hang};
use moire_verdict::finding::Finding;
use moire_verdict::input::Rejected;
use moire_verdict::kernel::Launched;
use moire_verdict::problem::{Problem, Standing};
use places::{BASE, Root};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Most results that GitHub shows of a run.
const RESULTS: usize = 5_000;
/// Most locations that it shows of a result.
const LOCATIONS: usize = 100;
/// Most steps of flows that it shows of a result.
const STEPS: usize = 1_000;
/// The name of our fingerprint, with its version.
const FINGERPRINT: &str = "problem/v1";

/// The document of all answers.
pub(super) fn sarif(answers: &[Answer], baseline: bool) -> Value {
    let root = Root::find();
    let mut results: Vec<Value> = answers.iter().flat_map(|a| results(&root, a, baseline)).collect();
    results.sort_by_key(|r| r["level"] != "error");
    let all = results.len();
    results.truncate(RESULTS);
    let named: BTreeSet<&str> = results.iter().filter_map(|r| r["ruleId"].as_str()).collect();
    let rules: Vec<Value> = named.into_iter().map(rules::rule).collect();
    let mut document = document(&rules, &results);
    let run = &mut document["runs"][0];
    let text = "the repository, or the folder in which the command ran";
    run["originalUriBaseIds"] = json!({BASE: {"description": {"text": text}}});
    if all > RESULTS {
        run["properties"] = json!({"results": all, "leftOut": all - RESULTS});
    }
    document
}

fn results(root: &Root, answer: &Answer, baseline: bool) -> Vec<Value> {
    let problems = answer.problems.iter().map(|p| decided(problem(root, answer, p), &p.standing, baseline));
    let remarks = answer.remarks.iter().map(|r| remark(root, &answer.file, r));
    problems.chain(open(root, answer)).chain(remarks).collect()
}

/// What is said in the lines of the text itself, each with its mend.
pub(super) fn told(answer: &Answer) -> Vec<Told> {
    let root = Root::of_texts();
    let mend = |p: &Problem| {
        let advice = answer.parts.get(p.part?)?.advice.as_ref().filter(|_| !p.letter)?;
        Some((advice.line()?, advice.patch.clone()?))
    };
    let problems = answer
        .problems
        .iter()
        .map(|p| Told { result: decided(problem(&root, answer, p), &p.standing, false), mend: mend(p) });
    let remarks = answer.remarks.iter().map(|r| remark(&root, &answer.file, r));
    let others = open(&root, answer).into_iter().chain(remarks).chain(assumed(&root, answer));
    problems.chain(others.map(|result| Told { result, mend: None })).collect()
}

/// What stands beside the answer of a kernel without a finding: the launch, and what is taken for granted.
fn assumed(root: &Root, answer: &Answer) -> Option<Value> {
    let silent = answer.parts.is_empty() || answer.verdicts.has_finding();
    if silent || answer.launch.is_none() && answer.taken.is_empty() {
        return None;
    }
    let text = format!("{}\n{}", answer.verdicts.line(), text::body(answer));
    let mut out = result("assumptions", "note", text.trim_end());
    out["locations"] = json!([root.file(&answer.file)]);
    Some(out)
}

/// A result without its place.
fn result(rule: &str, level: &str, text: &str) -> Value {
    json!({"ruleId": rule, "level": level, "message": {"text": text}})
}

/// A result with what is decided about it.
fn decided(mut result: Value, standing: &Standing, baseline: bool) -> Value {
    if baseline {
        result["baselineState"] = if *standing == Standing::Known { "unchanged" } else { "new" }.into();
    }
    if let Standing::Suppressed(s) = standing {
        let kind = if s.place.contains(known::FILE) { "external" } else { "inSource" };
        let why = format!("{} until {}: {}", s.owner, s.until, s.reason);
        result["suppressions"] = json!([{"kind": kind, "status": "accepted", "justification": why}]);
        result["level"] = "note".into();
    }
    result
}

fn problem(root: &Root, answer: &Answer, problem: &Problem) -> Value {
    let About { part, findings, hang } = About::new(answer, problem);
    let level = if problem.letter || problem.verdict == "contested" { "warning" } else { "error" };
    let mut out = result(rules::id(problem), level, &problems::said(answer, problem));
    let first = findings.first().copied();
    let line = first.and_then(|f| f.places.first()).map(|p| p.line).or_else(|| hang.map(|h| h.line));
    let place = match line.filter(|line| *line > 0) {
        Some(line) => root.line(answer, line),
        None => root.file(&answer.file),
    };
    out["locations"] = json!([place]);
    let related = related(root, answer, first, hang);
    if !related.is_empty() {
        out["relatedLocations"] = related.into();
    }
    let flow =
        part.filter(|_| !problem.letter).and_then(|part| flows::flow(root, answer, part, problem, first));
    out["codeFlows"] = flow.into_iter().collect();
    out["partialFingerprints"] = json!({FINGERPRINT: problem.fingerprint});
    out
}

/// Both accesses of a race, the waits of a hang, and lines of the module where the result is about its source.
fn related(root: &Root, answer: &Answer, first: Option<&Finding>, hang: Option<&Hang>) -> Vec<Value> {
    let accesses =
        first.iter().flat_map(|f| &f.places).map(|p| (p.line, format!("{}: line {}", p.thread, p.line)));
    let waits = hang.iter().flat_map(|h| &h.waits);
    let waits = waits.map(|w| (w.line, format!("{} waits for {}", w.thread, w.at)));
    let mut out = Vec::new();
    for (line, text) in accesses.chain(waits).filter(|(line, _)| *line > 0) {
        let instruction = answer.lines.get(&line).map_or(String::new(), |l| format!(": {}", l.text));
        let place = [Some(root.line(answer, line)), root.behind(answer, line)];
        for mut place in place.into_iter().flatten() {
            place["id"] = (out.len() + 1).into();
            place["message"] = json!({"text": format!("{text}{instruction}")});
            out.push(place);
        }
    }
    // One is the place of the result.
    out.truncate(LOCATIONS - 1);
    out
}

/// The verdicts that leave something open, and what no launch covers.
fn open(root: &Root, answer: &Answer) -> Vec<Value> {
    let one = |text: &str, word: &str, line: u32| {
        let mut out = result(word, "warning", text);
        out["locations"] = json!([if line > 0 { root.line(answer, line) } else { root.file(&answer.file) }]);
        out
    };
    let coverage = Verdict::Bounded("coverage".to_owned());
    let uncovered = answer.verdicts.0.iter().filter(|v| **v == coverage).filter_map(|v| {
        let mut all = answer.launch.iter().flat_map(Launched::all).filter_map(|l| l.coverage.as_ref());
        let (text, line) = all.find_map(text::uncovered)?;
        Some(one(&text, v.word(), line))
    });
    let open = answer.parts.iter().flat_map(|p| p.verdicts.0.iter().map(move |v| (p, v)));
    let open = open.filter(|(_, v)| v.exit_code() == exit::INCOMPLETE);
    open.map(|(part, v)| one(&text::undecided(part, v), v.word(), 0)).chain(uncovered).collect()
}

fn remark(root: &Root, file: &str, r: &Rejected) -> Value {
    let hint = r.hint.iter().map(|h| format!("; {h}")).collect::<String>();
    let mut out = result(r.rule.unwrap_or("rejected"), r.severity, &format!("{}{hint}", r.message));
    out["locations"] = json!([root.remark(file, r)]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::text::{Diagnostic, Severity};

    #[test]
    fn errors_stay_and_what_is_left_out_is_counted() {
        let one = |severity| {
            let message = "unclear".to_owned();
            let diagnostic =
                Diagnostic { line: 1, column: 1, message, hint: None, severity, rule: Some("idle-fence") };
            Rejected::new("a.litmus", "moire", diagnostic)
        };
        let mut remarks: Vec<Rejected> = (0..RESULTS + 9).map(|_| one(Severity::Warning)).collect();
        remarks.push(one(Severity::Error));
        let document = sarif(&[Answer::rejected("a.litmus", remarks)], false);
        let run = &document["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert_eq!((results.len(), &results[0]["level"]), (RESULTS, &"error".into()));
        assert_eq!(run["properties"], json!({"results": RESULTS + 10, "leftOut": 10}));
    }
}
