//! Standard output and its formats.

use crate::exit;
use moire_coordinator::Plain;
use std::io::Write;

/// The format in which a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
}

/// The form in which everything is printed: without the control characters of outside text.
fn plain(text: std::fmt::Arguments<'_>) -> String {
    Plain(text).to_string()
}

/// Writes to stderr. If that fails there is nobody to tell.
pub fn err(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(plain(text).as_bytes());
}

/// Writes to stdout. A failed write ends the process: with code 0 if the reader has gone (`moire .. | head`), otherwise
/// with a message and code 2.
pub fn out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().write_all(plain(text).as_bytes()) else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(exit::CLEAN.into());
    }
    eprintln!("moire: cannot write the output: {error}");
    std::process::exit(exit::USAGE.into());
}
