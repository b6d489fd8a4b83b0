//! PTX of drawn programs, one text of programs at a time.
//!
//! A start of a compiler costs more than a small program, and items come one by one. So the thread that asks for the first
//! of [`SIZE`] neighbours compiles them all; a thread that asks for another of them waits and takes its part. Answers
//! depend on the program alone (`moire_toolchain::source::batch`), so the grouping has no effect on them.

use super::Threads;
use super::cell::Cell;
use crate::oracle::abstention::Abstention;
use moire_generate::source::source_seed;
use moire_source::Source;
use moire_toolchain::source::batch::compile as compile_all;
use moire_toolchain::source::{Compiler, Failure};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Programs of one text.
const SIZE: usize = 64;
/// Most texts whose answers are kept.
const MAX_KEPT_TEXTS: usize = 64;

/// The PTX of a program, or why there is none.
type Ptx = Result<Threads, Arc<Failure>>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    seed: u64,
    number: u64,
    cell: Cell,
}

/// The texts compiled last.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<Vec<(Key, Arc<OnceLock<Vec<(Source, Ptx)>>>)>>);

impl Batches {
    /// The program at `index` of a stream, and its PTX.
    pub(super) fn item(
        &self,
        compiler: &Compiler,
        cell: &Cell,
        seed: u64,
        index: u64,
    ) -> (Source, Result<Threads, Abstention>) {
        let (number, at) = (index / SIZE as u64, index % SIZE as u64);
        let slot = self.slot(Key { seed, number, cell: cell.clone() });
        let batch = slot.get_or_init(|| {
            // The last text of a stream has a place for every index up to the last one.
            let text = index - at..=(index - at).saturating_add(SIZE as u64 - 1);
            let drawn: Vec<Source> = text.map(|i| source_seed(seed, i)).collect();
            let all: Vec<&Source> = drawn.iter().collect();
            let compiled = ptx(compiler, cell, &all);
            drawn.into_iter().zip(compiled).collect()
        });
        let (source, ptx) = batch[usize::try_from(at).expect("a place in a text")].clone();
        (source, named(compiler, ptx))
    }

    fn slot(&self, key: Key) -> Arc<OnceLock<Vec<(Source, Ptx)>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = all.iter().find(|(k, _)| *k == key) {
            return Arc::clone(slot);
        }
        if all.len() >= MAX_KEPT_TEXTS {
            all.remove(0);
        }
        let slot = Arc::new(OnceLock::new());
        all.push((key, Arc::clone(&slot)));
        slot
    }
}

fn ptx(compiler: &Compiler, cell: &Cell, sources: &[&Source]) -> Vec<Ptx> {
    let all = compile_all(compiler, sources, &cell.options(compiler), SIZE);
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
