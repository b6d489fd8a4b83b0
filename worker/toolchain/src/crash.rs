//! Whether a tool that failed died, and the name of its death.
//!
//! A tool dies by a signal of its own making, or says of itself that something inside it went wrong. The name holds the
//! message or the signal, and the pass of LLVM that ran last; it has no address, no path and no number but the signal's, so
//! that one bug has one name whatever program shows it.
//!
//! `LLVM ERROR` is no death: `llc` aborts so where it has no code for an instruction, after it has said which.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Signals that a tool sends itself: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS. Somebody else sends KILL and TERM.
const OWN: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
/// What a tool says of a fault of its own.
const SAID: [&str; 6] = [
    "internal error",
    "internal compiler error",
    "internal fatal error",
    "assertion ",
    "unreachable executed",
    "died due to signal",
];
/// Most characters of a name.
const LONGEST: usize = 100;

/// The name of the death of a tool that ended so and printed these lines; `None` where it did not die.
pub fn death<'l>(status: ExitStatus, said: impl Iterator<Item = &'l str> + Clone) -> Option<String> {
    if status.success() || said.clone().any(|line| line.contains("LLVM ERROR")) {
        return None;
    }
    let signal = status.signal().filter(|n| OWN.contains(n)).map(|n| format!("signal {n}"));
    let lower = |line: &&str| SAID.iter().any(|word| line.to_lowercase().contains(word));
    let message = said.clone().find(lower).map(told);
    let pass = said.filter_map(|line| line.split_once("Running pass '")?.1.split('\'').next()).last();
    let head = message.or(signal)?;
    Some(pass.map_or(head.clone(), |pass| format!("{head} in {pass}")))
}

/// A message without what differs from run to run. The number of a signal stays.
fn told(line: &str) -> String {
    let word = |word: &str| -> Option<String> {
        let word = word.rsplit('/').next().filter(|w| !w.is_empty() && !w.contains("0x"))?;
        Some(word.to_owned())
    };
    let words: Vec<String> = line.split_whitespace().filter_map(word).collect();
    let mut out = words.join(" ");
    if !out.contains("signal") {
        out = out.replace(|c: char| c.is_ascii_digit(), "#");
    }
    out.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(raw: i32, said: &str) -> Option<String> {
        death(ExitStatus::from_raw(raw), said.lines())
    }

    #[test]
    fn a_signal_or_an_internal_error_is_a_death() {
        assert_eq!(name(11, "").as_deref(), Some("signal 11"));
        let dump = "Stack dump:\n0.\tProgram arguments: llc x\n1.\tRunning pass 'Function Pass Manager' on module 'x'.\n\
                    2.\tRunning pass 'NVPTX Peephole' on function '@k'\n #0 0x00007f llvm::sys::x";
        assert_eq!(name(11, dump).as_deref(), Some("signal 11 in NVPTX Peephole"));
        let assertion = "llc: /build/17/lib/X.cpp:81: Assertion `n < 32' failed.";
        assert_eq!(name(6, assertion).as_deref(), Some("llc: X.cpp:##: Assertion `n < ##' failed."));
        let inside = "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)";
        assert_eq!(
            name(139 << 8, inside).as_deref(),
            Some("nvcc error : 'cicc' died due to signal 11 (Invalid memory reference)")
        );
        assert!(name(2 << 8, "ptxas fatal   : Internal error: layout").is_some());
    }

    #[test]
    fn a_refusal_or_the_end_by_somebody_else_is_none() {
        for (raw, said) in [
            (0, "warning: internal error of yours"),
            (1 << 8, "x.ll:3:1: error: no such instruction"),
            (6, "LLVM ERROR: Cannot select: t3\nStack dump:"),
            (9, ""),
            (15, "Terminated"),
            (255 << 8, ""),
        ] {
            assert_eq!(name(raw, said), None, "{raw} {said}");
        }
    }
}
