//! Idle parts: lanes that only wait, and without which nothing changes.
//!
//! A part may be dropped if it touches no data, writes nothing strong and arrives nowhere with a count, and if another part
//! of its warp executes each of its waits and fences at the same place with the same operands, does not exit, and comes to
//! exactly the same rendezvous and is named by the same masks. Whatever waits for a lane of the part then waits for a lane
//! of the other one at the same time, and the part knows nothing that the other one does not know there. The other part must
//! not act between a wait and the next rendezvous: what it does there may end the phase that the idle part, which is late,
//! still waits for. If it does not act, it may be as late itself, and nobody can tell. Nor may an mbarrier end its life, since
//! a wait is a use of it. The dropped lanes count as lanes that have exited. A count of lanes would change, so a named barrier with a count, or an instruction of
//! the tensor cores for the whole warp that only one of them executes, keeps both.

use super::control::Runs;
use super::flow::elected;
use super::part::{SomeLanes, State};
use super::planted::Planted;
use super::value::Val;
use super::values::asked;
use super::waits::leave;
use super::{Piece, control};
use crate::ir::*;
use crate::registers::only_registers;

/// Whether `other` does all that an idle `piece` does, so that `piece` may be dropped.
pub(super) fn covered(piece: &Piece<'_>, other: &Piece<'_>) -> bool {
    let part = &piece.part;
    let code = part.code();
    let here = |t: &&Thread| t.place.same_cta(&code.place);
    let counted = |t: &Thread| t.body.iter().any(|i| matches!(i.op, Op::Bar { count: Some(_), .. }));
    let sharing = |t: &&Thread| here(t) && t.place.warp == code.place.warp;
    let alone = part.program.threads.iter().filter(sharing).count() == 1;
    let seen =
        code.place.lane() == part.lanes.first().copied() && !asked(part.program, part.thread).is_empty();
    let counts = part.program.threads.iter().filter(here).any(counted);
    alone && !seen && !counts && (0..code.body.len()).all(|pc| same(piece, other, pc))
}

/// Whether the other part does at a place what an idle one does there.
fn same(piece: &Piece<'_>, other: &Piece<'_>, pc: usize) -> bool {
    let op = &piece.part.code().body[pc].op;
    let (mine, theirs) = (runs(piece, pc), runs(other, pc));
    let bug = |bug| piece.part.has(bug);
    if only_registers(op) && !matches!(op, Op::Control(_)) {
        return true;
    }
    if matches!(op, Op::Exit | Op::Control(Control::Repeat(_))) {
        return mine == Runs::Never && theirs == Runs::Never;
    }
    if matches!(op, Op::Bra { .. }) {
        return (mine != Runs::Maybe && theirs != Runs::Maybe) || leave(piece.part.code(), pc).is_some();
    }
    let meets = rendezvous(op);
    if meets && (mine != theirs || !named_alike(piece, other, pc, op)) {
        return bug(Planted::IdleMeetings);
    }
    if theirs != Runs::Never && acts(op) && late(piece, other, pc) && !bug(Planted::IdleLate) {
        return false;
    }
    match mine {
        Runs::Never => true,
        Runs::Maybe => false,
        Runs::Always => {
            idle(op)
                && (bug(Planted::IdleLives) || !dies(piece, op))
                && (bug(Planted::IdleWaits) || (theirs == Runs::Always && operands(piece, other, pc, op)))
        }
    }
}

/// Whether idle lanes may still be at a wait when the other part comes to a place.
fn late(piece: &Piece<'_>, other: &Piece<'_>, pc: usize) -> bool {
    piece.states[pc].as_ref().or(other.states[pc].as_ref()).is_some_and(|state| state.waited)
}

/// Whether others may notice that an instruction is executed.
fn acts(op: &Op) -> bool {
    let weak =
        matches!(op, Op::Load { .. } | Op::Store { .. }) && op.access().is_some_and(|a| !a.is_strong());
    !weak && !idle(op) && !only_registers(op) && !rendezvous(op)
}

/// Whether an instruction uses an mbarrier, and some mbarrier ends its life.
fn dies(piece: &Piece<'_>, op: &Op) -> bool {
    let ends = |i: &Instr| matches!(&i.op, Op::Mbarrier(m) if m.op == MbarrierOp::Inval);
    matches!(op, Op::Mbarrier(_)) && piece.part.program.threads.iter().flat_map(|t| &t.body).any(ends)
}

/// Whether a part executes the instruction at a place.
fn runs(piece: &Piece<'_>, pc: usize) -> Runs {
    let guard = piece.part.code().body[pc].guard;
    let state = piece.states[pc].as_ref();
    state.map_or(Runs::Never, |s| control::runs(&piece.part, s, guard).unwrap_or(Runs::Maybe))
}

/// Whether lanes of a warp meet at an instruction.
fn rendezvous(op: &Op) -> bool {
    match op {
        Op::WarpSync { .. } | Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait => true,
        Op::Control(control) => matches!(control, Control::Elect { .. } | Control::Collective(_)),
        Op::Tcgen05(op) => !op.by_one_thread(),
        Op::Wgmma(_) => true,
        register_op!() => false,
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => false,
        multimem_op!() | fence_op!() | Op::AsyncCopy(_) | jump_op!() => false,
        Op::Book(_) => false,
    }
}

/// Whether an instruction only waits, or orders what its own lane did.
fn idle(op: &Op) -> bool {
    match op {
        Op::Load { .. } | Op::Mbarrier(_) => op.is_strong_read(),
        Op::Bar { kind, .. } => *kind == BarKind::Sync,
        Op::WarpSync { .. } | Op::ClusterArrive { .. } | Op::ClusterWait => true,
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence => true,
        Op::Tcgen05(op) => matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter),
        Op::AsyncCopy(copy) => matches!(
            copy,
            AsyncCopy::Commit
                | AsyncCopy::Wait(_)
                | AsyncCopy::WaitAll
                | AsyncCopy::BulkCommit
                | AsyncCopy::BulkWait { .. }
        ),
        Op::Control(control) => matches!(control, Control::Elect { .. } | Control::Ignored(_)),
        register_op!() => false,
        Op::Store { .. } | Op::Rmw { .. } | Op::ProxyOrder(_) | Op::Wgmma(_) | Op::Tile(_) => false,
        multimem_op!() | jump_op!() => false,
        Op::Book(_) => false,
    }
}

/// Whether both parts name the same things, which must be constants.
fn operands(piece: &Piece<'_>, other: &Piece<'_>, pc: usize, op: &Op) -> bool {
    let (Some(a), Some(b)) = (&piece.states[pc], &other.states[pc]) else { return false };
    let one = |part: &SomeLanes<'_>, state: &State, o: Operand| part.operand(state, o).one();
    let same =
        |o: Operand| one(&piece.part, a, o).is_some() && one(&piece.part, a, o) == one(&other.part, b, o);
    op.sources().into_iter().all(same)
}

/// Whether a mask names the lanes of both parts or of none.
fn named_alike(piece: &Piece<'_>, other: &Piece<'_>, pc: usize, op: &Op) -> bool {
    let Some(mask) = op.mask() else { return true };
    // Without its first lane a mask elects another one.
    let elects = matches!(op, Op::Control(Control::Elect { .. }));
    let leads = |state: &State| !matches!(elected(&piece.part, state, pc, mask), Some(l) if !piece.part.lanes.contains(&l));
    if elects && piece.states[pc].as_ref().is_some_and(leads) {
        return false;
    }
    let Some(state) = piece.states[pc].as_ref().or(other.states[pc].as_ref()) else { return true };
    let of = |part: &SomeLanes<'_>| match part.operand(state, mask) {
        Val::Known(all) => all.first().map(|k| part.lanes.iter().all(|l| k.number >> l & 1 == 1)),
        _ => None,
    };
    of(&piece.part).is_some() && of(&piece.part) == of(&other.part)
}
