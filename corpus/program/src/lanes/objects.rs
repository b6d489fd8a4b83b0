//! S2: what synchronises names the same object with the same operands in all lanes of a part.
//!
//! If lane 0 acquires flag 0 and lane 1 flag 1, what lane 0 knows is not what lane 1 knows: joined they would know both.
//! And a lane that waits for something that another one causes later would hang. Only plain accesses, and the data of
//! copies, may differ by lane; they order nothing.

use super::exchange;
use super::part::{Done, SomeLanes, State, agreed};
use super::planted::Planted;
use crate::ir::{AsyncCopy, BulkDone, Control, Op, Operand, Part as Piece, Parts, Reg, RemoteOrder};

/// Passes if the operands of an instruction that must be the same in all lanes are.
pub(super) fn check(part: &SomeLanes<'_>, state: &State, op: &Op) -> Done<()> {
    let addresses = part.has(Planted::Objects);
    let weak =
        matches!(op, Op::Load { .. } | Op::Store { .. }) && op.access().is_some_and(|a| !a.is_strong());
    let planted = addresses && matches!(op, Op::Load { .. } | Op::Mbarrier(_));
    if weak || planted || matches!(op, Op::Rmw { red: true, .. }) {
        return Ok(());
    }
    if let Op::AsyncCopy(copy) = op {
        return of_copy(part, state, copy);
    }
    if let Op::Control(Control::Collective(collective)) = op {
        return exchange::check(part, state, collective);
    }
    all(part, state, op)
}

/// The mbarrier and the size of a copy; its data may be other bytes in each lane.
fn of_copy(part: &SomeLanes<'_>, state: &State, copy: &AsyncCopy) -> Done<()> {
    let told = |done| agreed(&part.address(state, done));
    match copy {
        AsyncCopy::Small(_) => Ok(()),
        AsyncCopy::Bulk(bulk) => {
            if let BulkDone::Mbarrier(addr) = &bulk.done {
                told(addr)?;
            }
            let masks = bulk.multicast.map(|m| m.mask).into_iter().chain(bulk.bytes).chain(bulk.byte_mask);
            masks.chain(bulk.ignored.into_iter().flatten()).try_for_each(|o| agreed(&part.operand(state, o)))
        }
        AsyncCopy::Remote(write) => match &write.order {
            RemoteOrder::Mbarrier(addr) => told(addr),
            RemoteOrder::Release(_) | RemoteOrder::MmioRelease => Ok(()),
        },
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => {
            all(part, state, copy)
        }
        AsyncCopy::Prefetch(_) | AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => all(part, state, copy),
    }
}

fn all(part: &SomeLanes<'_>, state: &State, op: &impl Parts) -> Done<()> {
    let mut done = Ok(());
    op.each(&mut |piece: Piece<&Operand, &Reg>| {
        let operand = match piece {
            Piece::Source(operand, _) => *operand,
            Piece::Read(reg, crate::ir::Role::Known | crate::ir::Role::Data) => Operand::Reg(*reg),
            Piece::Read(..) | Piece::Write(_) => return,
        };
        if done.is_ok() {
            done = agreed(&part.operand(state, operand));
        }
    });
    done
}
