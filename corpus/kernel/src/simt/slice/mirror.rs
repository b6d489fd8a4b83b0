//! Checks a cut: each removed thread needs a kept thread that does the same, cell by cell.

use super::View;
use super::cells::{Does, Touch};
use moire_program::ir::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Most steps of the search for one thread.
const STEPS: usize = 4_096;

/// The images found so far.
pub(super) struct Mirror<'c> {
    view: &'c View<'c>,
    kept: &'c BTreeSet<usize>,
    /// For each removed cell, the kept cell that represents it.
    pub(super) image: BTreeMap<usize, usize>,
    /// For each checked compiled thread, the thread that represents it.
    threads: BTreeMap<usize, usize>,
    /// Pairs of a cell and a thread that already represents a writer of this cell.
    taken: BTreeSet<(usize, usize)>,
    /// For each CTA and warp that synchronises, the warp that represents it.
    warps: BTreeMap<(u16, u16), u16>,
    steps: usize,
}

impl<'c> Mirror<'c> {
    pub(super) fn new(view: &'c View<'c>, kept: &'c BTreeSet<usize>) -> Mirror<'c> {
        let (image, threads, warps) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Mirror { view, kept, image, threads, taken: BTreeSet::new(), warps, steps: 0 }
    }

    /// Whether the second thread can represent the first; if so, records the images of its cells. If `shared`, the second
    /// thread may already represent others that store to the same cells.
    pub(super) fn stands(&mut self, thread: usize, other: usize, shared: bool) -> bool {
        let threads = &self.view.pair.compiled.threads;
        let (place, there) = (threads[thread].place, threads[other].place);
        let meets = threads[thread].body.iter().any(|i| matches!(i.op, Op::WarpSync { .. }));
        let warp = self.warps.get(&(place.cta, place.warp)).copied();
        if meets && warp.is_some_and(|w| w != there.warp) {
            return false;
        }
        self.steps = 0;
        let reach = &self.view.reach[thread];
        let alone = if shared { &reach.updated } else { &reach.written };
        if alone.iter().any(|cell| self.taken.contains(&(*cell, other))) {
            return false;
        }
        // A failed search removes the images it recorded.
        if !self.cells(&reach.touched, thread, other) {
            return false;
        }
        self.threads.insert(thread, other);
        self.taken.extend(reach.written.iter().map(|cell| (*cell, other)));
        if meets {
            self.warps.insert((place.cta, place.warp), there.warp);
        }
        true
    }

    fn touches(&self, thread: usize) -> &'c [Touch] {
        self.view.cells.compiled.get(thread).map(Vec::as_slice).unwrap_or_default()
    }

    /// The accesses of a cell by a thread, in the order of the text.
    fn story(&self, thread: usize, cell: usize) -> Vec<(u64, Option<i128>)> {
        let looked = self.view.looked.contains(&cell);
        let all = self.touches(thread).iter().filter(|t| t.cell == cell);
        all.map(|t| (t.group, t.value.filter(|_| looked))).collect()
    }

    /// Searches an image for each of the cells, with backtracking.
    fn cells(&mut self, left: &[usize], thread: usize, other: usize) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        let Some((cell, rest)) = left.split_first() else { return self.same_flows(thread, other) };
        let story = self.story(thread, *cell);
        let known = if self.kept.contains(cell) { Some(*cell) } else { self.image.get(cell).copied() };
        if let Some(known) = known {
            return self.story(other, known) == story && self.cells(rest, thread, other);
        }
        let signs = &self.view.signs;
        let candidates: BTreeSet<usize> = self
            .touches(other)
            .iter()
            .map(|t| t.cell)
            .filter(|c| self.kept.contains(c) && signs[*c] == signs[*cell])
            .collect();
        for candidate in candidates {
            if self.story(other, candidate) != story {
                continue;
            }
            self.image.insert(*cell, candidate);
            if self.cells(rest, thread, other) {
                return true;
            }
            self.image.remove(cell);
        }
        false
    }

    fn of(&self, cell: usize) -> usize {
        self.image.get(&cell).copied().unwrap_or(cell)
    }

    fn same_flows(&self, thread: usize, other: usize) -> bool {
        let there = &self.view.threads[other].edges;
        let mut edges = self.view.threads[thread].edges.iter();
        edges.all(|(a, b, way)| there.contains(&(self.of(*a), self.of(*b), *way)))
    }

    /// Cells whose writes do not map onto all writes of their images. Stores of several threads may map to one. Atomics, and
    /// stores of one thread, map one to one.
    pub(super) fn unlike(&self) -> BTreeSet<usize> {
        type Write = (usize, u64, usize);
        let mut writes: BTreeMap<usize, BTreeSet<Write>> = BTreeMap::new();
        for (thread, touches) in self.view.cells.compiled.iter().enumerate() {
            let to = self.threads.get(&thread).copied().unwrap_or(thread);
            let mut count: BTreeMap<(usize, u64), usize> = BTreeMap::new();
            for t in touches.iter().filter(|t| t.does != Does::Read) {
                let nth = count.entry((t.cell, t.group)).or_default();
                *nth += 1;
                writes.entry(t.cell).or_default().insert((to, t.group, *nth));
            }
        }
        let pairs = self.image.iter().filter(|(cell, image)| writes.get(cell) != writes.get(image));
        pairs.map(|(cell, _)| *cell).collect()
    }
}
