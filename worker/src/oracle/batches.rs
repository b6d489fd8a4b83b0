//! Answers of compilers, one batch of drawn programs at a time.
//!
//! A start of a compiler costs more than a small program, and items come one by one. So the thread that asks for the first
//! of some neighbours compiles them all; a thread that asks for another of them waits and takes its part. Answers
//! depend on the program alone, so the grouping has no effect on them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most programs whose answers are kept: the batches of each thread that works, and those before.
const MAX_KEPT: usize = 4096;

/// The batches compiled last, for each setting `C` of the compiler.
#[derive(Debug)]
pub(super) struct Batches<C, A>(Mutex<Vec<(Key<C>, usize, Slot<A>)>>);

/// A batch: seed of the stream, number of the batch, setting.
type Key<C> = (u64, u64, C);
/// The answers of a batch, once its first thread has them.
type Slot<A> = Arc<OnceLock<Vec<A>>>;

impl<C, A> Default for Batches<C, A> {
    fn default() -> Self {
        Batches(Mutex::default())
    }
}

impl<C: Clone + PartialEq, A: Clone> Batches<C, A> {
    /// The answer at `index` of the stream `seed`. `compile` gives those of a batch of `size`, whose indices it is told.
    pub(super) fn item(
        &self,
        size: usize,
        setting: &C,
        (seed, index): (u64, u64),
        compile: impl FnOnce(std::ops::RangeInclusive<u64>) -> Vec<A>,
    ) -> A {
        let (number, at) = (index / size as u64, index % size as u64);
        let slot = self.slot((seed, number, setting.clone()), size);
        // The last batch of a stream has a place for every index up to the last one.
        let batch = slot.get_or_init(|| compile(index - at..=(index - at).saturating_add(size as u64 - 1)));
        batch[usize::try_from(at).expect("a place in a batch")].clone()
    }

    fn slot(&self, key: Key<C>, size: usize) -> Slot<A> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., slot)) = all.iter().find(|(k, ..)| *k == key) {
            return Arc::clone(slot);
        }
        while !all.is_empty() && all.iter().map(|(_, size, _)| size).sum::<usize>() + size > MAX_KEPT {
            all.remove(0);
        }
        let slot = Slot::default();
        all.push((key, size, Arc::clone(&slot)));
        slot
    }
}
