//! The reason that a text has no program, a program has no other form, or neither can be run: one type for all that is
//! refused between a kernel and its judgement.

/// The obstacle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The launch does not fit the kernel, or names something that the kernel does not have. The message says what would fit.
    #[error("{0}")]
    Launch(String),
    /// A construct that may decide the verdict and is not interpreted.
    #[error("{what}{}", of_line(*line))]
    Abstained {
        /// The construct and what is not done with it, in words.
        what: String,
        /// Line of the module or program, 1-based; 0 when no single line is the reason.
        line: u32,
    },
    /// A limit was hit; the message names it.
    #[error("{0}")]
    Bounded(String),
}

impl Refusal {
    /// Abstains from a construct of no single line.
    pub fn about(what: &str) -> Refusal {
        Refusal::Abstained { what: what.to_owned(), line: 0 }
    }

    /// The reason without its line, so that equal reasons are equal texts.
    pub fn reason(&self) -> &str {
        match self {
            Refusal::Launch(text) | Refusal::Bounded(text) => text,
            Refusal::Abstained { what, .. } => what,
        }
    }
}

fn of_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" (line {line})") }
}
