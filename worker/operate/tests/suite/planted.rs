//! Each planted bug of the engine changes a verdict that the tests hold.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::conditions::{BROKEN, COUNTED};
use super::corpus::{FOLDERS, program as corpus};
use super::families::{MISTAKES, persistent, planted as mistaken, program, ring};
use moire_operate::{Abstain, Limits, Outcome, Planted, Settings, operate, operate_planted};
use moire_program::ir::Program;
use std::path::Path;

/// The second store is not ordered with the load, and the first one is.
const AGAIN: &str = "moire \"again\"\n.shared .b8 x;\n\
    B (gpu 0, cta 0) { bar.sync 0; ld.weak.shared::cta.b8 r, [x]; }\n\
    A (gpu 0, cta 0, warp 1) { st.weak.shared::cta.b8 [x], 1; bar.sync 0; st.weak.shared::cta.b8 [x], 1; }\n";

/// Programs, the ones with many states last.
fn programs() -> Vec<(String, Program)> {
    let text = persistent(2, 2);
    let mut out = vec![
        ("again".to_owned(), program(AGAIN)),
        ("counted".to_owned(), program(COUNTED)),
        ("ring".to_owned(), program(&ring(2))),
    ];
    out.extend(BROKEN.iter().map(|(condition, text)| (format!("{condition:?}"), program(text))));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    for folder in FOLDERS {
        let mut paths: Vec<_> =
            std::fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "litmus"));
        paths.sort();
        out.extend(paths.iter().map(|p| (p.display().to_string(), corpus(p))));
    }
    out.push(("persistent".to_owned(), program(&persistent(1, 1))));
    out.extend(MISTAKES.iter().map(|m| (m.name.to_owned(), program(&mistaken(&text, m)))));
    out
}

/// The answer as far as tests compare it.
fn answer(of: Result<Outcome, Abstain>) -> Option<(Vec<&'static str>, usize)> {
    of.ok().map(|o| (o.words().into_iter().collect(), o.broken().len()))
}

#[test]
fn every_planted_bug_is_found() {
    let limits = Limits { states: 4_000, steps: 2_000_000, ..Limits::default() };
    let both = [Settings::letter(), Settings::practice()];
    let plain = |program: &Program| both.map(|s| answer(operate(program, &s, &limits)));
    let programs: Vec<_> = programs().into_iter().map(|(name, p)| (name, plain(&p), p)).collect();
    let mut left = Vec::new();
    for bug in Planted::ALL {
        let differs = |(_, plain, program): &&(String, _, Program)| {
            both.map(|s| answer(operate_planted(program, &s, &limits, bug))) != *plain
        };
        match programs.iter().find(differs) {
            Some((name, ..)) => println!("{bug:?}: found by {name}"),
            None => left.push(bug),
        }
    }
    assert!(left.is_empty(), "not found: {left:?}");
}
