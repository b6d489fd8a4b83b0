//! Tile IR: from a module and a grid to a program.

use super::begins_with;
use super::launched::{Argument, Launched, Origin, Size, Taken};
use super::lowered::{Candidate, Kernel};
use super::wanted::Wanted;
use crate::input::{File, Rejected, Source};
use anyhow::{Result, anyhow, bail};
use moire_program::Refusal;
use moire_program::ir::{Instr, Op, Program, TileOp, Ty};
use moire_program::text::{Diagnostic, Severity, decode};
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text as tile;
use moire_tile_ir::verify;
use std::collections::BTreeSet;
use std::path::Path;

/// Whether a file is Tile IR text: by its name, or because it begins with a module of Tile IR.
pub fn is_text(path: &Path, bytes: &[u8]) -> bool {
    path.extension().is_some_and(|e| e == "tile" || e == "mlir") || begins_with(bytes, "cuda_tile.module")
}

/// Whether tile blocks stand in a file: a kernel of Tile IR, or a litmus text with an instruction of a tile block.
pub fn has_blocks(file: &File) -> bool {
    let text = String::from_utf8_lossy(&file.bytes);
    let code = text.lines().flat_map(|l| l.split("//").next().unwrap_or_default().split([';', '{']));
    is_text(&file.path, &file.bytes)
        || code.map(str::trim_start).any(|statement| statement.starts_with("tile."))
}

/// A kernel for the oracles: with the comment that says how it is launched.
pub fn text(name: &str, bytes: &[u8]) -> Result<String> {
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

/// Reads the kernel of a module and launches it as a comment of the text or the command line says, or with one tile block and
/// with two, so that blocks meet.
pub(super) fn read(file: &File, args: &Wanted) -> Result<Kernel> {
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
    if !args.fields.is_empty() || !args.words.is_empty() || !args.assumed.is_empty() {
        bail!("{name}: a parameter of a tile block has no fields and no words, and nothing is assumed of it");
    }
    let kernel = tile_entry(&module, args.entry.as_deref()).map_err(|why| anyhow!("{name}: {why}"))?;
    let grids = match (args.grid, TileLaunch::noted(text)) {
        (Some(size), _) => vec![Size { size, origin: Origin::Given }],
        (None, Some(noted)) => vec![Size { size: noted.grid, origin: Origin::File("a comment") }],
        (None, None) => [1, 2].map(|n| Size { size: [n, 1, 1], origin: Origin::Assumed }).into(),
    };
    let mut candidates: Vec<Candidate> = Vec::new();
    for grid in grids {
        let launch = TileLaunch { grid: grid.size, params: args.params.clone(), ..TileLaunch::row(1) };
        let said = Launched {
            file: name.to_owned(),
            entry: kernel.name.clone(),
            recorded: None,
            several: module.functions.iter().filter(|f| f.entry).count() > 1,
            grid,
            cluster: None,
            block: None,
            params: launch.params.iter().map(|(index, value)| argument(*index, *value)).collect(),
            alone: None,
            smaller: Vec::new(),
            more: Vec::new(),
            taken: Vec::new(),
            parts: Vec::new(),
            coverage: None,
            assumed: false,
            command: String::new(),
            any_data: None,
            every: Vec::new(),
            number: 0,
            same: Vec::new(),
            then: Vec::new(),
        };
        match lower(kernel, &launch) {
            Ok(program) => {
                let said = Launched { taken: sums(&program), ..said };
                let sources = vec![Source::new(name, program, text)];
                candidates.push(Candidate::of(sources, said));
            }
            // One block is enough if there are no two.
            Err(Refusal::Launch(_)) if !candidates.is_empty() => {}
            Err(refusal) => {
                candidates.push(Candidate::refused(
                    refusal,
                    Source::new(name, Program::default(), text),
                    said,
                )?);
            }
        }
    }
    Ok(Kernel::Launches(candidates, Vec::new()))
}

/// Sums of floats, which are not what the machine adds.
fn sums(program: &Program) -> Vec<Taken> {
    let adds = |i: &&Instr| matches!(&i.op, Op::Tile(TileOp::Access(a)) if matches!(a.ty, Ty::F(_)));
    let lines: BTreeSet<u32> =
        program.threads.iter().flat_map(|t| &t.body).filter(adds).map(|i| i.line).collect();
    let text = "the values of floats that atomics add do not matter: their bits are added as integers";
    lines.into_iter().map(|line| Taken { line, text: text.to_owned() }).collect()
}

fn argument(index: u16, value: u64) -> Argument {
    let (at, behind, word, name, decides) = (None, false, None, String::new(), None);
    Argument { index, at, behind, word, name, value, origin: Origin::Given, decides }
}
