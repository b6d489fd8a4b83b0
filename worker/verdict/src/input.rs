//! Texts that are judged, and remarks about them.

use anyhow::{Result, anyhow};
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, Format, Severity, decode, parse};
use std::path::{Path, PathBuf};

/// A program with the text it came from.
pub struct Source {
    /// The name of its file.
    pub name: String,
    /// The parsed text.
    pub program: Program,
    /// The text.
    pub text: String,
}

impl Source {
    /// Joins a program and its text.
    pub fn new(name: &str, program: Program, text: &str) -> Self {
        Source { name: name.to_owned(), program, text: text.to_owned() }
    }

    /// Joins a remark of the static rules with the line it is about.
    pub fn remark(&self, diagnostic: Diagnostic) -> Rejected {
        Rejected::new(&self.name, &self.text, diagnostic)
    }
}

/// A remark about a text, printed with the line it is about.
#[derive(Debug)]
pub struct Rejected {
    /// The name of the file.
    pub file: String,
    /// The remark.
    pub diagnostic: Diagnostic,
    line: String,
}

impl Rejected {
    /// Finds the line of `text` that the remark is about.
    pub fn new(file: &str, text: &str, diagnostic: Diagnostic) -> Self {
        let line = (diagnostic.line as usize).checked_sub(1).and_then(|n| text.lines().nth(n));
        let line: String = line.unwrap_or_default().chars().take(200).collect();
        Rejected { file: file.to_owned(), diagnostic, line }
    }

    /// Returns the column in characters, starting with 1; 0 if the remark has no column.
    pub fn column(&self) -> usize {
        self.marked().0
    }

    /// The column, and the number of characters that are marked: the first word in backticks of the message where the line
    /// has it from the column on, else one character.
    fn marked(&self) -> (usize, usize) {
        let bytes = self.diagnostic.column as usize;
        let Some(before) = bytes.checked_sub(1).and_then(|n| self.line.get(..n)) else { return (bytes, 1) };
        let column = before.chars().count() + 1;
        let rest = &self.line[before.len()..];
        match self.diagnostic.message.split('`').nth(1).filter(|word| !word.is_empty()) {
            Some(word) => match rest.find(word) {
                Some(at) => (column + rest[..at].chars().count(), word.chars().count()),
                None => (column, 1),
            },
            None => (column, 1),
        }
    }

    /// Names the severity: `error`, `warning` or `note`.
    pub fn word(&self) -> &'static str {
        match self.diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let d = &self.diagnostic;
        write!(f, "{}:", self.file)?;
        if d.line > 0 {
            write!(f, "{}:{}:", d.line, self.column())?;
        }
        write!(f, " {}: {}", self.word(), d.message)?;
        if let Some(rule) = d.rule {
            write!(f, " [{rule}]")?;
        }
        if !self.line.is_empty() {
            let margin = d.line.to_string();
            write!(f, "\n{margin} | {}", self.line)?;
            let (column, width) = self.marked();
            let lead: String = self
                .line
                .chars()
                .take(column.saturating_sub(1))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n{} | {lead}{}", " ".repeat(margin.len()), "^".repeat(width))?;
        }
        match &d.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejected {}

/// A file that is judged.
#[derive(Clone)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// What a compiler says of it in a file beside it.
    pub metadata: Option<String>,
    name: String,
}

impl File {
    /// Joins what is known of a file; `name` is its path for people.
    pub fn new(path: &Path, name: &str, bytes: Vec<u8>, metadata: Option<String>) -> Self {
        File { path: path.to_owned(), bytes, metadata, name: name.to_owned() }
    }
    /// The file with another content.
    #[must_use]
    pub fn with(&self, text: &str) -> Self {
        File { bytes: text.as_bytes().to_vec(), ..self.clone() }
    }
    /// Returns its path as text.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Parses a program in any of the formats.
    ///
    /// # Errors
    /// The file is not a program: a [`Rejected`].
    pub fn program(&self) -> Result<Source> {
        parse_program(&self.name, &self.bytes)
    }
}

/// Parses the bytes of a program.
///
/// # Errors
/// They are not a program: a [`Rejected`].
pub fn parse_program(name: &str, bytes: &[u8]) -> Result<Source> {
    let reject = |text: &str, diagnostic: Diagnostic| anyhow!(Rejected::new(name, text, diagnostic));
    let text = decode(bytes).map_err(|e| reject("", e.0))?;
    let program = parse(text, Format::detect(name, text)).map_err(|e| reject(text, e.0))?;
    Ok(Source { name: name.to_owned(), program, text: text.to_owned() })
}
