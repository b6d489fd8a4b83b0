//! Standard output and its formats.

use crate::exit;
use std::io::Write;

/// The format in which a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
}

/// Writes to stdout. A failed write ends the process: with code 0 if the reader has gone (`moire .. | head`), otherwise
/// with a message and code 2.
pub fn out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().write_fmt(text) else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(exit::CLEAN.into());
    }
    eprintln!("moire: cannot write the output: {error}");
    std::process::exit(exit::USAGE.into());
}
