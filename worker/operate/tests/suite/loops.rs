//! Programs with free loops: pipelines are proved for every number of trips, and planted mistakes are found.

use super::families::{MISTAKES, persistent, planted, program, ring};
use moire_operate::{Condition, Limits, Outcome, Settings, counterexample, operate};
use moire_program::loops::unroll;
use moire_program::mutate::mutants;
use std::collections::BTreeMap;

fn judged(text: &str, settings: &Settings) -> Outcome {
    operate(&program(text), settings, &Limits::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn rings_are_clean_for_every_number_of_trips() {
    let mut states = Vec::new();
    for stages in 1..=6 {
        let outcome = judged(&ring(stages), &Settings::letter());
        assert_eq!(
            outcome.words(),
            ["clean"].into(),
            "{stages}: {:?} {:#?}",
            outcome.differs,
            outcome.findings
        );
        assert_eq!(outcome.scope().as_deref(), Some("K"));
        println!("ring of {stages}: {} states, {} steps", outcome.states, outcome.steps);
        states.push(outcome.states);
    }
    // Twice as many stages, at most twice as many states and some.
    assert!(states[5] < 3 * states[1] + 40, "{states:?}");
}

#[test]
fn persistent_products_are_clean_for_every_number_of_tiles_and_steps() {
    for settings in [Settings::letter(), Settings::practice()] {
        for (stages, warps) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
            let outcome = judged(&persistent(stages, warps), &settings);
            println!(
                "persistent {stages}, {warps} warps: {} states, {} steps",
                outcome.states, outcome.steps
            );
            assert_eq!(outcome.words(), ["clean"].into(), "{:?} {:#?}", outcome.differs, outcome.findings);
            assert_eq!(outcome.scope().as_deref(), Some("T, K"));
        }
    }
}

/// Each finding comes with numbers for which the program without loops has a finding of the same kind.
#[test]
fn planted_mistakes_are_found_with_their_numbers() {
    let (settings, limits) = (Settings::letter(), Limits::default());
    let text = persistent(2, 2);
    for mistake in &MISTAKES {
        let wrong = program(&planted(&text, mistake));
        let outcome = operate(&wrong, &settings, &limits).unwrap_or_else(|e| panic!("{}: {e}", mistake.name));
        let words = outcome.words();
        println!("{}: {words:?} {:?} {} states", mistake.name, outcome.numbers, outcome.states);
        assert!(
            mistake.kinds.iter().any(|k| words.contains(k)),
            "{}: {words:?} {:#?}",
            mistake.name,
            outcome.findings
        );
        let found = counterexample(&wrong, &settings, &limits, &outcome).unwrap();
        let found = found.unwrap_or_else(|| panic!("{}: nothing for {:?}", mistake.name, outcome.numbers));
        println!("  least {:?}", found.numbers);
        assert!(found.outcome.findings.iter().any(|f| words.contains(f.kind.word())), "{}", mistake.name);
    }
}

/// What is proved for every number holds for some.
#[test]
fn unrolled_pipelines_are_clean_as_well() {
    let settings = Settings::letter();
    for (tiles, steps) in [(0, 0), (1, 0), (1, 1), (2, 3), (5, 2), (3, 7)] {
        let numbers = BTreeMap::from([("T".to_owned(), vec![tiles]), ("K".to_owned(), vec![steps])]);
        let unrolled = unroll(&program(&persistent(2, 2)), &numbers).unwrap();
        let outcome = operate(&unrolled, &settings, &Limits::default()).unwrap();
        assert_eq!(outcome.words(), ["clean"].into(), "{tiles} {steps}: {:#?}", outcome.findings);
    }
}

/// The worked example: a ring, and the same ring with a thread that can be lapped from the second round on.
#[test]
fn a_ring_is_clean_and_a_thread_that_can_be_lapped_is_named() {
    let (settings, limits) = (Settings::letter(), Limits::default());
    let ring = program(include_str!("../../../../corpus/litmus/loops/ring.litmus"));
    let outcome = operate(&ring, &settings, &limits).unwrap();
    assert_eq!(outcome.words(), ["clean"].into(), "{:#?}", outcome.findings);
    assert_eq!(outcome.scope().as_deref(), Some("K"));
    let lapped = program(include_str!("../../../../corpus/litmus/loops/ring-lapped.litmus"));
    let outcome = operate(&lapped, &settings, &limits).unwrap();
    assert_eq!(outcome.broken(), [Condition::Lapped].into(), "{:#?}", outcome.findings);
    assert_eq!(outcome.kinds(), [].into(), "{:#?}", outcome.findings);
    let found = counterexample(&lapped, &settings, &limits, &outcome).unwrap().unwrap();
    assert_eq!(found.numbers, BTreeMap::from([("K".to_owned(), vec![2])]));
}

/// Lanes that others wait for at the end of a round meet them before the next one.
#[test]
fn lanes_meet_at_the_end_of_a_round() {
    let (settings, limits) = (Settings::letter(), Limits::default());
    let one = program(include_str!("../../../../corpus/litmus/loops/ring-elected.litmus"));
    let outcome = operate(&one, &settings, &limits).unwrap();
    assert_eq!(outcome.words(), ["clean"].into(), "{:#?}", outcome.findings);
    let two = program(include_str!("../../../../corpus/litmus/loops/ring-elected-two.litmus"));
    let outcome = operate(&two, &settings, &limits).unwrap();
    assert_eq!(outcome.words(), ["hang"].into(), "{:#?}", outcome.findings);
    let found = counterexample(&two, &settings, &limits, &outcome).unwrap().unwrap();
    assert_eq!(found.numbers, BTreeMap::from([("K".to_owned(), vec![2])]));
}

/// Small trip counts of the two loops of a persistent product.
fn grid() -> impl Iterator<Item = BTreeMap<String, Vec<u32>>> {
    let counts = |t, k| BTreeMap::from([("T".to_owned(), vec![t]), ("K".to_owned(), vec![k])]);
    (0..3).flat_map(move |t| (0..4).map(move |k| counts(t, k)))
}

/// One mistake in the synchronisation of a pipeline. The answer for every trip count is that of the programs without loops: a
/// finding has trip counts that show it, and what is clean is clean for small ones.
#[test]
fn mutants_of_pipelines_have_the_verdict_of_their_copies() {
    let settings = Settings::letter();
    let limits = Limits { states: 6_000, steps: 1_000_000, ..Limits::default() };
    let (mut clean, mut wrong, mut left) = (0, 0, BTreeMap::<String, u32>::new());
    for text in [ring(2), persistent(1, 1)] {
        for mutant in mutants(&program(&text)) {
            let what = format!("{} at {} of {}", mutant.mistake.name(), mutant.at, mutant.thread);
            let mutant = mutant.program;
            let outcome = match operate(&mutant, &settings, &limits) {
                Ok(outcome) => outcome,
                Err(why) => {
                    *left.entry(why.what).or_default() += 1;
                    continue;
                }
            };
            if let Some(bound) = &outcome.bounded {
                *left.entry(bound.clone()).or_default() += 1;
            } else if outcome.findings.is_empty() {
                clean += 1;
                for numbers in grid() {
                    let unrolled = unroll(&mutant, &numbers).unwrap();
                    let one = operate(&unrolled, &settings, &limits).unwrap();
                    assert_eq!(one.words(), ["clean"].into(), "{what}: {numbers:?} {:#?}", one.findings);
                }
            } else {
                wrong += 1;
                let found = counterexample(&mutant, &settings, &limits, &outcome).unwrap();
                assert!(found.is_some(), "{what}: {:#?} not for {:?}", outcome.findings, outcome.numbers);
            }
        }
    }
    println!("{clean} clean, {wrong} wrong, {left:?}");
    let left: u32 = left.values().sum();
    assert!(wrong > 60 && left < wrong, "{clean} clean, {wrong} wrong, {left} not decided");
}

/// A limit on states is a bounded answer, and never a clean one.
#[test]
fn a_limit_on_states_is_no_proof() {
    let limits = Limits { states: 100, ..Limits::default() };
    let outcome = operate(&program(&persistent(2, 2)), &Settings::letter(), &limits).unwrap();
    assert_eq!((outcome.words(), outcome.bounded.as_deref()), (["bounded"].into(), Some("states")));
    let more = operate(
        &program(&persistent(2, 2)),
        &Settings::letter(),
        &Limits { states: 1_000, ..Limits::default() },
    );
    let more = more.unwrap();
    println!("followed through {} and {} iterations and decisions", outcome.covered, more.covered);
    assert!(outcome.covered <= more.covered && more.covered > 0);
}

/// A branch to itself ends at the limit on instructions, inside a free loop and outside.
#[test]
fn a_loop_of_branches_is_bounded() {
    for text in ["repeat N { L: bra L; }", "L: bra L;"] {
        let text = format!("moire \"endless\"\na (gpu 0, cta 0) {{ {text} }}\n");
        let limits = Limits { steps: 10_000, ..Limits::default() };
        let outcome =
            operate(&program(&text), &Settings::letter(), &limits).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outcome.bounded.as_deref(), Some("steps"), "{text}");
    }
}

/// A thread that comes round to the same state is cut long before the limit. One that counts goes on.
#[test]
fn a_round_is_cut_and_a_count_is_not() {
    let ended = |step: u32, limits: &Limits| {
        let text = format!(
            "moire \"round\"\na (gpu 0, cta 0) {{ .reg n, p; L: add.u32 n, n, {step}; setp.lt.u32 p, n, 9000; @p bra L; }}\n"
        );
        operate(&program(&text), &Settings::letter(), limits).unwrap_or_else(|e| panic!("{e}")).bounded
    };
    let most = Limits { steps: 1 << 60, ..Limits::default() };
    assert_eq!(ended(0, &most).as_deref(), Some("steps"));
    assert_eq!(ended(1, &most), None);
    assert_eq!(ended(1, &Limits { steps: 20_000, ..most }).as_deref(), Some("steps"));
}

/// A thread that never waits runs ahead of the others: not decided, by name.
#[test]
fn a_loop_that_runs_ahead_is_not_decided() {
    let text = "moire \"ahead\"\n.shared .b8 x;\n.shared .b8 y;\n\
                a (gpu 0, cta 0) { repeat N { st.weak.shared::cta.b8 [x], 1; } }\n\
                b (gpu 0, cta 0, warp 1) { bar.sync 1, 1; repeat N { st.weak.shared::cta.b8 [y], 1; } bar.sync 0, 2; }\n";
    let outcome = operate(&program(text), &Settings::letter(), &Limits::default());
    match outcome {
        Err(abstain) => assert!(abstain.what.contains("runs ahead"), "{abstain}"),
        Ok(outcome) => assert_eq!(outcome.words(), ["hang"].into(), "{:#?}", outcome.findings),
    }
}

/// Two copies into another CTA complete independently. That one exits after the second, and the first may be under way.
#[test]
fn a_copy_under_way_is_told_apart_from_a_later_one() {
    let text = "moire \"reach\"\n.launch;\n.shared .b8 a[16];\n.shared .b8 c[16];\n.shared .b64 b;\n.shared .b64 d;\n.global .b8 g[16];\n\
        S (gpu 0, cluster 0, cta 0) {\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n  \
        mapa.shared::cluster.u32 fa, a, 1;\n  mapa.shared::cluster.u32 fc, c, 1;\n  mapa.shared::cluster.u32 fb, b, 1;\n  \
        mapa.shared::cluster.u32 fd, d, 1;\n  \
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [fa], [g], 16, [fb];\n  \
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [fc], [g], 16, [fd];\n  repeat K { }\n}\n\
        R (gpu 0, cluster 0, cta 1) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  mbarrier.init.shared::cta.b64 [d], 1;\n  \
        fence.mbarrier_init.release.cluster;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n  \
        mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 16;\n  \
        mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [d], 16;\nL:\n  \
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [d], 0;\n  @!p bra L;\n\
        M:\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra M;\n}\n";
    assert_eq!(judged(text, &Settings::letter()).words(), ["clean"].into());
    let wait = "M:\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra M;\n";
    assert_eq!(judged(&text.replace(wait, ""), &Settings::letter()).words(), ["lifetime"].into());
}
