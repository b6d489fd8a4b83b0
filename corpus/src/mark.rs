//! Marks: changes of a finding's life cycle that a person or a night asks for.

use crate::error::StoreError;

/// A change of a finding's life cycle, by a person or by a night.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is a bug after all.
    Open,
    /// It is no bug.
    Invalid,
    /// It is resolved.
    Fixed,
    /// It is the same bug as the finding with this id, or with an id that starts so.
    Duplicate(String),
    /// It fails no night until a time.
    Suppress {
        /// That time, Unix milliseconds.
        until_ms: u64,
    },
    /// It fails nights again.
    Unsuppress,
}

impl std::str::FromStr for Mark {
    type Err = MarkError;
    /// Reads `open`, `invalid`, `fixed`, `duplicate:ID` or `unsuppress`. `suppress` needs a time, so it is not read here.
    fn from_str(text: &str) -> Result<Self, MarkError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("open", "") => Ok(Self::Open),
            ("invalid", "") => Ok(Self::Invalid),
            ("fixed", "") => Ok(Self::Fixed),
            ("unsuppress", "") => Ok(Self::Unsuppress),
            ("duplicate", of) => Ok(Self::Duplicate(of.to_owned())),
            _ => Err(MarkError::Word(text.chars().take(40).collect())),
        }
    }
}

/// Why a finding was not marked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkError {
    /// No such mark.
    #[error("`{0}` is no state; write open, invalid, fixed, duplicate:ID, suppress or unsuppress")]
    Word(String),
    /// Closing a finding needs a reason.
    #[error("say why: a finding is closed or suppressed with a reason")]
    NoReason,
    /// Suppressing one needs an owner.
    #[error("say who answers for it: a finding is suppressed with an owner")]
    NoOwner,
    /// The suppression would be over already.
    #[error("a suppression ends in the future")]
    Past,
    /// The text is not an id.
    #[error("`{0}` is no id of a finding: at least eight hexadecimal digits")]
    NoId(String),
    /// No finding has an id that starts so.
    #[error("no finding starts with {0}; `moire findings list` shows them")]
    Unknown(String),
    /// Several findings have ids that start so.
    #[error("several findings start with {0}; give more digits")]
    Ambiguous(String),
    /// A finding is no duplicate of itself.
    #[error("{0} would be a duplicate of itself")]
    Itself(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
