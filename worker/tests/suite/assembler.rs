//! The assembler oracle with a shell script as assembler. If the script refuses a module that the rules accept, the
//! module is claimed, verified and reduced. The claim names its architecture and its cause.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_toolchain::Ptxas;
use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Engine, Item, Plan, Source, Verification};
use moire_worker::oracle::{ASSEMBLER, Oracles, PTXAS};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Makes an assembler that refuses modules with the word and accepts all others.
fn tool(folder: &Path, word: &str) -> Ptxas {
    let path = folder.join("ptxas");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'tools, release 13.5, V13.5.37'; exit 0; fi\n\
         for last; do :; done\n\
         if grep -q '{word}' \"$last\"; then echo \"$last, line 7; error : no {word} today\" >&2; exit 255; fi\n: > \"$4\"\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Ptxas::at(&path).unwrap()
}

const PROGRAM: &str = "moire \"k\"\n.global .b32 x;\n.global .b32 y;\nP0 (gpu 0, cta 0) { st.u32 [x], 1; fence.sc.gpu; ld.u32 r0, [y]; }\nP1 (gpu 0, cta 1) { ld.u32 r1, [x]; }\n";

fn item() -> Item {
    let plan = Plan { oracles: vec![ASSEMBLER.name.to_owned()], ..Plan::default() };
    Item { plan: Arc::new(plan), index: 0, source: Source::Text(PROGRAM.to_owned()) }
}

#[test]
fn a_module_that_only_the_tool_refuses_is_claimed_verified_and_reduced() {
    let folder = tempfile::tempdir().unwrap();
    let oracles = Oracles::with_assembler(tool(folder.path(), "fence.sc"));
    assert!(oracles.capabilities().iter().any(|c| c == PTXAS.capability));
    let report = oracles.run(&item(), &Cancel::new());
    let claim = report.claims.first().expect("a fence is refused");
    assert_eq!((claim.oracle.as_str(), claim.direction), (ASSEMBLER.name, Direction::Equal));
    assert_eq!(claim.axioms, [["no fence.sc today"]]);
    assert_eq!(claim.models[0].variants["target"], "sm_90a");
    assert_ne!(claim.models[0].fingerprint, [0; 32]);
    assert_eq!(oracles.verify(claim, &Cancel::new()), Verification::Confirmed);
    let reduced = oracles.minimise(claim, Budget { candidates: 200 }, &Cancel::new(), &mut |_| {});
    assert!(reduced.normal && reduced.claim.program.contains("fence.sc"), "{}", reduced.claim.program);
    assert!(!reduced.claim.program.contains("st.") && !reduced.claim.program.contains("ld."));
    let other = Oracles::with_assembler(tool(folder.path(), "fence.acq_rel"));
    assert!(matches!(other.verify(claim, &Cancel::new()), Verification::Refuted(_)));
}

#[test]
fn a_module_that_only_the_rules_refuse_is_claimed_with_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let oracles = Oracles::with_assembler(tool(folder.path(), "no such word"));
    let text = PROGRAM.replace("st.u32 [x], 1;", "bar.sync 16;");
    let report = oracles.run(&Item { source: Source::Text(text), ..item() }, &Cancel::new());
    assert!(report.claims.iter().any(|c| c.axioms == [["form"]]), "{:?}", report.claims);
}
