//! Exploration with few dead ends, on programs whose pending addresses once led to hundreds of thousands of them, and
//! on threads that wait for each other. Each side condition of the pruning is needed.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_cat::Variants;
use moire_explore::planted::Planted;
use moire_explore::search::LeafView;
use moire_explore::{Limits, Summary, explore};
use moire_generate::families::named;
use moire_lab::differential::{Comparison, Difference, compare_planted};
use moire_naive::NaiveLimits;
use moire_program::text::{Format, parse};
use std::ops::ControlFlow;

/// A wide store through a computed address may write any byte that is read before it.
const WIDE: &str = r#"moire "wide"
.global .b8 x[16];
.global .b8 y[16];
P0 (gpu 0, cta 0) {
  st.weak.global.u32 [y], 1;
  st.weak.global.u8 [x+1], 1;
  st.weak.global.u16 [y+2], 2;
  st.weak.global.u64 [x], 2;
}
P1 (gpu 0, cta 1) {
  ld.weak.global.v2.u64 {r0, r1}, [x];
  fence.acquire.gpu;
  xor.b64 r2, r0, r0;
  mov.u64 r3, y;
  add.u64 r3, r3, r2;
  st.weak.global.v2.u64 [r3], {3, 4};
  ld.weak.global.v2.u64 {r4, r5}, [y];
}
"#;

/// Reads in front of two spin loops stay open for writes that turn out to have other addresses.
const SPINS: &str = r#"moire "spins"
.global .b64 x;
.global .b64 y;
P0 (gpu 0, cta 0) {
  ld.weak.global.u32 r0, [y+4];
  xor.b64 r1, r0, r0;
  mov.u64 r2, x;
  add.u64 r2, r2, r1;
  st.release.cta.global.u64 [r2], 2;
  setp.eq.u64 r3, r0, 0;
  @!r3 st.weak.global.u64 [y], 1;
L0:
  atom.release.cluster.cas.b64 r4, [x], 0, 4;
  setp.ne.u64 r5, r4, 0;
  @r5 bra L0;
}
P1 (gpu 0, cta 1) {
  st.release.gpu.global.u64 [x], 1;
  ld.weak.global.u64 r0, [y];
L0:
  ld.weak.global.u64 r1, [y];
  setp.eq.u64 r2, r1, 0;
  @r2 bra L0;
}
P2 (gpu 0, cta 2) {
  ld.acquire.sys.global.u64 r0, [x];
  setp.eq.u64 r1, r0, 0;
  @r1 bra L0;
  ld.weak.global.u16 r2, [y];
L0:
  st.weak.global.u64 [x], 3;
}
"#;

fn within(text: &str, steps: u64) -> Summary {
    let model = moire_models::load("ptx", &Variants::new()).unwrap();
    let program = parse(text, Format::Native).unwrap();
    let limits = Limits { steps, ..Limits::default() };
    let seen = &mut |_: &mut dyn LeafView| ControlFlow::Continue(());
    let summary = explore(&program, &model, &[], &limits, seen).unwrap();
    assert_eq!(summary.bounded, None, "{}: {summary:?}", program.name);
    assert!(summary.complete + summary.blocked > 0, "{}: {summary:?}", program.name);
    summary
}

#[test]
fn pending_addresses_cost_few_decisions() {
    for text in [WIDE, SPINS] {
        let summary = within(text, 3_000);
        assert!(summary.dead_ends < 10, "{summary:?}");
    }
}

/// A thread takes a write that ends its wait. It goes on waiting only if such a write can still come, even in rings of
/// load buffering.
#[test]
fn awaits_cost_few_dead_ends() {
    for (name, n, most) in
        [("lbawait", 6, 0), ("seqlock", 2, 0), ("mpmc", 4, 7), ("ttas", 3, 160), ("ticket", 4, 190)]
    {
        let summary = within(&named(name).unwrap().text(n), 100_000);
        assert_eq!(summary.blocked, 0, "{name}({n}): {summary:?}");
        assert!(summary.dead_ends <= most, "{name}({n}): {summary:?}");
    }
}

/// Loops whose end does not depend on a read in them: that read may take the thread's own write behind the loop, which
/// uses another name of the location.
#[test]
fn a_read_in_a_loop_may_take_a_later_write_of_its_thread() {
    let loops = [
        "L0: atom.relaxed.sys.cas.b32 r1, [x], 0, 1; @p bra L0;",
        "L0: ld.weak.u32 r0, [x]; @p bra L0;",
        "L0: atom.relaxed.sys.cas.b32 r1, [x], 0, 1; atom.relaxed.sys.cas.b32 r1, [x], 0, 1; @p bra L0; \
         setp.eq.u32 q, r1, 1; @q exit;",
        "L0: ld.weak.u32 r0, [x]; ld.weak.u32 r1, [y]; setp.ne.u32 q, r1, 1; @q bra L0;",
        "L0: ld.weak.u32 r0, [x]; @p bra L0; L1: ld.weak.u32 r1, [y]; setp.ne.u32 q, r1, 1; @q bra L1;",
    ];
    for (text, models) in loops.into_iter().flat_map(|text| [(text, "ptx"), (text, "any")]) {
        let text = format!(
            "moire \"behind\"\n.global .b32 x;\n.alias a = x;\n.global .b32 y;\n\
             P0 (gpu 0, cta 0) {{ .reg p, q, r0, r1; {text} st.weak.u32 [a], 3; }}\n\
             P1 (gpu 0, cta 1) {{ st.weak.u32 [y], 1; }}"
        );
        let program = parse(&text, Format::Native).unwrap();
        let model = moire_models::load(models, &Variants::new()).unwrap();
        let same = compare_planted(&program, &model, &NaiveLimits::default(), None);
        assert!(matches!(same, Comparison::Same { .. }), "{models}: {same:?}\n{text}");
    }
}

/// An iteration that may have written has not failed. Whether a compare-and-swap succeeds may be known only after the
/// branch back.
#[test]
fn an_iteration_that_may_have_written_has_not_failed() {
    let loops = [
        "L0: atom.relaxed.gpu.cas.b32 r1, [x], 0, 1; setp.ne.u32 q, r1, 0; \
         atom.relaxed.gpu.cas.b32 r1, [x], 0, 1; @q bra L0;",
        "L0: ld.relaxed.gpu.u32 r0, [x]; setp.ne.u32 q, r0, 0; atom.relaxed.gpu.cas.b32 r1, [y], 1, 2; @q bra L0;",
    ];
    for (text, models) in loops.into_iter().flat_map(|text| [(text, "ptx"), (text, "any")]) {
        let text = format!(
            "moire \"unsure\"\n.global .b32 x;\n.global .b32 y;\n\
             P0 (gpu 0, cta 0) {{ .reg q, r0, r1; {text} }}\n\
             P1 (gpu 0, cta 1) {{ st.weak.u32 [x], 3; st.weak.u32 [y], 1; }}\n\
             exists (y == 1)"
        );
        let program = parse(&text, Format::Native).unwrap();
        let model = moire_models::load(models, &Variants::new()).unwrap();
        let limits = NaiveLimits { candidates: 1_000_000, ..NaiveLimits::default() };
        let same = compare_planted(&program, &model, &limits, None);
        assert!(matches!(same, Comparison::Same { .. }), "{models}: {same:?}\n{text}");
    }
}

/// A value read in a failed iteration may be in the final state.
#[test]
fn a_value_read_in_a_failed_iteration_is_in_the_final_state() {
    let text = r#"moire "guarded"
.global .b32 g;
.global .b32 h;
P0 (gpu 0, cta 0) {
L0:
  ld.relaxed.gpu.u32 r1, [g];
  setp.eq.u32 q, r1, 1;
  @q ld.relaxed.gpu.u32 r0, [g];
  ld.relaxed.gpu.u32 r2, [h];
  setp.eq.u32 p, r2, 0;
  @p bra L0;
}
P1 (gpu 0, cta 1) { st.relaxed.gpu.u32 [g], 1; st.relaxed.gpu.u32 [g], 2; st.relaxed.gpu.u32 [h], 1; }
exists (P0:r0 == 1 /\ P0:r1 == 2)
"#;
    let (program, model) =
        (parse(text, Format::Native).unwrap(), moire_models::load("ptx", &Variants::new()).unwrap());
    let same = compare_planted(&program, &model, &NaiveLimits::default(), None);
    assert!(matches!(same, Comparison::Same { .. }), "{same:?}");
}

/// Await gating does not try a hang at a loop that the thread must pass. Each side condition of it has a program in
/// which a thread can wait for ever although a write that ends its loop exists:
///
/// - the other one of two racing writes may be coherence-last;
/// - another waiting thread passes its loop and overwrites the write;
/// - a waiting thread that cannot pass yet passes later and overwrites the write.
#[test]
fn bugs_planted_in_await_gating_are_found() {
    let wait = |object: &str, then: &str| {
        format!("L0:\n ld.relaxed.gpu.u32 r0, [{object}];\n setp.ne.u32 r9, r0, 1;\n @r9 bra L0;\n{then}")
    };
    let store = |object: &str, value: u32| format!(" st.relaxed.gpu.u32 [{object}], {value};\n");
    let weak = |value: u32| format!(" st.weak.u32 [x], {value};\n");
    let programs = [
        (Planted::SomeLast, vec![wait("x", ""), weak(1), weak(2)]),
        (
            Planted::NobodyElse,
            vec![wait("x", &store("y", 2)), store("x", 1) + &store("y", 1), wait("y", &store("x", 2))],
        ),
        (
            Planted::StaysInFront,
            vec![
                wait("x", &store("y", 2)),
                store("x", 1) + &store("y", 1),
                wait("z", &store("x", 2)),
                wait("y", &store("z", 1)),
            ],
        ),
    ];
    assert_eq!(programs.each_ref().map(|(bug, _)| *bug), Planted::GATES);
    let model = moire_models::load("ptx", &Variants::new()).unwrap();
    for (bug, threads) in programs {
        let mut text = "moire \"front\"\n.global .b32 x;\n.global .b32 y;\n.global .b32 z;\n".to_owned();
        for (n, body) in threads.iter().enumerate() {
            text += &format!("P{n} (gpu 0, cta {n}) {{\n{body}}}\n");
        }
        let program = parse(&text, Format::Native).unwrap();
        let with = |bug| compare_planted(&program, &model, &NaiveLimits::default(), bug);
        let (right, wrong) = (with(None), with(Some(bug)));
        assert!(matches!(right, Comparison::Same { .. }), "{bug:?}: {right:?}");
        assert!(matches!(wrong, Comparison::Different(Difference::Missing(_))), "{bug:?}: {wrong:?}");
    }
}
