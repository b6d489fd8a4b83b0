//! Which write each read takes: every combination, or only those of which no part is impossible.
//!
//! *Pruned* enumeration gives the reads their sources one after another, location by location. If the part of the graph so
//! far breaks a monotone check, no graph with this part is an execution, and all combinations with it are left out. They
//! still count as candidates. The combinations that are left are judged as without pruning, so programs with a thousand
//! times more candidates can be enumerated. Which checks are monotone is what the loader of the model says; both ways are
//! compared in `worker/explore/tests/suite/self_check.rs`. Combinations of paths that differ in values only share their
//! parts, so a part is judged once for all of them.

use super::enter_reads;
use super::graph::Graph;
use super::judge::Judge;
use super::pairs::Pairs;
use super::sheet::Sheet;
use moire_cat::vocabulary::rels;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A read, one of its cells, and the value it reads there.
pub(super) type Slot = (usize, usize, u128);

/// For each part of a graph of one shape, whether it may become an execution.
pub(super) type Known = FxHashMap<Name, bool>;

/// Names a part: reads, a cell of each, and the write it takes there.
type Name = Vec<(usize, usize, usize)>;

/// The data by which parts are judged.
pub(super) struct Pruning<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) sheet: &'a RefCell<Sheet>,
    /// Pairs that must have no cycle together with reads-from.
    pub(super) needs: &'a Pairs,
    pub(super) slots: &'a [Slot],
    /// Scratch: reads-from and orders are overwritten for each part.
    pub(super) graph: Graph,
    /// Parts of this shape that were judged before; only if parts differ in reads-from alone.
    pub(super) known: Option<&'a mut Known>,
    /// How many more parts may be judged.
    pub(super) left: u64,
}

/// Iterates over the combinations of one source for each read.
pub(super) struct Choices<'a> {
    sources: &'a [Vec<usize>],
    /// Reads in the order in which they take sources.
    order: Vec<usize>,
    /// Positions of the sources of the first reads of `order`.
    taken: Vec<usize>,
    begun: bool,
    part: Option<Pruning<'a>>,
    /// Parts judged.
    pub(super) judged: u64,
}

/// The number of combinations.
pub(super) fn total(sources: &[Vec<usize>]) -> u64 {
    sources.iter().try_fold(1u64, |n, s| n.checked_mul(s.len() as u64)).unwrap_or(u64::MAX)
}

impl<'a> Choices<'a> {
    /// All combinations.
    pub(super) fn all(sources: &'a [Vec<usize>]) -> Self {
        let order = (0..sources.len()).collect();
        Choices { sources, order, taken: vec![], begun: false, part: None, judged: 0 }
    }

    /// The combinations of which no part is impossible.
    pub(super) fn pruned(sources: &'a [Vec<usize>], part: Pruning<'a>) -> Self {
        let mut all = Choices::all(sources);
        all.order.sort_by_key(|read| part.slots[*read].1);
        Choices { part: Some(part), ..all }
    }

    /// The next combination: a write for each read.
    pub(super) fn next(&mut self) -> Option<Vec<usize>> {
        let again = std::mem::replace(&mut self.begun, true);
        let mut from = if again { self.taken.pop()? + 1 } else { 0 };
        loop {
            let Some(&read) = self.order.get(self.taken.len()) else { return Some(self.pick()) };
            let sources = self.sources[read].len();
            from = match (from..sources).find(|source| self.grows(*source)) {
                Some(source) => {
                    self.taken.push(source);
                    0
                }
                None => self.taken.pop()? + 1,
            };
        }
    }

    /// The write of each read, once every read has taken one.
    fn pick(&self) -> Vec<usize> {
        let mut pick = vec![0; self.sources.len()];
        for (read, at) in self.order.iter().zip(&self.taken) {
            pick[*read] = self.sources[*read][*at];
        }
        pick
    }

    /// Whether the part may still become an execution if the next read takes this source. A whole graph is not judged here.
    fn grows(&mut self, source: usize) -> bool {
        let Some(part) = &mut self.part else { return true };
        if self.taken.len() + 1 == self.order.len() {
            return true;
        }
        let at = self.taken.iter().copied().chain([source]);
        let named = self.order.iter().zip(at).map(|(read, at)| {
            let (event, cell, _) = part.slots[*read];
            (event, cell, self.sources[*read][at])
        });
        let name: Name = named.collect();
        part.possible(name, &mut self.judged)
    }
}

impl Pruning<'_> {
    /// Whether a part of the graph may become an execution.
    fn possible(&mut self, name: Name, judged: &mut u64) -> bool {
        let slots: Vec<Slot> = name.iter().map(|(read, cell, _)| (*read, *cell, 0)).collect();
        let pick: Vec<usize> = name.iter().map(|(.., write)| *write).collect();
        enter_reads(&mut self.graph, &slots, &pick);
        if !self.graph.relations[rels::RF].or(self.needs).acyclic() {
            return false;
        }
        if let Some(possible) = self.known.as_ref().and_then(|known| known.get(&name)) {
            return *possible;
        }
        if *judged > self.left {
            return false;
        }
        *judged += 1;
        let possible = self.judge.possible(&mut self.graph, &mut self.sheet.borrow_mut());
        if let Some(known) = &mut self.known {
            known.insert(name, possible);
        }
        possible
    }
}
