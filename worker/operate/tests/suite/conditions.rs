//! Programs that break one condition and nothing else: the run is clean, and another run need not be.

use super::families::program;
use moire_operate::{Condition, Limits, Planted, Settings, operate, operate_planted};

/// By condition a program that breaks it. The explorer finds a race or a hang in each.
pub(crate) const BROKEN: [(Condition, &str); 8] = [
    // The second copy may complete in the first phase, and then the first load reads before its copy.
    (
        Condition::Observed,
        "moire \"observed\"\n.shared .b8 a[64];\n.shared .b8 c[64];\n.global .b8 g[64];\n.shared .b64 b;\n\
         A (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  \
         mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 64;\n  bar.arrive 1, 2;\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [a];\n  \
         mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 64;\nM:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 1;\n  @!p bra M;\n  ld.weak.shared::cta.b8 r, [c];\n}\n\
         B (gpu 0, cta 0, warp 1) {\n  bar.sync 1, 2;\n  \
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 64, [b];\n  \
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [c], [g], 64, [b];\n}\n",
    ),
    // The second thread may wait so late that the phase after next is complete: its parity is that of none.
    (
        Condition::Lapped,
        "moire \"lapped\"\n.shared .b64 b;\n.shared .b64 d;\n\
         A (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  mbarrier.init.shared::cta.b64 [d], 1;\n  bar.sync 0;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [d];\n  bar.sync 1, 2;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n}\n\
         B (gpu 0, cta 0, warp 1) {\n  bar.sync 0;\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n}\n\
         C (gpu 0, cta 0, warp 2) {\n  bar.sync 0;\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [d], 0;\n  @!p bra L;\n  bar.sync 1, 2;\n}\n",
    ),
    // The third thread may meet the first before the arrivals of the second count.
    (
        Condition::Generation,
        "moire \"generation\"\n.shared .b8 x;\n.shared .b8 y;\n\
         B (gpu 0, cta 0) {\n  bar.sync 1, 2;\n  ld.weak.shared::cta.b8 r, [x];\n}\n\
         A (gpu 0, cta 0, warp 1) {\n  st.weak.shared::cta.b8 [x], 1;\n  bar.arrive 1, 2;\n  st.weak.shared::cta.b8 [y], 1;\n  \
         bar.arrive 1, 2;\n}\n\
         C (gpu 0, cta 0, warp 2) {\n  bar.sync 1, 2;\n  ld.weak.shared::cta.b8 r, [y];\n}\n",
    ),
    // The arrival may come first, and the phase is complete before the bytes are announced.
    (
        Condition::Expected,
        "moire \"expected\"\n.shared .b8 a[64];\n.global .b8 g[64];\n.shared .b64 b;\n\
         B (gpu 0, cta 0) {\n  bar.sync 0;\n  mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [a];\n}\n\
         A (gpu 0, cta 0, warp 1) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
         mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 64;\n  \
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 64, [b];\n}\n",
    ),
    // The same, of a phase that never completes in this run: the arrival comes after the bytes are announced.
    (
        Condition::Expected,
        "moire \"expected at the end\"\n.shared .b64 b;\n\
         B (gpu 0, cta 0) {\n  bar.sync 0;\n  mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n}\n\
         A (gpu 0, cta 0, warp 1) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
         mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 64;\n}\n",
    ),
    // The arrival may complete the phase. In this run the bytes are complete before, and announcing them completes it.
    (
        Condition::Expected,
        "moire \"expected late\"\n.shared .b64 b;\n\
         B (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 8;\n}\n\
         A (gpu 0, cta 0, warp 1) {\n  bar.sync 0;\n  mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [b], 8;\n}\n",
    ),
    // The pending count that stands for the copy may be raised when the phase is complete.
    (
        Condition::Expected,
        "moire \"copies announced\"\n.shared .b8 a[16];\n.global .b8 g[16];\n.shared .b64 b;\n\
         B (gpu 0, cta 0) {\n  bar.sync 0;\n  mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [a];\n}\n\
         A (gpu 0, cta 0, warp 1) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
         cp.async.ca.shared::cta.global [a], [g], 16;\n  cp.async.mbarrier.arrive.shared::cta.b64 [b];\n}\n",
    ),
    // The wait of the second thread may answer for the first phase, and in this run it answers for the third.
    (
        Condition::Passed,
        "moire \"passed\"\n.shared .b8 x;\n.shared .b64 b;\n\
         A (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\nM:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 1;\n  @!p bra M;\n  st.weak.shared::cta.b8 [x], 1;\n  \
         mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n}\n\
         B (gpu 0, cta 0, warp 1) {\n  bar.sync 0;\nL:\n  \
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n  ld.weak.shared::cta.b8 r, [x];\n}\n",
    ),
];

#[test]
fn each_condition_has_a_program_that_breaks_it_alone() {
    for (condition, text) in BROKEN {
        let outcome = operate(&program(text), &Settings::letter(), &Limits::default())
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outcome.broken(), [condition].into(), "{condition:?}: {:#?}", outcome.findings);
        assert_eq!(outcome.kinds(), [].into(), "{condition:?}: {:#?}", outcome.findings);
        assert_eq!(outcome.words(), ["protocol"].into());
    }
}

/// A barrier that names as many threads as the CTA has. The second thread exits and does not arrive.
pub(crate) const COUNTED: &str =
    "moire \"counted\"\nB (gpu 0, cta 0) { bar.sync 1, 2; }\nA (gpu 0, cta 0, warp 1) { }\n";

#[test]
fn an_exit_is_no_arrival_at_a_barrier_that_names_its_threads() {
    let words =
        |text: &str| operate(&program(text), &Settings::letter(), &Limits::default()).map(|o| o.words());
    assert_eq!(words(COUNTED), Ok(["hang"].into()));
    assert_eq!(words(&COUNTED.replace("1, 2", "1")), Ok(["clean"].into()));
    let mixed = COUNTED.replace("{ }", "{ bar.sync 1; }");
    assert_eq!(words(&mixed), Ok(["clean"].into()));
    let exits = mixed.replace("1, 2", "1, 3") + "C (gpu 0, cta 0, warp 2) { }\n";
    let why = words(&exits).map_err(|abstain| abstain.what);
    assert_eq!(why, Err("a thread that exits, of a barrier with and without a number of threads".to_owned()));
}

/// Without D5 the canonical run of this program is clean, and a run in which the threads take turns is not.
#[test]
fn other_schedules_show_a_condition_that_is_not_checked() {
    let (_, text) = BROKEN.last().expect("there are programs");
    let outcome = operate_planted(&program(text), &Settings::letter(), &Limits::default(), Planted::Passed);
    let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((outcome.words(), outcome.findings.len()), (["abstained"].into(), 0));
    let differs = outcome.differs.expect("another schedule finds the race");
    assert!(differs.contains("an instruction each: x: "), "{differs}");
}

/// A wait for the first phase has no earlier one to answer for, though another thread has waited before that phase.
#[test]
fn a_wait_for_the_first_phase_is_not_early() {
    let text = "moire \"first\"\n.shared .b64 b;\n\
        A (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  bar.sync 0;\nL:\n  \
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 1;\n  @!p bra L;\n  \
        mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n}\n\
        B (gpu 0, cta 0, warp 1) {\n  bar.sync 0;\nL:\n  \
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n  @!p bra L;\n}\n";
    let outcome = operate(&program(text), &Settings::letter(), &Limits::default());
    assert_eq!(outcome.map(|o| o.words()), Ok(["clean"].into()));
}

/// Lane 0 is named by the election and does not come. Another lane is elected, which the engine cannot know in time.
#[test]
fn an_election_without_its_first_lane_is_not_decided() {
    let lane = |n: u32, body: &str| format!("P{n} (gpu 0, cta 0, warp 0, lane {n}) {{ {body} }}\n");
    let elects = "elect.sync _|q, 7; @q bar.sync 1, 3;";
    let text = format!("moire \"elect\"\n{}{}{}", lane(0, "exit;"), lane(1, elects), lane(2, elects));
    let answer = operate(&program(&text), &Settings::letter(), &Limits::default());
    assert!(answer.is_err_and(|why| why.what.contains("first lane of its mask")));
}
