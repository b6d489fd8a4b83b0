//! Golden tests: our own litmus programs are compared with the answers that they expect.
//!
//! A program ends with one line `// expect: ANSWER` per model: model (with settings of its switches, as in `ptx:Q6=B`),
//! complete executions, blocked executions, verdicts. `BLESS=1` rewrites them; a program without one gets lines for `sc`,
//! `ptx-6.0`, `ptx-7.5` and `ptx`. If a program is small enough, the naive enumerator must find the same executions.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::text::{Format, expectations, expecting, parse, print};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus")
}

fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            walk(&path, out);
        } else if path.extension().is_some_and(|e| e == "litmus") {
            out.push(path);
        }
    }
}

fn programs() -> Vec<PathBuf> {
    let mut out = Vec::new();
    walk(&corpus(), &mut out);
    out.sort();
    out
}

fn read(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let name = path.to_string_lossy();
    parse(&text, Format::detect(&name, &text)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The answers that a program expects, one a line.
fn expected(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the program can be read");
    expectations(&text).map(|answer| format!("{answer}\n")).collect()
}

fn model(spec: &str) -> Model {
    let (name, settings) = spec.split_once(':').unwrap_or((spec, ""));
    let settings = settings.split(',').filter_map(|s| s.split_once('='));
    let variants: Variants = settings.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    moire_models::load(name, &variants).unwrap_or_else(|e| panic!("{spec}: {e}"))
}

/// Writes the line that `moire test` compares.
fn line(spec: &str, program: &Program, model: &Model) -> String {
    let questions = Questions { witnesses: false, about: About::All };
    let judgement = judge(&moire_program::lanes::joined(program), model, &Limits::default(), questions);
    let verdicts: BTreeSet<&str> = judgement.verdicts.iter().map(|v| v.word()).collect();
    let verdicts: Vec<&str> = verdicts.into_iter().collect();
    format!("{spec} {} {} {}", judgement.summary.complete, judgement.summary.blocked, verdicts.join(","))
}

fn specs(expected: &str) -> Vec<String> {
    let found: Vec<String> =
        expected.lines().filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect();
    if found.is_empty() { ["sc", "ptx-6.0", "ptx-7.5", "ptx"].map(str::to_owned).to_vec() } else { found }
}

#[test]
fn programs_answer_as_expected() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in programs() {
        let program = read(&path);
        let (expected, mut got) = (expected(&path), String::new());
        for spec in specs(&expected) {
            let model = models.entry(spec.clone()).or_insert_with(|| model(&spec));
            got += &line(&spec, &program, model);
            got.push('\n');
        }
        if bless {
            let text = std::fs::read_to_string(&path).expect("the program can be read");
            std::fs::write(&path, expecting(&text, &got)).expect("the program can be written");
        } else if got != expected {
            wrong.push(format!("{}\nexpected\n{expected}got\n{got}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn engines_agree_on_the_corpus() {
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    let (mut same, mut skipped, mut different) = (0, Vec::new(), Vec::new());
    for path in programs() {
        let program = read(&path);
        let expected = expected(&path);
        for spec in specs(&expected) {
            let model = models.entry(spec.clone()).or_insert_with(|| model(&spec));
            match compare(&program, model, &NaiveLimits::default()) {
                Comparison::Same { .. } => same += 1,
                Comparison::Skipped(why) => skipped.push(format!("{} {spec}: {why}", path.display())),
                Comparison::Different(d) => different.push(format!("{} {spec}: {d:#?}", path.display())),
            }
        }
    }
    eprintln!("{same} comparisons, {} skipped\n{}", skipped.len(), skipped.join("\n"));
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(same > 10 * skipped.len(), "the enumerator skips too much of the corpus");
}

/// Every switch has a program whose verdicts differ between a setting and the default.
#[test]
fn switches_are_separated() {
    let mut separated = BTreeSet::new();
    for path in programs() {
        let expected = expected(&path);
        let answers: BTreeMap<&str, &str> = expected.lines().filter_map(|l| l.split_once(' ')).collect();
        for (spec, answer) in &answers {
            let Some((name, settings)) = spec.split_once(':') else { continue };
            let settings: Vec<&str> = settings.split(',').collect();
            for own in &settings {
                let others: Vec<&str> = settings.iter().copied().filter(|s| s != own).collect();
                let plain = [name, &others.join(",")].join(if others.is_empty() { "" } else { ":" });
                let differs = |plain: &&str| plain.split(' ').nth(2) != answer.split(' ').nth(2);
                if answers.get(plain.as_str()).is_some_and(differs) {
                    separated.insert(own.split('=').next().unwrap_or(own).to_owned());
                }
            }
        }
    }
    let model = moire_models::load("ptx", &Variants::new()).expect("the shipped model loads");
    // No program separates the settings of these switches: see the model's text.
    let equal = ["Q7", "Q10", "Q12", "TQ13"];
    let left: Vec<&str> =
        model.switches().iter().map(|s| s.name.as_str()).filter(|n| !equal.contains(n)).collect();
    let left: Vec<&str> = left.into_iter().filter(|n| !separated.contains(*n)).collect();
    assert!(left.is_empty(), "no program separates the settings of {}", left.join(", "));
}

#[test]
fn printed_programs_parse_to_themselves() {
    for path in programs() {
        let mut program = read(&path);
        let text = print(&program);
        let mut again = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for p in [&mut program, &mut again] {
            p.threads.iter_mut().flat_map(|t| &mut t.body).for_each(|i| i.line = 0);
        }
        assert_eq!(program, again, "{}\n{text}", path.display());
    }
}
