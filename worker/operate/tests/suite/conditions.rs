//! Programs that break one condition and nothing else: the run is clean, and another run need not be.

use super::families::program;
use moire_operate::{Condition, Limits, Settings, operate};

/// By condition a program that breaks it. The explorer finds a race or a hang in each.
pub(crate) const BROKEN: [(Condition, &str); 4] = [
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
