//! Cuts of programs from the pinned stream: each leaves a valid program, and cuts that hold alone are combined.

use moire_generate::{Profile, Stream};
use moire_program::ir::Op;
use moire_program::ir::Program;
use moire_program::reduce::{Cut, cuts, ddmin, join, without};

fn programs() -> impl Iterator<Item = Program> {
    let stream = Stream::new(3, Profile::Core);
    (0..40).map(move |n| stream.item(n))
}

/// The number of threads with a store, for a predicate that needs two places.
fn stores(program: &Program) -> usize {
    let has = |t: &&moire_program::ir::Thread| t.body.iter().any(|i| matches!(i.op, Op::Store { .. }));
    program.threads.iter().filter(has).count()
}

#[test]
fn every_cut_leaves_a_valid_program_or_nothing() {
    let mut candidates = 0;
    for program in programs() {
        let list = cuts(&program);
        assert_eq!(list, cuts(&program));
        for cut in &list {
            let Some(left) = without(&program, &[*cut]) else { continue };
            candidates += 1;
            let text = moire_program::text::print(&left);
            assert!(moire_program::text::parse(&text, moire_program::text::Format::Native).is_ok(), "{text}");
        }
        assert!(without(&program, &[Cut::Thread(99)]).is_none());
        assert!(
            (0..9).all(|n| {
                without(&program, &[Cut::Run { thread: 0, from: 500, to: 500 + n }; 2]).is_none()
            })
        );
    }
    assert!(candidates > 400, "{candidates}");
}

#[test]
fn cuts_that_hold_are_combined() {
    let mut joined = 0;
    for program in programs().filter(|p| stores(p) >= 2) {
        let holds = |p: &Program| stores(p) >= 2;
        let alone: Vec<Cut> = cuts(&program)
            .into_iter()
            .filter(|c| without(&program, &[*c]).is_some_and(|p| holds(&p)))
            .collect();
        let (left, tried) = join(&program, &alone, holds);
        assert!(tried <= alone.len() + 1);
        let Some(left) = left else { continue };
        assert!(holds(&left));
        joined += 1;
        let (by_ddmin, _) = ddmin(&program, holds);
        assert!(holds(&by_ddmin));
        let instructions = |p: &Program| p.threads.iter().map(|t| t.body.len()).sum::<usize>();
        assert!(instructions(&by_ddmin) <= instructions(&program));
    }
    assert!(joined > 3, "{joined}");
}
