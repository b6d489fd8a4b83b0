//! Bugs planted in the search give advice that is wrong. The tests that hold for advice find each of them.

use crate::shared::{Under, programs, read};
use moire_explore::judge::Verdict;
use moire_mend::Planted;
use moire_program::edit::apply;
use moire_program::ir::Program;
use moire_program::text::print;

/// A ring of one stage whose consumer reads on after it has given the stage back.
const LATE_READ: &str = "moire \"late\"
.shared .b32 x;
P0 (gpu 0, cta 0) {
  st.weak.shared::cta.u32 [x], 1;
  bar.sync 0;
  st.weak.shared::cta.u32 [x], 2;
}
P1 (gpu 0, cta 0) {
  bar.sync 0;
  ld.weak.shared::cta.u32 r0, [x];
}
";

/// A reader that does not wait for its writer.
const NO_WAIT: &str = "moire \"none\"
.shared .b32 x;
P0 (gpu 0, cta 0) {
  st.weak.shared::cta.u32 [x], 1;
}
P1 (gpu 0, cta 0) {
  ld.weak.shared::cta.u32 r0, [x];
}
";

/// The values that the load of `P1` has in all executions of a program.
fn values(ptx: &Under, program: &Program) -> Vec<u128> {
    let (leaves, _) = moire_naive::leaves(program, &ptx.model, &moire_naive::NaiveLimits::default())
        .expect("within limits");
    let mut out: Vec<u128> =
        leaves.values().flat_map(|f| &f.outcomes).filter_map(|o| o.regs.first().copied()).collect();
    out.sort_unstable();
    out.dedup();
    out
}

#[test]
fn a_barrier_in_the_wrong_direction_is_found() {
    let ptx = Under::new("ptx");
    for (text, right) in [(LATE_READ, 1), (NO_WAIT, 1)] {
        let program = read(text);
        let advice = ptx.mend(&program, None).expect("there is advice");
        assert_eq!(values(&ptx, &advice.program), [right], "{advice:?}");
    }
    let found = [LATE_READ, NO_WAIT].iter().filter(|text| {
        let program = read(text);
        let planted = ptx.mend(&program, Some(Planted::AnyDirection)).expect("there is advice");
        values(&ptx, &planted.program) != [1]
    });
    assert!(found.count() > 0, "the planted bug is not found");
}

/// A counter that loses updates, and a flag that a loop polls.
const COUNTER: &str = "moire \"counter\"
.global .b32 x;
P0 (gpu 0, cta 0) {
  ld.weak.global.u32 r0, [x];
  add.u32 r0, r0, 1;
  st.weak.global.u32 [x], r0;
}
P1 (gpu 0, cta 1) {
  ld.weak.global.u32 r0, [x];
  add.u32 r0, r0, 1;
  st.weak.global.u32 [x], r0;
}
";
const POLLED: &str = "moire \"polled\"
.global .b32 x;
P0 (gpu 0, cta 0) {
  st.weak.global.u32 [x], 1;
}
P1 (gpu 0, cta 1) {
L:
  ld.weak.global.u32 r0, [x];
  setp.eq.u32 p, r0, 0;
  @p bra L;
}
";

/// Whether advice makes an access strong.
fn strengthens(ptx: &Under, text: &str, planted: Option<Planted>) -> bool {
    let program = read(text);
    let weak = |p: &Program| print(p).matches(".weak").count();
    ptx.mend(&program, planted).is_ok_and(|advice| weak(&advice.program) < weak(&program))
}

#[test]
fn only_flags_that_a_loop_polls_become_strong() {
    let ptx = Under::new("ptx");
    assert!(strengthens(&ptx, POLLED, None), "a flag becomes strong");
    assert!(!strengthens(&ptx, COUNTER, None), "updates are still lost");
    assert!(strengthens(&ptx, COUNTER, Some(Planted::StrongPayload)), "the planted bug is not found");
}

#[test]
fn a_fix_that_hangs_is_found() {
    let ptx = Under::new("ptx");
    let mut found = 0;
    for (path, text) in programs("consan").into_iter().chain(programs("mbarrier")) {
        let program = read(&text);
        let judged = ptx.judge(&program).verdicts;
        if judged != [Verdict::Race] {
            continue;
        }
        let hangs = |planted| match ptx.mend(&program, planted) {
            Ok(advice) => ptx.judge(&advice.program).verdicts.contains(&Verdict::Hang),
            Err(_) => false,
        };
        assert!(!hangs(None), "{}", path.display());
        found += usize::from(hangs(Some(Planted::IgnoresHangs)));
    }
    assert!(found > 0, "the planted bug is not found");
}

#[test]
fn an_edit_that_is_there_already_is_found() {
    let ptx = Under::new("ptx");
    let needless = |planted| {
        let mut count = 0;
        for text in [LATE_READ, NO_WAIT] {
            let program = read(text);
            let advice = ptx.mend(&program, planted).expect("there is advice");
            for at in 0..advice.steps.len() {
                let mut fewer = advice.steps.clone();
                fewer.remove(at);
                let edited = apply(&program, &fewer.concat());
                count += usize::from(edited.is_some_and(|p| ptx.is_clean(&p)));
            }
        }
        count
    };
    assert_eq!(needless(None), 0);
    assert!(needless(Some(Planted::KeepsAll)) > 0, "the planted bug is not found");
}
