//! Programs and models, read by the names given on the command line.

use crate::bounded;
use anyhow::{Context, Result, anyhow, bail};
use moire_cat::{Include, Model, Variants};
use moire_models::Beside;
pub use moire_verdict::input::{File, Rejected, Source, parse_program};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// Largest metadata of a compiler that are read, in bytes.
const MAX_METADATA: u64 = 1 << 20;

/// Reads a file; `-` is the standard input.
///
/// # Errors
/// It cannot be read.
pub fn read_file(path: &Path) -> Result<File> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read the standard input")?;
        return Ok(File::new(path, "<stdin>", bytes, None));
    }
    let name = path.display().to_string();
    let bytes = bounded::read(path).with_context(|| format!("cannot read {name}"))?;
    let beside = path.with_extension("json");
    let small = std::fs::metadata(&beside).is_ok_and(|m| m.is_file() && m.len() <= MAX_METADATA);
    let metadata = small.then(|| std::fs::read_to_string(&beside).ok()).flatten();
    Ok(File::new(path, &name, bytes, metadata))
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
