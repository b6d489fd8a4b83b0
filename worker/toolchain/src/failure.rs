//! The reasons why a compiler gives no result.

use crate::crash::death;
use crate::run::RunError;
use std::collections::BTreeMap;
use std::process::ExitStatus;

/// The reason that a compiler gives no PTX.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The compiler could not be run, or not to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It does not understand how it was called.
    #[error("command line: {}", .0.join("; "))]
    Usage(Vec<String>),
    /// It does not know the target, or the version of PTX. `llc` then goes on with another one.
    #[error("target: {}", .0.join("; "))]
    Target(Vec<String>),
    /// It refuses the program.
    #[error("refused: {}", .0.iter().take(6).cloned().collect::<Vec<_>>().join("; "))]
    Refused(Vec<String>),
    /// It accepts the program and cannot compile it, or its assembler failed.
    #[error("not compiled: {}", .0.join("; "))]
    Compile(Vec<String>),
    /// It ran out of memory.
    #[error("out of memory")]
    Memory,
    /// It ended by a signal, or with an unknown exit code.
    #[error("{status}: {}", .said.iter().take(6).cloned().collect::<Vec<_>>().join("; "))]
    Crashed {
        /// The way it ended.
        status: ExitStatus,
        /// Some of its messages.
        said: Vec<String>,
    },
    /// It reports success, but PTX is missing.
    #[error("no PTX: {0}")]
    NoPtx(String),
}

impl Failure {
    /// Whether other programs would fail in the same way.
    pub fn of_the_call(&self) -> bool {
        matches!(self, Failure::Usage(_) | Failure::Target(_) | Failure::Run(RunError::Start(_)))
    }

    /// The name of the compiler's death ([`death`]), if it died.
    pub fn death(&self) -> Option<String> {
        let Failure::Crashed { status, said } = self else { return None };
        death(*status, said.iter().map(String::as_str))
    }

    /// The kernel that `llc` blames, by name.
    pub fn blamed(&self) -> Option<&str> {
        let Failure::Refused(lines) = self else { return None };
        lines.iter().find_map(|l| l.strip_prefix("In function: ")).map(str::trim)
    }

    /// The same without places in the text, which depend on what else stands there.
    #[must_use]
    pub fn without_places(self) -> Failure {
        let word = |line: String| match line.split_once("): error: ") {
            Some((_, word)) => word.to_owned(),
            None => line,
        };
        match self {
            Failure::Refused(lines) => Failure::Refused(lines.into_iter().map(word).collect()),
            other => other,
        }
    }

    /// The lines of its text that `nvcc` blames, from 1, each with what it says of the line first.
    pub fn blamed_lines(&self) -> BTreeMap<usize, &str> {
        let Failure::Refused(lines) = self else { return BTreeMap::new() };
        let of = |line: &'_ String| -> Option<usize> {
            let (place, _) = line.split_once("): error")?;
            place.rsplit_once('(')?.1.parse().ok()
        };
        lines.iter().rev().filter_map(|line| Some((of(line)?, line.as_str()))).collect()
    }
}
