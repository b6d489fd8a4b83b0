//! The result of lowering the kernel of a module.

use super::launched::Launched;
use moire_console::input::{Rejected, Source};

/// The result of lowering a kernel.
pub(crate) enum Kernel {
    /// The launches that are worth judging, the smallest first. Never none, one if nothing is assumed.
    Programs(Vec<Candidate>),
    /// Statically illegal: every error.
    Rejected(Vec<Rejected>),
    /// Not modelled, so no engine is asked: `abstained`, with the reason.
    Abstained(Box<Source>, Box<Launched>, String),
    /// A limit was hit: `bounded`, with the reason.
    Bounded(Box<Source>, Box<Launched>, String),
}

/// A launch of the kernel, and its programs.
pub(crate) struct Candidate {
    /// Programs of clusters that are independent of each other, never none.
    pub(crate) sources: Vec<Source>,
    pub(crate) launch: Launched,
    /// Why the launch is abstained from although its programs are clean.
    pub(crate) reserve: Option<String>,
}
