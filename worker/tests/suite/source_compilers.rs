//! The oracles of source programs: with a stand-in that compiles message passing in ways of the test's choice, and with
//! each `llc` that is here.
//!
//! The stand-in is a script. It prints the version that `llc` prints, and as PTX a file that stands beside it for each
//! program it is given: the text of the test, or nothing.

use crate::outside::skipped;
use moire_generate::Profile;
use moire_proto::needs::one_bug;
use moire_source::form::settled;
use moire_source::text::parse;
use moire_toolchain::Failure;
use moire_toolchain::run::Limits;
use moire_toolchain::source::batch::compile;
use moire_toolchain::source::{Compiler, Kind, Table};
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::{
    CRASH, LLVM, LLVM_SOURCES, MIXED_SOURCES, MIXING, NVCC_SOURCES, Oracles, TRITON_SOURCES,
};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MESSAGE: &str = "source \"mp\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu x, 1; store.release.gpu y, 1; }
P1 (gpu 0, cluster 1, cta 1) { r0 = load.acquire.gpu y; r1 = load.relaxed.gpu x; }
";

/// Kernels with these bodies: `%rd1` and `%rd2` are the objects, the others up to `params` what the registers are stored to.
fn module(params: usize, bodies: &[&str]) -> String {
    let head = ".version 8.6\n.target sm_90\n.address_size 64\n";
    let kernel = |t: usize, body: &str| {
        let name = format!("moire_0_{t}_");
        let declared: Vec<String> = (0..params).map(|n| format!("\t.param .u64 {name}_param_{n}")).collect();
        let loads: String =
            (0..params).map(|n| format!("\tld.param.u64 %rd{}, [{name}_param_{n}];\n", n + 1)).collect();
        format!(
            ".visible .entry {name}(\n{}\n)\n{{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<9>;\n{loads}{body}\tret;\n}}\n",
            declared.join(",\n")
        )
    };
    let kernels: String = bodies.iter().enumerate().map(|(t, body)| kernel(t, body)).collect();
    format!("{head}{kernels}")
}

/// The PTX of [`MESSAGE`]: the store of the flag and the load of the flag have these orders.
fn ptx(store: &str, load: &str) -> String {
    let first = format!("\tst.relaxed.gpu.global.b32 [%rd1], 1;\n\tst.{store}.global.b32 [%rd2], 1;\n");
    let second = format!(
        "\tld.{load}.global.b32 %r1, [%rd2];\n\tld.relaxed.gpu.global.b32 %r2, [%rd1];\n\
         \tst.global.b32 [%rd3], %r1;\n\tst.global.b32 [%rd4], %r2;\n"
    );
    module(4, &[&first, &second])
}

/// A stand-in for `llc` of a release: it does `action` where the real one would write `module.ptx`.
fn stand_in(folder: &Path, release: u32, action: &str) -> Compiler {
    let path = folder.join(format!("llc-{release}"));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '  LLVM version {release}.1.0'; echo '    nvptx64 - NVIDIA'; exit 0; fi\n{action}\n"
    );
    std::fs::write(&path, script).expect("writable");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    Compiler::at(Kind::Llvm, &path).expect("a compiler")
}

/// A stand-in that gives every text this PTX.
fn gives(folder: &Path, release: u32, ptx: &str) -> Compiler {
    let file = folder.join(format!("given-{release}.ptx"));
    std::fs::write(&file, ptx).expect("writable");
    stand_in(folder, release, &format!("cp {} module.ptx", file.display()))
}

fn run(oracles: &Oracles, oracle: &str, source: Source) -> ItemReport {
    let plan = Plan { oracles: vec![oracle.to_owned()], ..Plan::default() };
    oracles.run(&Item { plan: Arc::new(plan), index: 0, source }, &Cancel::new())
}

fn claims(compilers: &[Compiler], oracle: &str) -> Vec<Claim> {
    claims_of(MESSAGE, compilers, oracle)
}

fn claims_of(text: &str, compilers: &[Compiler], oracle: &str) -> Vec<Claim> {
    let oracles = Oracles::with_source_compilers(compilers);
    let report = run(&oracles, oracle, Source::Text(text.into()));
    assert!(report.abstentions.is_empty(), "{report:#?}");
    for claim in &report.claims {
        assert_eq!(oracles.verify(claim, &Cancel::new()), Verification::Confirmed, "{claim:#?}");
    }
    report.claims
}

#[test]
fn each_weakening_of_a_mapping_is_found_in_its_class() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = |store: &str, load: &str| {
        let found = claims(&[gives(folder.path(), 20, &ptx(store, load))], LLVM_SOURCES.name);
        let one = |c: &Claim| (c.direction, c.verdict.clone(), c.axioms.clone());
        found.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(class("release.gpu", "acquire.gpu"), []);
    assert_eq!(class("release.sys", "acquire.sys"), []);
    let subset = |what: &[&str]| {
        let class = what.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        vec![(
            Direction::Subset,
            "discrepancy".to_owned(),
            class.into_iter().map(|c| vec![c]).collect::<Vec<_>>(),
        )]
    };
    assert_eq!(class("relaxed.gpu", "acquire.gpu"), subset(&["order-lost", "st"]));
    assert_eq!(class("release.gpu", "relaxed.gpu"), subset(&["order-lost", "ld"]));
    assert_eq!(class("release.cta", "acquire.gpu"), subset(&["scope-lost", "st"]));
    assert_eq!(class("release.gpu", "acquire.cta"), subset(&["scope-lost", "ld"]));
    assert_eq!(class("weak", "acquire.gpu")[0].2, [["weak-access"]]);
}

/// No order and no scope alone gives back what is lost here.
#[test]
fn what_needs_several_repairs_has_a_class() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = |release: u32, text: &str, params: usize, bodies: &[&str]| {
        let gives = gives(folder.path(), release, &module(params, bodies));
        let found = claims_of(text, &[gives], LLVM_SOURCES.name);
        assert_eq!(found.len(), 1, "{found:#?}");
        found[0].axioms.concat()
    };
    let loads = "fence.sc.gpu; ld.acquire.gpu.global.b32 %r1, [%rd1]; fence.sc.gpu; ld.acquire.gpu.global.b32 %r2, [%rd2];\n\
                 st.global.b32 [%rd3], %r1; st.global.b32 [%rd4], %r2;\n";
    let exchange = "fence.sc.gpu; st.release.gpu.global.b32 [%rd2], 1; atom.global.exch.b32 %r1, [%rd1], 0;\n\
                    st.global.b32 [%rd5], %r1;\n";
    let many_fences = "source \"fences\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = load.seq_cst.gpu x; r1 = load.seq_cst.gpu y; }
P1 (gpu 0, cluster 0, cta 0) { store.seq_cst.gpu x, 1; }
P2 (gpu 0, cluster 0, cta 0) { store.seq_cst.gpu y, 1; r0 = exch.seq_cst.gpu x, 0; }
";
    let store = "fence.sc.gpu; st.release.gpu.global.b32 [%rd1], 1;\n";
    assert_eq!(class(20, many_fences, 5, &[loads, store, exchange]), ["order-lost", "seq_cst"]);
    let far = "source \"far\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { store.seq_cst.sys x, 1; r0 = load.seq_cst.sys y; }
P1 (gpu 1, cluster 1, cta 1) { store.seq_cst.sys y, 1; r0 = exch.seq_cst.sys x, 0; }
";
    let load = "fence.sc.sys; st.release.sys.global.b32 [%rd1], 1; fence.sc.sys; ld.acquire.sys.global.b32 %r1, [%rd2];\n\
                st.global.b32 [%rd3], %r1;\n";
    let near = "fence.sc.sys; st.release.sys.global.b32 [%rd2], 1; atom.global.exch.b32 %r1, [%rd1], 0;\n\
                st.global.b32 [%rd4], %r1;\n";
    assert_eq!(class(21, far, 4, &[load, near]), ["order-lost", "seq_cst"]);
    let twice = "source \"twice\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = exch.acquire.sys x, 0; r1 = load.relaxed.gpu y; }
P1 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu y, 1; exch.acq_rel.sys x, 1; }
P2 (gpu 1, cluster 1, cta 1) { r0 = exch.relaxed.sys x, 0; exch.relaxed.sys x, 1; }
";
    let reader = "atom.global.exch.b32 %r1, [%rd1], 0; ld.volatile.global.u32 %r2, [%rd2];\n\
                  st.global.b32 [%rd3], %r1; st.global.b32 [%rd4], %r2;\n";
    let writer = "st.volatile.global.u32 [%rd2], 1; atom.global.exch.b32 %r1, [%rd1], 1;\n";
    let other =
        "atom.global.exch.b32 %r1, [%rd1], 0; st.volatile.global.u32 [%rd1], 1; st.global.b32 [%rd5], %r1;\n";
    assert_eq!(class(22, twice, 5, &[reader, writer, other]), ["update-lost"]);
}

/// A load that only one arm of a branch needs is made early: it races, and nobody sees what it reads. An early store is seen.
#[test]
fn a_load_may_be_made_early_and_a_store_may_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "source \"early\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = load.plain x; if r0 == 1 { r1 = load.plain y; } }
P1 (gpu 0, cluster 0, cta 0) { store.plain y, 2; }
";
    let store = "st.global.b32 [%rd2], 2;\n";
    let load = "ld.global.b32 %r1, [%rd1]; setp.eq.b32 %p1, %r1, 1; ld.global.b32 %r2, [%rd2]; selp.b32 %r3, %r2, 0, %p1;\n\
                st.global.b32 [%rd3], %r1; st.global.b32 [%rd4], %r3;\n";
    let early = |release, first: &str| {
        claims_of(text, &[gives(folder.path(), release, &module(4, &[first, store]))], LLVM_SOURCES.name)
    };
    assert_eq!(early(20, load), []);
    let again = load.replace("selp.b32", "st.global.b32 [%rd2], %r2; selp.b32");
    assert_eq!(early(21, &again).len(), 1, "the store of the other thread may be undone");
    // The thread loads the object plainly, too, and nobody sees another state: the store was asked to be atomic all the same.
    let both = "source \"both\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = load.plain x; store.relaxed.gpu x, 1; }
P1 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.gpu x; }
";
    let weak = "ld.global.b32 %r1, [%rd1]; st.global.b32 [%rd1], 1; st.global.b32 [%rd3], %r1;\n";
    let reader = "ld.relaxed.gpu.global.b32 %r1, [%rd1]; st.global.b32 [%rd4], %r1;\n";
    let found = claims_of(both, &[gives(folder.path(), 22, &module(4, &[weak, reader]))], LLVM_SOURCES.name);
    assert_eq!(found[0].axioms, [["weak-access"]]);
}

/// What is wrong for the sizes of accesses alone has their class, and what was lost besides has its own.
#[test]
fn sizes_are_to_blame_for_what_is_wrong_for_them_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = |release, text: &str, bodies: &[&str]| {
        let found = claims_of(text, &[gives(folder.path(), release, &module(4, bodies))], LLVM_SOURCES.name);
        found.iter().map(|claim| claim.axioms.concat()).collect::<Vec<_>>()
    };
    // The load may read what the exchange behind it writes, because the two have no size in common.
    let sizes = "source \"sizes\"
.global .b16 x;
P0 (gpu 0, cluster 0, cta 0) { r0 = add.acquire.gpu x, 0; }
P1 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.gpu x; fence.release.gpu; r1 = exch.relaxed.gpu x, 1; }
";
    let add =
        "atom.relaxed.gpu.global.or.b32 %r1, [%rd1], 0; fence.acquire.gpu; st.global.b16 [%rd2], %r1;\n";
    let swap = "ld.relaxed.gpu.global.b16 %r1, [%rd1]; fence.release.gpu;\n\
                atom.relaxed.gpu.global.exch.b32 %r2, [%rd1], 1; st.global.b16 [%rd3], %r1; st.global.b16 [%rd4], %r2;\n";
    assert_eq!(class(20, sizes, &[add, swap]), [["mixed-size"]]);
    let message = "source \"order\"
.global .b16 x, y;
P0 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu x, 1; exch.release.gpu y, 1; }
P1 (gpu 0, cluster 0, cta 0) { r0 = load.acquire.gpu y; r1 = load.relaxed.gpu x; }
";
    let writer = "st.relaxed.gpu.global.b16 [%rd1], 1; atom.relaxed.gpu.global.exch.b32 %r1, [%rd2], 1;\n";
    let reader = "ld.acquire.gpu.global.b16 %r1, [%rd2]; ld.relaxed.gpu.global.b16 %r2, [%rd1];\n\
                  st.global.b16 [%rd3], %r1; st.global.b16 [%rd4], %r2;\n";
    assert_eq!(class(21, message, &[writer, reader]), [["order-lost", "atom.exch"]]);
}

/// A load that is an update races with what the program lets read at the same time; a race with another load is not for that.
#[test]
fn an_update_for_a_load_is_to_blame_for_its_own_races() {
    let folder = tempfile::tempdir().expect("a folder");
    let loads = "source \"loads\"
.global .b32 x;
P0 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.cta x; }
P1 (gpu 0, cluster 0, cta 1) { r0 = load.relaxed.cta x; }
";
    let update =
        |to: &str| format!("atom.relaxed.cta.global.or.b32 %r1, [%rd1], 0; st.global.b32 [{to}], %r1;\n");
    let bodies = [update("%rd2"), update("%rd3")];
    let ptx = module(3, &bodies.each_ref().map(String::as_str));
    let found = claims_of(loads, &[gives(folder.path(), 20, &ptx)], LLVM_SOURCES.name);
    assert_eq!(found.iter().map(|claim| claim.axioms.concat()).collect::<Vec<_>>(), [["load-updates"]]);
    let early = "source \"early\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.gpu x; if r0 == 1 { r1 = load.plain y; } }
P1 (gpu 0, cluster 0, cta 0) { store.plain y, 2; }
";
    let reader = "atom.relaxed.gpu.global.or.b32 %r1, [%rd1], 0; setp.eq.b32 %p1, %r1, 1; ld.global.b32 %r2, [%rd2];\n\
                  selp.b32 %r3, %r2, 0, %p1; st.global.b32 [%rd3], %r1; st.global.b32 [%rd4], %r3;\n";
    let ptx = module(4, &[reader, "st.global.b32 [%rd2], 2;\n"]);
    assert_eq!(claims_of(early, &[gives(folder.path(), 21, &ptx)], LLVM_SOURCES.name), []);
}

/// A load that was asked to be relaxed is not to blame, although an acquire of the thread reads the same object, too.
#[test]
fn an_access_is_given_what_was_asked_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "source \"ld\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { r0 = exch.release.gpu x, 0; r1 = add.acquire.gpu y, 0; store.relaxed.gpu x, 1; }
P1 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.gpu x; exch.release.gpu y, 1; r1 = exch.acquire.gpu x, 0; }
";
    let first = "atom.global.exch.b32 %r1, [%rd1], 0; atom.global.add.u32 %r2, [%rd2], 0; st.volatile.global.u32 [%rd1], 1;\n\
                 st.global.u32 [%rd3], %r1; st.global.u32 [%rd4], %r2;\n";
    let second = "ld.volatile.global.u32 %r1, [%rd1]; atom.global.exch.b32 %r2, [%rd2], 1; atom.global.exch.b32 %r3, [%rd1], 0;\n\
                  st.global.u32 [%rd5], %r1; st.global.u32 [%rd6], %r3;\n";
    let found = claims_of(text, &[gives(folder.path(), 20, &module(6, &[first, second]))], LLVM_SOURCES.name);
    let classes: Vec<Vec<String>> = found.iter().map(|claim| claim.axioms.concat()).collect();
    assert!(classes.len() == 1 && classes[0][0] == "order-lost" && classes[0][1] != "ld", "{classes:?}");
}

#[test]
fn a_claim_names_the_release_and_shows_the_ptx_and_the_outcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = claims(&[gives(folder.path(), 20, &ptx("relaxed.gpu", "acquire.gpu"))], LLVM_SOURCES.name);
    let sides: Vec<String> = found[0].models.iter().map(|s| s.spec()).collect();
    assert_eq!(sides, ["rc11-scoped", "llvm:level=2,ptx=86,release=20,target=sm_90", "ptx:Q2=A"]);
    assert!(found[0].program.contains("//   st.relaxed.gpu.global.b32 [%rd2], 1;"), "{}", found[0].program);
    assert!(found[0].witness.contains("P1:r0=1 P1:r1=0 [x]=1 [y]=1"), "{}", found[0].witness);
    assert!(parse(&found[0].program).is_ok(), "the text of a claim reads as its program");
}

#[test]
fn a_mixture_is_to_blame_only_if_no_compiler_is_wrong_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let right = gives(folder.path(), 21, &ptx("release.gpu", "acquire.gpu"));
    let wrong = gives(folder.path(), 20, &ptx("relaxed.gpu", "acquire.gpu"));
    assert_eq!(claims(&[right.clone(), wrong], MIXED_SOURCES.name), []);
    // One compiler alone cannot be mixed, and its worker is none for mixtures.
    let alone = Oracles::with_source_compilers(&[right]);
    let report = run(&alone, MIXED_SOURCES.name, Source::Text(MESSAGE.into()));
    assert_eq!(report.abstentions.keys().collect::<Vec<_>>(), ["no mixing here"], "{report:#?}");
    let has = |tool: &str| alone.capabilities().iter().any(|c| c == tool);
    assert!(has(LLVM.capability) && !has(MIXING.capability));
}

/// The PTX of [`MESSAGE`] for CTAs of two warps: thread 33 stores, and the first one releases, behind a barrier or not. The other
/// CTA hands on what it has read in shared memory.
fn tiles(barrier: &str) -> String {
    let kernel = |t: usize, body: &str| {
        let name = format!("moire_0_{t}_");
        let params: Vec<String> = (0..6).map(|n| format!("\t.param .u64 {name}_param_{n}")).collect();
        let loads: String =
            (0..4).map(|n| format!("\tld.param.u64 %rd{}, [{name}_param_{n}];\n", n + 1)).collect();
        let tid = "\tmov.u32 %r1, %tid.x;\n\tsetp.eq.b32 %p1, %r1, 33;\n\tsetp.eq.b32 %p2, %r1, 0;\n";
        format!(
            ".visible .entry {name}(\n{}\n)\n.reqntid 64\n{{\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<5>;\n{loads}{tid}{body}\tret;\n}}\n",
            params.join(",\n")
        )
    };
    let writer = format!(
        "\t@%p1 atom.global.gpu.relaxed.exch.b32 %r2, [ %rd1 + 0 ], 1;\n{barrier}\t@%p2 atom.global.gpu.release.exch.b32 %r2, [ %rd2 + 0 ], 1;\n"
    );
    let reader = "\t@%p2 ld.global.gpu.acquire.b32 %r2, [ %rd2 + 0 ];\n\t@%p2 st.shared.b32 [moire_s0_t1], %r2;\n\tbar.sync 0;\n\
                  \tld.shared.b32 %r2, [moire_s0_t1];\n\t@%p2 ld.global.gpu.relaxed.b32 %r3, [ %rd1 + 0 ];\n\
                  \t@%p2 st.global.b32 [ %rd3 + 0 ], { %r2 };\n\t@%p2 st.global.b32 [ %rd4 + 0 ], { %r3 };\n";
    let head = ".version 8.6\n.target sm_90\n.address_size 64\n";
    let shared = ".shared .align 16 .b8 moire_s0_t1[4];\n";
    format!("{head}{shared}{}{}", kernel(0, &writer), kernel(1, reader))
}

#[test]
fn threads_that_do_the_work_of_one_have_to_meet() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = |barrier: &str| {
        let file = folder.path().join("given.ptx");
        std::fs::write(&file, tiles(barrier)).expect("writable");
        let path = folder.path().join("triton");
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo V97.1.0 && exit\ncp {} module.ptx\n",
            file.display()
        );
        std::fs::write(&path, script).expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        claims(&[Compiler::at(Kind::Triton, &path).expect("a compiler")], TRITON_SOURCES.name)
    };
    assert_eq!(found("\tbar.sync 0;\n"), []);
    let lost = found("");
    assert_eq!(lost[0].axioms, [["barrier-lost"]], "{lost:#?}");
    assert_eq!(lost[0].models[1].spec(), "triton:release=97.1,target=sm_90");
}

/// Two ways to keep a store from a later load, each sound with itself: a fence behind the store, or before the load.
#[test]
fn a_mixture_of_two_mappings_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "source \"sb\"\n.global .b32 x, y;\nP0 (cluster 0, cta 0) { store.seq_cst.gpu x, 1; r0 = load.seq_cst.gpu y; }\nP1 (cluster 1, cta 1) { store.seq_cst.gpu y, 1; r0 = load.seq_cst.gpu x; }\n";
    let fence = "\tfence.sc.gpu;\n";
    let kernel = |t: usize, fenced: bool| {
        let name = format!("moire_0_{t}_");
        let params: Vec<String> = (0..4).map(|n| format!("\t.param .u64 {name}_param_{n}")).collect();
        let loads: String =
            (0..4).map(|n| format!("\tld.param.u64 %rd{}, [{name}_param_{n}];\n", n + 1)).collect();
        let (own, other) = if t == 0 { (1, 2) } else { (2, 1) };
        let middle = if fenced { fence } else { "" };
        format!(
            ".visible .entry {name}(\n{}\n)\n{{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<5>;\n{loads}\
             \tst.release.gpu.global.b32 [%rd{own}], 1;\n{middle}\tld.acquire.gpu.global.b32 %r1, [%rd{other}];\n\
             \tst.global.b32 [%rd{}], %r1;\n\tret;\n}}\n",
            params.join(",\n"),
            t + 3
        )
    };
    let module = |a: bool, b: bool| {
        format!(".version 8.6\n.target sm_90\n.address_size 64\n{}{}", kernel(0, a), kernel(1, b))
    };
    let strong = gives(folder.path(), 22, &module(true, true));
    let oracles = Oracles::with_source_compilers(&[strong]);
    let report = run(&oracles, LLVM_SOURCES.name, Source::Text(text.into()));
    assert_eq!((report.claims.len(), report.engines[0].verdict.as_str()), (0, "clean"), "{report:#?}");
    let half = gives(folder.path(), 23, &module(true, false));
    let oracles = Oracles::with_source_compilers(&[half]);
    let report = run(&oracles, LLVM_SOURCES.name, Source::Text(text.into()));
    assert_eq!(report.claims[0].axioms[0], ["order-lost"], "{report:#?}");
}

#[test]
fn what_a_compiler_does_not_do_is_an_abstention() {
    let folder = tempfile::tempdir().expect("a folder");
    let reason = |action: &str| {
        let compiler = stand_in(folder.path(), 20, action)
            .with_limits(Limits { deadline: Duration::from_millis(400), ..Limits::default() }, 1 << 30);
        let oracles = Oracles::with_source_compilers(&[compiler]);
        let report = run(&oracles, LLVM_SOURCES.name, Source::Text(MESSAGE.into()));
        assert!(report.claims.is_empty() && report.engines.is_empty(), "{report:#?}");
        report.abstentions.keys().next().cloned().unwrap_or_default()
    };
    assert_eq!(
        reason("echo 'LLVM ERROR: Cannot select: 0x55d0: ch = AtomicStore t7' >&2; kill -ABRT $$"),
        "rejected: llvm: refused: LLVM ERROR: Cannot select: ch = AtomicStore"
    );
    assert!(
        reason("echo \"'+ptx99' is not a recognized feature\" >&2").starts_with("rejected: llvm: target")
    );
    assert!(reason("sleep 100").contains("not finished after"));
    assert!(reason("kill -TERM $$").contains("signal"));
    assert!(reason("true").contains("no PTX"));
    assert!(reason("echo nothing > module.ptx").contains("a kernel is missing"));
    let oracles = Oracles::with_source_compilers(&[]);
    let report = run(&oracles, LLVM_SOURCES.name, Source::Text(MESSAGE.into()));
    assert_eq!(report.abstentions.keys().collect::<Vec<_>>(), ["no llvm here"]);
    assert!(!oracles.capabilities().iter().any(|c| c == LLVM.capability));
}

/// Every other turn of a stream has an optimiser in front. A compiler that has none compiles those programs as they are.
#[test]
fn a_compiler_without_an_optimiser_takes_every_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = "sed -n 's/^define ptx_kernel void @\\([a-z0-9_]*\\).*/.visible .entry \\1(\\n)\\n{\\n\\tret;\\n}/p' module.ll > module.ptx";
    let oracles = Oracles::with_source_compilers(&[stand_in(folder.path(), 20, empty)]);
    let drawn = |index| Source::Generated { seed: 2, profile: Profile::Source.name().to_owned(), index };
    for index in [0, 64, 600] {
        let report = run(&oracles, LLVM_SOURCES.name, drawn(index));
        let reasons: Vec<&String> = report.abstentions.keys().collect();
        assert!(!reasons.iter().any(|why| why.ends_with(" here")), "{index}: {report:?}");
        assert!(!reasons.is_empty() || !report.engines.is_empty(), "{index}: {report:?}");
    }
}

/// One program of a text is refused: the others are compiled as if it were not there.
#[test]
fn a_batch_is_cut_until_the_program_to_blame_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    // Refuses `seq_cst`, and otherwise answers each kernel with an empty one.
    let action = "if grep -q seq_cst module.ll; then echo 'LLVM ERROR: no' >&2; exit 1; fi\n\
        echo '.version 8.6' > module.ptx\n\
        sed -n 's/^define ptx_kernel void @\\([a-z0-9_]*\\).*/.visible .entry \\1(\\n)\\n{\\n\\tret;\\n}/p' module.ll >> module.ptx";
    let compiler = stand_in(folder.path(), 20, action);
    let good = parse(MESSAGE).expect("reads");
    let bad = parse(&MESSAGE.replace("release", "seq_cst")).expect("reads");
    let all = [&good, &good, &bad, &good, &good];
    let answers = compile(&compiler, &all, &compiler.usual(), 64, &|| {});
    // The same compiler, but it names the kernel.
    let naming = stand_in(
        folder.path(),
        21,
        &action.replace(
            "echo 'LLVM ERROR: no' >&2",
            "echo 'LLVM ERROR: no' >&2; grep -B9 seq_cst module.ll | sed -n 's/^define.*@\\([a-z0-9_]*\\).*/In function: \\1/p' | tail -1 >&2",
        ),
    );
    let named = compile(&naming, &all, &naming.usual(), 64, &|| {});
    let sides =
        |all: &[Result<Vec<String>, Arc<Failure>>]| all.iter().map(|a| a.clone().ok()).collect::<Vec<_>>();
    assert_eq!(sides(&named), sides(&answers));
    assert_eq!(named[2].as_ref().unwrap_err().blamed(), Some("moire_2_0_"));
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(threads) => assert!(n != 2 && threads.len() == 2, "{n}: {threads:?}"),
            Err(why) => assert!(n == 2 && matches!(**why, Failure::Refused(_)), "{n}: {why}"),
        }
    }
    assert_eq!(answers[0].as_ref().expect("compiled"), answers[4].as_ref().expect("compiled"));
}

/// A form is asked about once, by all runs that share a folder, and only what is refused has something else in its place.
#[test]
fn what_a_compiler_refuses_is_learned_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let action = format!(
        "echo >> {}/starts; if grep -q 'release\\|fence' module.ll; then echo 'LLVM ERROR: no' >&2; exit 1; fi\n\
         sed -n 's/^define ptx_kernel void @\\([a-z0-9_]*\\).*/.visible .entry \\1(\\n)\\n{{\\n\\tmembar.gl;\\n}}/p' module.ll > module.ptx",
        folder.path().display()
    );
    let compiler = stand_in(folder.path(), 20, &action);
    let starts =
        || std::fs::read_to_string(folder.path().join("starts")).map_or(0, |text| text.lines().count());
    let source = parse(&MESSAGE.replace("r1 =", "fence.acquire.gpu; r1 =")).expect("reads");
    let open = || Table::open(&compiler, &compiler.usual(), Some(folder.path()));
    let mut table = open();
    let mut refused = BTreeSet::new();
    let mut settle = |table: &mut Table| {
        let mut all = settled(std::slice::from_ref(&source), &mut |forms| {
            let some = table.refused(forms, &|| ());
            refused.extend(some.clone());
            some
        });
        all.remove(0)
    };
    let first = settle(&mut table);
    let text = moire_source::text::print(&first);
    assert!(text.contains("exch.relaxed.gpu y, 1") && !text.contains("fence"), "{text}");
    assert!(text.contains("load.acquire.gpu y"), "{text}");
    let before = starts();
    assert!(before > 0 && settle(&mut open()) == first && starts() == before);
    // A damaged file is asked about again.
    for file in std::fs::read_dir(folder.path()).expect("a folder").flatten() {
        if file.file_name().to_string_lossy().starts_with("forms-") {
            std::fs::write(file.path(), b"\xff\x00damaged\n\t\t").expect("writable");
        }
    }
    assert!(settle(&mut open()) == first && starts() > before);
    assert_eq!(refused.len(), 4, "{refused:?}");
}

/// Releases up to 22 lose the order of native read-modify-writes; 16 to 19 refuse most programs, and 23 loses nothing that is known.
#[test]
fn the_known_bugs_of_llvm_are_found_from_random_programs() {
    let here: Vec<Compiler> = Compiler::all(Kind::Llvm);
    let Some(old) = here.iter().find(|c| (20..=22).contains(&c.version().major)) else {
        skipped("llc of LLVM 20 to 22");
        return;
    };
    let oracles = Oracles::with_source_compilers(std::slice::from_ref(old));
    let drawn = |index| Source::Generated { seed: 2, profile: Profile::Source.name().to_owned(), index };
    let reports: Vec<ItemReport> = (0..256).map(|i| run(&oracles, LLVM_SOURCES.name, drawn(i))).collect();
    let answered = reports.iter().filter(|r| !r.engines.is_empty()).count();
    assert!(
        answered * 2 > reports.len(),
        "{answered} answers: {:#?}",
        reports.iter().map(|r| &r.abstentions).collect::<Vec<_>>()
    );
    let lost = |c: &&Claim| c.axioms.first().is_some_and(|a| a[0] == "order-lost");
    let first = reports.iter().flat_map(|r| &r.claims).find(lost).expect("a lost order");
    assert_eq!(oracles.verify(first, &Cancel::new()), Verification::Confirmed);
    let small = oracles.minimise(first, Budget { candidates: 2_000 }, &Cancel::new(), &mut |_| {});
    assert!(small.normal, "{}", small.claim.program);
    let steps = small.claim.program.lines().filter(|l| l.starts_with("  ") && l.ends_with(';')).count();
    assert!(steps <= 8, "{}", small.claim.program);
    assert_eq!(oracles.verify(&small.claim, &Cancel::new()), Verification::Confirmed);
    let again = run(&oracles, LLVM_SOURCES.name, Source::Text(small.claim.program.clone()));
    // A text is also tried with `opt` in front.
    assert!(again.claims.contains(&small.claim), "{again:?}");
}

/// The crashes that a stand-in shows on the first drawn programs: each with its program.
fn crashes(folder: &Path, action: &str) -> (Oracles, Vec<Claim>) {
    let oracles = Oracles::with_source_compilers(&[stand_in(folder, 20, action)]);
    let drawn = |index| Source::Generated { seed: 1, profile: Profile::Source.name().to_owned(), index };
    let item = |index| {
        let plan = Plan { oracles: vec![LLVM_SOURCES.name.to_owned()], ..Plan::default() };
        oracles.run(&Item { plan: Arc::new(plan), index, source: drawn(index) }, &Cancel::new()).claims
    };
    let all = (0..16).flat_map(item).collect();
    (oracles, all)
}

#[test]
fn a_compiler_that_dies_of_a_form_is_claimed_with_the_form_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (oracles, all) =
        crashes(folder.path(), "grep -q 'atomicrmw xchg' module.ll && kill -SEGV $$; : > module.ptx");
    assert!(!all.is_empty());
    for claim in &all {
        assert_eq!((claim.verdict.as_str(), claim.direction), (CRASH, Direction::Property));
        assert_eq!(claim.axioms, [["crash"], ["signal 11"]]);
        assert!(one_bug(&claim.oracle, &claim.axioms));
        let source = parse(&claim.program).expect("reads");
        assert!(source.threads.len() == 1 && claim.program.contains("exch"), "{}", claim.program);
        assert_eq!(oracles.verify(claim, &Cancel::new()), Verification::Confirmed);
    }
    let smaller = oracles.minimise(&all[0], Budget { candidates: 100 }, &Cancel::new(), &mut |_| {});
    assert_eq!((smaller.normal, &smaller.claim.axioms), (true, &all[0].axioms));
    // The same compiler, mended.
    let mended = stand_in(folder.path(), 20, ": > module.ptx");
    let held = Oracles::with_source_compilers(&[mended]).verify(&all[0], &Cancel::new());
    assert!(matches!(held, Verification::Abstained(_)), "no PTX is no answer: {held:?}");
}

#[test]
fn a_compiler_that_refuses_in_its_own_words_does_not_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let refuses = "grep -q 'atomicrmw xchg' module.ll && { echo 'module.ll:3:1: error: no xchg here' >&2; exit 1; }; : > module.ptx";
    assert_eq!(crashes(folder.path(), refuses).1, []);
    let fatal = "grep -q 'atomicrmw xchg' module.ll && { echo 'LLVM ERROR: Cannot select: xchg' >&2; kill -ABRT $$; }; : > module.ptx";
    assert_eq!(crashes(folder.path(), fatal).1, []);
    let killed = "grep -q 'atomicrmw xchg' module.ll && kill -KILL $$; : > module.ptx";
    assert_eq!(crashes(folder.path(), killed).1, []);
}

/// Each thread is a kernel of its own: a compiler that takes shared memory for that kernel's own drops what another thread reads.
#[test]
fn what_another_thread_reads_of_shared_memory_is_kept() {
    let text = "source \"mp\"\n.global .b32 y;\n.shared .b32 x;\n\
        P0 (gpu 0, cluster 0, cta 0) { store.plain x, 1; store.release.gpu y, 1; }\n\
        P1 (gpu 0, cluster 0, cta 0) { r0 = load.acquire.gpu y; if r0 == 1 { r1 = load.plain x; } }\n";
    let here = Compiler::all(Kind::Nvcc);
    if here.is_empty() {
        skipped("nvcc");
    }
    for compiler in here {
        let claims = claims_of(text, &[compiler], NVCC_SOURCES.name);
        assert!(claims.is_empty(), "{claims:#?}");
    }
}

/// An update of 16 bits is one of the word around them, while stores access the 16 bits alone. A race of the second kind must not hide
/// that the sizes are what is wrong.
#[test]
fn sizes_are_named_where_a_race_is_left_out() {
    let text = "source \"word\"\n.global .b16 x0;\n.global .b16 x1;\n\
        P0 (gpu 0, cluster 0, cta 0) { r0 = exch.relaxed.gpu x0, 0; r1 = exch.release.gpu x1, 1; }\n\
        P1 (gpu 0, cluster 0, cta 0) { r0 = load.relaxed.gpu x1; fence.acquire.gpu; if r0 == 1 { store.plain x1, 0; } }\n\
        P2 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu x0, 1; store.relaxed.gpu x0, 0; }\n";
    let here = Compiler::all(Kind::Llvm);
    let Some(new) = here.iter().find(|c| c.version().major >= 23) else { return skipped("llc of LLVM 23") };
    let claims = claims_of(text, std::slice::from_ref(new), LLVM_SOURCES.name);
    let sizes = |claim: &Claim| claim.direction == Direction::Difference && claim.axioms == [["mixed-size"]];
    assert!(!claims.is_empty() && claims.iter().all(sizes), "{claims:#?}");
}
