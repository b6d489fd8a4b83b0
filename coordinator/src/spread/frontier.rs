//! The frontier of an exploration: the stretches of its tree of decisions that are left, in the order of the leaves.
//!
//! Invariant: no two stretches overlap, and what no stretch covers has been counted. A stretch changes in three ways only:
//!
//! * Its beginning moves forward, and what it leaves is counted in the same step.
//! * It is cut in two at a node inside.
//! * It is over, and counted.
//!
//! A node that is not inside a stretch changes nothing, so a step that comes twice is taken once. The tree itself is not
//! needed: nodes are lists of decisions, compared number by number.

use moire_corpus::Stretch;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Most pieces of one exploration at one time.
pub(crate) const PIECES_MAX: usize = 65_536;

/// The stretches of an exploration that are not explored yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frontier {
    pieces: BTreeMap<u64, Stretch>,
    next: u64,
}

/// Orders two nodes by their last leaves. The last leaf of the root is the last of all.
pub(crate) fn order(a: &[u32], b: &[u32]) -> Ordering {
    let differ = a.iter().zip(b).map(|(a, b)| a.cmp(b)).find(|o| o.is_ne());
    differ.unwrap_or(b.len().cmp(&a.len()))
}

/// Whether a node divides a stretch into two parts, neither of them empty.
fn inside(stretch: &Stretch, node: &[u32]) -> bool {
    let begun = stretch.behind.is_empty() || order(&stretch.behind, node).is_lt();
    !node.is_empty() && begun && order(node, &stretch.until).is_lt()
}

impl Frontier {
    /// The whole tree.
    pub(crate) fn whole() -> Self {
        Self { pieces: BTreeMap::from([(0, Stretch::default())]), next: 1 }
    }
    /// The pieces that a store kept.
    pub(crate) fn of(pieces: BTreeMap<u64, Stretch>) -> Self {
        let next = pieces.last_key_value().map_or(0, |(number, _)| number + 1);
        Self { pieces, next }
    }
    /// The pieces that are left, by number.
    pub(crate) fn pieces(&self) -> &BTreeMap<u64, Stretch> {
        &self.pieces
    }
    /// Notes that everything up to the end of `node` is counted; false: the node is not inside the piece.
    pub(crate) fn reached(&mut self, number: u64, node: &[u32]) -> bool {
        match self.pieces.get_mut(&number).filter(|p| inside(p, node)) {
            Some(piece) => {
                piece.behind = node.to_vec();
                true
            }
            None => false,
        }
    }
    /// Cuts a piece behind `node`. Returns the number of the new piece, or `None` if the node is not inside the piece.
    pub(crate) fn cut(&mut self, number: u64, node: Vec<u32>) -> Option<u64> {
        let piece = self.pieces.get_mut(&number).filter(|p| inside(p, &node))?;
        let until = std::mem::replace(&mut piece.until, node.clone());
        let new = self.next;
        self.next += 1;
        self.pieces.insert(new, Stretch { behind: node, until });
        Some(new)
    }
    /// Notes that all of a piece is counted.
    pub(crate) fn over(&mut self, number: u64) {
        self.pieces.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves of a small uneven tree, in order.
    fn leaves() -> Vec<Vec<u32>> {
        let mut out = Vec::new();
        for a in 0..4 {
            for b in 0..=a {
                match (a + b) % 3 {
                    0 => out.push(vec![a, b]),
                    n => out.extend((0..=n).map(|c| vec![a, b, 2 * c])),
                }
            }
        }
        out
    }

    fn covered(piece: &Stretch, leaf: &[u32]) -> bool {
        let ended = |node: &[u32]| !node.is_empty() && order(leaf, node).is_gt();
        !(ended(&piece.until) || !piece.behind.is_empty() && order(leaf, &piece.behind).is_le())
    }

    #[test]
    fn leaves_are_in_one_piece_or_counted_whatever_is_done() {
        let leaves = leaves();
        let mut seed = 7_u64;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % n
        };
        let (mut cuts, mut moves) = (0, 0);
        for _ in 0..300 {
            let (mut frontier, mut counted) = (Frontier::whole(), vec![0; leaves.len()]);
            while !frontier.pieces().is_empty() {
                let numbers: Vec<u64> = frontier.pieces().keys().copied().collect();
                let number = numbers[draw(numbers.len())];
                let piece = frontier.pieces()[&number].clone();
                let leaf = &leaves[draw(leaves.len())];
                let node = leaf[..=draw(leaf.len())].to_vec();
                let mut count = |within: &dyn Fn(&[u32]) -> bool| {
                    for (n, leaf) in leaves.iter().enumerate() {
                        counted[n] += u32::from(covered(&piece, leaf) && within(leaf));
                    }
                };
                match draw(4) {
                    0 => {
                        count(&|_| true);
                        frontier.over(number);
                    }
                    1 if frontier.reached(number, &node) => {
                        moves += 1;
                        count(&|leaf| order(leaf, &node).is_le());
                        assert!(!frontier.reached(number, &node), "twice");
                    }
                    2 | 3 if frontier.cut(number, node.clone()).is_some() => {
                        cuts += 1;
                        assert_eq!(frontier.cut(number, node), None, "twice");
                    }
                    _ => {}
                }
                for (n, leaf) in leaves.iter().enumerate() {
                    let there = frontier.pieces().values().filter(|p| covered(p, leaf)).count();
                    assert_eq!(there + counted[n] as usize, 1, "{leaf:?}");
                }
            }
        }
        assert!(cuts > 100 && moves > 100, "{cuts} {moves}");
    }
}
