//! Which write each read takes: every combination, or those of which no part is impossible already.
//!
//! *Pruned* enumeration lets one read after the other take its source, location by location, the others none yet. Where
//! that part of a graph breaks a check that only ever breaks more as a graph grows, nothing that has this part is an
//! execution. What is left is judged as ever, so that programs of a thousand times more candidates can be enumerated;
//! all sources count as candidates, also those left out. It relies on the loader's word for which checks are monotone,
//! and is compared with the other (`tests/self_check.rs`).

use super::enter_reads;
use super::judge::{Constants, Graph, Judge};
use super::pairs::Pairs;
use moire_cat::vocabulary::rels;

/// A read, a cell of it, and the value it needs there.
pub(super) type Slot = (usize, usize, u128);

/// What a part is judged by.
pub(super) struct Part<'a> {
    pub(super) judge: &'a Judge<'a>,
    pub(super) constants: &'a Constants,
    /// What must not be in a circle with reads-from.
    pub(super) needs: &'a Pairs,
    pub(super) slots: &'a [Slot],
    /// Its reads-from and orders are written over.
    pub(super) graph: Graph,
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
        if self.judged > part.left {
            return false;
        }
        self.judged += 1;
        let at = self.taken.iter().copied().chain([source]);
        let some = self.order.iter().zip(at).map(|(read, at)| (part.slots[*read], self.sources[*read][at]));
        let (slots, pick): (Vec<Slot>, Vec<usize>) = some.unzip();
        enter_reads(&mut part.graph, &slots, &pick);
        let circle = !part.graph.relations[rels::RF].or(part.needs).acyclic();
        !circle && part.judge.possible(&mut part.graph, part.constants)
    }
}
