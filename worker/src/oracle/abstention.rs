//! Abstentions: why an engine or an oracle gives no answer.
//!
//! Reports count abstentions by the text of the reason. Equal reasons therefore have equal texts: they name the construct
//! and the stage, and no line of the program.

use super::compiler::CellError;
use super::models::ModelError;
use super::source::SourceCellError;
use super::tools::{NoAssembler, NoCompiler};
use moire_explore::{Abstain, Bound};
use moire_generate::UnknownProfile;
use moire_naive::Skip;
use moire_program::Refusal;
use moire_program::text::ParseError;
use moire_toolchain::Failure;
use moire_toolchain::run::RunError;
use moire_toolchain::tile::batch::Unanswered;
use std::num::NonZeroU64;
use std::sync::Arc;

/// The executions of a program that is found to be right.
///
/// # Errors
/// There is none, which shows nothing.
pub(super) fn executed(executions: u64) -> Result<NonZeroU64, Abstention> {
    NonZeroU64::new(executions).ok_or(Abstention::Unusable("a program without an execution"))
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Abstention {
    /// The model of a side does not load.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The item is not a program.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// The item is of a stream that this build does not know.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The explorer does not support a construct.
    #[error("{}", .0.reason)]
    Unsupported(Abstain),
    /// The explorer reached a limit.
    #[error("{0}")]
    Bounded(Bound),
    /// The enumerator gives no answer.
    #[error(transparent)]
    Enumerator(#[from] Skip),
    /// There is no assembler.
    #[error(transparent)]
    NoAssembler(#[from] NoAssembler),
    /// The assembler did not run to its end.
    #[error(transparent)]
    Assembler(#[from] RunError),
    /// The assembler ended without a judgement of the module.
    #[error("ptxas: {0}")]
    AssemblerFailed(String),
    /// There is no such compiler.
    #[error(transparent)]
    NoCompiler(#[from] NoCompiler),
    /// There is no disassembler.
    #[error("no nvdisasm: {0}")]
    NoDisassembler(String),
    /// A side that should name a compiler does not.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The compiler made no PTX of the kernel.
    #[error("tileiras: {}", first_line(&.0.to_string()))]
    Compiler(#[from] Unanswered),
    /// A side that should name a compiler of source programs does not.
    #[error(transparent)]
    SourceCell(SourceCellError),
    /// No compiler of source programs fits the side.
    #[error("no {0} here")]
    NoSourceCompiler(String),
    /// A compiler made no PTX of a source program.
    #[error("{kind}: {}", reason(&why.to_string()))]
    SourceCompiler {
        /// The kind of compiler.
        kind: &'static str,
        /// Why.
        why: Arc<Failure>,
    },
    /// A program or kernel is refused by the stage that prepares it.
    #[error("{}", .0.reason())]
    Refused(#[from] Refusal),
    /// The PTX of a kernel cannot be read.
    #[error("{0}")]
    Module(String),
    /// An engine does not decide the program.
    #[error("{0}")]
    Undecided(String),
    /// The oracle itself cannot use the item or the claim.
    #[error("{0}")]
    Unusable(&'static str),
    /// The same, at a stage of the oracle.
    #[error("{stage}: {why}")]
    At {
        /// The stage.
        stage: &'static str,
        /// Why there is no answer at it.
        why: Box<Abstention>,
    },
}

impl Abstention {
    /// Some executions were cut, so what the program may do is not known.
    pub(super) const CUT: Self = Self::Unusable("cut at the loop bound");

    /// The self oracle enumerates a share of the large programs.
    pub(super) const NOT_DRAWN: Self =
        Self::Unusable("more than 32 instructions, of which one program in 16 is enumerated");

    /// The stream drew an equal program shortly before.
    pub const REPEATED: Self = Self::Unusable("repeats a program shortly before it in its stream");

    /// The job was cancelled, and nobody waits for its answer.
    pub(super) const CANCELLED: Self = Self::Unusable("cancelled");

    /// The claim is not of the form that its oracle makes.
    pub(super) const FORM: Self = Self::Unusable("this release does not know the rule of the claim");

    /// The name of the death of a compiler, if that is the reason.
    pub(super) fn death(&self) -> Option<String> {
        self.failure()?.death()
    }

    /// How a compiler failed, if that is the reason.
    pub(super) fn failure(&self) -> Option<&Failure> {
        match self {
            Self::SourceCompiler { why, .. } | Self::Compiler(Unanswered::Compiler(why)) => Some(why),
            Self::At { why, .. } => why.failure(),
            _ => None,
        }
    }

    /// Names the stage at which there is no answer.
    pub(super) fn at(self, stage: &'static str) -> Self {
        Self::At { stage, why: Box::new(self) }
    }
}

impl From<Abstain> for Abstention {
    fn from(abstain: Abstain) -> Self {
        Self::Unsupported(abstain)
    }
}

/// Most bytes of a message of a compiler.
const MAX_REASON: usize = 100;

/// The first line of a message, without the numbers that differ between programs.
fn reason(text: &str) -> String {
    let varies = |word: &str| {
        word.contains("0x") || word.starts_with('t') && word[1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let words: Vec<&str> = first_line(text).split_whitespace().filter(|w| !varies(w)).collect();
    words.join(" ").chars().take(MAX_REASON).collect()
}

fn first_line(text: &str) -> &str {
    text.split([';', '\n']).next().unwrap_or_default()
}
