//! Barriers at lines of a kernel, for accesses that nothing orders within a warp, a CTA or a cluster.
//!
//! Contract: a barrier stands at every site of its line. All threads of each cluster or CTA, or all lanes of each warp, run the line equally
//! often. So it orders what they run before it before what they run behind it, as the text does: it cannot be the wrong
//! direction.

use crate::Step;
use crate::pair::{At, barrier, sites};
use crate::trial::Bench;
use moire_program::edit::{Added, Edit};
use moire_program::ir::*;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::BTreeSet;

/// Whom a barrier at a line joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    Warp,
    Cta,
    Cluster,
}

/// The lines between two accesses at which their threads may meet: the nearest in front of the second, and behind the first, each with
/// whether the barrier stands behind it.
pub(crate) fn lines(bench: &Bench<'_>, x: At, y: At) -> Vec<(At, Whom, bool)> {
    let length = bench.program.threads[x.thread].body.len();
    let own = bench.line_of(x);
    let behind =
        || (x.pc + 1..length).map(|pc| At { thread: x.thread, pc }).filter(|at| bench.line_of(*at) != own);
    let front = || (0..=y.pc).rev().map(|pc| At { thread: y.thread, pc });
    let mut out = Vec::new();
    let (p, q) = (&bench.program.threads[x.thread].place, &bench.program.threads[y.thread].place);
    let near: &[Whom] = if p.same_cta(q) { &[Whom::Warp, Whom::Cta] } else { &[Whom::Cta, Whom::Cluster] };
    for whom in near.iter().copied() {
        let fits = |at: &At| barrier_at(bench, *at, whom, [x.thread, y.thread]).is_some();
        for at in front().find(fits).into_iter().chain(behind().find(fits)) {
            let line = heads(bench, at);
            if !out.iter().any(|(a, w, _)| *w == whom && heads(bench, *a) == line) {
                out.push((at, whom, false));
            }
        }
        out.extend(fits(&x).then_some((x, whom, true)));
    }
    out
}

/// Where threads come to a line. One instruction of a kernel may be several of the program, one behind the other.
fn heads(bench: &Bench<'_>, line: At) -> Vec<At> {
    let own = bench.line_of(line);
    let inside = |at: &At| at.pc > 0 && bench.line_of(At { pc: at.pc - 1, ..*at }) == own;
    sites(bench, line).into_iter().filter(|at| !inside(at)).collect()
}

/// The places in front of a line, or behind it.
pub(crate) fn places(bench: &Bench<'_>, line: At, behind: bool) -> Vec<At> {
    if !behind {
        return heads(bench, line);
    }
    let own = bench.line_of(line);
    let length = |at: &At| bench.program.threads[at.thread].body.len();
    let last = |at: &At| at.pc == length(at) || bench.line_of(*at) != own;
    let next = sites(bench, line).into_iter().map(|at| At { pc: at.pc + 1, ..at });
    next.filter(last).collect()
}

/// The barrier of a line that joins these two threads. None if they do not all come to it equally often.
pub(crate) fn barrier_at(bench: &Bench<'_>, line: At, whom: Whom, joins: [usize; 2]) -> Option<Vec<Op>> {
    let all = heads(bench, line);
    if bench.original.threads[line.thread].body[line.pc].line == 0
        || !joins.iter().all(|t| all.iter().any(|at| at.thread == *t))
    {
        return None;
    }
    match whom {
        Whom::Cta => {
            barrier(&bench.program, &all).filter(|op| whole(&bench.program, &all, op)).map(|op| vec![op])
        }
        Whom::Warp => warp(&bench.program, &all, joins).map(|op| vec![op]),
        Whom::Cluster => cluster(bench, &all, joins),
    }
}

/// A barrier of each cluster at a line, if all threads of the clusters come to it equally often.
fn cluster(bench: &Bench<'_>, all: &[At], [x, y]: [usize; 2]) -> Option<Vec<Op>> {
    let place = |t: usize| &bench.program.threads[t].place;
    let near = |t: usize| all.iter().any(|at| place(at.thread).includes(Scope::Cluster, place(t)));
    let times = |t: usize| all.iter().filter(|at| at.thread == t).count();
    let whole = (0..bench.program.threads.len()).filter(|t| near(*t)).all(|t| times(t) == times(x));
    let one = bench.clusters && place(x).includes(Scope::Cluster, place(y));
    (one && whole).then(|| vec![Op::ClusterArrive { relaxed: false }, Op::ClusterWait])
}

/// Whether all threads of the CTAs are there, or all lanes of one warp meet.
fn whole(program: &Program, all: &[At], op: &Op) -> bool {
    matches!(op, Op::WarpSync { .. } | Op::Bar { count: None, .. }) || !splits(program, all)
}

/// Whether a warp has lanes that are not there.
fn splits(program: &Program, all: &[At]) -> bool {
    let here: BTreeSet<usize> = all.iter().map(|at| at.thread).collect();
    let near = |t: usize| here.iter().any(|u| same_warp(program, *u, t));
    (0..program.threads.len()).any(|t| !here.contains(&t) && near(t))
}

fn same_warp(program: &Program, a: usize, b: usize) -> bool {
    let (p, q) = (&program.threads[a].place, &program.threads[b].place);
    p.same_cta(q) && p.warp == q.warp
}

/// A barrier of each warp at a line, if the two threads are of one warp and each warp has all its lanes there.
fn warp(program: &Program, all: &[At], [x, y]: [usize; 2]) -> Option<Op> {
    if !same_warp(program, x, y) || splits(program, all) {
        return None;
    }
    let mut warps: Vec<(u32, BTreeSet<usize>)> = Vec::new();
    for at in all {
        let mates = || (0..program.threads.len()).filter(|t| same_warp(program, *t, at.thread));
        let times = |t: usize| all.iter().filter(|a| a.thread == t).count();
        if !mates().all(|t| times(t) == times(at.thread)) {
            return None;
        }
        let mask = mates().fold(0, |mask, t| mask | program.threads[t].place.lanes());
        warps.push((mask, mates().collect()));
    }
    let mask = warps.first()?.0;
    let meet = mask.count_ones() > 1 && warps.iter().all(|(m, _)| *m == mask);
    meet.then_some(Op::WarpSync { mask: Operand::Imm(i128::from(mask)) })
}

/// Whether edits add order only as the text has it: fences, waits of a thread for its own accesses, orders and scopes, and barriers
/// at whole lines.
pub(crate) fn follows_text(program: &Program, steps: &[Step]) -> bool {
    !steps.is_empty() && steps.iter().all(|step| step.iter().all(adds_order) && meets(program, step))
}

/// Whether some of these edits are a barrier.
pub fn has_barrier(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| matches!(edit, Edit::Insert { what: Added::Plain(barrier_op!()), .. }))
}

/// Whether all threads that the barriers of a step join are in it.
fn meets(program: &Program, step: &Step) -> bool {
    let here: BTreeSet<usize> = step.iter().map(Edit::thread).collect();
    let place = |t: usize| &program.threads[t].place;
    let whole = |joins: &dyn Fn(usize, usize) -> bool| {
        let joined = |t: usize| here.iter().any(|u| joins(*u, t));
        (0..program.threads.len()).all(|t| here.contains(&t) || !joined(t))
    };
    step.iter().all(|edit| match edit {
        Edit::Insert { thread, what: Added::Plain(op), .. } => match op {
            Op::Bar { count: None, .. } => whole(&|u, t| place(u).same_cta(place(t))),
            Op::Bar { count: Some(count), .. } => {
                let near = here.iter().filter(|u| place(**u).same_cta(place(*thread)));
                let lanes: u32 = near.map(|u| place(*u).lanes().count_ones()).sum();
                *count == Operand::Imm(i128::from(lanes))
            }
            Op::WarpSync { .. } => whole(&|u, t| same_warp(program, u, t)),
            Op::ClusterArrive { .. } | Op::ClusterWait => {
                whole(&|u, t| place(u).includes(Scope::Cluster, place(t)))
            }
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => true,
            Op::Tile(_) | Op::Control(_) | Op::Book(_) => true,
            unit_op!() | fence_op!() | multimem_op!() | register_op!() | jump_op!() => true,
        },
        Edit::Insert { what: Added::Wait(_), .. } | Edit::Replace { .. } | Edit::Delete { .. } => true,
    })
}

fn adds_order(edit: &Edit) -> bool {
    match edit {
        Edit::Insert { what: Added::Plain(op), .. } => match op {
            Op::Fence { .. } | Op::ProxyFence(_) | Op::ProxyOrder(_) => true,
            Op::Bar { kind, .. } => matches!(kind, BarKind::Sync),
            Op::WarpSync { .. } | Op::ClusterArrive { relaxed: false } | Op::ClusterWait => true,
            Op::AsyncCopy(copy) => matches!(
                copy,
                AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. }
            ),
            Op::Wgmma(op) => matches!(op, Wgmma::Fence | Wgmma::Commit | Wgmma::Wait(_)),
            Op::Tcgen05(op) => matches!(
                op,
                Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::FenceBefore | Tcgen05::FenceAfter
            ),
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => false,
            Op::ClusterArrive { relaxed: true } | Op::MbarrierInitFence => false,
            Op::Tile(_) | Op::Control(_) | Op::Book(_) => false,
            multimem_op!() | register_op!() | jump_op!() => false,
        },
        // Another order, another scope, fewer groups that stay pending.
        Edit::Replace { op, .. } => matches!(
            op,
            Op::Load { .. }
                | Op::Store { .. }
                | Op::Rmw { .. }
                | Op::Fence { .. }
                | Op::AsyncCopy(AsyncCopy::Wait(_) | AsyncCopy::BulkWait { .. })
                | Op::Wgmma(Wgmma::Wait(_))
        ),
        Edit::Insert { what: Added::Wait(_), .. } | Edit::Delete { .. } => false,
    }
}
