//! What could go of clean programs: each removal is confirmed by the enumerator.

use crate::shared::{Under, limits, programs, read};
use moire_mend::redundant::redundant;
use moire_mend::{Budget, describe};
use moire_naive::NaiveLimits;
use moire_naive::leaves as naive_leaves;
use moire_program::edit::apply;
use moire_program::ir::Program;
use moire_program::text::print;

/// Programs of the corpus that are asked.
const FOLDERS: [&str; 4] = ["mbarrier", "barrier.cluster", "barriers", "consan"];

fn quiet(ptx: &Under, program: &Program) -> Option<bool> {
    let (leaves, _) = naive_leaves(program, &ptx.model, &NaiveLimits::default()).ok()?;
    let blocked = moire_execution::leaf::LeafKind::Blocked;
    Some(leaves.values().all(|f| f.flags.is_empty() && f.kind != blocked))
}

#[test]
fn removals_change_no_verdict() {
    let ptx = Under::new("ptx");
    let (mut asked, mut found, mut confirmed) = (0, 0, 0);
    for (path, text) in FOLDERS.iter().flat_map(|f| programs(f)) {
        let program = read(&text);
        let judgement = ptx.judge(&program);
        if !judgement.is_clean() {
            continue;
        }
        asked += 1;
        let budget = Budget::of(judgement.summary.checks);
        let name = path.display();
        let spare = redundant(&program, &[ptx.models()], &limits(), budget, &|| true);
        let spare = spare.unwrap_or_else(|why| panic!("{name}: {why}"));
        let together: Vec<_> = spare.together.concat();
        for steps in spare.alone.iter().chain([&together]).filter(|s| !s.is_empty()) {
            found += 1;
            let edited = apply(&program, &steps.concat()).unwrap_or_else(|| panic!("{name}: {steps:?}"));
            assert_ne!(print(&edited), print(&program), "{name}: an edit that changes nothing");
            assert!(ptx.is_clean(&edited), "{name}: {:?}", describe(&program, steps));
            if let Some(quiet) = quiet(&ptx, &edited) {
                confirmed += 1;
                assert!(quiet, "{name}: {:?}", describe(&program, steps));
            }
        }
    }
    println!("{asked} programs, {found} removals, {confirmed} confirmed by the enumerator");
    assert!(asked >= 10 && found > 0 && 10 * confirmed > 9 * found, "{asked} {found} {confirmed}");
}

/// Under each reading that the program is clean under. A quarter of the programs; `MEND_ALL=1` takes all, which needs minutes.
#[test]
fn removals_in_right_programs_hold_under_all_readings() {
    let all = Under::readings("ptx");
    let (mut asked, mut found, mut confirmed) = (0, 0, 0);
    let right = programs("bugs").into_iter().filter(|(path, _)| path.to_string_lossy().contains("-fixed"));
    let step = if std::env::var_os("MEND_ALL").is_some() { 1 } else { 4 };
    for (path, text) in right.step_by(step) {
        let (program, name) = (read(&text), path.display());
        let holds: Vec<&Under> = all.iter().filter(|under| under.is_clean(&program)).collect();
        asked += 1;
        let checks = all[0].judge(&program).summary.checks;
        let models: Vec<_> = holds.iter().map(|under| under.models()).collect();
        let spare = redundant(&program, &models, &limits(), Budget::of(checks), &|| true);
        let spare = spare.unwrap_or_else(|why| panic!("{name}: {why}"));
        let together: Vec<_> = spare.together.concat();
        for steps in spare.alone.iter().chain([&together]).filter(|s| !s.is_empty()) {
            found += 1;
            let edited = apply(&program, &steps.concat()).unwrap_or_else(|| panic!("{name}: {steps:?}"));
            assert_ne!(print(&edited), print(&program), "{name}: an edit that changes nothing");
            for under in &holds {
                if let Some(quiet) = quiet(under, &edited) {
                    confirmed += 1;
                    assert!(quiet, "{name}: {:?}", describe(&program, steps));
                }
            }
        }
    }
    println!("{asked} programs, {found} removals, {confirmed} answers of the enumerator");
    assert!(asked >= 10 && found > 0 && confirmed > 9 * found, "{asked} {found} {confirmed}");
}

#[test]
fn a_set_of_removals_is_maximal_and_what_is_needed_stays() {
    let ptx = Under::new("ptx");
    let text = "moire \"spare\"\n.global .b32 x;\n.global .b32 f;\nP0 (gpu 0, cta 0) {\n  st.weak.global.u32 [x], 1;\n  \
        fence.sc.sys;\n  st.release.sys.global.u32 [f], 1;\n}\nP1 (gpu 0, cta 1) {\nL:\n  ld.acquire.sys.global.u32 r0, [f];\n  \
        setp.eq.u32 p, r0, 0;\n  @p bra L;\n  fence.sc.sys;\n  ld.weak.global.u32 r1, [x];\n}\n";
    let program = read(text);
    let spare =
        redundant(&program, &[ptx.models()], &limits(), Budget::of(1_000), &|| true).expect("it is explored");
    let words = |all: &[moire_mend::redundant::Removal]| -> Vec<String> {
        all.iter().map(|r| describe(&program, r).join(" ")).collect()
    };
    let (alone, together) = (words(&spare.alone), words(&spare.together));
    assert!(alone.iter().any(|w| w.contains("remove `fence.sc.sys`, line 6")), "{alone:?}");
    assert!(alone.iter().any(|w| w.contains("st.relaxed.sys.global.u32")), "{alone:?}");
    // The release is needed without the fence, and the fence without the release.
    let release = |w: &String| w.contains("`st.relaxed.sys") || w.contains("line 6");
    assert_eq!(together.iter().filter(|w| w.contains("remove") && release(w)).count(), 1, "{together:?}");
    assert!(!together.iter().any(|w| w.contains("`st.relaxed.sys")), "{together:?}");
}

/// A fence in front of a store that a copy must not read: some readings need it.
const FENCED: &str = include_str!("../../../../corpus/litmus/bugs/tirx-42-cp-fixed.litmus");

#[test]
fn what_a_reading_needs_is_not_redundant() {
    let program = read(FENCED);
    let all = Under::readings("ptx");
    assert!(all.len() > 3);
    let words = |models: &[moire_mend::Models<'_>]| -> Vec<String> {
        let spare =
            redundant(&program, models, &limits(), Budget::of(1_000), &|| true).expect("it is explored");
        spare.alone.iter().chain(&spare.together).map(|r| describe(&program, r).join(" ")).collect()
    };
    let fence = |w: &String| w.contains("remove `fence.proxy.async`, line 22");
    assert!(words(&[all[0].models()]).iter().any(fence));
    let models: Vec<_> = all.iter().map(Under::models).collect();
    let under_all = words(&models);
    assert!(!under_all.is_empty() && !under_all.iter().any(fence), "{under_all:?}");
}
