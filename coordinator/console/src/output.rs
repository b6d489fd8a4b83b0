//! Standard output and its formats.

use crate::exit;
use moire_coordinator::Plain;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The format in which a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
}

/// The format in which a command prints its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One object a result, versioned
    Json,
    /// One SARIF 2.1.0 document, for code review tools
    Sarif,
    /// One JUnit document, for continuous integration
    Junit,
}

impl Format {
    /// Whether people read it.
    pub fn is_text(self) -> bool {
        self == Self::Text
    }
}

/// When verdicts are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also into pipes and files
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// Whether stdout gets colours. `silent`: NO_COLOR is set, see <https://no-color.org>.
    fn is_on(self, terminal: bool, silent: bool) -> bool {
        match self {
            Self::Auto => terminal && !silent,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

static COLORED: AtomicBool = AtomicBool::new(false);

/// Sets for this process whether verdicts are coloured.
pub fn color(choice: Color) {
    let silent = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    COLORED.store(choice.is_on(std::io::stdout().is_terminal(), silent), Ordering::Relaxed);
}

/// Prints the verdicts of an answer that has this exit code: green, yellow where it is incomplete, else red.
pub fn verdicts(code: u8, words: &str) {
    if !COLORED.load(Ordering::Relaxed) {
        return out(format_args!("{words}"));
    }
    let sgr = match code {
        exit::CLEAN => "32",
        exit::INCOMPLETE => "33",
        _ => "31",
    };
    let text = plain(format_args!("{words}"));
    written(std::io::stdout().write_all(format!("\u{1b}[1;{sgr}m{text}\u{1b}[0m").as_bytes()));
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
    written(std::io::stdout().write_all(plain(text).as_bytes()));
}

fn written(result: std::io::Result<()>) {
    let Err(error) = result else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(exit::CLEAN.into());
    }
    eprintln!("moire: cannot write the output: {error}");
    std::process::exit(exit::USAGE.into());
}
