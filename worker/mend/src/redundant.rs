//! Redundant synchronisation: what can be removed or weakened without a change of any verdict.
//!
//! An edit is accepted if the verdicts, the findings, the conditions and the hang of the program stay as they are, if each
//! pair of conflicting accesses that was forced is still forced (see the header of the crate), and if no execution ends with
//! values that none ended with before. Edits are tried alone, and then added one by one to a set that is tried as a whole. The set is maximal: none
//! of the other edits can be added to it. All this holds under each reading that is given, too, and an edit changes the text.
//!
//! What no engine sees is never offered: waits for values in registers (`tcgen05.wait::ld`, warpgroup products), the life of
//! objects, accesses themselves, hints.

use crate::pair::{At, sites};
use crate::trial::{Bench, Standing};
use crate::{Budget, Models, Step, Why};
use moire_explore::Limits;
use moire_program::edit::Edit;
use moire_program::ir::*;
use moire_program::mutate::weakened;
use moire_program::text::instruction;
use moire_program::{jump_op, multimem_op, register_op};
use std::collections::BTreeMap;

/// Most edits that are tried alone.
const EDITS: usize = 400;

/// The words that stand beside every answer.
pub const ASSUMPTIONS: [&str; 3] = [
    "the model as chosen and each contested reading of it, this launch, these trip counts",
    "of copies, products and tensor memory only the bytes that they touch are known, not the values",
    "speed, reconvergence of lanes and the needs of other kernels are not considered",
];

/// One edit: all places of the text that change together.
pub type Removal = Vec<Step>;

/// Synchronisation that can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redundant {
    /// Edits each of which is possible alone.
    pub alone: Vec<Removal>,
    /// A maximal set of edits that are possible together.
    pub together: Vec<Removal>,
    /// Whether every edit was tried.
    pub complete: bool,
}

/// The synchronisation of `program` that can go under these models: that of the verdict, and readings. `more`, which is asked before
/// each exploration, says whether the caller still waits.
///
/// # Errors
/// The program is not explored to the end under one of them.
pub fn redundant(
    program: &Program,
    models: &[Models<'_>],
    limits: &Limits,
    budget: Budget,
    more: &dyn Fn() -> bool,
) -> Result<Redundant, Why> {
    let mut benches = Vec::new();
    for models in models {
        let mut bench = Bench::new(program, *models, limits, budget, None, more);
        let now = bench.standing(&[]).ok_or(Why::Budget)?;
        if now.open {
            return Err(Why::Open);
        }
        benches.push((bench, now));
    }
    let mut out = Redundant::default();
    let mut all = benches.first().map_or_else(Vec::new, |(bench, _)| removals(bench));
    all.retain(|removal| changes(program, removal));
    out.complete = all.len() <= EDITS;
    for removal in all.into_iter().take(EDITS) {
        if possible(&mut benches, &removal) {
            out.alone.push(removal);
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    for removal in &out.alone {
        let free = removal.iter().flatten().all(|e| {
            steps.iter().flatten().all(|other| (e.thread(), e.at()) != (other.thread(), other.at()))
        });
        let mut with = steps.clone();
        with.extend(removal.iter().cloned());
        if free && (steps.is_empty() || possible(&mut benches, &with)) {
            steps = with;
            out.together.push(removal.clone());
        }
    }
    out.complete &= !benches.iter().any(|(bench, _)| bench.spent);
    Ok(out)
}

fn possible(benches: &mut [(Bench<'_>, Standing)], steps: &[Step]) -> bool {
    benches
        .iter_mut()
        .all(|(bench, now)| bench.standing(steps).is_some_and(|s| s == *now) && bench.loosens(steps))
}

/// Whether each edit is one that a reader of the text sees.
fn changes(program: &Program, removal: &Removal) -> bool {
    let text =
        |thread: usize, op: &Op| instruction(program, &program.threads[thread], &Instr::new(op.clone()));
    removal.iter().flatten().all(|edit| match edit {
        Edit::Replace { thread, at, op } => {
            text(*thread, op) != text(*thread, &program.threads[*thread].body[*at].op)
        }
        Edit::Insert { .. } | Edit::Delete { .. } => true,
    })
}

/// Every edit, those that remove most first.
fn removals(bench: &Bench<'_>) -> Vec<Removal> {
    let program = &bench.program;
    let mut out = together(program);
    let mut weaker = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (t, thread) in program.threads.iter().enumerate() {
        for (pc, instr) in thread.body.iter().enumerate() {
            let at = At { thread: t, pc };
            let all = sites(bench, at);
            if all.first() != Some(&at) || !seen.insert(at) {
                continue;
            }
            if let Some(length) = removable(thread, pc) {
                let one = |s: At| (s.pc..s.pc + length).map(move |at| Edit::Delete { thread: s.thread, at });
                out.push(vec![all.iter().copied().flat_map(one).collect()]);
            }
            let forms = if may_weaken(&instr.op) { weakened(&instr.op).len() } else { 0 };
            for n in 0..forms {
                let one = |s: &At| {
                    let op = weakened(&program.threads[s.thread].body[s.pc].op).into_iter().nth(n)?;
                    Some(Edit::Replace { thread: s.thread, at: s.pc, op })
                };
                let step: Option<Step> = all.iter().map(one).collect();
                weaker.extend(step.map(|step| vec![step]));
            }
        }
    }
    out.extend(weaker);
    out
}

/// The number of instructions to take out together, of an instruction that only orders or waits.
fn removable(thread: &Thread, pc: usize) -> Option<usize> {
    match &thread.body[pc].op {
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::WarpSync { .. } => Some(1),
        Op::ProxyOrder(order) => {
            let changes =
                matches!(order, ProxyOrder::ReplaceTensormap { .. } | ProxyOrder::CopyTensormap { .. });
            (!changes).then_some(1)
        }
        Op::Tcgen05(op) => {
            let orders = matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
            (orders || matches!(op, Tcgen05::WaitStore | Tcgen05::Commit(_))).then_some(1)
        }
        Op::AsyncCopy(copy) => {
            let waits = matches!(copy, AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::BulkWait { .. });
            (waits || matches!(copy, AsyncCopy::Commit | AsyncCopy::BulkCommit)).then_some(1)
        }
        Op::Mbarrier(m) => {
            let MbarrierOp::Wait(wait) = &m.op else { return None };
            let next = thread.body.get(pc + 1)?;
            let own = matches!(next.op, Op::Bra { target } if target == pc)
                && next.guard.is_some_and(|g| g.reg == wait.dst);
            own.then_some(2)
        }
        // Barriers of all threads are taken out together.
        Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait => None,
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) | Op::Control(_) => None,
        multimem_op!() | Op::Wgmma(_) | register_op!() | jump_op!() => None,
        Op::Book(_) => None,
    }
}

/// Whether a weaker form of an instruction does the same but for its order.
fn may_weaken(op: &Op) -> bool {
    !matches!(op, Op::Bar { .. } | Op::Tcgen05(_) | Op::Wgmma(_))
}

/// Barriers, each in all threads at once: the n-th of one number in each thread of a CTA, the n-th of a cluster.
fn together(program: &Program) -> Vec<Removal> {
    let mut groups: BTreeMap<(Placement, Option<Operand>, usize), Vec<Step>> = BTreeMap::new();
    for (t, thread) in program.threads.iter().enumerate() {
        let mut count: BTreeMap<Option<Operand>, usize> = BTreeMap::new();
        for (pc, instr) in thread.body.iter().enumerate() {
            let place = thread.place;
            let cta = Placement { warp: 0, mask: 0, joined: false, ..place };
            let waits = || thread.body.get(pc + 1).is_some_and(|i| matches!(i.op, Op::ClusterWait));
            let (key, home, length) =
                if let Op::Bar { kind: BarKind::Sync | BarKind::Arrive, id, .. } = &instr.op {
                    (Some(*id), cta, 1)
                } else if matches!(instr.op, Op::ClusterArrive { .. }) && waits() {
                    (None, Placement { cta: 0, ..cta }, 2)
                } else {
                    continue;
                };
            let nth = count.entry(key).or_default();
            let step = (pc..pc + length).map(|at| Edit::Delete { thread: t, at }).collect();
            groups.entry((home, key, *nth)).or_default().push(step);
            *nth += 1;
        }
    }
    groups.into_values().collect()
}
