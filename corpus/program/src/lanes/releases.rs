//! S3: lanes that write something strong are apart, except in quiet reductions.
//!
//! Two lanes that store one flag are two writes with two pasts: a reader that sees the first knows what its lane did, and
//! nothing of the other. A *quiet reduction* carries no past: `red.relaxed` without a fence before it in program order
//! (a fence and a relaxed write are a release pattern, PTX ISA 8.7). An `atom` is never quiet: with a fence behind it, it
//! heads an acquire pattern. Joined quiet reductions stay so many writes, one behind the other, because other threads see
//! the sums between them. Which lane comes first makes no difference if all lanes write the same number, and if no other
//! reduction of the part writes another number there. Nor is one quiet behind a wait, unless all lanes have met since, or
//! nobody reads: it tells others that one lane has passed the wait, and they may end what another lane still waits for.

use super::part::{Apart, Done, SomeLanes, State};
use super::planted::Planted;
use super::sites::{Site, overlap};
use super::value::Known;
use crate::ir::{AsyncCopy, AtomOp, Control, Instr, Op, ProxyOrder, RemoteOrder, RmwOrder, StoreOrder, Ty};

/// What a quiet reduction does to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quiet {
    op: AtomOp,
    ty: Ty,
    number: Known,
}

/// The update, if an instruction is a quiet reduction.
pub(super) fn quiet(part: &SomeLanes<'_>, state: &State, op: &Op) -> Option<Quiet> {
    let Op::Rmw { red: true, order: RmwOrder::Relaxed, op, ty, a, b: None, .. } = op else { return None };
    if state.fenced && !part.has(Planted::FencedReduction) {
        return None;
    }
    if state.waited && read(part) && !part.has(Planted::LateReduction) {
        return None;
    }
    Some(Quiet { op: *op, ty: *ty, number: part.operand(state, *a).one()? })
}

/// Whether some thread may see the sum of a reduction: the program has a read that is no wait for an mbarrier.
fn read(part: &SomeLanes<'_>) -> bool {
    let reads =
        |i: &Instr| matches!(i.op, Op::Load { .. } | Op::Rmw { red: false, .. } | Op::MultimemLoad { .. });
    part.program.threads.iter().flat_map(|t| &t.body).any(reads)
}

/// Passes if the lanes may execute an instruction together.
pub(super) fn check(part: &SomeLanes<'_>, state: &State, op: &Op) -> Done<()> {
    let writes = match op {
        Op::Store { order, .. } | Op::MultimemStore { order, .. } => *order != StoreOrder::Weak,
        Op::Rmw { .. } => quiet(part, state, op).is_none(),
        Op::MultimemRed { .. } | Op::Tile(_) => true,
        Op::AsyncCopy(AsyncCopy::Remote(write)) => {
            write.op.is_some() || !matches!(write.order, RemoteOrder::Mbarrier(_))
        }
        Op::ProxyOrder(order) => {
            matches!(order, ProxyOrder::CopyTensormap { .. } | ProxyOrder::ReplaceTensormap { .. })
        }
        Op::Control(control) => matches!(control, Control::TryCancel { .. }),
        Op::AsyncCopy(_) | Op::Tcgen05(_) | Op::Wgmma(_) | Op::Mbarrier(_) | register_op!() => false,
        Op::Load { .. } | Op::MultimemLoad { .. } | jump_op!() => false,
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | barrier_op!() => false,
        // Nobody has said how lanes execute it together.
        Op::Book(_) => true,
    };
    if writes && part.several() && !part.has(Planted::Releases) { Err(Apart::All) } else { Ok(()) }
}

/// Passes if the quiet reductions of a part that may meet on a word are the same.
pub(super) fn alike(part: &SomeLanes<'_>, sites: &[Site]) -> Done<()> {
    let lanes = part.lanes.len();
    let common = |a: &Site, i, b: &Site, j| overlap(part.program, (a, i), (b, j)) != Some(false);
    let meet = |a: &Site, b: &Site| (0..lanes).any(|i| (0..lanes).any(|j| common(a, i, b, j)));
    let reductions = || sites.iter().filter(|s| s.quiet.is_some());
    let mixed = reductions().any(|a| reductions().any(|b| a.quiet != b.quiet && meet(a, b)));
    if mixed && part.several() && !part.has(Planted::MixedReductions) { Err(Apart::All) } else { Ok(()) }
}
