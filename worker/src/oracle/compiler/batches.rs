//! PTX of drawn kernels, one file of kernels at a time.
//!
//! A start of the compiler costs far more than a small kernel, and items come one by one. So the thread that asks for the
//! first of [`SIZE`] neighbours compiles them all; a thread that asks for another of them waits and takes its part. Answers
//! depend on the kernel alone (`moire_toolchain::tile::batch`), so the grouping has no effect on them.

use super::cell::Cell;
use moire_generate::tile::{TileDraw, tile_seed};
use moire_tile_ir::Function;
use moire_toolchain::tile::Tileiras;
use moire_toolchain::tile::batch::{self, CompileOptions};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Kernels of one file. The compiler's time per kernel is lowest around this size.
const SIZE: usize = 64;
/// Most files whose answers are kept: one for each thread that works, and the one before.
const MAX_KEPT_FILES: usize = 64;

/// The PTX of a kernel, or why there is none.
pub(super) type Ptx = Result<String, batch::Unanswered>;

/// A drawn kernel and its PTX.
type Batch = Vec<(TileDraw, Ptx)>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    seed: u64,
    number: u64,
    cell: Cell,
}

/// The files compiled last.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Vec<(Key, Arc<OnceLock<Batch>>)>>);

impl Batches {
    /// The kernel at `index` of a stream, and its PTX.
    pub(super) fn item(&self, compiler: &Tileiras, cell: &Cell, seed: u64, index: u64) -> (TileDraw, Ptx) {
        let (number, at) = (index / SIZE as u64, index % SIZE as u64);
        let slot = self.slot(Key { seed, number, cell: cell.clone() });
        let batch = slot.get_or_init(|| {
            // The last file of a stream has a place for every index up to the last one.
            let file = index - at..=(index - at).saturating_add(SIZE as u64 - 1);
            let drawn: Vec<TileDraw> = file.map(|i| tile_seed(seed, i)).collect();
            let texts = compile(compiler, cell, drawn.iter().map(|d| d.module.functions[0].clone()));
            drawn.into_iter().zip(texts).collect()
        });
        batch[usize::try_from(at).expect("a place in a file")].clone()
    }

    fn slot(&self, key: Key) -> Arc<OnceLock<Batch>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = all.iter().find(|(k, _)| *k == key) {
            return Arc::clone(slot);
        }
        if all.len() >= MAX_KEPT_FILES {
            all.remove(0);
        }
        let slot = Arc::new(OnceLock::new());
        all.push((key, Arc::clone(&slot)));
        slot
    }
}

/// PTX of each kernel.
pub(super) fn compile(compiler: &Tileiras, cell: &Cell, kernels: impl Iterator<Item = Function>) -> Vec<Ptx> {
    let kernels: Vec<Function> = kernels.collect();
    let plan = CompileOptions {
        target: cell.target.clone(),
        level: cell.level,
        version: compiler.bytecode(),
        size: SIZE,
    };
    batch::compile(compiler, &kernels, &plan)
}
