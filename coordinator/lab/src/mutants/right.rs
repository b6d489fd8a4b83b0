//! The right programs that mistakes are made in: whatever is clean among the texts and modules of folders, and drawn protocols.

use super::module::Said;
use super::{Bench, Kept, module};
use anyhow::{Context, Result, bail};
use moire_console::input::parse_program;
use moire_generate::numbers::Draw;
use moire_generate::protocol::Plan;
use moire_lab::mutants::is_clean;
use moire_program::ir::Program;
use std::path::{Path, PathBuf};

/// Bytes that one protocol is drawn from.
const ENTROPY: usize = 64;

/// A right program.
pub(super) struct Right {
    /// Path, or number of a protocol.
    pub(super) name: String,
    pub(super) what: What,
}

pub(super) enum What {
    Program(Program),
    /// The text of a PTX module.
    Module(String),
}

/// All of them, by name; protocols last.
pub(super) fn programs(bench: &Bench<'_>, noted: &mut Kept) -> Result<Vec<Right>> {
    let mut out = texts(bench)?;
    if out.is_empty() {
        bail!("{} has no litmus text that is clean under {}", bench.args.from.display(), bench.model.name());
    }
    for folder in bench.args.modules.iter().filter(|path| path.exists()) {
        out.extend(modules(bench, folder, noted)?);
    }
    out.extend((0..bench.args.protocols).filter_map(|number| protocol(bench, number)));
    Ok(out)
}

/// The files below a folder with this ending, by name; of a file, itself.
pub(crate) fn below(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut out = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            out.extend(below(&path, ending)?);
        } else if path.extension().is_some_and(|e| e == ending) {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

fn texts(bench: &Bench<'_>) -> Result<Vec<Right>> {
    let mut out = Vec::new();
    for path in below(&bench.args.from, "litmus")? {
        let name = path.display().to_string();
        let bytes = moire_console::bounded::read(&path).with_context(|| format!("cannot read {name}"))?;
        let program = parse_program(&name, &bytes)?.program;
        if is_clean(&program, &bench.model, &bench.limits) {
            out.push(Right { name, what: What::Program(program) });
        }
    }
    Ok(out)
}

fn modules(bench: &Bench<'_>, folder: &Path, noted: &mut Kept) -> Result<Vec<Right>> {
    let mut out = Vec::new();
    for path in below(folder, "ptx")? {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let key = format!("{name} {}", &blake3::hash(text.as_bytes()).to_hex()[..16]);
        if !noted.right.contains_key(&key) {
            let right = matches!(module::ask(&path, &[], bench.args.budget)?, Said::Clean(_));
            noted.right.insert(key.clone(), right);
            noted.write(bench.args)?;
        }
        if noted.right[&key] {
            out.push(Right { name, what: What::Module(text) });
        }
    }
    Ok(out)
}

fn protocol(bench: &Bench<'_>, number: u64) -> Option<Right> {
    let mut draw = Draw::new(bench.args.seed.wrapping_add(number));
    let bytes: Vec<u8> = (0..ENTROPY / 8).flat_map(|_| draw.bits().to_le_bytes()).collect();
    let plan = Plan::draw(&mut arbitrary::Unstructured::new(&bytes)).ok()?;
    let program = plan.protocol().program()?;
    let right = is_clean(&program, &bench.model, &bench.limits);
    right.then(|| Right { name: format!("protocol {number}"), what: What::Program(program) })
}
