//! What the optimising assembler makes of volatile and mmio accesses, orders and scopes (PTX ISA 8.4.1, 8.4.2, 8.5):
//! their number, and the words in the machine code. Without `ptxas` and `nvdisasm` each test says so and passes.
//!
//! One deviation of `ptxas` 13.5 is recorded: of identical volatile or mmio loads into one register in a row only one is
//! left, at every level of optimisation.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_generate::{KernelDraw, Profile, Stream};
use moire_toolchain::order::losses;
use moire_toolchain::{Nvdisasm, Ptxas};

const TARGETS: [&str; 2] = ["sm_90a", "sm_100a"];

fn tools() -> Option<(Ptxas, Nvdisasm)> {
    let ptxas = crate::common::assembler()?;
    let nvdisasm = Nvdisasm::find(None);
    if nvdisasm.is_none() {
        crate::outside::skipped("nvdisasm");
    }
    Some((ptxas, nvdisasm?))
}

/// Instructions of a kernel with this body.
fn machine((ptxas, nvdisasm): &(Ptxas, Nvdisasm), body: &str, target: &str) -> Vec<String> {
    let module = format!(
        ".version 9.5\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 at)\n{{\n  .reg .b32 r<9>;\n  .reg .b64 a;\n  ld.param.u64 a, [at];\n{body}\n  ret;\n}}\n"
    );
    nvdisasm.instructions(ptxas, &module, target).unwrap()
}

fn count(machine: &[String], word: &str) -> usize {
    machine.iter().filter(|i| i.contains(word)).count()
}

/// Body, a word of the machine code, how many instructions have it.
const KEPT: &[(&str, &str, usize)] = &[
    (
        "ld.volatile.global.u32 r1, [a]; ld.volatile.global.u32 r2, [a]; ld.volatile.global.u32 r3, [a];",
        "LDG.E.STRONG.SYS",
        3,
    ),
    (
        "st.volatile.global.u32 [a], 1; st.volatile.global.u32 [a], 1; st.volatile.global.u32 [a], 1;",
        "STG.E.STRONG.SYS",
        3,
    ),
    ("ld.volatile.global.u32 r1, [a]; ld.volatile.global.u32 r2, [a+4];", "LDG.E.STRONG.SYS", 2),
    ("st.volatile.global.u32 [a], 1; st.volatile.global.u32 [a+4], 2;", "STG.E.STRONG.SYS", 2),
    ("ld.mmio.relaxed.sys.global.u32 r1, [a]; ld.mmio.relaxed.sys.global.u32 r2, [a];", "LDG.E.MMIO.SYS", 2),
    (
        "ld.mmio.relaxed.sys.global.u32 r1, [a]; ld.mmio.relaxed.sys.global.u32 r2, [a+4];",
        "LDG.E.MMIO.SYS",
        2,
    ),
    ("st.mmio.relaxed.sys.global.u32 [a], 1; st.mmio.relaxed.sys.global.u32 [a], 1;", "STG.E.MMIO.SYS", 2),
    ("st.mmio.relaxed.sys.global.u32 [a], 1; st.mmio.relaxed.sys.global.u32 [a+4], 2;", "STG.E.MMIO.SYS", 2),
];

/// Deviations: fewer than the program has. A read whose register the next identical read overwrites is gone, at every
/// level of optimisation, though neither kind of access may be left out or merged.
const LOST: &[(&str, &str, usize)] = &[
    (
        "ld.volatile.global.u32 r1, [a]; ld.volatile.global.u32 r1, [a]; ld.volatile.global.u32 r1, [a];",
        "LDG.E.STRONG.SYS",
        1,
    ),
    ("ld.mmio.relaxed.sys.global.u32 r1, [a]; ld.mmio.relaxed.sys.global.u32 r1, [a];", "LDG.E.MMIO.SYS", 1),
];

#[test]
fn volatile_and_mmio_accesses_are_kept() {
    let Some(tools) = tools() else { return };
    for target in TARGETS {
        for (body, word, wanted) in KEPT {
            let machine = machine(&tools, body, target);
            assert_eq!(count(&machine, word), *wanted, "{target}: {body}\n{}", machine.join("\n"));
        }
    }
}

/// When this fails the assembler has changed: the accesses are kept now, or more of them are lost.
#[test]
fn known_deviations_are_still_there() {
    let Some(tools) = tools() else { return };
    for target in TARGETS {
        for (body, word, left) in LOST {
            let machine = machine(&tools, body, target);
            assert_eq!(count(&machine, word), *left, "{target}: {body}\n{}", machine.join("\n"));
        }
    }
}

/// Scopes of PTX and of the machine; a cluster has no word of its own and gets that of the device.
const SCOPES: [(&str, &str, &str); 4] =
    [("cta", "SM", "CTA"), ("cluster", "GPU", "GPU"), ("gpu", "GPU", "GPU"), ("sys", "SYS", "SYS")];

#[test]
fn orders_and_scopes_are_kept() {
    let Some(tools) = tools() else { return };
    let use_it = "st.weak.global.u32 [a+8], r1;";
    for target in [TARGETS[1]] {
        for (scope, strong, fence) in SCOPES {
            let rows = [
                (
                    format!("ld.relaxed.{scope}.global.u32 r1, [a]; {use_it}"),
                    vec![format!("LDG.E.STRONG.{strong}")],
                ),
                (
                    format!("ld.acquire.{scope}.global.u32 r1, [a]; {use_it}"),
                    vec![format!("LDG.E.STRONG.{strong}")],
                ),
                (format!("st.relaxed.{scope}.global.u32 [a], 1;"), vec![format!("STG.E.STRONG.{strong}")]),
                (
                    format!("st.release.{scope}.global.u32 [a], 1;"),
                    vec![format!("MEMBAR.ALL.{fence}"), format!("STG.E.STRONG.{strong}")],
                ),
                (format!("fence.acq_rel.{scope};"), vec![format!("MEMBAR.ALL.{fence}")]),
                (format!("fence.sc.{scope};"), vec![format!("MEMBAR.SC.{fence}")]),
                (
                    format!("atom.acq_rel.{scope}.global.exch.b32 r1, [a], 1; {use_it}"),
                    vec![format!("MEMBAR.ALL.{fence}"), format!("ATOMG.E.EXCH.STRONG.{strong}")],
                ),
            ];
            for (body, words) in rows {
                let machine = machine(&tools, &body, target);
                let at: Vec<Option<usize>> =
                    words.iter().map(|w| machine.iter().position(|i| i.contains(w.as_str()))).collect();
                let in_order = at.iter().all(Option::is_some) && at.is_sorted();
                assert!(in_order, "{target}: {body} wants {words:?}\n{}", machine.join("\n"));
            }
        }
    }
}

/// Whole kernels, as the assembler optimises them: nothing that is read of them has lost an order.
#[test]
fn drawn_kernels_keep_their_order() {
    let Some((ptxas, nvdisasm)) = tools() else { return };
    let stream = Stream::new(11, Profile::Kernel);
    let (mut read, mut unread) = (0, 0);
    for index in 0..40 {
        let KernelDraw { module, target, .. } = stream.module(index).unwrap();
        let code = nvdisasm.code(&ptxas, &module, target).unwrap();
        for one in losses(&module, &code, target) {
            match one {
                Ok(loss) => {
                    read += 1;
                    assert_eq!(loss, None, "{target}\n{module}");
                }
                Err(_) => unread += 1,
            }
        }
    }
    println!("{read} read, {unread} not");
    assert!(read > 0, "{unread} not read");
}
