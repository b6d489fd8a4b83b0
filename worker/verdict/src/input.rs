//! Texts that are judged, and remarks about them.

use crate::readings::Otherwise;
use anyhow::{Error, Result, anyhow};
use moire_program::ir::Program;
use moire_program::lanes::{has_warps, joined};
use moire_program::text::{Diagnostic, Format, Severity, decode, parse};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A program with the text it came from.
pub struct Source {
    /// The name of its file.
    pub name: String,
    /// What is explored: the parsed text with few threads for each warp.
    pub program: Program,
    /// The text.
    pub text: String,
    /// The parsed text, if it has warps.
    written: Option<Program>,
    /// A kernel as it is read under the profile that is not in use, if lanes are read in another way then.
    pub(crate) otherwise: Option<Box<Otherwise>>,
}

impl Source {
    /// Joins a program and its text.
    pub fn new(name: &str, program: Program, text: &str) -> Self {
        let few = has_warps(&program).then(|| joined(&program).into_owned());
        let (program, written) = match few {
            Some(few) => (few, Some(program)),
            None => (program, None),
        };
        Source { name: name.to_owned(), program, text: text.to_owned(), written, otherwise: None }
    }

    /// Another program with the same text, explored as it stands.
    #[must_use]
    pub(crate) fn with(&self, program: Program) -> Self {
        let (name, text) = (self.name.clone(), self.text.clone());
        Source { name, program, text, written: None, otherwise: None }
    }

    /// The parsed text. Edits and remarks are about its threads.
    pub fn written(&self) -> &Program {
        self.written.as_ref().unwrap_or(&self.program)
    }

    /// Joins a remark of the static rules with the line it is about.
    pub fn remark(&self, diagnostic: Diagnostic) -> Rejected {
        Rejected::new(&self.name, &self.text, diagnostic)
    }
}

/// The rule of a remark that says why a file is not read.
pub const UNREAD: &str = "unread";

/// A remark about a text, printed with the line it is about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Rejected {
    /// The name of the file.
    #[serde(skip)]
    pub file: String,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// The rule that is broken; `unread` if the file cannot be read.
    pub rule: Option<&'static str>,
    /// The line, from 1; 0 if it concerns no single line.
    pub line: u32,
    /// The column in characters, from 1; 0 if the remark has none.
    pub column: usize,
    /// The number of characters that are marked.
    pub width: usize,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The line itself, as far as it is shown.
    pub text: String,
}

impl Rejected {
    /// Finds the line of `text` that the remark is about.
    pub fn new(file: &str, text: &str, diagnostic: Diagnostic) -> Self {
        let Diagnostic { line, column, message, hint, severity, rule } = diagnostic;
        let text = (line as usize).checked_sub(1).and_then(|n| text.lines().nth(n));
        let text: String = text.unwrap_or_default().chars().take(200).collect();
        let (column, width) = marked(&text, column as usize, &message);
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        Rejected { file: file.to_owned(), severity, rule, line, column, width, message, hint, text }
    }

    /// The reason why a file is not read.
    pub(crate) fn unread(file: &str, why: &Error) -> Self {
        Rejected {
            file: file.to_owned(),
            severity: "error",
            rule: Some(UNREAD),
            line: 0,
            column: 0,
            width: 0,
            message: format!("{why:#}"),
            hint: None,
            text: String::new(),
        }
    }

    /// Whether the text is refused.
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }
}

/// The column in characters, and the number of characters that are marked: the first word in backticks of the message where
/// the line has it from the column on, else one character.
fn marked(line: &str, column: usize, message: &str) -> (usize, usize) {
    let Some(before) = column.checked_sub(1).and_then(|n| line.get(..n)) else { return (column, 1) };
    let column = before.chars().count() + 1;
    let rest = &line[before.len()..];
    match message.split('`').nth(1).filter(|word| !word.is_empty()) {
        Some(word) => match rest.find(word) {
            Some(at) => (column + rest[..at].chars().count(), word.chars().count()),
            None => (column, 1),
        },
        None => (column, 1),
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.rule == Some(UNREAD) {
            return f.write_str(&self.message);
        }
        write!(f, "{}:", self.file)?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}: {}", self.severity, self.message)?;
        if let Some(rule) = self.rule {
            write!(f, " [{rule}]")?;
        }
        if !self.text.is_empty() {
            let margin = self.line.to_string();
            let lead = self.text.chars().take(self.column.saturating_sub(1));
            let lead: String = lead.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let (under, carets) = (" ".repeat(margin.len()), "^".repeat(self.width));
            write!(f, "\n{margin} | {}\n{under} | {lead}{carets}", self.text)?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejected {}

/// A file that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Whether the text is a source program of a compiler.
pub fn is_source(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok_and(moire_source::text::is_source)
}

/// A source program, lowered. Its lines are those of its printed text.
fn lowered(name: &str, text: &str) -> Result<Source> {
    let source = moire_source::text::parse(text).map_err(|e| anyhow!(Rejected::new(name, text, e.0)))?;
    let lowered = moire_source::lower::lower(&source).map_err(|why| anyhow!("{name}: {}", why.reason()))?;
    Ok(Source::new(name, lowered.program, &moire_source::text::print(&source)))
}

/// Parses the bytes of a program.
///
/// # Errors
/// They are not a program: a [`Rejected`].
pub fn parse_program(name: &str, bytes: &[u8]) -> Result<Source> {
    let reject = |text: &str, diagnostic: Diagnostic| anyhow!(Rejected::new(name, text, diagnostic));
    let text = decode(bytes).map_err(|e| reject("", e.0))?;
    if is_source(bytes) {
        return lowered(name, text);
    }
    let program = parse(text, Format::detect(name, text)).map_err(|e| reject(text, e.0))?;
    Ok(Source::new(name, program, text))
}
