//! The need for every check of every shipped model: some program has other executions without the check. If no program
//! needs a check, the model's text says so, with the number of programs explored:
//!
//! `vacuous: CHECK (MODEL, ..), NUMBER programs: WHY`
//!
//! No other check has such a line. The programs are those of the corpus, a few below, and for vacuous checks all those
//! of `DIFFERENCES.md`. Executions are compared by leaf key and raised flags.

use moire_cat::{CheckId, Model, Variants};
use moire_execution::leaf::LeafKey;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_worker::difference::Reach;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Most executions of one program; programs with more are not used.
const LEAVES: u64 = 20_000;

/// Programs made for one check.
const MADE: &[(&str, &str)] = &[
    (
        "a weak value from the future, against synchronisation: CausalityRF",
        "moire \"future\"
        .global .b32 x;
        .global .b32 y;
        P0 (gpu 0, cta 0) { ld.weak.u32 r0, [x]; st.release.gpu.u32 [y], 1; }
        P1 (gpu 0, cta 1) { ld.acquire.gpu.u32 r0, [y]; st.weak.u32 [x], 1; }",
    ),
    (
        "a word read in the middle of its write: Atomicity-1",
        "moire \"torn\"
        .global .b64 x;
        P0 (gpu 0, cta 0) { st.relaxed.gpu.u64 [x], -1; }
        P1 (gpu 0, cta 1) { ld.relaxed.gpu.u64 r0, [x]; ld.relaxed.gpu.u32 r1, [x]; }",
    ),
    (
        "an arrival of the second phase that happens before one of the first: BarrierPhase",
        "moire \"phases\"
        .global .b32 y;
        P0 (gpu 0, cta 0) { bar.arrive 0, 2; st.release.gpu.u32 [y], 1; }
        P1 (gpu 0, cta 0, warp 1) { ld.acquire.gpu.u32 r0, [y]; bar.arrive 0, 2; }
        P2 (gpu 0, cta 0, warp 2) { bar.sync 0, 2; bar.sync 0, 2; }",
    ),
    (
        "a control dependency that ends where the branches meet: NoThinAir",
        "moire \"ctrl\"
        .global .b32 x;
        .global .b32 y;
        P0 (gpu 0, cta 0) { ld.weak.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra M; mov.u32 r1, 1; M: st.weak.u32 [y], 1; }
        P1 (gpu 0, cta 1) { ld.weak.u32 r0, [y]; st.weak.u32 [x], r0; }",
    ),
];

type Executions = BTreeSet<(LeafKey, BTreeSet<String>)>;

fn executions(program: &Program, model: &Model) -> Option<Executions> {
    let mut out = Executions::new();
    let limits = Limits { leaves: LEAVES, ..Limits::default() };
    let summary = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        out.insert((facts.key, facts.flags));
        ControlFlow::Continue(())
    });
    summary.is_ok_and(|s| s.bounded.is_none()).then_some(out)
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

/// Reads the corpus and [`MADE`], by name.
fn programs() -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/litmus");
    let mut paths = Vec::new();
    walk(&folder, &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("the program can be read");
        let name = path.strip_prefix(&folder).expect("below the folder").display().to_string();
        let program = parse(&text, Format::detect(&name, &text)).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, program)
    };
    let made = MADE.iter().map(|(name, text)| {
        let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{name}: {e}"));
        ((*name).to_owned(), program)
    });
    paths.iter().map(read).chain(made).collect()
}

/// Lists the checks of one model that no program of the corpus needs.
fn unneeded(model: &Model, corpus: &[(String, Program)]) -> Vec<usize> {
    let mut left: Vec<(usize, Model)> =
        (0..model.checks().len()).map(|c| (c, model.without(CheckId(c)))).collect();
    for (name, program) in corpus {
        let Some(all) = executions(program, model) else { continue };
        left.retain(|(c, weaker)| {
            let same = executions(program, weaker).is_none_or(|e| e == all);
            if !same {
                eprintln!("{}: {} is needed by {name}", model.name(), model.checks()[*c].name);
            }
            same
        });
    }
    left.into_iter().map(|(c, _)| c).collect()
}

/// Reads the `vacuous:` lines of the shipped texts: model and check, with the number of programs.
fn announced() -> BTreeMap<(String, String), u64> {
    let mut out = BTreeMap::new();
    for (file, text) in moire_models::FILES {
        for line in text.split("vacuous: ").skip(1) {
            let words: Vec<&str> = line.split(':').next().unwrap_or_default().split_whitespace().collect();
            let head = words.join(" ");
            let parts = head.split_once(" (").and_then(|(check, rest)| {
                let (models, number) = rest.split_once("), ")?;
                Some((check, models, number.strip_suffix(" programs")?.parse().ok()?))
            });
            let (check, models, number) = parts.unwrap_or_else(|| panic!("{file}: `vacuous: {head}`"));
            for model in models.split(", ") {
                out.insert((model.to_owned(), check.to_owned()), number);
            }
        }
    }
    out
}

#[test]
fn every_check_is_needed_or_says_that_it_is_not() {
    let programs = programs();
    let mut vacuous = BTreeSet::new();
    // The model of tile blocks is tested with its own kernels in `trace_tile.rs`.
    for name in moire_models::names().filter(|name| *name != "tile-ir") {
        let model = moire_models::load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
        for check in unneeded(&model, &programs) {
            vacuous.insert((name.to_owned(), model.checks()[check].name.clone()));
        }
    }
    let announced: BTreeSet<(String, String)> = announced().into_keys().collect();
    assert_eq!(vacuous, announced, "left: no program needs them; right: `vacuous:` in the models' texts");
}

/// A model, and the same model without each of some checks.
struct Weakened {
    model: Model,
    without: Vec<(String, Model)>,
}

#[test]
fn vacuous_checks_are_not_needed_in_the_stated_number_of_programs() {
    let announced = announced();
    let mut models: BTreeMap<&str, Weakened> = BTreeMap::new();
    for (name, check) in announced.keys() {
        let fresh = || moire_models::load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
        let entry = models.entry(name).or_insert_with(|| Weakened { model: fresh(), without: Vec::new() });
        let at = entry.model.checks().iter().position(|c| c.name == *check);
        let at = at.unwrap_or_else(|| panic!("{name} has no check {check}"));
        entry.without.push((check.clone(), entry.model.without(CheckId(at))));
    }
    let mut explored: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, program) in Reach::shipped().programs() {
        for (name, Weakened { model, without }) in &models {
            let Some(all) = executions(&program, model) else { continue };
            *explored.entry(name).or_default() += 1;
            for (check, weaker) in without {
                let same = executions(&program, weaker).is_some_and(|e| e == all);
                assert!(same, "{name} needs {check}:\n{}", moire_program::text::print(&program));
            }
        }
    }
    for ((name, check), number) in &announced {
        assert_eq!(explored.get(name.as_str()), Some(number), "programs explored for {check} of {name}");
    }
}
