//! Lanes that are late: a lane may still stand at a wait that another lane of its warp has passed.
//!
//! A lane that has passed a wait may do something that others see, and they may end the next phase of the mbarrier, or
//! change the flag, before the late lane looks. Then it waits for a phase that is over. One order of both lanes does not
//! show that. So, by the letter, lanes run apart if one of them *acts* between a wait of both and their next meeting. A
//! meeting of any kind will do, because a lane that comes to it has passed the wait: also an exchange of registers, which orders
//! nothing.
//!
//! A meeting may also name lanes that do not come to it, because they have taken another way. These run apart from those that do: who
//! waits for them may wait for ever.
//!
//! Arrivals of all lanes are no such case: they are counted, so the phase they belong to waits for the late lane, too.
//! Writes are not counted, so lanes that each write run apart.

use super::course::Course;
use super::order::writes_order;
use super::part::is_whole;
use crate::specialise::item::{Item, Late, Manner, Placed};
use moire_program::ir::*;
use moire_program::{barrier_op, jump_op, register_op};
use std::collections::BTreeSet;

/// The items by which lanes act while others may be late.
pub(in crate::specialise) fn late(items: &[Placed]) -> Vec<Late> {
    let acting = items.iter().zip(waiting(items)).filter(|(p, waiting)| *waiting != 0 && acts(&p.item));
    acting.filter_map(|(p, waiting)| Late::new(p, waiting, writes_order(&p.item))).collect()
}

/// For each item the lanes that may still stand at a wait since the last meeting.
fn waiting(items: &[Placed]) -> Vec<u32> {
    let course = Course::new(items);
    let waits: Vec<u32> =
        (0..items.len()).map(|at| if asks(items, &course, at) { items[at].lanes } else { 0 }).collect();
    let meetings: Vec<u32> = items.iter().map(met).collect();
    course.near(&waits, false, &meetings)
}

/// The items with those meetings that order nothing and that a lane may be late for, because it stands at a wait. If the
/// lanes run apart, none passes such a meeting before all have come to it. A line meets on all ways or on none: lanes that go
/// different ways meet there, too.
pub(in crate::specialise) fn awaited(items: Vec<Placed>) -> Vec<Placed> {
    let mut all = Vec::with_capacity(items.len());
    for placed in items {
        if matches!(&placed.item, Item::Op { op, .. } if is_whole(op)) {
            all.push(Placed { item: Item::Met(placed.lanes), ..placed.clone() });
        }
        all.push(placed);
    }
    let late = waiting(&all);
    let lines: BTreeSet<u32> =
        all.iter().zip(late).filter(|(_, lanes)| *lanes != 0).map(|(p, _)| p.line).collect();
    let kept = |p: &Placed| elsewhere(p) != 0 || lines.contains(&p.line);
    all.retain(|p| !matches!(p.item, Item::Met(_)) || kept(p));
    all
}

/// Whether an item asks for what others do: a wait, or a strong read in a loop.
fn asks(items: &[Placed], course: &Course, at: usize) -> bool {
    let Item::Op { op, .. } = &items[at].item else { return false };
    op.is_strong_read() && (matches!(**op, Op::Mbarrier(_)) || course.is_again(at, &|_| true))
}

/// The lanes that meet at an item.
fn met(placed: &Placed) -> u32 {
    match &placed.item {
        Item::Met(lanes) => lanes & placed.lanes,
        Item::Op { op, .. } => {
            if let Op::WarpSync { mask: Operand::Imm(mask) } = **op {
                return u32::try_from(mask & 0xffff_ffff).unwrap_or(0) & placed.lanes;
            }
            let meets = matches!(**op, Op::ClusterWait)
                || matches!(&**op, Op::Bar { kind, .. } if *kind != BarKind::Arrive)
                || is_whole(op);
            if meets { placed.lanes } else { 0 }
        }
        _ => 0,
    }
}

/// The lanes that a meeting names and that do not come to it here.
pub(super) fn elsewhere(placed: &Placed) -> u32 {
    if let Item::Met(lanes) = placed.item { lanes & !placed.lanes } else { 0 }
}

/// Whether others may notice that an item is executed, and go on.
fn acts(item: &Item) -> bool {
    match item {
        Item::Data { write, manner, .. } => *write && matches!(manner, Manner::Relaxed(_)),
        Item::Op { op, .. } => tells(op),
        _ => false,
    }
}

/// Whether an instruction lets others go on.
fn tells(op: &Op) -> bool {
    match op {
        Op::Store { order, .. } | Op::MultimemStore { order, .. } => *order != StoreOrder::Weak,
        Op::Rmw { .. } | Op::MultimemRed { .. } => true,
        Op::Mbarrier(m) => !matches!(m.op, MbarrierOp::Wait(_)),
        Op::Tcgen05(t) => matches!(t, Tcgen05::Commit(_)),
        Op::AsyncCopy(copy) => match copy {
            AsyncCopy::Arrive { .. } | AsyncCopy::Remote(_) => true,
            AsyncCopy::Bulk(copy) => copy.done != BulkDone::Group,
            AsyncCopy::Small(_) | AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => false,
            AsyncCopy::Prefetch(_) | AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => false,
        },
        Op::Control(control) => matches!(control, Control::TryCancel { .. }),
        Op::ProxyOrder(order) => {
            matches!(order, ProxyOrder::CopyTensormap { .. } | ProxyOrder::ReplaceTensormap { .. })
        }
        // Meetings are no news to lanes that are late for them, and all others are about the lane itself.
        barrier_op!() | Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence => false,
        Op::Load { .. } | Op::MultimemLoad { .. } | Op::Wgmma(_) | Op::Tile(_) | register_op!() => false,
        jump_op!() => false,
        Op::Book(_) => true,
    }
}
