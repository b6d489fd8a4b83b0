//! The operational engine against the explorer: on the corpus under both profiles and each switch alone, and on drawn
//! protocols and mutants. `moire bench operate` compares a hundred thousand.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_cat::{Model, PROFILE, Variants};
use moire_explore::Limits;
use moire_generate::numbers::Draw;
use moire_generate::tensor::{counting, looped as drawn_loop};
use moire_generate::{Profile, Stream};
use moire_operate::Planted;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_worker::agreement::{
    Agreement, Kinds, Tally, agree, compare, compare_looped, drawn_mutant, explored, operated, unquestioned,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn model(settings: &[(&str, &str)]) -> Model {
    let variants: Variants = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    moire_models::load("ptx", &variants).unwrap()
}

/// The folders of the corpus whose programs synchronise through counting objects.
const FOLDERS: [&str; 9] = [
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

/// Programs of one folder.
fn programs(folder: &str) -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "litmus"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = parse(&text, Format::detect(&path.to_string_lossy(), &text)).unwrap();
        (format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy()), program)
    };
    paths.into_iter().map(read).collect()
}

/// Lines about the programs that are not compared.
fn rest(tally: &Tally) -> String {
    let alone = tally.conditions.iter().map(|line| format!("  a condition alone: {line}\n"));
    let abstained = tally.abstained.iter().map(|(why, count)| format!("  abstains {count} times: {why}\n"));
    alone.chain(abstained).collect()
}

#[test]
fn both_engines_give_the_same_verdicts_on_the_corpus() {
    let models = [("letter", model(&[])), ("practice", model(&[(PROFILE, "practice")]))];
    let mut all = Tally::default();
    println!("{}", Tally::head());
    for folder in FOLDERS {
        for (profile, model) in &models {
            let mut tally = Tally::default();
            for (name, program) in programs(folder) {
                tally.add(&format!("{name} {profile}"), compare(&program, model, &Limits::default()));
            }
            println!("{}", tally.row(&format!("{folder} {profile}")));
            all.merge(tally);
        }
    }
    println!("{}", all.row("all"));
    println!("{}", rest(&all));
    assert_eq!(all.different, [""; 0]);
    assert!(100 * all.accepted() >= 85 * all.all(), "{}", all.row("all"));
}

/// One in so many programs is compared under each value of each switch.
const STRIDE: usize = 29;

#[test]
fn every_switch_alone_gives_the_same_verdicts() {
    let plain = model(&[]);
    let programs: Vec<_> = FOLDERS.into_iter().flat_map(programs).collect();
    let (mut tally, mut turn) = (Tally::default(), 0);
    for switch in plain.switches() {
        let default = plain.variant(&switch.name).unwrap_or_default();
        for value in switch.values.iter().filter(|v| *v != default) {
            let model = model(&[(&switch.name, value)]);
            turn += 1;
            for (name, program) in programs.iter().skip(turn % STRIDE).step_by(STRIDE) {
                let name = format!("{name} {}={value}", switch.name);
                tally.add(&name, compare(program, &model, &Limits::default()));
            }
        }
    }
    println!("{turn} values of switches\n{}\n{}", Tally::head(), tally.row("switches"));
    println!("{}", rest(&tally));
    assert_eq!(tally.different, [""; 0]);
    assert!(turn > 30 && tally.same > 100, "{turn} values: {}", tally.row(""));
}

/// Drawn protocols, and mutants of each.
const DRAWN: u64 = 60;
const MUTANTS: u64 = 3;

#[test]
fn both_engines_give_the_same_verdicts_on_protocols_and_mutants() {
    let models = [model(&[]), model(&[(PROFILE, "practice")])];
    let limits = Limits { leaves: 2_000, checks: 40_000, ..Limits::default() };
    let stream = Stream::new(21, Profile::Protocol);
    let (mut drawn, mut changed) = (Tally::default(), Tally::default());
    for index in 0..DRAWN {
        let program = stream.item(index);
        let model = &models[usize::from(index % 2 == 1)];
        drawn.add(&program.name, compare(&program, model, &limits));
        for number in 0..MUTANTS {
            let number = index * MUTANTS + number;
            let Some(mutant) = drawn_mutant(&program, number, 21) else { continue };
            changed.add(&format!("{} mutant {number}", program.name), compare(&mutant, model, &limits));
        }
    }
    println!("{}\n{}\n{}", Tally::head(), drawn.row("protocols"), changed.row("mutants"));
    println!("{}", rest(&drawn));
    println!("{}", rest(&changed));
    assert_eq!([&drawn.different[..], &changed.different].concat(), [""; 0]);
    assert!(2 * drawn.same > DRAWN && 3 * changed.same > DRAWN * MUTANTS, "too few are compared");
}

/// Drawn programs with a free loop, and drawn ones without.
const LOOPED: u64 = 120;

#[test]
fn both_engines_give_the_same_verdicts_on_what_counts() {
    let model = model(&[]);
    let limits = Limits { leaves: 2_000, checks: 40_000, ..Limits::default() };
    let (mut looped, mut bounded) = (Tally::default(), Tally::default());
    for seed in 0..LOOPED {
        let (free, without) =
            (drawn_loop(&mut Draw::new(seed)).unwrap(), counting(&mut Draw::new(seed)).unwrap());
        looped.add(&format!("seed {seed}"), compare(&free, &model, &limits));
        bounded.add(&format!("seed {seed}"), compare(&without, &model, &limits));
    }
    println!("{}\n{}\n{}", Tally::head(), looped.row("loops"), bounded.row("without"));
    println!("{}{}", rest(&looped), rest(&bounded));
    assert_eq!([&looped.different[..], &bounded.different].concat(), [""; 0]);
    assert!(2 * looped.same > LOOPED && 2 * bounded.same > LOOPED, "too few are compared");
}

/// Mistakes in what one run stands for, which drawn programs with a free loop show.
#[test]
fn drawn_loops_show_planted_bugs() {
    let (model, limits) = (model(&[]), Limits { leaves: 2_000, checks: 40_000, ..Limits::default() });
    for bug in [
        Planted::Expected,
        Planted::ExpectedAtEnd,
        Planted::ExpectedLate,
        Planted::CountedExits,
        Planted::EagerForgetting,
        Planted::WrongPeriod,
        Planted::NeverLeaves,
    ] {
        let shows = |seed: &u64| {
            let program = drawn_loop(&mut Draw::new(*seed)).unwrap();
            let answer = |bug| operated(&program, &model, bug).map(|o| (o.words(), o.broken(), o.differs));
            answer(None) != answer(Some(bug))
                && matches!(compare_looped(&program, &model, &limits, Some(bug)), Agreement::Different { .. })
        };
        let seed = (0..400).find(shows);
        println!("{bug:?}: seed {seed:?}");
        assert!(seed.is_some(), "no drawn loop shows {bug:?}");
    }
}

/// Bugs that only programs with free loops show.
const LOOPS: [Planted; 4] =
    [Planted::EagerForgetting, Planted::WrongPeriod, Planted::NeverLeaves, Planted::NeverEnters];

/// Programs beside the corpus, each for one planted bug: arrivals of two phases without a wait between them, two generations of
/// a barrier, bytes announced too late, and a second store after the barrier.
const TEXTS: [&str; 4] = [
    "moire \"observed\"\n.shared .b8 a[64];\n.shared .b8 c[64];\n.global .b8 g[64];\n.shared .b64 b;\n\
     A (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  \
     mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 64;\n  bar.arrive 1, 2;\nL:\n  \
     mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [a];\n  \
     mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 64;\nM:\n  \
     mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 1;\n  @!p bra M;\n  ld.weak.shared::cta.b8 r, [c];\n}\n\
     B (gpu 0, cta 0, warp 1) {\n  bar.sync 1, 2;\n  \
     cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 64, [b];\n  \
     cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [c], [g], 64, [b];\n}\n",
    "moire \"generation\"\n.shared .b8 x;\n.shared .b8 y;\n\
     B (gpu 0, cta 0) {\n  bar.sync 1, 2;\n  ld.weak.shared::cta.b8 r, [x];\n}\n\
     A (gpu 0, cta 0, warp 1) {\n  st.weak.shared::cta.b8 [x], 1;\n  bar.arrive 1, 2;\n  st.weak.shared::cta.b8 [y], 1;\n  \
     bar.arrive 1, 2;\n}\n\
     C (gpu 0, cta 0, warp 2) {\n  bar.sync 1, 2;\n  ld.weak.shared::cta.b8 r, [y];\n}\n",
    "moire \"expected\"\n.shared .b8 a[64];\n.global .b8 g[64];\n.shared .b64 b;\n\
     B (gpu 0, cta 0) {\n  bar.sync 0;\n  mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nL:\n  \
     mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [a];\n}\n\
     A (gpu 0, cta 0, warp 1) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
     mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 64;\n  \
     cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 64, [b];\n}\n",
    "moire \"again\"\n.shared .b8 x;\nB (gpu 0, cta 0) { bar.sync 0; ld.weak.shared::cta.b8 r, [x]; }\n\
     A (gpu 0, cta 0, warp 1) { st.weak.shared::cta.b8 [x], 1; bar.sync 0; st.weak.shared::cta.b8 [x], 1; }\n",
];

/// The comparison finds each planted bug of the engine that a program without free loops can show.
#[test]
fn planted_bugs_are_differences() {
    let models = [model(&[]), model(&[(PROFILE, "practice")])];
    let mut known: Vec<(String, Program, usize, Kinds)> = Vec::new();
    let read = |text: &&str| {
        let program = parse(text, Format::Native).unwrap();
        (program.name.clone(), program)
    };
    for (name, program) in FOLDERS.into_iter().flat_map(programs).chain(TEXTS.iter().map(read)) {
        let program = unquestioned(&program);
        for (at, model) in models.iter().enumerate() {
            if operated(&program, model, None).is_ok()
                && let Ok(kinds) = explored(&program, model, &Limits::default())
            {
                known.push((name.clone(), program.clone(), at, kinds));
            }
        }
    }
    let mut left = BTreeSet::new();
    for bug in Planted::ALL.into_iter().filter(|bug| !LOOPS.contains(bug)) {
        let shows = |(_, program, at, kinds): &&(String, Program, usize, Kinds)| {
            let Ok(outcome) = operated(program, &models[*at], Some(bug)) else { return false };
            matches!(agree(outcome, kinds.clone()), Agreement::Different { .. })
        };
        match known.iter().find(shows) {
            Some((name, ..)) => println!("{bug:?}: {name}"),
            None => drop(left.insert(bug)),
        }
    }
    assert!(left.is_empty(), "no difference shows {left:?}");
}

#[test]
fn readings_that_no_transition_implements_are_refused_by_name() {
    let (_, program) = programs("tcgen05").swap_remove(0);
    let why = |model: &Model| match compare(&program, model, &Limits::default()) {
        Agreement::Abstained(why) => why,
        other => panic!("{other:?}"),
    };
    for (switch, value) in [("TQ4", "B"), ("TQ17", "D"), ("Q8", "A")] {
        assert_eq!(why(&model(&[(switch, value)])), format!("the reading {switch}={value}"));
    }
    assert_eq!(why(&moire_models::load("sc", &Variants::new()).unwrap()), "the model sc");
}
