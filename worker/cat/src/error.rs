//! One error for everything that can be wrong with a model text: where, what, and what to do.

/// A model that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}{}", hint.as_ref().map(|h| format!("; {h}")).unwrap_or_default())]
#[non_exhaustive]
pub struct LoadError {
    /// File the position refers to.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// 1-based, in bytes.
    pub column: u32,
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LoadError {
    pub(crate) fn new(file: &str, at: Position, message: impl Into<String>) -> Self {
        LoadError { file: file.into(), line: at.line, column: at.column, message: message.into(), hint: None }
    }

    /// An error about a whole file.
    pub fn at_start(file: &str, message: impl Into<String>) -> Self {
        Self::new(file, Position { line: 1, column: 1 }, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A place in a text, 1-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column in bytes.
    pub column: u32,
}

/// The known name closest to `word`, case ignored, if it is close enough to be a typing error.
pub fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_ascii_lowercase();
    known
        .map(|k| (strsim::levenshtein(&lower, &k.to_ascii_lowercase()), k))
        .filter(|(d, k)| *d <= 1 + k.len().max(word.len()) / 4)
        .min()
        .map(|(_, k)| k)
}
