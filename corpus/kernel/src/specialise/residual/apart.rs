//! Which clusters of a launch have nothing in common, and which of them run the same program.
//!
//! Clusters that touch no byte in common, or only read those, are independent: no race, wait or value goes from one to
//! the other. An execution of all is then any choice of one execution for each, so each is explored on its own, and of
//! those that run the same program one.

use crate::specialise::item::{Item, Placed};
use crate::specialise::launch::Here;
use crate::specialise::touch::{Mem, Touch};
use moire_program::ir::*;
use std::collections::BTreeMap;

/// Groups of warps, each by its position. Warps are in one group if their clusters share memory and one of them writes it.
pub(crate) fn groups(places: &[Here], items: &[Vec<Placed>]) -> Vec<Vec<usize>> {
    let clusters = places.iter().map(|p| p.unit() as usize + 1).max().unwrap_or(0);
    let mut same = Same::new(clusters);
    for ends in ends(places, items).into_values() {
        join(ends, &mut same);
    }
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (warp, here) in places.iter().enumerate() {
        out.entry(same.first(here.unit() as usize)).or_default().push(warp);
    }
    out.into_values().collect()
}

/// An address where a use of memory starts (1) or ends (-1), the cluster that uses it, and whether it writes.
type End = (u64, i64, usize, bool);

/// The uses of global memory by all clusters. No cluster sees the shared memory of another one.
fn ends(places: &[Here], items: &[Vec<Placed>]) -> BTreeMap<Mem, Vec<End>> {
    let mut out: BTreeMap<Mem, Vec<End>> = BTreeMap::new();
    for (here, trace) in places.iter().zip(items) {
        for (touch, writes) in trace.iter().flat_map(|p| uses(&p.item)) {
            if touch.mem.cta().is_some() {
                continue;
            }
            let ends = out.entry(touch.mem).or_default();
            for (start, end) in touch.ranges.iter().filter(|r| r.0 < r.1) {
                let cluster = here.unit() as usize;
                ends.extend([(*start, 1, cluster, writes), (*end, -1, cluster, writes)]);
            }
        }
    }
    out
}

/// Every touch of an item, and whether it may write there.
pub(crate) fn uses(item: &Item) -> Vec<(&Touch, bool)> {
    match item {
        Item::Data { write, touch, .. } => vec![(touch, *write)],
        Item::Op { op, touches } => {
            let named = |end: &BulkEnd, n: usize| match end {
                BulkEnd::Bytes { addr, .. } => addr.base == index(n),
                BulkEnd::Tensor(tensor) => {
                    let tile = tensor.tile.iter().map(|t| &t.addr);
                    tensor.map.iter().chain(tile).any(|a| a.base == index(n))
                }
            };
            let reads = |n: usize| {
                let source =
                    matches!(op.as_ref(), Op::AsyncCopy(AsyncCopy::Bulk(copy)) if named(&copy.src, n));
                source || matches!(op.as_ref(), Op::Load { .. })
            };
            let all = touches.iter().enumerate();
            all.map(|(n, touch)| (touch, touch.kind.may_write() && !reads(n))).collect()
        }
        _ => Vec::new(),
    }
}

/// How an item names its touch `n`.
fn index(n: usize) -> Operand {
    Operand::Imm(n as i128)
}

/// Sweeps one memory from low to high addresses, and joins the clusters that use the same byte if one of them writes it.
fn join(mut ends: Vec<End>, same: &mut Same) {
    ends.sort_unstable();
    let mut here: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for (_, sign, cluster, writes) in ends {
        let (used, written) = here.entry(cluster).or_default();
        *used += sign;
        *written += if writes { sign } else { 0 };
        if *used == 0 {
            here.remove(&cluster);
        }
        if sign < 0 || here.len() < 2 {
            continue;
        }
        if writes {
            here.keys().for_each(|other| same.join(cluster, *other));
        } else {
            here.iter().filter(|o| o.1.1 > 0).for_each(|(other, _)| same.join(cluster, *other));
        }
    }
}

/// Disjoint sets of numbers. Each number points to another one of its set; the first of a set points to itself.
pub(crate) struct Same(Vec<usize>);

impl Same {
    /// Each number in a set of its own.
    pub(crate) fn new(count: usize) -> Self {
        Same((0..count).collect())
    }

    pub(crate) fn first(&self, mut one: usize) -> usize {
        while self.0[one] != one {
            one = self.0[one];
        }
        one
    }

    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// The program without names, with clusters and CTAs numbered from 0. Groups that run the same program have equal ones.
pub(crate) fn shape(program: &Program) -> Program {
    let mut out = program.clone();
    out.name.clear();
    out.objects.iter_mut().for_each(|o| o.name.clear());
    out.symbols.iter_mut().for_each(|s| s.name.clear());
    let (mut clusters, mut ctas) = (BTreeMap::new(), BTreeMap::new());
    let number = |known: &mut BTreeMap<u16, u16>, n: u16| {
        let next = u16::try_from(known.len()).expect("clusters and CTAs have numbers of 16 bits");
        *known.entry(n).or_insert(next)
    };
    for thread in &mut out.threads {
        thread.name.clear();
        thread.place.cluster = number(&mut clusters, thread.place.cluster);
        thread.place.cta = number(&mut ctas, thread.place.cta);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_what_another_uses_is_with_it() {
        let sets = |ends: &[End]| {
            let mut same = Same::new(4);
            join(ends.to_vec(), &mut same);
            (0..4).map(|c| same.first(c)).collect::<Vec<_>>()
        };
        let use_of = |cluster, start, end, writes| [(start, 1, cluster, writes), (end, -1, cluster, writes)];
        // All read; each writes its own; two write a byte in common; a reader after, before and inside a writer.
        let reads: Vec<End> = (0..4).flat_map(|c| use_of(c, 0, 8, false)).collect();
        assert_eq!(sets(&reads), [0, 1, 2, 3]);
        let own: Vec<End> = (0..4).flat_map(|c| use_of(c, 8 * c as u64, 8 * c as u64 + 8, true)).collect();
        assert_eq!(sets(&own), [0, 1, 2, 3]);
        let common = [use_of(1, 0, 8, true), use_of(3, 7, 9, true)].concat();
        assert_eq!(sets(&common), [0, 1, 2, 1]);
        let mixed = [use_of(0, 0, 4, false), use_of(1, 2, 6, true), use_of(2, 5, 6, false)].concat();
        assert_eq!(sets(&mixed), [0, 0, 0, 3]);
        let inside = [use_of(2, 0, 9, false), use_of(3, 4, 5, true), use_of(0, 6, 7, false)].concat();
        assert_eq!(sets(&inside), [0, 1, 2, 2]);
    }
}
