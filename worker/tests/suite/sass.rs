//! The machine code oracle: a fence that a disassembly lacks is claimed, verified and reduced. The tools are shell scripts,
//! except in the last test, which says so where NVIDIA's are missing.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_proto::needs::one_bug;
use moire_toolchain::source::{Compiler, Kind};
use moire_toolchain::{Nvdisasm, Ptxas};
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Engine, Item, Plan, Source, Verification};
use moire_worker::oracle::{ASSEMBLED_SOURCES, Oracles, PLANTED_IN_MACHINE_CODE, SASS, mistake};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// An assembler that takes everything, and a disassembler that prints this code for each kernel.
fn tools(folder: &Path, code: &[&str]) -> Oracles {
    let said = "if [ \"$1\" = --version ]; then echo 'tools, release 13.5, V13.5.37'; exit 0; fi\n";
    let ptxas = script(folder, "ptxas", &format!("{said}cp \"$5\" \"$4\"\n"));
    let lines: String = code.iter().map(|line| format!("        /*0000*/ {line} ;\\n")).collect();
    let listing = format!(
        "printf '\\t.section\\t.nv.constant4\\n'\nfor k in $(grep -oE 'global .align 128 .b8 [a-z0-9_]+' $1 | cut -d' ' -f5); do printf '/*0000*/ .dword\\t%s\\n' $k; done\nfor k in $(grep -o 'p[0-9]*_k[0-9]*' $1); do printf '\\t.section\\t.text.%s\\n{lines}' $k; done\n"
    );
    let nvdisasm = script(folder, "nvdisasm", &listing);
    Oracles::with_machine_code(vec![Ptxas::at(&ptxas).unwrap()], Nvdisasm::at(&nvdisasm))
}

const PROGRAM: &str = "moire \"k\"\n.global .b32 x;\n.global .b32 y;\nP0 (gpu 0, cta 0) { st.weak.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1; }\n";
const WITH: [&str; 6] = [
    "LDC.64 R2, c[0x4][RZ]",
    "LDC.64 R4, c[0x4][0x8]",
    "STG.E desc[UR4][R2.64], R7",
    "MEMBAR.ALL.GPU",
    "STG.E.STRONG.GPU desc[UR4][R4.64], R7",
    "EXIT",
];

fn item() -> Item {
    let plan = Plan { oracles: vec![SASS.name.to_owned()], ..Plan::default() };
    Item { plan: Arc::new(plan), index: 0, source: Source::Text(PROGRAM.to_owned()) }
}

#[test]
fn machine_code_with_its_fence_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let report = tools(folder.path(), &WITH).run(&item(), &Cancel::new());
    assert_eq!(report.claims, []);
    assert!(report.abstentions.is_empty(), "{:?}", report.abstentions);
    assert_eq!((report.engines.len(), report.engines[0].verdict.as_str()), (1, "agrees"));
}

#[test]
fn a_fence_that_is_lost_is_claimed_verified_and_shown() {
    let (right, wrong) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let without: Vec<&str> = WITH.into_iter().filter(|line| !line.starts_with("MEMBAR")).collect();
    let oracles = tools(wrong.path(), &without);
    assert!(oracles.capabilities().iter().any(|c| c == SASS.name));
    let report = oracles.run(&item(), &Cancel::new());
    let [claim] = report.claims.as_slice() else { panic!("{:?}", report.claims) };
    assert_eq!((claim.oracle.as_str(), claim.direction), (SASS.name, Direction::Property));
    assert_eq!(claim.axioms, [["sass-lost"], ["fence of st.global.32"]]);
    assert_eq!(claim.models[0].variants["target"], "sm_90a");
    assert_ne!(claim.models[0].fingerprint, [0; 32]);
    assert!(mistake(&claim.axioms).title.contains("fence of st.global.32 is lost"));
    assert_eq!(oracles.verify(claim, &Cancel::new()), Verification::Confirmed);
    let shown = oracles.evidence(claim, &Cancel::new()).unwrap().unwrap();
    assert!(shown.units[0].text.contains("st.release.gpu"), "{}", shown.units[0].text);
    assert!(shown.units[0].machine.as_ref().is_some_and(|code| !code.contains("MEMBAR")));
    let reduced = oracles.minimise(claim, Budget { candidates: 100 }, &Cancel::new(), &mut |_| {});
    assert!(reduced.claim.program.contains("st.release.gpu"), "{}", reduced.claim.program);
    let other = tools(right.path(), &WITH);
    assert!(matches!(other.verify(claim, &Cancel::new()), Verification::Refuted(_)));
}

const SOURCE: &str = "source \"k\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu x, 1; store.release.gpu y, 1; }
P1 (gpu 0, cluster 1, cta 1) { r0 = load.acquire.gpu y; }
";
/// PTX of its first thread. The second one does nothing, so it needs no order.
const COMPILED: &str = ".version 8.6\n.target sm_90\n.address_size 64\n\
    .visible .entry moire_0_0_(\n\t.param .u64 moire_0_0__param_0,\n\t.param .u64 moire_0_0__param_1\n)\n{\n\
    \t.reg .b64 %rd<3>;\n\tld.param.u64 %rd1, [moire_0_0__param_0];\n\tld.param.u64 %rd2, [moire_0_0__param_1];\n\
    \tst.relaxed.gpu.global.b32 [%rd1], 1;\n\tst.release.gpu.global.b32 [%rd2], 1;\n\tret;\n}\n\
    .visible .entry moire_0_1_(\n\t.param .u64 moire_0_1__param_0\n)\n{\n\tret;\n}\n";
/// What [`COMPILED`] becomes, with this between its stores.
fn assembled(folder: &Path, between: &[&str]) -> Oracles {
    let said = "if [ \"$1\" = --version ]; then echo '  LLVM version 20.1.0'; echo '    nvptx64 - NVIDIA'; exit 0; fi\n";
    std::fs::write(folder.join("given.ptx"), COMPILED).unwrap();
    let given = folder.join("given.ptx");
    let llc = script(folder, "llc", &format!("{said}cp {} module.ptx\n", given.display()));
    let said = "if [ \"$1\" = --version ]; then echo 'tools, release 13.5, V13.5.37'; exit 0; fi\n";
    let ptxas = script(folder, "ptxas", &format!("{said}cp \"$5\" \"$4\"\n"));
    let store = |n: usize| format!("STG.E.STRONG.GPU desc[UR4][R{n}.64], R7");
    let mut code =
        vec!["LDC.64 R2, c[0x0][0x210]".to_owned(), "LDC.64 R4, c[0x0][0x218]".to_owned(), store(2)];
    code.extend(between.iter().map(|line| (*line).to_owned()).chain([store(4), "EXIT".to_owned()]));
    let lines: String = code.iter().map(|line| format!("        /*0000*/ {line} ;\\n")).collect();
    let listing = format!(
        "printf '\\t.section\\t.text.moire_0_0_\\n{lines}\\t.section\\t.text.moire_0_1_\\n        /*0000*/ EXIT ;\\n'\n"
    );
    let nvdisasm = Nvdisasm::at(&script(folder, "nvdisasm", &listing));
    let compilers = [Compiler::at(Kind::Llvm, &llc).unwrap()];
    Oracles::with_assembled_sources(&compilers, vec![Ptxas::at(&ptxas).unwrap()], nvdisasm)
}

#[test]
fn a_fence_that_is_lost_behind_a_compiler_is_claimed_verified_and_shown() {
    let (right, wrong) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (right, wrong) = (assembled(right.path(), &["MEMBAR.ALL.GPU"]), assembled(wrong.path(), &[]));
    let plan = Plan { oracles: vec![ASSEMBLED_SOURCES.name.to_owned()], ..Plan::default() };
    let item = Item { plan: Arc::new(plan), index: 0, source: Source::Text(SOURCE.to_owned()) };
    let report = right.run(&item, &Cancel::new());
    assert!(report.claims.is_empty() && report.abstentions.is_empty(), "{report:#?}");
    assert_eq!((report.engines.len(), report.engines[0].verdict.as_str()), (1, "agrees"));
    assert!(wrong.capabilities().iter().any(|c| c == ASSEMBLED_SOURCES.name));
    let report = wrong.run(&item, &Cancel::new());
    let [claim] = report.claims.as_slice() else { panic!("{report:#?}") };
    assert_eq!(claim.axioms, [["sass-lost"], ["fence of st.global.32"]]);
    assert!(one_bug(&claim.oracle, &claim.axioms));
    let sides: Vec<String> = claim.models.iter().map(moire_worker::job::Side::spec).collect();
    assert_eq!(sides, ["llvm:level=2,ptx=86,release=20,target=sm_90", "sass:release=13.5,target=sm_90a"]);
    for text in ["//   st.release.gpu.global.b32 [%rd2], 1;", "//   STG.E.STRONG.GPU desc[UR4][R4.64], R7"] {
        assert!(claim.program.contains(text), "{}", claim.program);
    }
    assert_eq!(wrong.verify(claim, &Cancel::new()), Verification::Confirmed);
    assert!(matches!(right.verify(claim, &Cancel::new()), Verification::Refuted(_)));
    let shown = wrong.evidence(claim, &Cancel::new()).unwrap().unwrap();
    assert!(shown.units[0].text.contains("st.release.gpu") && shown.units[0].machine.is_some());
    let reduced = wrong.minimise(claim, Budget { candidates: 20 }, &Cancel::new(), &mut |_| {});
    assert_eq!(reduced.claim.axioms, claim.axioms);
}

/// Drawn programs with NVIDIA's tools. What the assembler is known to lose is named here.
#[test]
fn drawn_programs_keep_their_order() {
    let oracles = Oracles::new();
    if !oracles.capabilities().iter().any(|c| c == SASS.name) {
        crate::outside::skipped("ptxas and nvdisasm");
        return;
    }
    let plan = Arc::new(Plan { oracles: vec![SASS.name.to_owned()], canaries: true, ..Plan::default() });
    let (mut judged, mut caught) = (0, BTreeSet::new());
    for index in 0..96 {
        let source = Source::Generated { seed: 1, profile: "core".into(), index };
        let report = oracles.run(&Item { plan: Arc::clone(&plan), index, source }, &Cancel::new());
        judged += report.engines.len();
        caught.extend(report.canaries.iter().filter(|c| c.caught).map(|c| c.name.clone()));
        // Atomics on 64 bits of shared memory are loops, which have no fence.
        let known = |claim: &moire_worker::job::Claim| claim.axioms[1][0].contains("shared");
        assert!(report.claims.iter().all(known), "{:?}", report.claims);
    }
    assert!(judged > 60, "{judged}");
    assert!(PLANTED_IN_MACHINE_CODE.iter().all(|name| caught.contains(*name)), "{caught:?}");
}
