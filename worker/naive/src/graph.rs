//! The data of one candidate that a model is asked about.

use super::pairs::{Events, Pairs};

/// What one candidate supplies: sets and relations by position in the vocabulary, and its memory.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) n: usize,
    pub(super) sets: Vec<Events>,
    /// `co`, `fr`, `torn` and `sync_fence` are filled in by the judge.
    pub(super) relations: Vec<Pairs>,
    /// Writers of each cell.
    pub(super) writers: Vec<Events>,
    /// Reads-from, cell by cell: (read, cell, source).
    pub(super) reads: Vec<(usize, usize, usize)>,
}

/// The set of all `n` events.
pub(super) fn all(n: usize) -> Events {
    if n == 128 { !0 } else { (1 << n) - 1 }
}
