//! Why a kernel has no answer: one type for all that this crate refuses.

/// What stands in the way of a program, a cut or a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The launch does not fit the kernel, or names what it does not have; the message says what would.
    #[error("{0}")]
    Launch(String),
    /// Something that may decide the verdict and is not interpreted.
    #[error("{what}{}", of_line(*line))]
    Abstained {
        /// The construct, as a noun phrase.
        what: String,
        /// Line of the module or of the program, 1-based; 0 when it is about no single line.
        line: u32,
    },
    /// A limit was hit; the message names it.
    #[error("{0}")]
    Bounded(String),
}

/// Results of this crate.
pub(crate) type Done<T> = Result<T, Refusal>;

impl Refusal {
    /// Abstains from something that is about no single line.
    pub(crate) fn about(what: &str) -> Refusal {
        Refusal::Abstained { what: what.to_owned(), line: 0 }
    }
}

fn of_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" (line {line})") }
}
