//! One error for everything that can be wrong with a model text: where, what, and what to do.

use std::fmt;

/// A model that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// The line of the text, if the place is one in a text.
    pub excerpt: Option<String>,
}

/// Widest excerpt, in characters; a longer line is not shown.
const WIDTH: usize = 160;

/// One line, then the line of the text with a caret under the column.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        let Some(excerpt) = &self.excerpt else { return Ok(()) };
        let before = excerpt.get(..self.column as usize - 1).unwrap_or(excerpt);
        let blank: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let margin = " ".repeat(self.line.to_string().len());
        write!(f, "\n  {} | {excerpt}\n  {margin} | {blank}^", self.line)
    }
}

impl LoadError {
    pub(crate) fn new(file: &str, at: Position, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        LoadError { file, line: at.line, column: at.column, message, hint: None, excerpt: None }
    }

    /// Adds the line of the text that the error is about, if it is about this file.
    pub(crate) fn excerpt(mut self, file: &str, text: &str) -> Self {
        if self.file == file && self.excerpt.is_none() {
            let line = text.lines().nth(self.line as usize - 1).map(str::trim_end);
            self.excerpt = line.filter(|l| l.chars().count() <= WIDTH).map(str::to_owned);
        }
        self
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
