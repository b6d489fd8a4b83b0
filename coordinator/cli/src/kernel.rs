//! Kernels on the command line: from a PTX module and a launch to a program.

use crate::args::LaunchArgs;
use crate::input::{Rejected, Source};
use anyhow::{Context, Result, anyhow, bail};
use moire_program::kernel::{Launch, Lowered, Refusal, entry, lower};
use moire_program::text::{Diagnostic, Severity, decode, ptx};
use std::collections::BTreeMap;
use std::path::Path;

/// What a module became.
pub(crate) enum Kernel {
    /// A program, with remarks about how it was read.
    Program(Box<Source>, Vec<Rejected>),
    /// Statically illegal: every error.
    Rejected(Vec<Rejected>),
    /// Something in the way that no engine was asked about: `abstained`, with the reason.
    Abstained(Box<Source>, String),
    /// A limit: `bounded`, with the reason.
    Bounded(Box<Source>, String),
}

/// Whether a file is a module of kernels by its name: PTX or Tile IR.
pub(crate) fn is_module(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "ptx") || crate::tile::is_text(path)
}

/// `8`, `8,4`, `8,4,1`
pub(crate) fn shape(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three sizes, for example 8,4,1".into());
    }
    for (n, part) in out.iter_mut().zip(parts) {
        *n = part
            .trim()
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| format!("`{part}` is no size; write 8, 8,4 or 8,4,1"))?;
    }
    Ok(out)
}

/// `3=256`, `3=0x100`
pub(crate) fn param(text: &str) -> Result<(u16, u64), String> {
    let wrong = || format!("`{text}` is no parameter; write INDEX=VALUE, for example 2=256 or 2=0x100");
    let (index, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.trim();
    let number = match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok().or_else(|| value.parse::<i64>().ok().map(i64::cast_unsigned)),
    };
    Ok((index.trim().parse().map_err(|_| wrong())?, number.ok_or_else(wrong)?))
}

/// Reads the kernel of a module and runs it ahead.
pub(crate) fn read(path: &Path, args: &LaunchArgs) -> Result<Kernel> {
    if crate::tile::is_text(path) {
        return crate::tile::read(path, args);
    }
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(&name, text, d));
    let text = decode(&bytes).map_err(|e| reject("", e.0))?;
    let module = ptx::parse(text).map_err(|e| reject(text, e.0))?;
    let errors: Vec<Rejected> = module
        .kernels
        .iter()
        .flat_map(|k| k.rejected(&module))
        .map(|d| Rejected::new(&name, text, d))
        .collect();
    if !errors.is_empty() {
        return Ok(Kernel::Rejected(errors));
    }
    let params: BTreeMap<u16, u64> = args.params.iter().copied().collect();
    if params.len() != args.params.len() {
        bail!("a parameter is given twice");
    }
    let made = entry(&module, args.entry.as_deref()).and_then(|kernel| {
        let launch = Launch::of(kernel, args.grid, args.block, args.cluster, params)?;
        Ok((kernel, lower(kernel, &launch)))
    });
    let (kernel, lowered) = made.map_err(|e| anyhow!("{name}: {e}"))?;
    let source = |program| Box::new(Source::new(&name, program, text));
    match lowered {
        Ok(Lowered { program, notes }) => {
            let note = |n: moire_program::kernel::Note| {
                let d = Diagnostic {
                    line: n.line,
                    column: 0,
                    message: n.text,
                    hint: None,
                    severity: Severity::Note,
                    rule: None,
                };
                Rejected::new(&name, text, d)
            };
            Ok(Kernel::Program(source(program), brief(notes).into_iter().map(note).collect()))
        }
        Err(Refusal::Launch(why)) => bail!("{name}: {why}"),
        Err(refusal @ Refusal::Abstained { .. }) => {
            Ok(Kernel::Abstained(source(kernel.program.clone()), refusal.to_string()))
        }
        Err(Refusal::Bounded(why)) => Ok(Kernel::Bounded(source(kernel.program.clone()), why)),
    }
}

/// The first note of each text.
fn brief(notes: Vec<moire_program::kernel::Note>) -> Vec<moire_program::kernel::Note> {
    let mut seen = std::collections::BTreeSet::new();
    notes.into_iter().filter(|n| seen.insert(n.text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_parameters() {
        assert_eq!(shape("8"), Ok([8, 1, 1]));
        assert_eq!(shape("8,4"), Ok([8, 4, 1]));
        assert!(shape("8,0").is_err() && shape("1,1,1,1").is_err() && shape("x").is_err());
        assert_eq!(param("3=0x10"), Ok((3, 16)));
        assert_eq!(param("3=-1"), Ok((3, u64::MAX)));
        assert!(param("3").is_err() && param("a=1").is_err() && param("3=b").is_err());
    }
}
