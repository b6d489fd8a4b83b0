//! Generated protocols of tensor-core kernels are clean, and what a mistake makes of them is not; the enumerator says the
//! same of those that are small enough for it, mutants that are no mistake included.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use moire_cat::{Model, Variants, builtin};
use moire_explore::Limits;
use moire_explore::differential::{Comparison, compare};
use moire_explore::judge::{Questions, Verdict, judge};
use moire_explore::naive::NaiveLimits;
use moire_program::generate::tensor::{Feed, Gemm, Mutation, Plan, mutants};
use moire_program::ir::Program;
use std::collections::BTreeMap;

fn ptx() -> Model {
    builtin::load("ptx", &Variants::new()).unwrap()
}

fn words(program: &Program, model: &Model) -> String {
    let questions = Questions { witnesses: false, conditions_only: false };
    let judged = judge(program, model, &Limits { leaves: 4_000, ..Limits::default() }, questions);
    judged.verdicts.iter().map(|v| v.word()).collect::<Vec<_>>().join("+")
}

/// Every protocol up to these sizes.
fn plans(steps: usize, tiles: usize, epilogues: u16) -> Vec<Plan> {
    let mut out = Vec::new();
    for feed in [Feed::Ring, Feed::OwnCopy, Feed::Copy, Feed::Store] {
        let ring = feed == Feed::Ring;
        for stages in 1..=if ring { 2 } else { 1 } {
            for steps in 1..=if ring { steps } else { steps.min(2) } {
                for tiles in 1..=if ring { tiles } else { 1 } {
                    for epilogues in 1..=epilogues {
                        for relay in [false, true] {
                            out.push(Plan { feed, stages, steps, tiles, epilogues, relay });
                        }
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
    let all = plans(3, 2, 2);
    for plan in &all {
        let protocol = plan.protocol();
        let program = protocol.program().unwrap_or_else(|| panic!("{}", protocol.text()));
        assert_eq!(words(&program, &model), "clean", "{}", protocol.text());
    }
    assert!(all.len() > 60);
}

#[test]
fn mistakes_are_found_or_are_none() {
    let model = ptx();
    let (mut found, mut clean): (BTreeMap<Mutation, usize>, Vec<_>) = (BTreeMap::new(), Vec::new());
    let mut total = 0;
    for plan in plans(2, 1, 1).into_iter().filter(|p| !p.relay) {
        for mutant in mutants(&plan.protocol()) {
            let program = mutant.protocol.program().unwrap_or_else(|| panic!("{}", mutant.protocol.text()));
            total += 1;
            if words(&program, &model) == "clean" {
                clean.push((mutant.protocol.name, program));
            } else {
                *found.entry(mutant.mutation).or_default() += 1;
            }
        }
    }
    println!("{total} mutants, found {found:?}");
    let mut confirmed = 0;
    for (name, program) in &clean {
        let said = compare(program, &model, &NaiveLimits::default());
        println!("  {name}: {}", if matches!(said, Comparison::Same { .. }) { "same" } else { "too large" });
        assert!(!matches!(said, Comparison::Different(_)), "{name}");
        confirmed += usize::from(matches!(said, Comparison::Same { .. }));
    }
    // Nothing is at the scope of a cluster here.
    assert_eq!(found.len() + 1, Mutation::ALL.len(), "{found:?}");
    assert!(clean.len() * 10 <= total, "{} of {total} mutants are clean", clean.len());
    assert!(confirmed > 0);
}

/// The skeleton of a matrix product: one execution, and two for a pair, whose allocator waits for the other CTA or does
/// not; nothing else is left open, and nothing is tried in vain.
#[test]
fn a_matrix_product_is_explored_without_a_detour() {
    let model = ptx();
    let questions = Questions { witnesses: false, conditions_only: false };
    for (pair, lanes, executions) in [(false, 1, 1), (false, 32, 1), (true, 1, 2)] {
        let product = Gemm::usual(pair, 2, lanes).protocol();
        let program = product.program().unwrap_or_else(|| panic!("{}", product.text()));
        let judged = judge(&program, &model, &Limits::default(), questions);
        assert_eq!(judged.verdicts, [Verdict::Clean], "{}", product.text());
        assert_eq!((judged.summary.complete, judged.summary.dead_ends), (executions, 0));
        assert!(judged.summary.checks < 200, "{:?}", judged.summary);
    }
}
