//! The paths through the items of a warp, and the meetings on them that order the memory of its lanes.
//!
//! A *meeting* of lanes is a `bar.warp.sync`, a barrier of the CTA, or a barrier of the cluster whose arrival releases, in
//! which all of these lanes take part together. What a lane does before a meeting is ordered before what any other of them
//! does behind it (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3). Nothing else in the order of a warp orders one lane after another.

use crate::specialise::item::{Item, Placed};
use crate::specialise::residual::apart::Same;
use moire_program::ir::{BarKind, Op, Operand};
use std::collections::{BTreeMap, BTreeSet};

/// Which item may follow which.
pub(super) struct Course {
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Course {
    pub(super) fn new(items: &[Placed]) -> Self {
        let place =
            |(at, p): (usize, &Placed)| if let Item::Label(l) = p.item { Some((l, at)) } else { None };
        let labels: BTreeMap<u32, usize> = items.iter().enumerate().filter_map(place).collect();
        let mut before = vec![Vec::new(); items.len()];
        let mut next = Vec::with_capacity(items.len());
        for (at, placed) in items.iter().enumerate() {
            let all: Vec<usize> = follow(placed, at, &labels).filter(|n| *n < items.len()).collect();
            all.iter().for_each(|n| before[*n].push(at));
            next.push(all);
        }
        Course { next, before }
    }

    /// The items that may follow one.
    pub(super) fn next(&self, at: usize) -> &[usize] {
        &self.next[at]
    }

    /// For each item the lanes of all items on the paths to it from the last meetings, or from it to the next ones: `of`
    /// has the lanes of each item, and `meetings` those that meet there.
    pub(super) fn near(&self, of: &[u32], forward: bool, meetings: &[u32]) -> Vec<u32> {
        let (from, to) = if forward { (&self.next, &self.before) } else { (&self.before, &self.next) };
        let mut found = vec![0; of.len()];
        let mut work: Vec<usize> = (0..of.len()).collect();
        if !forward {
            work.reverse();
        }
        while let Some(at) = work.pop() {
            let lanes = from[at].iter().fold(0, |lanes, n| lanes | (of[*n] | found[*n]) & !meetings[*n]);
            if lanes != found[at] {
                found[at] = lanes;
                work.extend(&to[at]);
            }
        }
        found
    }

    /// Whether a path leads back to an item by way of these ones.
    pub(super) fn is_again(&self, at: usize, within: &dyn Fn(usize) -> bool) -> bool {
        let (mut seen, mut work) = (BTreeSet::new(), self.next[at].clone());
        while let Some(next) = work.pop() {
            if next == at {
                return true;
            }
            if within(next) && seen.insert(next) {
                work.extend(&self.next[next]);
            }
        }
        false
    }

    /// The stretch of each item. What lies in different stretches is ordered by meetings, if a path leads from one to the
    /// other at all.
    pub(super) fn stretches(&self, meetings: &[bool]) -> Vec<usize> {
        let mut of = Same::new(self.next.len());
        for (at, next) in self.next.iter().enumerate() {
            next.iter().filter(|n| !meetings[at] && !meetings[**n]).for_each(|n| of.join(at, *n));
        }
        (0..self.next.len()).map(|at| of.first(at)).collect()
    }

    /// The stretches in which a path leads back over one of these items.
    pub(super) fn turning(&self, of: &[usize], over: &BTreeSet<usize>) -> BTreeSet<usize> {
        let back = |at: usize, next: &usize| {
            *next <= at && of[*next] == of[at] && over.range(*next..=at).next().is_some()
        };
        let all = self.next.iter().enumerate();
        all.filter(|(at, next)| next.iter().any(|n| back(*at, n))).map(|(at, _)| of[at]).collect()
    }
}

fn follow<'a>(
    placed: &Placed,
    at: usize,
    labels: &BTreeMap<u32, usize>,
) -> impl Iterator<Item = usize> + use<'a> {
    let (to, goes_on) = match placed.item {
        Item::Jump(to) | Item::Close { again: to } => (Some(to), false),
        Item::Open { past } => (Some(past), true),
        Item::Branch { to, .. } | Item::Others { to, .. } => (Some(to), true),
        Item::Exit => (None, placed.mask.is_some()),
        _ => (None, true),
    };
    let target = to.and_then(|to| labels.get(&to).copied());
    goes_on.then_some(at + 1).into_iter().chain(target)
}

/// Which items are meetings of all these lanes.
pub(super) fn meetings(items: &[Placed], lanes: u32) -> Vec<bool> {
    let all = |p: &Placed| p.lanes & lanes == lanes;
    (0..items.len()).map(|at| all(&items[at]) && meets(items, at, lanes)).collect()
}

fn meets(items: &[Placed], at: usize, lanes: u32) -> bool {
    let Item::Op { op, .. } = &items[at].item else { return false };
    let all = |mask: i128| mask & i128::from(lanes) == i128::from(lanes);
    matches!(**op, Op::WarpSync { mask: Operand::Imm(mask) } if all(mask))
        || matches!(**op, Op::Bar { kind: BarKind::Sync | BarKind::Red { .. }, .. })
        || (matches!(**op, Op::ClusterWait) && released(&items[..at], lanes))
}

/// Whether all these lanes arrived at the barrier of the cluster with nothing behind the arrival that touches memory.
fn released(before: &[Placed], lanes: u32) -> bool {
    let quiet =
        |p: &&Placed| matches!(&p.item, Item::Op { op, touches } if touches.is_empty() && !arrives(op));
    let arrival = before.iter().rev().find(|p| !quiet(p));
    let whole = |p: &Placed| {
        p.lanes & lanes == lanes
            && matches!(&p.item, Item::Op { op, .. } if matches!(**op, Op::ClusterArrive { relaxed: false }))
    };
    arrival.is_some_and(whole)
}

fn arrives(op: &Op) -> bool {
    matches!(op, Op::ClusterArrive { .. })
}
