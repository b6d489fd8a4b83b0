//! The machine code oracle: a fence that a disassembly lacks is claimed, verified and reduced. The tools are shell scripts,
//! except in the last test, which says so where NVIDIA's are missing.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_toolchain::{Nvdisasm, Ptxas};
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Engine, Item, Plan, Source, Verification};
use moire_worker::oracle::{Oracles, SASS, mistake};
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

/// Drawn programs with NVIDIA's tools. What the assembler is known to lose is named here.
#[test]
fn drawn_programs_keep_their_order() {
    let oracles = Oracles::new();
    if !oracles.capabilities().iter().any(|c| c == SASS.name) {
        crate::outside::skipped("ptxas and nvdisasm");
        return;
    }
    let plan = Arc::new(Plan { oracles: vec![SASS.name.to_owned()], ..Plan::default() });
    let mut judged = 0;
    for index in 0..96 {
        let source = Source::Generated { seed: 1, profile: "core".into(), index };
        let report = oracles.run(&Item { plan: Arc::clone(&plan), index, source }, &Cancel::new());
        judged += report.engines.len();
        // Atomics on 64 bits of shared memory are loops, which have no fence.
        let known = |claim: &moire_worker::job::Claim| claim.axioms[1][0].contains("shared");
        assert!(report.claims.iter().all(known), "{:?}", report.claims);
    }
    assert!(judged > 60, "{judged}");
}
