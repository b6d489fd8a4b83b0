//! PTX modules on the command line: from a module and a launch to a program.

use super::launch::LaunchArgs;
use super::lowered::Kernel;
use anyhow::{Result, anyhow, bail};
use moire_console::input::{File, Rejected, Source};
use moire_kernel::Refusal;
use moire_kernel::ptx;
use moire_kernel::specialise::{Launch, Lowered, entry, lower};
use moire_program::text::{Diagnostic, Severity, decode};
use std::collections::BTreeSet;

/// Reads the kernel of a module and runs it ahead.
pub(super) fn read(file: &File, args: &LaunchArgs) -> Result<Kernel> {
    let name = file.name();
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(name, text, d));
    let text = decode(&file.bytes).map_err(|e| reject("", e.0))?;
    let module = ptx::parse(text).map_err(|e| reject(text, e.0))?;
    let errors: Vec<Rejected> = module
        .kernels
        .iter()
        .flat_map(|k| k.rejected(&module))
        .map(|d| Rejected::new(name, text, d))
        .collect();
    if !errors.is_empty() {
        return Ok(Kernel::Rejected(errors));
    }
    let params = args.values()?;
    let made = entry(&module, args.entry.as_deref()).and_then(|kernel| {
        let launch = Launch::of(kernel, args.grid, args.block, args.cluster, params)?;
        Ok((kernel, lower(kernel, &launch)))
    });
    let (kernel, lowered) = made.map_err(|e| anyhow!("{name}: {e}"))?;
    let source = |program| Box::new(Source::new(name, program, text));
    match lowered {
        Ok(Lowered { program, notes, .. }) => {
            let note = |n: moire_kernel::specialise::Note| {
                let d = Diagnostic {
                    line: n.line,
                    column: 0,
                    message: n.text,
                    hint: None,
                    severity: Severity::Note,
                    rule: None,
                };
                Rejected::new(name, text, d)
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
fn brief(notes: Vec<moire_kernel::specialise::Note>) -> Vec<moire_kernel::specialise::Note> {
    let mut seen = BTreeSet::new();
    notes.into_iter().filter(|n| seen.insert(n.text.clone())).collect()
}
