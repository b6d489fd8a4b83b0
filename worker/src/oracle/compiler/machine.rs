//! The second stage: what the assembler makes of the memory instructions of compiled kernels.
//!
//! Kernels of the stream are compiled to machine code, and the memory instructions of PTX and machine code are compared
//! (`moire_toolchain::machine`). Lost, added, merged and moved instructions are counted by kind, each kind with the first
//! kernel that has it. These are observations for people who know the machine and never findings, because the order of a
//! text is not the order of execution.

use super::Compiler;
use super::cell::Cell;
use crate::oracle::abstention::Abstention;
use crate::oracle::tools::TILEIRAS;
use moire_generate::tile::tile_seed;
use moire_tile_ir::Function;
use moire_toolchain::Nvdisasm;
use moire_toolchain::machine::{Change, changes, of_machine, of_ptx};
use moire_toolchain::tile::batch::{CompileOptions, assemble};
use std::collections::BTreeMap;
use std::ops::Range;

/// Kernels of one file. Listings are long.
const KERNELS_TOGETHER: usize = 32;

/// Changes between PTX and machine code of some kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// Kernels whose machine code was compared.
    pub compared: u64,
    /// Of these, those in which nothing changed.
    pub unchanged: u64,
    /// Reasons why others were not, counted.
    pub abstained: BTreeMap<String, u64>,
    /// Each kind of change: how often, and the first kernel that has it, by its place in the stream.
    pub changes: BTreeMap<String, (u64, u64)>,
}

impl Observations {
    fn add(&mut self, index: u64, found: Option<Vec<Change>>) {
        let Some(found) = found else {
            *self.abstained.entry("too many memory instructions to compare".into()).or_default() += 1;
            return;
        };
        self.compared += 1;
        self.unchanged += u64::from(found.is_empty());
        for change in found {
            self.changes.entry(change.to_string()).or_insert((0, index)).0 += 1;
        }
    }
}

impl Compiler {
    /// See [`observe`].
    fn observe(&self, spec: &str, seed: u64, places: Range<u64>) -> Result<Observations, Abstention> {
        let cell = Cell::of(spec)?;
        let tool = self.tool(&cell)?;
        let how = || TILEIRAS.how.replace("nvidia-nvvm", "nvidia-nvvm nvidia-cuda-nvdisasm");
        let nvdisasm = Nvdisasm::find(None).ok_or_else(|| Abstention::NoDisassembler(how()))?;
        let plan = CompileOptions {
            target: cell.target.clone(),
            level: cell.level,
            version: tool.bytecode(),
            size: KERNELS_TOGETHER,
        };
        let indices: Vec<u64> = places.collect();
        let mut out = Observations::default();
        for part in indices.chunks(KERNELS_TOGETHER) {
            let kernels: Vec<Function> =
                part.iter().filter_map(|i| tile_seed(seed, *i).module.functions.into_iter().next()).collect();
            for (index, assembled) in part.iter().zip(assemble(tool, &nvdisasm, &kernels, &plan)) {
                match assembled {
                    Ok(both) => out.add(*index, changes(&of_ptx(&both.ptx), &of_machine(&both.machine))),
                    Err(why) => *out.abstained.entry(Abstention::from(why).to_string()).or_default() += 1,
                }
            }
        }
        Ok(out)
    }
}

/// What the assembler makes of the kernels at these places of a stream of Tile IR; see [`Observations`].
///
/// # Errors
/// The specification names no compiler that is here, or there is no disassembler.
pub fn observe(spec: &str, seed: u64, places: Range<u64>) -> Result<Observations, Abstention> {
    Compiler::default().observe(spec, seed, places)
}
