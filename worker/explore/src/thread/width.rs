//! An upper bound on the number of events of an execution. It fixes the width of rows before the search starts.

use super::flow::Flow;
use super::footprint::spreads;
use moire_execution::leaf::instances;
use moire_program::ir::*;
use moire_program::{barrier_op, multimem_op};
use std::rc::Rc;

/// Upper bound on the events of an execution of `program` in which no loop jumps back more than `loop_bound` times.
/// `flows` has one entry a thread.
pub(crate) fn most_events(program: &Program, flows: &[Rc<Flow>], loop_bound: u32) -> usize {
    let mut total = instances(program).len();
    for (thread, flow) in program.threads.iter().zip(flows) {
        // A loop that only waits leaves the events of one iteration.
        let loops =
            thread.body.iter().enumerate().any(
                |(pc, i)| matches!(i.op, Op::Bra { target } if target <= pc && !flow.waits_only[target]),
            );
        // An access may be executed twice, once in each arm, when lanes of a thread take different arms of a branch.
        let arms = if thread.place.lanes().count_ones() > 1 { 2 } else { 1 };
        let pieces = |ty: &Ty| if ty.packed() || ty.bytes() == 16 { 2 } else { arms };
        let per = |i: &Instr| match &i.op {
            Op::Load { ty, dst, .. } => pieces(ty) * dst.len(),
            Op::Store { ty, src, .. } => pieces(ty) * src.len(),
            Op::Rmw { ty, .. } => {
                if ty.packed() {
                    4
                } else {
                    2
                }
            }
            multimem_op!() => 2 * program.objects.len(),
            Op::Tcgen05(op) => super::tensor::most_events(op, program.threads.len()),
            Op::ProxyOrder(_) => 6,
            Op::Tile(TileOp::Access(access)) => 2 * access.elements.len(),
            Op::Tile(TileOp::Token(_)) => 0,
            Op::AsyncCopy(_) | Op::Control(_) if spreads(&i.op) => 4 + 2 * program.threads.len(),
            Op::AsyncCopy(AsyncCopy::Bulk(_)) => 6,
            Op::Control(Control::Elect { .. } | Control::Collective(_)) => 1,
            Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Control(_) => 12,
            Op::Mov { .. }
            | Op::Alu { .. }
            | Op::Setp { .. }
            | Op::Selp { .. }
            | Op::Mapa { .. }
            | Op::Bra { .. }
            | Op::Exit => 0,
            Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => 1,
            barrier_op!() => 1,
            Op::Book(book) => book.range().map_or(0, |(_, _, bytes)| arms * (bytes / RANGE_PIECE) as usize),
        };
        let once: usize = thread.body.iter().map(per).sum();
        // The end of a thread of a kernel is an event, too.
        let end = usize::from(program.launched);
        total += end + once * if loops { loop_bound as usize + 2 } else { 1 };
    }
    total
}
