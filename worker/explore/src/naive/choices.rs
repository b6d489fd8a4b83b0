//! Which write each read takes: every combination, or those in which no location is impossible by itself.
//!
//! *Pruned* enumeration looks at one location after the other: the reads of its cells take sources, all other reads none.
//! Where that graph already breaks a check that only ever breaks more as a graph grows, no combination with these sources
//! is an execution. What is left is multiplied over the locations and judged as ever, so that programs of a thousand times
//! more candidates can be enumerated; the candidates that count are those there would have been. It relies on the loader's
//! word for which checks are monotone, and is compared with the other (`tests/self_check.rs`).

use super::judge::{Constants, Graph, Judge};
use super::pairs::Pairs;
use super::{Skip, enter_reads};
use moire_cat::vocabulary::rels;
use std::collections::BTreeMap;

/// A read, a cell of it, and the value it needs there.
pub(super) type Slot = (usize, usize, u128);

/// Reads whose sources are chosen together, by position, and the choices there are.
struct Group {
    reads: Vec<usize>,
    picks: Vec<Vec<usize>>,
}

/// Counts through all choices of one source a read.
pub(super) struct Choices {
    groups: Vec<Group>,
    reads: usize,
    next: Option<Vec<usize>>,
}

/// How many combinations there are.
pub(super) fn total(sources: &[Vec<usize>]) -> u64 {
    sources.iter().try_fold(1u64, |n, s| n.checked_mul(s.len() as u64)).unwrap_or(u64::MAX)
}

impl Choices {
    /// Every combination.
    pub(super) fn all(sources: &[Vec<usize>]) -> Choices {
        let single = |(read, from): (usize, &Vec<usize>)| Group {
            reads: vec![read],
            picks: from.iter().map(|w| vec![*w]).collect(),
        };
        Choices::of(sources.iter().enumerate().map(single).collect(), sources.len())
    }

    fn of(groups: Vec<Group>, reads: usize) -> Choices {
        let some = groups.iter().all(|g| !g.picks.is_empty());
        Choices { next: some.then(|| vec![0; groups.len()]), groups, reads }
    }

    /// Those in which each location is possible by itself. `needs`: what must not be in a circle with reads-from.
    pub(super) fn pruned(
        judge: &Judge<'_>,
        (graph, constants, needs): (&Graph, &Constants, &Pairs),
        slots: &[Slot],
        sources: &[Vec<usize>],
        most: u64,
    ) -> Result<Choices, Skip> {
        let mut by_cell: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (read, (_, cell, _)) in slots.iter().enumerate() {
            by_cell.entry(*cell).or_default().push(read);
        }
        let mut groups = Vec::new();
        for reads in by_cell.into_values() {
            let of: Vec<Vec<usize>> = reads.iter().map(|r| sources[*r].clone()).collect();
            if total(&of) > most {
                return Err(Skip::TooMany("candidates"));
            }
            let here: Vec<Slot> = reads.iter().map(|r| slots[*r]).collect();
            let mut picks = Vec::new();
            let mut some = Choices::all(&of);
            while let Some(pick) = some.next() {
                let mut part = graph.clone();
                enter_reads(&mut part, &here, &pick);
                if part.relations[rels::RF].or(needs).acyclic() && judge.possible(&mut part, constants) {
                    picks.push(pick);
                }
            }
            groups.push(Group { reads, picks });
        }
        Ok(Choices::of(groups, slots.len()))
    }

    /// The next combination: a write for each read.
    pub(super) fn next(&mut self) -> Option<Vec<usize>> {
        let mut digits = self.next.take()?;
        let mut pick = vec![0; self.reads];
        for (group, digit) in self.groups.iter().zip(&digits) {
            for (read, write) in group.reads.iter().zip(&group.picks[*digit]) {
                pick[*read] = *write;
            }
        }
        let carry = digits.iter_mut().zip(&self.groups).all(|(digit, group)| {
            *digit += 1;
            let over = *digit == group.picks.len();
            if over {
                *digit = 0;
            }
            over
        });
        self.next = (!carry).then_some(digits);
        Some(pick)
    }
}
