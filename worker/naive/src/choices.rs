//! Which write each read takes: every combination, or those of which no part is impossible already.
//!
//! *Pruned* enumeration lets one read after the other take its source, location by location, the others none yet. Where
//! that part of a graph breaks a check that only ever breaks more as a graph grows, nothing that has this part is an
//! execution. What is left is judged as ever, so that programs of a thousand times more candidates can be enumerated;
//! all sources count as candidates, also those left out. It relies on the loader's word for which checks are monotone,
//! and is compared with the other (`tests/self_check.rs`). Combinations of paths that differ in values only have their
//! parts in common: what was judged for one is known for the next.

use super::enter_reads;
use super::judge::{Constants, Graph, Judge};
use super::pairs::Pairs;
use moire_cat::vocabulary::rels;
use rustc_hash::FxHashMap;

/// A read, a cell of it, and the value it needs there.
pub(super) type Slot = (usize, usize, u128);

/// Whether a part (which write each cell of a read takes) of a graph of one shape may become an execution.
pub(super) type Known = FxHashMap<Name, bool>;

/// A part: reads, a cell of each, and the write it takes there.
type Name = Vec<(usize, usize, usize)>;

/// What a part is judged by.
pub(super) struct Part<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) constants: &'a Constants,
    /// What must not be in a circle with reads-from.
    pub(super) needs: &'a Pairs,
    pub(super) slots: &'a [Slot],
    /// Its reads-from and orders are written over.
    pub(super) graph: Graph,
    /// Of its shape, where nothing but reads-from tells parts apart.
    pub(super) known: Option<&'a mut Known>,
    /// Parts that may still be judged: after one more, nothing more is chosen.
    pub(super) left: u64,
}

/// Goes through the choices of one source a read.
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

/// How many combinations there are.
pub(super) fn total(sources: &[Vec<usize>]) -> u64 {
    sources.iter().try_fold(1u64, |n, s| n.checked_mul(s.len() as u64)).unwrap_or(u64::MAX)
}

impl<'a> Choices<'a> {
    /// Every combination.
    pub(super) fn all(sources: &'a [Vec<usize>]) -> Self {
        let order = (0..sources.len()).collect();
        Choices { sources, order, taken: vec![], begun: false, part: None, judged: 0 }
    }

    /// Those of which no part is impossible.
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

    /// The write each read has taken, all having taken one.
    fn pick(&self) -> Vec<usize> {
        let mut pick = vec![0; self.sources.len()];
        for (read, at) in self.order.iter().zip(&self.taken) {
            pick[*read] = self.sources[*read][*at];
        }
        pick
    }

    /// Whether the part may become an execution when the next read takes this source; a whole graph is not looked at.
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
    /// Whether nothing speaks against a part of the graph.
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
