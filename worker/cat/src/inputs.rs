//! What an engine supplies of an execution graph: sets and relations as rows of bits, and memory cell by cell.

use crate::bits::{self, Row};
use crate::vocabulary::{rels, sets};
use std::ops::{Index, IndexMut};

/// One byte range of memory with its accesses; `rf` and `fr` are per cell.
#[derive(Clone, Debug, Default)]
pub struct Cells<const W: usize> {
    /// Per cell: the writes to it that are present, the initial one included.
    pub writers: Vec<Row<W>>,
    /// (read, cell, source), present ones.
    pub reads: Vec<(u16, u16, u16)>,
}

/// Relations by their position in [`crate::vocabulary::rels`], as many rows each as there is room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relations<const W: usize> {
    /// Rows of each relation.
    pub(crate) height: usize,
    rows: Vec<Row<W>>,
}

impl<const W: usize> Relations<W> {
    fn empty(height: usize) -> Self {
        Relations { height, rows: vec![bits::empty(); rels::ALL.len() * height] }
    }
}

impl<const W: usize> Index<usize> for Relations<W> {
    type Output = [Row<W>];

    #[inline]
    fn index(&self, relation: usize) -> &[Row<W>] {
        &self.rows[relation * self.height..][..self.height]
    }
}

impl<const W: usize> IndexMut<usize> for Relations<W> {
    #[inline]
    fn index_mut(&mut self, relation: usize) -> &mut [Row<W>] {
        &mut self.rows[relation * self.height..][..self.height]
    }
}

/// Everything the engine supplies. Rows and bits at or above `n` are ignored.
#[derive(Clone, Debug)]
pub struct Inputs<const W: usize> {
    /// Events in the universe.
    pub n: usize,
    /// By position in [`crate::vocabulary::sets`].
    pub sets: Vec<Row<W>>,
    /// By position in [`crate::vocabulary::rels`]; `fr`, `torn`, `id` and `sync_fence` are computed here.
    pub rels: Relations<W>,
    /// Memory.
    pub cells: Cells<W>,
    /// Events placed so far: only pairs of these are wanted ordered by `co`. All by default.
    pub present: Row<W>,
}

impl<const W: usize> Inputs<W> {
    /// No events; room for `64 * W`.
    pub fn new() -> Self {
        Self::with_room(64 * W)
    }

    /// No events; room for `height`, or `64 * W` if that is less.
    pub fn with_room(height: usize) -> Self {
        Inputs {
            n: 0,
            sets: vec![bits::empty(); sets::ALL.len()],
            rels: Relations::empty(height.min(64 * W)),
            cells: Cells::default(),
            present: [u64::MAX; W],
        }
    }

    /// Makes room for `height` events, and some more.
    pub fn make_room(&mut self, height: usize) {
        let old = self.rels.height;
        if height > old {
            let mut more = Relations::empty(height.max(2 * old).min(64 * W));
            for relation in 0..rels::ALL.len() {
                more[relation][..old].copy_from_slice(&self.rels[relation]);
            }
            self.rels = more;
        }
    }
}

impl<const W: usize> Default for Inputs<W> {
    fn default() -> Self {
        Self::new()
    }
}
