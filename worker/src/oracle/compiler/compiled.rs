//! PTX of Tile IR kernels.

use super::cell::Cell;
use crate::oracle::batches;
use moire_generate::tile::{TileDraw, tile_seed};
use moire_tile_ir::Function;
use moire_toolchain::tile::Tileiras;
use moire_toolchain::tile::batch::{self, CompileOptions};

/// Kernels of one batch. The time of `tileiras` for each is lowest around this size.
const SIZE: usize = 64;

/// The PTX of a kernel, or why there is none.
pub(super) type Ptx = Result<String, batch::Unanswered>;
/// Drawn kernels and their PTX.
pub(super) type Batches = batches::Batches<Cell, (TileDraw, Ptx)>;

/// The kernel at `index` of the stream `seed`, and its PTX.
pub(super) fn item(
    batches: &Batches,
    compiler: &Tileiras,
    cell: &Cell,
    (seed, index): (u64, u64),
    beat: &dyn Fn(),
) -> (TileDraw, Ptx) {
    batches.item(SIZE, cell, (seed, index), |indices| {
        let drawn: Vec<TileDraw> = indices.map(|i| tile_seed(seed, i)).collect();
        let texts = compile(compiler, cell, drawn.iter().map(|d| d.module.functions[0].clone()), beat);
        drawn.into_iter().zip(texts).collect()
    })
}

/// PTX of each kernel.
pub(super) fn compile(
    compiler: &Tileiras,
    cell: &Cell,
    kernels: impl Iterator<Item = Function>,
    beat: &dyn Fn(),
) -> Vec<Ptx> {
    let kernels: Vec<Function> = kernels.collect();
    let plan = CompileOptions {
        target: cell.target.clone(),
        level: cell.level,
        version: compiler.bytecode(),
        size: SIZE,
    };
    batch::compile(compiler, &kernels, &plan, beat)
}
