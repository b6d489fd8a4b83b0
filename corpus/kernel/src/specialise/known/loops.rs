//! Loops of a kernel: branches back to an earlier statement.

use super::flow::successors;
use crate::ptx::{Kernel, What};
use std::collections::{BTreeMap, BTreeSet};

/// The last branch back of each loop, by its first statement.
pub(crate) fn spans(kernel: &Kernel) -> BTreeMap<usize, usize> {
    let mut out: BTreeMap<usize, usize> = BTreeMap::new();
    for (pc, statement) in kernel.body.iter().enumerate() {
        let back = targets(kernel, &statement.what).into_iter().filter(|to| *to <= pc);
        out.extend(back.map(|to| (to, pc)));
    }
    out
}

/// Those of [`spans`] that go round. A compiler also writes a branch back to what it has placed before: no way leads from there to
/// the branch within the span, and others lead to the branch without passing there.
pub(crate) fn rounds(kernel: &Kernel) -> BTreeMap<usize, usize> {
    let mut all = spans(kernel);
    all.retain(|first, last| {
        let inside = first..last;
        let within = reaches(kernel, *first, *last, |pc| inside.contains(&&pc));
        within || !reaches(kernel, 0, *last, |pc| pc != *first)
    });
    all
}

/// Whether a way leads from one place to another over places that are `open`.
fn reaches(kernel: &Kernel, from: usize, to: usize, open: impl Fn(usize) -> bool) -> bool {
    let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
    while let Some(pc) = work.pop() {
        if pc == to {
            return true;
        }
        if pc < kernel.body.len() && open(pc) && seen.insert(pc) {
            work.extend(successors(kernel, pc));
        }
    }
    false
}

/// The places of the loop in which a branch leads back to a place: the smallest set in which each place leads to each other, and
/// still does so without the places at which the sets around it are entered. `next` has the places that each one can be
/// followed by.
pub(crate) fn body(next: &[Vec<usize>], first: usize) -> BTreeSet<usize> {
    let mut before = vec![Vec::new(); next.len() + 1];
    next.iter().enumerate().for_each(|(pc, all)| all.iter().for_each(|to| before[*to].push(pc)));
    let back = |all: &BTreeSet<usize>| before[first].iter().any(|pc| *pc >= first && all.contains(pc));
    let together = |within: &BTreeSet<usize>| -> BTreeSet<usize> {
        let ways = |edges: &dyn Fn(usize) -> Vec<usize>| {
            let (mut seen, mut work) = (BTreeSet::new(), vec![first]);
            while let Some(pc) = work.pop() {
                if within.contains(&pc) && seen.insert(pc) {
                    work.extend(edges(pc));
                }
            }
            seen
        };
        &ways(&|pc| next[pc].clone()) & &ways(&|pc| before[pc].clone())
    };
    let mut out = together(&(0..next.len()).collect());
    loop {
        let entered = |pc: &usize| *pc == 0 || before[*pc].iter().any(|from| !out.contains(from));
        let inner = together(&out.iter().copied().filter(|pc| !entered(pc)).collect());
        // Nothing leads into a loop that is never reached.
        if inner == out || !back(&inner) {
            return out;
        }
        out = inner;
    }
}

/// For each place, the loops around it, by their first statements.
pub(crate) fn around(spans: &BTreeMap<usize, usize>, places: usize) -> Vec<Vec<usize>> {
    let inside = |pc: usize| spans.iter().filter(move |(first, last)| (**first..=**last).contains(&pc));
    (0..places).map(|pc| inside(pc).map(|(first, _)| *first).collect()).collect()
}

/// The places that a statement can jump to.
fn targets(kernel: &Kernel, what: &What) -> Vec<usize> {
    match what {
        What::Branch { target } => vec![*target],
        What::Table { table, .. } => kernel.tables.get(*table).cloned().unwrap_or_default(),
        What::Core(_) | What::Plain(_) | What::Exit => Vec::new(),
    }
}
