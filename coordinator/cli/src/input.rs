//! From names on the command line to programs and models.

use anyhow::{Context, Result, anyhow, bail};
use moire_cat::{Library, Model, Variants, builtin};
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, Format, Severity, decode, parse};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program with the text it came from.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(name: &str, program: Program, text: &str) -> Self {
        Source { name: name.to_owned(), program, text: text.to_owned() }
    }

    /// A remark of the static rules, with the line it is about.
    pub(crate) fn remark(&self, diagnostic: Diagnostic) -> Rejected {
        Rejected::new(&self.name, &self.text, diagnostic)
    }
}

/// A remark about a text, which an error makes no program; printed with the line it is about.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) file: String,
    pub(crate) diagnostic: Diagnostic,
    line: String,
}

impl Rejected {
    pub(crate) fn new(file: &str, text: &str, diagnostic: Diagnostic) -> Self {
        let line = (diagnostic.line as usize).checked_sub(1).and_then(|n| text.lines().nth(n));
        let line: String = line.unwrap_or_default().chars().take(200).collect();
        Rejected { file: file.to_owned(), diagnostic, line }
    }

    /// Column in characters, 1-based; 0 when it concerns no single line.
    pub(crate) fn column(&self) -> usize {
        let bytes = self.diagnostic.column as usize;
        match self.line.get(..bytes.saturating_sub(1)) {
            Some(before) if bytes > 0 => before.chars().count() + 1,
            _ => bytes,
        }
    }

    /// `error`, `warning` or `note`.
    pub(crate) fn word(&self) -> &'static str {
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
            let lead: String = self
                .line
                .chars()
                .take(self.column().saturating_sub(1))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n{} | {lead}^", " ".repeat(margin.len()))?;
        }
        match &d.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejected {}

/// Reads a program file in any of the formats.
pub(crate) fn read_program(path: &Path) -> Result<Source> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    parse_program(&name, &bytes)
}

/// Parses the bytes of a program.
pub(crate) fn parse_program(name: &str, bytes: &[u8]) -> Result<Source> {
    let reject = |text: &str, diagnostic: Diagnostic| anyhow!(Rejected::new(name, text, diagnostic));
    let text = decode(bytes).map_err(|e| reject("", e.0))?;
    let program = parse(text, Format::detect(name, text)).map_err(|e| reject(text, e.0))?;
    Ok(Source { name: name.to_owned(), program, text: text.to_owned() })
}

/// Looks for included files among the shipped ones, then beside the file that includes them.
struct Beside(PathBuf);

impl Library for Beside {
    fn open(&self, name: &str) -> Option<String> {
        let plain = Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
        builtin::Shipped
            .open(name)
            .or_else(|| plain.then(|| std::fs::read_to_string(self.0.join(name)).ok()).flatten())
    }
}

/// Loads `ptx`, `sc`, .. or a file that ends in `.cat`, with its switches set.
pub(crate) fn load_model(name: &str, variants: &Variants) -> Result<Model> {
    if !name.ends_with(".cat") {
        return Ok(builtin::load(name, variants)?);
    }
    let path = Path::new(name);
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the model {name}"))?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{name}: a model must be UTF-8 text"))?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(moire_cat::load(name, &text, &Beside(folder), variants)?)
}

/// The name of a model as others know it, and the files they need for it: none where it is shipped.
pub(crate) fn model_files(name: &str, variants: &Variants) -> Result<(String, BTreeMap<String, String>)> {
    /// Remembers what was looked at.
    struct Looking<'a>(&'a Beside, RefCell<BTreeMap<String, String>>);
    impl Library for Looking<'_> {
        fn open(&self, name: &str) -> Option<String> {
            let text = self.0.open(name)?;
            if builtin::Shipped.open(name).is_none() {
                self.1.borrow_mut().insert(name.to_owned(), text.clone());
            }
            Some(text)
        }
    }
    if !name.ends_with(".cat") {
        return Ok((name.to_owned(), BTreeMap::new()));
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the model {name}"))?;
    let beside = Beside(path.parent().map(Path::to_owned).unwrap_or_default());
    let looking = Looking(&beside, RefCell::default());
    moire_cat::load(name, &text, &looking, variants)?;
    let mut files = looking.1.into_inner();
    let own = path.file_name().map_or_else(|| name.to_owned(), |n| n.to_string_lossy().into_owned());
    files.insert(own.clone(), text);
    Ok((own, files))
}

/// `Q6=B` words as switch values.
pub(crate) fn variants(words: &[String]) -> Result<Variants> {
    let mut out = Variants::new();
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            bail!("`{word}` is no switch setting; write NAME=VALUE, for example Q6=B");
        };
        out.insert(name.to_owned(), value.to_owned());
    }
    Ok(out)
}
