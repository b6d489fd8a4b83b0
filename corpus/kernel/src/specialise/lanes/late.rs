//! Lanes that are late: a lane may still stand at a wait that another lane of its warp has passed.
//!
//! A lane that has passed a wait may do something that others see, and they may end the next phase of the mbarrier, or
//! change the flag, before the late lane looks. Then it waits for a phase that is over. One order of both lanes does not
//! show that. So, by the letter, lanes run apart if one of them *acts* between a wait of both and their next meeting. A
//! meeting of any kind will do, because a lane that comes to it has passed the wait: also an exchange of registers, which orders
//! nothing.
//!
//! Arrivals of all lanes are no such case: they are counted, so the phase they belong to waits for the late lane, too.
//! Writes are not counted, so lanes that each write run apart.

use super::course::Course;
use super::order::writes_order;
use crate::specialise::item::{Item, Late, Manner, Placed};
use moire_program::ir::*;
use moire_program::{barrier_op, jump_op, register_op};

/// The items by which lanes act while others may be late.
pub(in crate::specialise) fn late(items: &[Placed]) -> Vec<Late> {
    let course = Course::new(items);
    let waits: Vec<u32> =
        (0..items.len()).map(|at| if asks(items, &course, at) { items[at].lanes } else { 0 }).collect();
    let meetings: Vec<u32> = items.iter().map(met).collect();
    let behind = course.near(&waits, false, &meetings);
    let acting = items.iter().zip(behind).filter(|(p, waiting)| *waiting != 0 && acts(&p.item));
    acting.filter_map(|(p, waiting)| Late::new(p, waiting, writes_order(&p.item))).collect()
}

/// Whether an item asks for what others do: a wait, or a strong read in a loop.
fn asks(items: &[Placed], course: &Course, at: usize) -> bool {
    let Item::Op { op, .. } = &items[at].item else { return false };
    op.is_strong_read() && (matches!(**op, Op::Mbarrier(_)) || course.is_again(at, &|_| true))
}

/// The lanes that meet at an item.
fn met(placed: &Placed) -> u32 {
    match &placed.item {
        Item::Met => placed.lanes,
        Item::Op { op, .. } => {
            if let Op::WarpSync { mask: Operand::Imm(mask) } = **op {
                return u32::try_from(mask & 0xffff_ffff).unwrap_or(0) & placed.lanes;
            }
            let meets = matches!(**op, Op::ClusterWait | Op::Wgmma(_))
                || matches!(&**op, Op::Bar { kind, .. } if *kind != BarKind::Arrive)
                || matches!(&**op, Op::Tcgen05(t) if t.by_the_warp());
            if meets { placed.lanes } else { 0 }
        }
        _ => 0,
    }
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
