//! The result of lowering the kernel of a module.

use moire_console::input::{Rejected, Source};

/// The result of lowering a kernel.
pub(crate) enum Kernel {
    /// A program, with remarks about how it was read.
    Program(Box<Source>, Vec<Rejected>),
    /// Statically illegal: every error.
    Rejected(Vec<Rejected>),
    /// Not modelled, so no engine is asked: `abstained`, with the reason.
    Abstained(Box<Source>, String),
    /// A limit was hit: `bounded`, with the reason.
    Bounded(Box<Source>, String),
}
