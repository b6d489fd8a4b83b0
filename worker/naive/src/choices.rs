//! The source of each read: all combinations, or (*pruned*) those that have no impossible part.
//!
//! Pruned enumeration gives sources to one read after the other, location by location; the remaining reads have none yet. If
//! this part of a graph breaks a monotone check, no execution contains it, and it is left. The rest is judged as without
//! pruning. Programs with a thousand times more candidates can be enumerated this way. All sources count as candidates, also
//! those that were left out.
//!
//! Pruning relies on the loader for which checks are monotone. It is compared with enumeration without pruning
//! (`worker/lab/tests/suite/self_check.rs`). Combinations of paths that differ only in values share their parts, so a part is
//! judged only once for all of them.

use super::enter_reads;
use super::judge::{Constants, Graph, Judge};
use super::pairs::Pairs;
use moire_cat::vocabulary::rels;
use rustc_hash::FxHashMap;

/// A read, a cell of it, and the value it needs there.
pub(super) type Slot = (usize, usize, u128);

/// For each part of a graph of one shape, whether it may become an execution.
pub(super) type Known = FxHashMap<Name, bool>;

/// A part of a graph: for some reads, a cell and the write that the read takes there.
type Name = Vec<(usize, usize, usize)>;

/// The data by which parts are judged.
pub(super) struct Part<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) constants: &'a Constants,
    /// The relation that must not form a cycle with reads-from.
    pub(super) needs: &'a Pairs,
    pub(super) slots: &'a [Slot],
    /// The graph of the candidate. Its reads-from and orders are overwritten.
    pub(super) graph: Graph,
    /// Judged parts of this shape, if parts differ only in reads-from.
    pub(super) known: Option<&'a mut Known>,
    /// Number of parts that may still be judged. Beyond it, choosing ends.
    pub(super) left: u64,
}

/// Enumerates the choices of one source for each read.
pub(super) struct Choices<'a> {
    sources: &'a [Vec<usize>],
    /// Reads in the order in which they take sources.
    order: Vec<usize>,
    /// Positions of the sources of the first reads of `order`.
    taken: Vec<usize>,
    begun: bool,
    part: Option<Part<'a>>,
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

    /// Combinations without an impossible part.
    pub(super) fn pruned(sources: &'a [Vec<usize>], part: Part<'a>) -> Self {
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

    /// The write that each read has taken, once all have one.
    fn pick(&self) -> Vec<usize> {
        let mut pick = vec![0; self.sources.len()];
        for (read, at) in self.order.iter().zip(&self.taken) {
            pick[*read] = self.sources[*read][*at];
        }
        pick
    }

    /// Whether the part may become an execution if the next read takes this source. A complete graph is not judged here.
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

impl Part<'_> {
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
        let possible = self.judge.possible(&mut self.graph, self.constants);
        if let Some(known) = &mut self.known {
            known.insert(name, possible);
        }
        possible
    }
}
