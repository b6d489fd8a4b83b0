//! Instruction forms of the tensor cores and asynchronous copies against the assembler's recorded answers, target by
//! target: our own list, and the published probes where they are.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use moire_program::canon::canonical;
use moire_program::text::{Format, Severity, parse, print};
use moire_program::validate::{Target, targets, validate};
use std::collections::BTreeMap;

/// What the kernel of the recorded answers declares: registers by class, and the few operands with names.
fn kernel(line: &str) -> String {
    format!(
        "moire \"k\"\n.shared .b8 buf[4096];\nP0 (gpu 0, cta 0) {{\n{PROLOGUE}\n{line}\n}}\n"
    )
}

/// The widths that the declarations of the probes say.
const PROLOGUE: &str = "mov.u64 g, 0; mov.u32 r3, 1; setp.eq.u32 p, 0, 0; mov.u32 t, 0; mov.b16 h0, 3;";

/// Whether we take the text for the target: it reads, no rule forbids it, its features are there. Registers of two
/// widths are an error to the assembler and advice here.
fn ours(line: &str, target: Target) -> bool {
    let Ok(program) = parse(&kernel(line), Format::Native) else { return false };
    let again = parse(&print(&program), Format::Native).unwrap_or_else(|e| panic!("{line}: {e}"));
    assert_eq!(again, program, "{line}");
    let twice = canonical(&canonical(&program).program);
    assert_eq!(twice.id, canonical(&program).id, "{line}");
    let wrong = |d: &moire_program::text::Diagnostic| {
        d.severity == Severity::Error || d.rule == Some("register-width")
    };
    !validate(&program).iter().any(wrong) && targets(&program).contains(&target)
}
