//! Removes items without effect: labels that no item jumps to, jumps to the next item, repeated accesses of data, and
//! fences next to a stronger one.

use crate::specialise::item::{Item, Manner, Placed};
use moire_program::ir::{FenceOrder, Op, Scope};
use std::collections::BTreeSet;

/// Removes items without effect.
pub(crate) fn items(mut all: Vec<Placed>) -> Vec<Placed> {
    loop {
        let used: BTreeSet<u32> = all
            .iter()
            .filter_map(|p| match p.item {
                Item::Jump(to) | Item::Branch { to, .. } | Item::Others { to, .. } => Some(to),
                Item::Open { past: to } | Item::Close { again: to } => Some(to),
                _ => None,
            })
            .collect();
        let before = all.len();
        let next: Vec<bool> = (0..before).map(|i| leads_on(&all, i)).collect();
        let mut keep = next.into_iter().map(|leads| !leads);
        all.retain(|p| {
            let keep = keep.next().unwrap_or(true);
            keep && !matches!(p.item, Item::Label(l) if !used.contains(&l))
        });
        if all.len() == before {
            break;
        }
    }
    join(fences(all))
}

fn fence(placed: &Placed) -> Option<(FenceOrder, Scope, Option<u32>)> {
    let Item::Op { op, .. } = &placed.item else { return None };
    if let Op::Fence { order, scope } = **op { Some((order, scope, placed.mask)) } else { None }
}

/// Of consecutive memory fences, keeps those that no other fence of the same lanes covers. No access lies between them, so
/// a stronger fence orders everything that a weaker one orders.
fn fences(all: Vec<Placed>) -> Vec<Placed> {
    let covers = |strong: FenceOrder, weak: FenceOrder| match strong {
        FenceOrder::Sc => true,
        FenceOrder::AcqRel => weak != FenceOrder::Sc,
        _ => strong == weak,
    };
    let spare = |at: usize| {
        let Some((order, scope, mask)) = fence(&all[at]) else { return false };
        let before = all[..at].iter().rev().map_while(fence).map(|f| (f, false));
        let behind = all[at + 1..].iter().map_while(fence).map(|f| (f, true));
        before.chain(behind).any(|((o, s, m), later)| {
            m == mask && covers(o, order) && s >= scope && (later || (o, s) != (order, scope))
        })
    };
    let keep: Vec<bool> = (0..all.len()).map(|at| !spare(at)).collect();
    all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(placed, _)| placed).collect()
}

/// Whether an item is a jump to one of the labels directly behind it.
fn leads_on(all: &[Placed], at: usize) -> bool {
    let Item::Jump(to) = all[at].item else { return false };
    let labels = all[at + 1..].iter().map_while(|p| if let Item::Label(l) = p.item { Some(l) } else { None });
    labels.into_iter().any(|l| l == to)
}

/// Joins consecutive accesses of data by the same lanes.
fn join(all: Vec<Placed>) -> Vec<Placed> {
    let mut out: Vec<Placed> = Vec::with_capacity(all.len());
    for mut placed in all {
        if let Item::Data { write, manner, touch } = &mut placed.item
            && !matches!(manner, Manner::Agreed(_) | Manner::Same(_) | Manner::Parted { .. })
        {
            let run = out.iter_mut().rev().take_while(|p| matches!(p.item, Item::Data { .. }));
            let same = |p: &&mut Placed| {
                (p.mask, p.lanes) == (placed.mask, placed.lanes)
                    && matches!(&p.item, Item::Data { write: w, manner: m, touch: t } if (*w, m, t.mem) == (*write, manner, touch.mem))
            };
            if let Some(Placed { item: Item::Data { touch: earlier, .. }, .. }) = run.into_iter().find(same) {
                earlier.ranges.append(&mut touch.ranges);
                earlier.by.append(&mut touch.by);
                earlier.join();
                continue;
            }
        }
        out.push(placed);
    }
    out
}
