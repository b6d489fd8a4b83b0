//! Why a kernel is not compared. A reason names an instruction and no place of the program.

use super::text::Instr;

/// Why a kernel is not compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unread {
    /// An instruction that is not read.
    #[error("{0} is not read")]
    Instruction(String),
    /// There are too many paths, or steps.
    #[error("too many paths to compare")]
    Paths,
    /// The kernel has no machine code.
    #[error("no machine code")]
    Missing,
    /// No path ends.
    #[error("no path comes to an end")]
    Endless,
}

impl Unread {
    pub(super) fn of(instr: &Instr) -> Unread {
        Unread::Instruction(instr.name())
    }
}
