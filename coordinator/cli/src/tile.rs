//! Tile IR on the command line: from a module and a grid to a program.

use crate::args::LaunchArgs;
use crate::input::{Rejected, Source};
use crate::kernel::Kernel;
use anyhow::{Context, Result, anyhow, bail};
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, Severity, decode, tile};
use moire_program::tile::verify;
use moire_program::tile_run::{TileLaunch, TileRefusal, lower, tile_entry};
use std::path::Path;

/// Whether a file is Tile IR text by its name.
pub(crate) fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tile")
}

/// Whether tile blocks stand in a file: a kernel of Tile IR, or a litmus text with an instruction of a tile block.
pub(crate) fn has_blocks(path: &Path) -> bool {
    let written = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes);
        let code = text.lines().flat_map(|l| l.split("//").next().unwrap_or_default().split([';', '{']));
        code.map(str::trim_start).any(|statement| statement.starts_with("tile."))
    };
    is_text(path) || std::fs::read(path).is_ok_and(written)
}

/// A kernel for the oracles: with the comment that says how it is launched.
pub(crate) fn text(name: &str, bytes: &[u8]) -> Result<String> {
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(name, text, d));
    let text = decode(bytes).map_err(|e| reject("", e.0))?;
    tile::parse(text).map_err(|e| reject(text, e.0))?;
    if TileLaunch::noted(text).is_none() {
        bail!(
            "{name}: say how it is launched in a comment of its own line, such as `{}`",
            TileLaunch::row(2).note().trim()
        );
    }
    Ok(text.to_owned())
}

/// Reads the kernel of a module and launches it, one tile block unless a comment of the text or the command line says
/// otherwise.
pub(crate) fn read(path: &Path, args: &LaunchArgs) -> Result<Kernel> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(&name, text, d));
    let text = decode(&bytes).map_err(|e| reject("", e.0))?;
    let module = tile::parse(text).map_err(|e| reject(text, e.0))?;
    let wrong = |fault: moire_program::tile::Fault| {
        let diagnostic = Diagnostic {
            line: fault.line,
            column: fault.column,
            message: fault.message,
            hint: None,
            severity: Severity::Error,
            rule: Some(fault.reason.name()),
        };
        Rejected::new(&name, text, diagnostic)
    };
    let errors: Vec<Rejected> = verify(&module).into_iter().map(wrong).collect();
    if !errors.is_empty() {
        return Ok(Kernel::Rejected(errors));
    }
    if args.block.is_some() || args.cluster.is_some() {
        bail!("{name}: a tile block has no --block and no --cluster");
    }
    let mut launch = TileLaunch::noted(text).unwrap_or_else(|| TileLaunch::row(1));
    launch.grid = args.grid.unwrap_or(launch.grid);
    launch.params = args.params.iter().copied().collect();
    let lowered = tile_entry(&module, args.entry.as_deref()).and_then(|kernel| lower(kernel, &launch));
    let source = |program: Program| Box::new(Source::new(&name, program, text));
    match lowered {
        Ok(program) => Ok(Kernel::Program(source(program), Vec::new())),
        Err(TileRefusal::Launch(why)) => bail!("{name}: {why}"),
        Err(refusal @ TileRefusal::Abstained { .. }) => {
            Ok(Kernel::Abstained(source(Program::default()), refusal.to_string()))
        }
        Err(TileRefusal::Bounded(why)) => Ok(Kernel::Bounded(source(Program::default()), why)),
    }
}
