//! The verdicts of the operational engine against those that the corpus expects. The explorer and the enumerator agree
//! on the latter.
//!
//! An expectation may name more kinds than one run shows, because the run may stop at the cause. It never names fewer.
//! If the run breaks a condition under which it stands for all runs, its other findings must still be expected.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_operate::{Limits, Outcome, Settings, operate, operate_in_every_order};
use moire_program::ir::Program;
use moire_program::text::{Format, expectations, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of programs that synchronise through counting objects.
pub(crate) const FOLDERS: [&str; 10] = [
    "exit",
    "tcgen05",
    "tmem-table",
    "mbarrier",
    "copies",
    "bugs",
    "consan",
    "barriers",
    "barrier.cluster",
    "bar.warp.sync",
];

/// The practice profile of the model.
const PRACTICE: [&str; 12] =
    ["TQ5", "TQ7", "TQ10", "TQ11", "TQ15", "TQ30", "TQ32", "TQ33", "WL", "EX", "RV", "XM"];

fn settings(spec: &str) -> Option<Result<Settings, String>> {
    let (model, switches) = spec.split_once(':').unwrap_or((spec, ""));
    if model != "ptx" {
        return None;
    }
    let switches: BTreeMap<&str, &str> = switches.split(',').filter_map(|s| s.split_once('=')).collect();
    let practice = switches.get("profile") == Some(&"practice");
    Some(Settings::of(|name| {
        let own = switches.get(name).copied();
        own.or_else(|| (practice && PRACTICE.contains(&name)).then_some("B"))
            .or_else(|| (practice && name == "Q11").then_some("C"))
    }))
}

pub(crate) fn program(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).unwrap();
    let program = parse(&text, Format::detect(&path.to_string_lossy(), &text)).unwrap();
    Program { conditions: Vec::new(), filter: None, ..program }
}

/// The kinds that a line expects. Early passes are left out, because they are causes of other findings.
fn expected(words: &str) -> Option<BTreeSet<&str>> {
    let words: BTreeSet<&str> = words.split(',').collect();
    let undecided = words.iter().any(|w| ["abstained", "bounded"].contains(w));
    let skip = ["clean", "early-pass", "condition"];
    (!undecided).then(|| {
        words
            .into_iter()
            .filter(|w| !skip.contains(w))
            .map(|w| if w == "undefined" { "race" } else { w })
            .collect()
    })
}

#[derive(Default)]
struct Tally {
    same: usize,
    fewer: Vec<String>,
    broken: Vec<String>,
    different: Vec<String>,
    abstained: BTreeMap<String, Vec<String>>,
}

impl Tally {
    fn add(&mut self, name: &str, outcome: &Outcome, wanted: &BTreeSet<&str>) {
        let kinds: BTreeSet<&str> = outcome.kinds().into_iter().map(|k| k.word()).collect();
        let broken = outcome.broken();
        let texts: Vec<&str> = outcome.findings.iter().map(|f| f.text.as_str()).collect();
        if kinds == *wanted && broken.is_empty() {
            self.same += 1;
        } else if !kinds.is_subset(wanted) || (kinds.is_empty() && broken.is_empty()) {
            self.different.push(format!("{name}: {kinds:?} {broken:?} {texts:#?}, expected {wanted:?}"));
        } else if broken.is_empty() {
            self.fewer.push(format!("{name}: {kinds:?} of {wanted:?} {texts:?}"));
        } else {
            self.broken.push(format!("{name}: {broken:?} and {kinds:?}, expected {wanted:?}"));
        }
    }
}

#[test]
fn the_corpus_has_the_expected_verdicts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let mut tally = Tally::default();
    let (mut accepted, mut programs) = (0, 0);
    for folder in FOLDERS {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "litmus"));
        paths.sort();
        for path in paths {
            let program = program(&path);
            let text = std::fs::read_to_string(&path).unwrap();
            let (mut lettered, mut taken) = (false, false);
            for line in expectations(&text) {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let Some(settings) = settings(fields[0]) else { continue };
                let Some(wanted) = expected(fields[3]) else { continue };
                let name = format!("{folder}/{} {}", path.file_stem().unwrap().to_string_lossy(), fields[0]);
                lettered |= fields[0] == "ptx";
                match settings.map(|s| operate(&program, &s, &Limits::default())) {
                    Err(switch) => {
                        tally.abstained.entry(format!("the reading {switch}")).or_default().push(name)
                    }
                    Ok(Err(abstain)) => tally.abstained.entry(abstain.what).or_default().push(name),
                    Ok(Ok(outcome)) => {
                        taken |= fields[0] == "ptx";
                        tally.add(&name, &outcome, &wanted);
                    }
                }
            }
            programs += usize::from(lettered);
            accepted += usize::from(taken);
        }
    }
    println!("{accepted} of {programs} programs accepted; {} lines the same", tally.same);
    println!("fewer kinds:\n  {}", tally.fewer.join("\n  "));
    println!("broken conditions:\n  {}", tally.broken.join("\n  "));
    for (why, names) in &tally.abstained {
        println!("abstains {} times: {why}: {}", names.len(), names[..names.len().min(6)].join(" "));
    }
    assert!(tally.different.is_empty(), "{} differ\n{}", tally.different.len(), tally.different.join("\n"));
    assert!(100 * accepted >= 85 * programs, "{accepted} of {programs}");
}

/// If the canonical run breaks no condition, it stands for all runs: every order has the same verdict.
#[test]
fn every_order_has_the_verdict_of_one_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let (mut compared, mut different) = (0, Vec::new());
    for folder in ["tcgen05", "mbarrier", "copies", "bugs"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "litmus"));
        paths.sort();
        for path in paths {
            let program = program(&path);
            let limits = Limits { steps: 4_000, ..Limits::default() };
            for settings in [Settings::letter(), Settings::practice()] {
                let Ok(one) = operate(&program, &settings, &limits) else { continue };
                let Ok(all) = operate_in_every_order(&program, &settings, &limits) else { continue };
                if all.bounded.is_some() || !one.broken().is_empty() {
                    continue;
                }
                compared += 1;
                let clean = |o: &Outcome| o.findings.is_empty();
                if clean(&one) != clean(&all) || !one.kinds().is_subset(&all.kinds()) {
                    different.push(format!("{}: {:?} and {:?}", path.display(), one.words(), all.words()));
                }
            }
        }
    }
    println!("{compared} programs in every order");
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(compared > 200, "{compared}");
}
