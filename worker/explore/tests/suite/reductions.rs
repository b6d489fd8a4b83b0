//! Tests of reductions: they keep outcomes, flags and hangs, they save executions, and each of their side conditions is
//! needed.
//!
//! `MOIRE_REDUCTIONS=N` compares N programs of each drawer, from seed `MOIRE_REDUCTIONS_SEED`, instead of a sample.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_cat::{Model, Variants};
use moire_explore::planted::Planted;
use moire_explore::reduce::Reductions;
use moire_explore::search::LeafView;
use moire_explore::search::share::explore_shared;
use moire_explore::{Limits, Summary, explore};
use moire_generate::blocks::{beside, blocks};
use moire_generate::numbers::Draw;
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::random_settings;
use moire_lab::differential::draw_crowd::{crowd, twins};
use moire_lab::differential::reduced::{Saved, compare_reduced, questioned, told};
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
use std::ops::ControlFlow;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

fn models() -> Vec<Model> {
    ["any", "sc", "ptx-6.0", "ptx-7.5", "ptx"]
        .map(|n| moire_models::load(n, &Variants::new()).unwrap())
        .to_vec()
}

fn ptx() -> Model {
    moire_models::load("ptx", &Variants::new()).unwrap()
}

fn tiles() -> Model {
    moire_models::load("tile-ir", &Variants::new()).unwrap()
}

/// Compares programs. Returns the number of executions without reductions, then with each setting.
fn same(count: u64, models: &[Model], source: &dyn Fn(u64) -> Option<Program>) -> Vec<u64> {
    let settings = Reductions::settings();
    let first = number("MOIRE_REDUCTIONS_SEED", 1);
    let (mut sums, mut compared, mut skipped) = (vec![0; 1 + settings.len()], 0, 0);
    for seed in first..first + number("MOIRE_REDUCTIONS", count) {
        let Some(program) = source(seed) else { continue };
        for model in models {
            let Ok(Saved { all, left, changed }) = compare_reduced(&program, model, &settings, None) else {
                skipped += 1;
                continue;
            };
            if let Some((on, both)) = changed {
                panic!("seed {seed}, {}, {on}:\n{}\n{both:#?}", model.name(), print(&program));
            }
            compared += 1;
            sums.iter_mut().zip(std::iter::once(all).chain(left)).for_each(|(sum, n)| *sum += n);
        }
    }
    eprintln!("{compared} compared, {skipped} not; executions {sums:?}");
    assert!(compared > 2 * skipped, "{skipped} programs are too big");
    sums
}

fn drawn(profile: Profile, index: u64) -> Program {
    Stream::new(1, profile).item(index)
}

#[test]
fn reductions_keep_the_facts_about_crowds() {
    let sums = same(60, &models(), &crowd);
    assert!(sums[1..].iter().all(|n| n < &sums[0]), "each saves something: {sums:?}");
    assert!(2 * sums[5] < sums[0], "together they save half: {sums:?}");
}

#[test]
fn reductions_keep_the_facts_about_drawn_programs() {
    same(60, &models(), &|seed| Some(questioned(drawn(Profile::Core, seed), seed)));
    same(20, &models(), &|seed| twins(drawn(Profile::Core, seed), seed));
}

#[test]
fn reductions_keep_the_facts_about_tile_blocks() {
    let mut models = vec![tiles()];
    let settings = random_settings(&models[0], 3, 2);
    models.extend(settings.iter().map(|v| moire_models::load("tile-ir", v).unwrap()));
    let sums = same(150, &models, &|seed| twins(blocks(&mut Draw::new(seed)), seed));
    assert!(sums[1..].iter().all(|n| n < &sums[0]), "each saves something: {sums:?}");
    same(60, &models, &|seed| twins(beside(&mut Draw::new(seed))?, seed));
}

/// Programs with tensor memory and mbarriers keep all of their executions, because reductions do not apply to their
/// instructions.
#[test]
fn programs_with_mbarriers_are_not_reduced() {
    let sums = same(60, &[ptx()], &|seed| twins(drawn(Profile::Tensor, seed), seed));
    assert!(sums.iter().all(|n| *n == sums[0]), "{sums:?}");
}

/// Message passing by atomics. The order of the two atomics decides whether the threads race, and nothing else.
const MESSAGE: &str = "st.weak.u32 [y], 1; red.release.gpu.add.u32 [x], 1;";
const TAKEN: &str = "atom.acq_rel.gpu.add.u32 r, [x], 1; ld.weak.u32 s, [y];";

/// Each planted bug changes the facts about the program above or about some drawn one.
#[test]
fn each_side_condition_is_needed() {
    let (model, tiles) = (ptx(), tiles());
    for bug in Planted::REDUCING {
        let shows = |seed: u64| {
            let message = |i| if i == 0 { MESSAGE } else { TAKEN }.to_owned();
            let (program, model) = match seed {
                0 => (parse(&threads(2, message, ""), Format::Native).ok(), &model),
                n if bug == Planted::FirstElement => (Some(questioned(blocks(&mut Draw::new(n)), n)), &tiles),
                n => (crowd(n), &model),
            };
            let Some(program) = program else { return false };
            compare_reduced(&program, model, &Reductions::settings(), Some(bug))
                .is_ok_and(|saved| saved.changed.is_some())
        };
        let found = (0..2_000).find(|seed| shows(*seed));
        eprintln!("{bug:?}: seed {found:?}");
        assert!(found.is_some(), "no program shows {bug:?}");
    }
}

fn executions(text: &str, on: Reductions) -> u64 {
    let program = parse(text, Format::Native).unwrap();
    let summary = told(&program, &ptx(), on, None).unwrap().1;
    summary.complete + summary.blocked
}

fn threads(n: usize, body: impl Fn(usize) -> String, after: &str) -> String {
    let all: String = (0..n).map(|i| format!("P{i} (gpu 0, cta {i}) {{ {} }}\n", body(i))).collect();
    format!("moire \"t\"\n.global .b32 x;\n.global .b32 y;\n{all}{after}")
}

/// Each reduction alone, on programs for which the numbers of executions are known.
#[test]
fn each_reduction_saves_the_expected_executions() {
    let one = |name: &str| name.parse::<Reductions>().unwrap();
    let add = threads(5, |_| "red.relaxed.gpu.add.u32 [x], 1;".into(), "");
    assert_eq!(executions(&add, Reductions::NONE), 120);
    assert_eq!(executions(&add, one("atomics")), 1);
    assert_eq!(executions(&add, one("threads")), 1);
    assert_eq!(executions(&add, one("reads,writes")), 120);
    // The order of the atomics is observable in the values they read.
    let told = threads(3, |_| "atom.relaxed.gpu.add.u32 r, [x], 1;".into(), "exists (P0:r == 2)\n");
    assert_eq!(executions(&told, one("atomics")), 6);
    assert_eq!(executions(&told, one("threads")), 3);
    // Five writers: only which write is the last matters.
    let write = threads(5, |i| format!("st.relaxed.gpu.u32 [x], {};", i + 1), "");
    assert_eq!(executions(&write, Reductions::NONE), 120);
    assert_eq!(executions(&write, one("writes")), 5);
    assert_eq!(executions(&write, one("threads")), 120);
    // All writers write the same value, so one execution is enough.
    let equal = threads(5, |_| "st.relaxed.gpu.u32 [x], 1;".into(), "");
    assert_eq!(executions(&equal, one("writes")), 1);
    assert_eq!(executions(&equal, one("threads")), 1);
    let read =
        |i| if i == 0 { "st.relaxed.gpu.u32 [x], 1;" } else { "ld.relaxed.gpu.u32 r, [x];" }.to_owned();
    let readers = threads(5, read, "");
    assert_eq!(executions(&readers, Reductions::NONE), 16);
    assert_eq!(executions(&readers, one("reads")), 1);
    assert_eq!(executions(&readers, one("threads")), 5);
}

/// Tile blocks are reduced like threads. Token order does not depend on values.
#[test]
fn reductions_save_the_same_in_tile_blocks() {
    let one = |name: &str| name.parse::<Reductions>().unwrap();
    let executions = |text: &str, on: Reductions| {
        let program = parse(text, Format::Native).unwrap();
        told(&program, &tiles(), on, None).unwrap().1.complete
    };
    let add =
        |_| "tile.atom.relaxed.gpu.add.u32 {[x], 1} gives t; tile.atom.relaxed.gpu.add.u32 {[y], 1} after t;";
    let adds = threads(4, |i| add(i).into(), "");
    assert_eq!(executions(&adds, Reductions::NONE), 24 * 24);
    assert_eq!(executions(&adds, one("atomics")), 1);
    let read = |i| match i {
        0 => "tile.st.relaxed.gpu.u32 {[x], 1; [y], 1};",
        _ => {
            "tile.ld.relaxed.gpu.u32 {[x] -> r; [y] -> s} gives t; tile.ld.relaxed.gpu.u32 {[x] -> u} after t;"
        }
    };
    let readers = threads(3, |i| read(i).into(), "");
    assert_eq!(executions(&readers, one("reads")), 1);
    let some = threads(3, |i| read(i).into(), "exists (P1:r == 1)\n");
    assert!(executions(&some, one("reads")) < executions(&some, Reductions::NONE));
}

#[test]
fn a_race_that_depends_on_an_order_is_found() {
    let text = threads(2, |i| if i == 0 { MESSAGE } else { TAKEN }.to_owned(), "");
    let program = parse(&text, Format::Native).unwrap();
    let (told, summary) = told(&program, &ptx(), Reductions::ALL, None).unwrap();
    assert!(told.flags.contains("uniform-race"), "{told:?}");
    assert!(summary.complete > 1, "the first execution does not race");
}

/// Reductions cut the same executions if two threads share the tree.
#[test]
fn reductions_save_the_same_on_two_threads() {
    let model = ptx();
    for seed in 1..40 {
        let Some(program) = crowd(seed) else { continue };
        let limits = Limits { leaves: 20_000, reductions: Reductions::ALL, ..Limits::default() };
        let seen = |_: &mut dyn LeafView| ControlFlow::<()>::Continue(());
        let alone = explore(&program, &model, &[], &limits, &mut { seen }).unwrap();
        let mut visitors = [seen; 2];
        let (shared, _) = explore_shared(&program, &model, &limits, &mut visitors).unwrap();
        let sizes = |s: &Summary| (s.complete, s.blocked, s.cut);
        assert_eq!(sizes(&alone), sizes(&shared), "seed {seed}");
    }
}
