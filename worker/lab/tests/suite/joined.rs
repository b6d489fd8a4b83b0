//! Joined lanes against a thread for each lane, on drawn programs; and the bugs that this must find.
//!
//! `MOIRE_JOINED=N` compares N programs, from seed `MOIRE_JOINED_SEED`, instead of a sample.

use moire_cat::Variants;
use moire_explore::Limits;
use moire_lab::differential::draw_warps::{warps_program, warps_text};
use moire_lab::differential::joined::{Compared, compare_joined};
use moire_program::ir::Program;
use moire_program::lanes::{Planted, joined, joined_with};
use std::collections::BTreeMap;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn limits() -> Limits {
    Limits { steps: number("MOIRE_JOINED_STEPS").unwrap_or(60_000), ..Limits::default() }
}

#[test]
fn joined_lanes_have_the_verdicts_of_single_ones() {
    let model = moire_models::load("ptx", &Variants::default()).expect("the model loads");
    let (count, first) = (number("MOIRE_JOINED").unwrap_or(150), number("MOIRE_JOINED_SEED").unwrap_or(1));
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    let (mut literal, mut few, mut wrong) = (0, 0, 0);
    for seed in first..first + count {
        let Some(program) = warps_program(seed) else {
            *tally.entry("refused".into()).or_default() += 1;
            continue;
        };
        match compare_joined(&program, &model, &limits(), None) {
            Compared::Same(words, a, b) => {
                *tally.entry(format!("{words:?}")).or_default() += 1;
                (literal, few) = (literal + a, few + b);
            }
            Compared::Skipped(why) => *tally.entry(why).or_default() += 1,
            Compared::Different(what) => {
                wrong += 1;
                if wrong <= 5 {
                    let few = moire_program::text::print(&joined(&program));
                    eprintln!("--- seed {seed}: {what}\n{}\n{few}", warps_text(seed));
                }
            }
        }
    }
    eprintln!("{tally:#?}\nthreads {literal} literal, {few} joined");
    assert_eq!(wrong, 0, "of {count}");
}

#[test]
fn every_planted_bug_is_found() {
    let model = moire_models::load("ptx", &Variants::default()).expect("the model loads");
    let most = number("MOIRE_JOINED_BUGS").unwrap_or(0);
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let found = (1..=most).find(|seed| {
            let program = warps_program(*seed);
            program.is_some_and(|p| {
                matches!(compare_joined(&p, &model, &limits(), Some(bug)), Compared::Different(_))
            })
        });
        eprintln!("{bug:?}: {found:?}");
        if found.is_none() {
            missed.push(bug);
        }
    }
    assert!(most == 0 || missed.is_empty(), "{missed:?}");
}
