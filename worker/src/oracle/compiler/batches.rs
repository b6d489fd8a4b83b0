//! PTX of drawn kernels, a file full at a time.
//!
//! A start of the compiler costs far more than a small kernel, and items come one by one: whoever asks for the first of
//! [`SIZE`] neighbours compiles them all, whoever asks for another of them waits and takes its part. Answers depend on
//! the kernel alone (`moire_toolchain::tile::batch`), so the grouping shows nowhere.

use super::cell::Cell;
use moire_program::generate::tile::{TileDraw, tile_seed};
use moire_program::tile::Function;
use moire_toolchain::tile::Tileiras;
use moire_toolchain::tile::batch::{self, Plan};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Kernels of one file: the compiler's time a kernel is least about here.
const SIZE: u64 = 64;
/// Files whose answers are kept: one for each thread that works, and one before.
const KEPT: usize = 64;

/// What the compiler made of a kernel, or why nothing.
pub(super) type Ptx = Result<String, String>;

/// A drawn kernel and its PTX.
type Batch = Vec<(TileDraw, Ptx)>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    seed: u64,
    number: u64,
    cell: Cell,
}

/// Files compiled last.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Vec<(Key, Arc<OnceLock<Batch>>)>>);

impl Batches {
    /// The kernel at `index` of a stream, and its PTX.
    pub(super) fn item(&self, compiler: &Tileiras, cell: &Cell, seed: u64, index: u64) -> (TileDraw, Ptx) {
        let key = Key { seed, number: index / SIZE, cell: cell.clone() };
        let slot = self.slot(key);
        let batch = slot.get_or_init(|| {
            let first = index / SIZE * SIZE;
            let drawn: Vec<TileDraw> =
                (first..first.saturating_add(SIZE)).map(|i| tile_seed(seed, i)).collect();
            let texts = compile(compiler, cell, drawn.iter().map(|d| d.module.functions[0].clone()));
            drawn.into_iter().zip(texts).collect()
        });
        batch[usize::try_from(index % SIZE).unwrap_or_default()].clone()
    }

    fn slot(&self, key: Key) -> Arc<OnceLock<Batch>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = all.iter().find(|(k, _)| *k == key) {
            return Arc::clone(slot);
        }
        if all.len() >= KEPT {
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
    let plan = Plan {
        target: cell.target.clone(),
        level: cell.level,
        version: compiler.bytecode(),
        size: usize::try_from(SIZE).unwrap_or(1),
    };
    batch::compile(compiler, &kernels, &plan).into_iter().map(|text| text.map_err(|e| reason(&e))).collect()
}

/// Why there is no PTX, in a line.
pub(super) fn reason(why: &batch::Unanswered) -> String {
    format!("tileiras: {}", first_line(&why.to_string()))
}

fn first_line(text: &str) -> &str {
    text.split([';', '\n']).next().unwrap_or_default()
}
