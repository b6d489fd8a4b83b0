//! The items of some lanes of a warp.
//!
//! Branches that these lanes take alike become jumps, and footprints shrink to what these lanes touch. What a warp does as a
//! whole is done by the part of its first lane: products, allocations and accesses of tensor memory, and bulk copies that
//! several lanes issue together.

use super::parts::Together;
use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::touch::{Spread, Touch};
use moire_program::ir::{AsyncCopy, Op, ProxyOrder, Reg};
use moire_program::registers;
use std::collections::BTreeSet;

/// The items that some lanes execute, each with its number in the warp.
pub(super) fn of(items: &[Placed], part: &Together) -> Result<Vec<(usize, Placed)>, Refusal> {
    let warps: BTreeSet<Reg> =
        items.iter().filter(|p| by_the_warp(&p.item)).flat_map(|p| used(&p.item, true)).collect();
    let all = items.iter().enumerate().filter_map(|(n, placed)| Some((n, one(placed, part.lanes, &warps)?)));
    let found: Vec<(usize, Placed)> = all.collect();
    handed(items, &found)?;
    Ok(found)
}

/// The item as some lanes execute it. `warps` are the registers that instructions of the whole warp write.
fn one(placed: &Placed, lanes: u32, warps: &BTreeSet<Reg>) -> Option<Placed> {
    let here = placed.lanes & lanes;
    if matches!(placed.item, Item::Label(_)) {
        return Some(placed.clone());
    }
    let first = placed.lanes & placed.lanes.wrapping_neg();
    let stands = || used(&placed.item, false).iter().any(|r| warps.contains(r)) && only_moves(&placed.item);
    if here == 0 || (here & first == 0 && (by_the_warp(&placed.item) || stands())) {
        return None;
    }
    let item = match &placed.item {
        Item::Others { mask, to } if here & mask == 0 => Item::Jump(*to),
        Item::Others { mask, .. } if here & !mask == 0 => return None,
        Item::Data { write, manner, touch } => {
            let touch = less(touch, lanes)?;
            Item::Data { write: *write, manner: manner.clone(), touch }
        }
        Item::Op { op, touches } => {
            let touches = touches.iter().map(|t| less(t, lanes).unwrap_or_else(|| nothing(t))).collect();
            Item::Op { op: op.clone(), touches }
        }
        other => other.clone(),
    };
    let mask = placed.mask.map(|m| m & lanes).filter(|m| *m != lanes);
    let mask = if matches!(item, Item::Data { .. }) { None } else { mask };
    Some(Placed { item, mask, lanes: here, line: placed.line })
}

/// Whether a warp, or one of its lanes for all, executes the instruction.
pub(super) fn by_the_warp(item: &Item) -> bool {
    let Item::Op { op, .. } = item else { return false };
    is_whole(op) || matches!(**op, Op::AsyncCopy(AsyncCopy::Bulk(_)))
}

/// Whether the whole warp executes an instruction together (`.sync.aligned`), so that its lanes meet there.
pub(super) fn is_whole(op: &Op) -> bool {
    matches!(op, Op::Wgmma(_) | Op::ProxyOrder(ProxyOrder::CopyTensormap { .. }))
        || matches!(op, Op::Tcgen05(t) if t.by_the_warp())
}

/// Whether the item is a `mov`: that of a register of the warp shows where the kernel uses it.
fn only_moves(item: &Item) -> bool {
    matches!(item, Item::Op { op, .. } if matches!(**op, Op::Mov { .. }))
}

/// What some lanes touch of a touch, if anything.
fn less(touch: &Touch, lanes: u32) -> Option<Touch> {
    if touch.by.is_empty() {
        return Some(touch.clone());
    }
    let by = touch.by.iter().map(|s| Spread { mask: s.mask & lanes, ..s.clone() });
    let by: Vec<Spread> = by.filter(|s| s.mask != 0).collect();
    (!by.is_empty()).then(|| Touch::spread(touch.mem, touch.kind, by))
}

fn nothing(touch: &Touch) -> Touch {
    Touch::spread(touch.mem, touch.kind, Vec::new())
}

/// Refuses lanes that use a register which only other lanes have written: what one lane hands to another in a register is
/// not followed.
fn handed(items: &[Placed], part: &[(usize, Placed)]) -> Result<(), Refusal> {
    let own: BTreeSet<Reg> = part.iter().flat_map(|p| used(&p.1.item, true)).collect();
    let all: BTreeSet<Reg> = items.iter().flat_map(|p| used(&p.item, true)).collect();
    let foreign =
        |p: &&(usize, Placed)| used(&p.1.item, false).iter().any(|r| !own.contains(r) && all.contains(r));
    match part.iter().find(foreign) {
        Some((_, placed)) => Err(Refusal::Abstained {
            what: "a value that other lanes of the warp have, by lanes that run in an order of their own"
                .into(),
            line: placed.line,
        }),
        None => Ok(()),
    }
}

/// The registers that an item writes, or reads.
fn used(item: &Item, write: bool) -> Vec<Reg> {
    match item {
        Item::Op { op, .. } => {
            let (reads, writes) = registers::uses(op);
            if write { writes } else { reads }
        }
        Item::Branch { reg, .. } if !write => vec![*reg],
        _ => Vec::new(),
    }
}
