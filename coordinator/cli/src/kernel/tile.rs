//! Tile IR on the command line: from a module and a grid to a program.

use super::launch::LaunchArgs;
use super::lowered::Kernel;
use anyhow::{Result, anyhow, bail};
use moire_console::input::{File, Rejected, Source};
use moire_program::Refusal;
use moire_program::ir::Program;
use moire_program::text::{Diagnostic, Severity, decode};
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text as tile;
use moire_tile_ir::verify;
use std::path::Path;

/// Whether a file is Tile IR text by its name.
pub(crate) fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "tile")
}

/// Whether tile blocks stand in a file: a kernel of Tile IR, or a litmus text with an instruction of a tile block.
pub(crate) fn has_blocks(file: &File) -> bool {
    let text = String::from_utf8_lossy(&file.bytes);
    let code = text.lines().flat_map(|l| l.split("//").next().unwrap_or_default().split([';', '{']));
    is_text(&file.path) || code.map(str::trim_start).any(|statement| statement.starts_with("tile."))
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
pub(super) fn read(file: &File, args: &LaunchArgs) -> Result<Kernel> {
    let name = file.name();
    let reject = |text: &str, d: Diagnostic| anyhow!(Rejected::new(name, text, d));
    let text = decode(&file.bytes).map_err(|e| reject("", e.0))?;
    let module = tile::parse(text).map_err(|e| reject(text, e.0))?;
    let wrong = |fault: moire_tile_ir::Fault| {
        let diagnostic = Diagnostic {
            line: fault.line,
            column: fault.column,
            message: fault.message,
            hint: None,
            severity: Severity::Error,
            rule: Some(fault.reason.name()),
        };
        Rejected::new(name, text, diagnostic)
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
    launch.params = args.values()?;
    let lowered = tile_entry(&module, args.entry.as_deref()).and_then(|kernel| lower(kernel, &launch));
    let source = |program: Program| Box::new(Source::new(name, program, text));
    match lowered {
        Ok(program) => Ok(Kernel::Program(source(program), Vec::new())),
        Err(Refusal::Launch(why)) => bail!("{name}: {why}"),
        Err(refusal @ Refusal::Abstained { .. }) => {
            Ok(Kernel::Abstained(source(Program::default()), refusal.to_string()))
        }
        Err(Refusal::Bounded(why)) => Ok(Kernel::Bounded(source(Program::default()), why)),
    }
}
