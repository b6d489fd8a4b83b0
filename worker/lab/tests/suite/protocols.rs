//! Generated protocols of tensor-core kernels: they are clean, and with one mistake they are not. The enumerator agrees
//! on protocols and mutants that are small enough for it.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_cat::{Model, Variants};
use moire_execution::leaf::LeafKind;
use moire_explore::judge::{About, Questions, judge};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::protocol::{Columns, Feed, Gemm, Mutant, Mutation, Plan, Scheme, mutants};
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const FEEDS: [Feed; 6] = [Feed::Ring, Feed::Bulk, Feed::Announced, Feed::OwnCopy, Feed::Copy, Feed::Store];

fn ptx() -> Model {
    moire_models::load("ptx", &Variants::new()).unwrap()
}

fn words(program: &Program, model: &Model) -> String {
    let questions = Questions { witnesses: false, about: About::All };
    let judged = judge(program, model, &Limits { leaves: 4_000, ..Limits::default() }, questions);
    judged.verdicts.iter().map(|v| v.word()).collect::<Vec<_>>().join("+")
}

/// Lists every protocol up to these sizes.
fn plans(steps: usize, tiles: usize, epilogues: u16) -> Vec<Plan> {
    let mut out = Vec::new();
    for feed in FEEDS {
        let ring = feed.ring();
        for stages in 1..=if ring { 2 } else { 1 } {
            for steps in 1..=if ring { steps } else { steps.min(2) } {
                for tiles in 1..=if ring { tiles } else { 1 } {
                    for epilogues in 1..=epilogues {
                        for relay in [false, true] {
                            let lanes = if (epilogues, relay) == (2, true) { 32 } else { 1 };
                            out.push(Plan { feed, stages, steps, tiles, epilogues, lanes, relay });
                        }
                    }
                }
            }
        }
    }
    out
}

/// Lists every protocol of allocating columns.
fn columns() -> Vec<Columns> {
    let mut out = Vec::new();
    for (pair, rival) in [(false, false), (false, true), (true, false)] {
        for warps in 1..=2 {
            for rounds in 1..=2 {
                let products = if rival { 1 } else { 2 };
                let all = [false, true].map(|product| Columns { pair, warps, rounds, product, rival });
                out.extend(all.into_iter().take(products));
            }
        }
    }
    out
}

/// Lists every matrix product up to these sizes.
fn products(stages: usize, steps: usize, tiles: usize, warps: u16, lanes: &[u8]) -> Vec<Gemm> {
    let mut out = Vec::new();
    for pair in [false, true] {
        for stages in 1..=stages {
            for steps in 1..=steps {
                for tiles in 1..=tiles {
                    for warps in 1..=warps {
                        out.extend(lanes.iter().map(|&lanes| Gemm {
                            pair,
                            stages,
                            steps,
                            tiles,
                            warps,
                            lanes,
                        }));
                    }
                }
            }
        }
    }
    out
}

#[test]
fn every_protocol_is_clean() {
    let model = ptx();
    let mut all: Vec<Scheme> = plans(2, 2, 2).into_iter().map(Scheme::Plan).collect();
    all.extend(columns().into_iter().map(Scheme::Columns));
    all.extend(products(2, 2, 3, 1, &[1]).into_iter().map(Scheme::Gemm));
    all.extend(products(1, 1, 3, 2, &[32]).into_iter().map(Scheme::Gemm));
    for scheme in &all {
        let protocol = scheme.protocol();
        let program = protocol.program().unwrap_or_else(|| panic!("{}", protocol.text()));
        assert_eq!(words(&program, &model), "clean", "{}", protocol.text());
    }
    assert!(all.len() > 120, "{}", all.len());
}

/// Whether the explorer finds a mutant clean. `None` if it abstains.
fn clean(program: &Program, model: &Model) -> Option<bool> {
    let mut wrong = false;
    let visit = &mut |leaf: &mut dyn LeafView| {
        wrong = leaf.kind() == LeafKind::Blocked || !leaf.flags().is_empty();
        if wrong { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let summary = explore(program, model, &[], &Limits::default(), visit).ok()?;
    assert!(wrong || summary.bounded.is_none(), "{:?}", summary.bounded);
    Some(!wrong)
}

/// Reasons why a mutation is not a mistake, by the steps it changes. Every other mutation must be found.
const REASONS: [(&[&str], &str); 8] = [
    (
        &["init", "init fence"],
        "of an mbarrier whose phases no thread waits for, or before a barrier that orders more",
    ),
    (&["wait", "after"], "a phase that is over from the start, or is known to be over from another wait"),
    (
        &["commit", "arrival", "before"],
        "a phase that no thread waits for, or two commits that complete at once",
    ),
    (&["arrival that only counts"], "the copy completes its bytes itself"),
    (&["barrier"], "between steps of the same warp, or doing what another barrier does"),
    (&["columns taken", "columns given back", "right given up"], "no other thread takes columns"),
    (&["tcgen05.wait"], "nothing after it touches the loaded registers, or another wait comes first"),
    (&["warp"], "a warp whose steps do not depend on its CTA"),
];

/// Finds the reason why a clean mutant is not a mistake.
fn reason(mutant: &Mutant) -> Option<&'static str> {
    let step = match mutant.what.split_once(" of ") {
        Some((_, rest)) => rest.split(" in ").next()?,
        None => "warp",
    };
    let counts = mutant.mutation == Mutation::Weaken && step == "arrival";
    let step = if counts { "arrival that only counts" } else { step };
    REASONS.iter().find(|(steps, _)| steps.contains(&step)).map(|(_, why)| *why)
}

/// Returns the clean mutants of a protocol. Counts the others by mutation in `found`.
fn sorted(
    scheme: Scheme,
    model: &Model,
    only: Option<Mutation>,
    found: &mut BTreeMap<Mutation, usize>,
) -> Vec<Mutant> {
    let mut same = Vec::new();
    for mutant in mutants(&scheme.protocol()) {
        let Some(program) = mutant.protocol.program() else { continue };
        if only.is_some_and(|only| only != mutant.mutation) {
            continue;
        }
        match clean(&program, model) {
            Some(true) => same.push(mutant),
            Some(false) => *found.entry(mutant.mutation).or_default() += 1,
            None => {}
        }
    }
    same
}

#[test]
fn mutants_are_found_or_have_a_reason() {
    let model = ptx();
    let mut schemes: Vec<Scheme> =
        plans(2, 1, 1).into_iter().filter(|p| !p.relay).map(Scheme::Plan).collect();
    schemes.extend(columns().into_iter().filter(|c| c.rounds == 1).map(Scheme::Columns));
    schemes.push(Scheme::Gemm(Gemm { pair: false, stages: 1, steps: 1, tiles: 1, warps: 1, lanes: 1 }));
    let (mut found, mut reasons) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
    for scheme in schemes {
        for mutant in sorted(scheme, &model, None, &mut found) {
            let name = &mutant.protocol.name;
            let said = compare(&mutant.protocol.program().unwrap(), &model, &NaiveLimits::default());
            assert!(matches!(said, Comparison::Same { .. }), "{name}: {said:?}");
            let why = reason(&mutant).unwrap_or_else(|| panic!("{name} is clean without a reason"));
            *reasons.entry(why).or_default() += 1;
        }
    }
    println!("found {found:?}\nno mistakes {reasons:#?}");
    // One mutation narrows the scope of a cluster, which these protocols do not use.
    assert_eq!(found.len() + 1, Mutation::ALL.len(), "{found:?}");
    assert_eq!(reasons.len(), REASONS.len(), "{reasons:?}");
    let (found, same) = (found.values().sum::<usize>(), reasons.values().sum::<usize>());
    assert!(same * 6 <= found, "{same} are not mistakes, {found} are found");
}

/// A pair of CTAs is too large for the enumerator. A mutant that the explorer finds clean must still have a reason.
#[test]
fn mutants_of_a_pair_are_found_or_have_a_reason() {
    let model = ptx();
    let once = Gemm { pair: true, stages: 1, steps: 1, tiles: 1, warps: 1, lanes: 1 };
    // Scopes matter only if accumulators are reused.
    let again = Gemm { tiles: 3, ..once };
    let mut found = BTreeMap::new();
    let mut same = sorted(Scheme::Gemm(once), &model, None, &mut found);
    same.extend(sorted(Scheme::Gemm(again), &model, Some(Mutation::Scope), &mut found));
    println!("found {found:?}, no mistakes {}", same.len());
    for mutant in &same {
        assert!(reason(mutant).is_some(), "{}", mutant.protocol.name);
    }
    assert_eq!(found.len(), Mutation::ALL.len(), "{found:?}");
    assert!(same.len() * 2 <= found.values().sum(), "{}", same.len());
}

/// The skeleton of a matrix product has one execution. That of a pair has two, because its allocator waits for the
/// other CTA or does not. The search has no dead end.
#[test]
fn a_matrix_product_is_explored_without_dead_ends() {
    let model = ptx();
    let questions = Questions { witnesses: false, about: About::All };
    for (pair, lanes, executions) in [(false, 1, 1), (false, 32, 1), (true, 1, 2)] {
        let product = Gemm::usual(pair, 2, lanes).protocol();
        let program = product.program().unwrap_or_else(|| panic!("{}", product.text()));
        let judged = judge(&program, &model, &Limits::default(), questions);
        assert!(judged.is_clean(), "{}", product.text());
        assert_eq!((judged.summary.complete, judged.summary.dead_ends), (executions, 0));
        assert!(judged.summary.checks < 200, "{:?}", judged.summary);
    }
}
