//! Programs and models, read by the names given on the command line.

use crate::bounded;
use anyhow::{Context, Result, anyhow, bail};
use moire_cat::{Include, Model, Variants};
use moire_models::Beside;
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, Format, Severity, decode, parse};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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

/// A file named on the command line, read once.
#[derive(Clone)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    name: String,
}

impl File {
    /// Reads a file; `-` is the standard input.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("cannot read the standard input")?;
            return Ok(File { path: path.to_owned(), bytes, name: "<stdin>".to_owned() });
        }
        let name = path.display().to_string();
        let bytes = bounded::read(path).with_context(|| format!("cannot read {name}"))?;
        Ok(File { path: path.to_owned(), bytes, name })
    }
    /// The file with another content.
    #[must_use]
    pub fn with(&self, text: &str) -> Self {
        File { path: self.path.clone(), bytes: text.as_bytes().to_vec(), name: self.name.clone() }
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

/// Reads the text of a model file.
fn read_model(name: &str) -> Result<String> {
    let bytes = bounded::read(name).with_context(|| format!("cannot read the model {name}"))?;
    String::from_utf8(bytes).map_err(|_| anyhow!("{name}: a model must be UTF-8 text"))
}

/// Loads a shipped model (`ptx`, `sc`, ..) or a file that ends in `.cat`, with its switches set.
///
/// # Errors
/// There is no such model, or it does not load.
pub fn load_model(name: &str, variants: &Variants) -> Result<Model> {
    if !name.ends_with(".cat") {
        return Ok(moire_models::load(name, variants)?);
    }
    let beside = Beside(|path: &Path| bounded::read_to_string(path).ok());
    Ok(moire_cat::load(name, &read_model(name)?, &beside, variants)?)
}

/// Notes which shipped files a user's model includes.
pub fn include_notes(model: &Model) -> Vec<String> {
    let mut notes: Vec<String> =
        model.includes().iter().filter(|i| i.falls_back()).map(Include::to_string).collect();
    notes.dedup();
    notes
}

/// Returns what another process needs to load a model: its name, and the texts of its files by their paths from the
/// model's folder. A shipped model needs no files.
///
/// # Errors
/// There is no such model, or it does not load.
pub fn model_files(name: &str, variants: &Variants) -> Result<(String, BTreeMap<String, String>)> {
    if !name.ends_with(".cat") {
        return Ok((name.to_owned(), BTreeMap::new()));
    }
    let path = Path::new(name);
    let folder = path.parent().unwrap_or(Path::new(""));
    let own = path.file_name().map_or_else(|| name.to_owned(), |n| n.to_string_lossy().into_owned());
    let text = read_model(name)?;
    let files = RefCell::new(BTreeMap::from([(own.clone(), text.clone())]));
    let beside = Beside(|path: &Path| {
        let text = bounded::read_to_string(path).ok()?;
        let short = path.strip_prefix(folder).unwrap_or(path);
        files.borrow_mut().insert(short.display().to_string(), text.clone());
        Some(text)
    });
    moire_cat::load(name, &text, &beside, variants)?;
    Ok((own, files.into_inner()))
}

/// A model as it is named on the command line: `NAME` or `NAME:SWITCH=VALUE,..`, where `NAME` is a shipped model or a file
/// that ends in `.cat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    /// The model or file.
    pub name: String,
    /// The switches that are set.
    pub switches: Variants,
}

impl ModelSpec {
    /// Loads the model.
    ///
    /// # Errors
    /// There is no such model, or it does not load.
    pub fn load(&self) -> Result<Model> {
        load_model(&self.name, &self.switches)
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (n, (switch, value)) in self.switches.iter().enumerate() {
            write!(f, "{}{switch}={value}", if n == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for ModelSpec {
    type Err = anyhow::Error;

    fn from_str(spec: &str) -> Result<Self> {
        // The path of a file may hold colons.
        let end = match spec.find(".cat:") {
            Some(at) => Some(at + ".cat".len()),
            None if spec.ends_with(".cat") => None,
            None => spec.find(':'),
        };
        let (name, rest) = end.map_or((spec, ""), |at| (&spec[..at], &spec[at + 1..]));
        if name.is_empty() {
            bail!("`{spec}` names no model; write NAME:SWITCH=VALUE, for example ptx:Q6=B");
        }
        let mut switches = Variants::new();
        for word in rest.split(',').filter(|w| !w.is_empty()) {
            let Some((switch, value)) = word.split_once('=') else {
                bail!("`{word}` is not a switch setting; write NAME:SWITCH=VALUE, for example ptx:Q6=B");
            };
            switches.insert(switch.to_owned(), value.to_owned());
        }
        Ok(ModelSpec { name: name.to_owned(), switches })
    }
}
