//! PTX of source programs.

use super::Threads;
use super::cell::Cell;
use crate::oracle::abstention::Abstention;
use crate::oracle::batches::{self, SIZE};
use moire_generate::source::source_seed;
use moire_source::Source;
use moire_toolchain::Failure;
use moire_toolchain::source::Compiler;
use moire_toolchain::source::batch;
use std::sync::Arc;

/// The PTX of a program, or why there is none.
type Ptx = Result<Threads, Arc<Failure>>;
/// Drawn programs and their PTX.
pub(super) type Batches = batches::Batches<Cell, (Source, Ptx)>;

/// The program at `index` of the stream `seed`, and its PTX.
pub(super) fn item(
    batches: &Batches,
    compiler: &Compiler,
    cell: &Cell,
    seed: u64,
    index: u64,
) -> (Source, Result<Threads, Abstention>) {
    let (source, ptx) = batches.item(cell, seed, index, |indices| {
        let drawn: Vec<Source> = indices.map(|i| source_seed(seed, i)).collect();
        let all: Vec<&Source> = drawn.iter().collect();
        let compiled = ptx(compiler, cell, &all);
        drawn.into_iter().zip(compiled).collect()
    });
    (source, named(compiler, ptx))
}

fn ptx(compiler: &Compiler, cell: &Cell, sources: &[&Source]) -> Vec<Ptx> {
    let all = batch::compile(compiler, sources, &cell.options(compiler), SIZE);
    all.into_iter().map(|one| one.map(Into::into)).collect()
}

fn named(compiler: &Compiler, ptx: Ptx) -> Result<Threads, Abstention> {
    ptx.map_err(|why| Abstention::SourceCompiler { kind: compiler.kind().name(), why })
}

/// The PTX of each program.
pub(super) fn compile(
    compiler: &Compiler,
    cell: &Cell,
    sources: &[&Source],
) -> Vec<Result<Threads, Abstention>> {
    ptx(compiler, cell, sources).into_iter().map(|one| named(compiler, one)).collect()
}
