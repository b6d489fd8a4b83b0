//! Reduction: every pass is useful, every candidate is a valid text, and one bug gives one text.

use moire_generate::{Profile, Stream};
use moire_program::canon::{canonical, normal};
use moire_program::ir::{FenceOrder, Op, Program, Space, Ty};
use moire_program::reduce::{Limits, minimise, passes, size};
use moire_program::text::{Format, parse, print};

fn candidates(name: &str, program: &Program) -> Vec<Program> {
    let pass = passes().iter().find(|p| p.name == name).expect("a pass of that name");
    (pass.candidates)(program).collect()
}

/// Programs with instructions that the core stream does not draw.
fn tensor_programs() -> Vec<Program> {
    [
        include_str!("../../../program/tests/data/tensor-moves.litmus"),
        include_str!("../../../program/tests/data/tensor-products.litmus"),
        include_str!("../../../program/tests/data/tensor-pair.litmus"),
        include_str!("../../../program/tests/data/copies.litmus"),
    ]
    .iter()
    .map(|text| parse(text, Format::Native).expect("a program"))
    .collect()
}

#[test]
fn every_candidate_is_a_valid_text() {
    let drawn = (0..60).map(|index| Stream::new(3, Profile::Core).item(index));
    for program in drawn.chain(tensor_programs()) {
        for pass in passes() {
            for candidate in (pass.candidates)(&program) {
                let (candidate, _) = normal(&candidate);
                let text = print(&candidate);
                parse(&text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}\n{text}", pass.name));
            }
        }
    }
}

#[test]
fn every_pass_makes_some_program_smaller() {
    let mut idle: Vec<&str> = passes().iter().map(|p| p.name).collect();
    let drawn = (0..3000).map(|index| Stream::new(5, Profile::Core).item(index));
    for program in tensor_programs().into_iter().chain(drawn) {
        let (program, _) = normal(&program);
        let before = size(&program);
        idle.retain(|name| !candidates(name, &program).iter().any(|c| size(&normal(c).0) < before));
        if idle.is_empty() {
            return;
        }
    }
    panic!("never useful: {idle:?}");
}

/// Store buffering: two threads that each store an integer, fence with `fence.sc`, and load.
fn buggy(program: &Program) -> bool {
    let side = |t: &moire_program::ir::Thread| {
        let at = t.body.iter().position(|i| matches!(i.op, Op::Fence { order: FenceOrder::Sc, .. }));
        at.is_some_and(|at| {
            t.body[..at].iter().any(|i| matches!(i.op, Op::Store { ty, .. } if !matches!(ty, Ty::F(_))))
                && t.body[at..].iter().any(|i| matches!(i.op, Op::Load { .. }))
        })
    };
    program.threads.iter().filter(|t| side(t)).count() >= 2
}

#[test]
fn one_bug_gives_one_text() {
    let mut texts = std::collections::BTreeMap::new();
    let mut found = 0;
    for index in 0..60_000 {
        // Other families have types that no pass makes equal, and some programs names of other proxies, or objects of a CTA.
        let (family, program) = Stream::new(9, Profile::Core).drawn(index);
        let named = program.symbols.len() > program.objects.len()
            || program.objects.iter().any(|o| o.space != Space::Global);
        if named || !["random", "shapes", "cycles"].contains(&family) || !buggy(&program) {
            continue;
        }
        found += 1;
        let reduced = minimise(&program, buggy, Limits::default());
        assert!(reduced.complete && buggy(&reduced.program));
        let text = canonical(&reduced.program).text;
        // No pass changes the type of an access.
        let types = [
            "bf16x2", "f16x2", "s32", "u8", "s64", "b32", "b8", "b64", "u64", "f32", "f64", "s8", "s16",
            "u16", "b16",
        ];
        let text = types.iter().fold(text, |text, ty| text.replace(ty, "u32"));
        *texts.entry(text).or_insert(0) += 1;
        if found == 20 {
            break;
        }
    }
    assert!(found >= 8);
    assert_eq!(texts.len(), 1, "{texts:#?}");
}

#[test]
fn a_predicate_that_never_holds_leaves_the_program() {
    let program = Stream::new(1, Profile::Core).item(0);
    let reduced = minimise(&program, |_| false, Limits::default());
    assert_eq!(reduced.program, normal(&program).0);
    assert_eq!((reduced.tried, reduced.accepted.len()), (1, 0));
}

#[test]
fn the_limit_is_reported() {
    let program = Stream::new(1, Profile::Core).item(0);
    let reduced = minimise(&program, |_| true, Limits { tried_max: 2 });
    assert!(!reduced.complete);
}
