//! The search for edits, and the proof that none of them is too strong.

use crate::pair::{At, Meeting, common, handovers, mbarriers};
use crate::single::{changes, counted, relaxed, strong_everywhere, synchronising, twins};
use crate::trial::{Bench, Standing, finding_of};
use crate::{Advice, Planted, Step, Why};
use moire_execution::leaf::Finding;
use moire_explore::judge::Judgement;
use moire_program::edit::{Added, Edit, WaitFor};
use moire_program::ir::*;
use moire_program::lanes::reduced;
use moire_program::mutate::weakened;
use std::collections::BTreeSet;

/// Most rounds, each of which removes something that is wrong.
const ROUNDS: usize = 8;
/// Most findings whose candidates are tried in one round.
const TARGETS: usize = 6;
/// Most edits that a candidate of one round has.
const WIDE: usize = 40;

/// Advice for a program that is not clean.
pub(crate) fn mend(judgement: &Judgement, mut bench: Bench<'_>) -> Result<Advice, Why> {
    let of = reduced(bench.original).of;
    let asked = Standing::of(judgement.clone());
    if asked.open {
        return Err(Why::Open);
    }
    if asked.clean {
        return Err(Why::Clean);
    }
    let Some(mut now) = bench.standing(&[]) else { return Err(Why::Budget) };
    let mut done: Vec<Step> = Vec::new();
    for _ in 0..ROUNDS {
        let Some((steps, standing)) = round(&mut bench, &done, &now) else { break };
        done = steps;
        if standing.clean {
            let (steps, weakest) = minimal(&mut bench, done);
            let Some(program) = bench.finished(&steps) else { break };
            let all = judgement.findings.iter().map(|f| finding_of(&of, f)).collect();
            let solves = solves(&mut bench, &steps, &all);
            let explorations = bench.explorations();
            return Ok(Advice { steps, program, weakest, solves, explorations });
        }
        now = standing;
    }
    Err(if bench.spent { Why::Budget } else { Why::Nothing })
}

/// For each step the findings of the program that return without it, with the lines of the text.
fn solves(bench: &mut Bench<'_>, steps: &[Step], all: &BTreeSet<Finding>) -> Vec<BTreeSet<Finding>> {
    let mut out = Vec::new();
    for at in 0..steps.len() {
        let mut fewer = steps.to_vec();
        fewer.remove(at);
        let found = if fewer.is_empty() { None } else { bench.standing(&fewer) };
        let found = found.map_or_else(
            || all.clone(),
            |standing| standing.findings.iter().map(|f| bench.with_lines(f)).collect(),
        );
        out.push(found.intersection(all).cloned().collect());
    }
    out
}

/// What one candidate leads to.
enum Tried {
    Clean(Vec<Step>, Standing),
    Better(Vec<Step>, Standing),
    No,
}

/// The first edits that make the program clean, or those that leave least.
fn round(bench: &mut Bench<'_>, done: &[Step], now: &Standing) -> Option<(Vec<Step>, Standing)> {
    let targets = targets(&bench.program, now);
    let mut best: Option<(Vec<Step>, Standing)> = None;
    for class in 0..CLASSES {
        for target in &targets {
            for candidate in candidates(bench, done, target, class) {
                match tried(bench, done, candidate, now) {
                    Tried::Clean(steps, standing) => return Some((steps, standing)),
                    Tried::Better(steps, standing) => {
                        let left = |s: &Standing| (s.hang, s.findings.len() + s.conditions.len());
                        if best.as_ref().is_none_or(|b| left(&standing) < left(&b.1)) {
                            best = Some((steps, standing));
                        }
                    }
                    Tried::No => {}
                }
                if bench.spent {
                    return best;
                }
            }
        }
        // Edits of existing instructions and whole handovers are preferred to the kinds that follow.
        if best.is_some() && matches!(class, 1 | 2 | 5 | 7) {
            return best;
        }
    }
    best
}

fn tried(bench: &mut Bench<'_>, done: &[Step], candidate: Vec<Step>, now: &Standing) -> Tried {
    if candidate.is_empty() || candidate.len() > WIDE {
        return Tried::No;
    }
    let mut steps = done.to_vec();
    steps.extend(candidate);
    let Some(standing) = bench.standing(&steps) else { return Tried::No };
    if !(standing.clean || standing.better(now)) || !bench.keeps_order(&steps) {
        return Tried::No;
    }
    if standing.clean { Tried::Clean(steps, standing) } else { Tried::Better(steps, standing) }
}

/// The target of candidates: the two instructions of a finding, or one, or none if threads only wait.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    pairs: Vec<(At, At)>,
    threads: BTreeSet<usize>,
}

fn targets(program: &Program, now: &Standing) -> Vec<Target> {
    let at = |p: &moire_execution::leaf::Place| -> Option<At> {
        let pc = usize::try_from(p.line).ok()?.checked_sub(1)?;
        let thread = usize::from(p.thread);
        program.threads.get(thread)?.body.get(pc)?;
        Some(At { thread, pc })
    };
    let one = |finding: &Finding| {
        let places: Vec<At> = finding.places.iter().filter_map(at).collect();
        let mut pairs = Vec::new();
        match places.as_slice() {
            [x, y] => pairs.extend([(*x, *y), (*y, *x)]),
            [x] => pairs.extend(lives(program, *x)),
            _ => {}
        }
        if let [x, y] = places.as_slice()
            && x.thread == y.thread
        {
            pairs.truncate(1);
            pairs[0] = (*x.min(y), *x.max(y));
        }
        Target { threads: places.iter().map(|a| a.thread).collect(), pairs }
    };
    let mut out: Vec<Target> = now.findings.iter().map(one).take(TARGETS).collect();
    if out.is_empty() || now.hang {
        out.push(Target { pairs: Vec::new(), threads: now.stalls.iter().map(|s| s.thread).collect() });
    }
    out.dedup();
    out
}

/// What may have to come before or after an instruction that is outside the life of its object.
fn lives(program: &Program, x: At) -> Vec<(At, At)> {
    let mut out = Vec::new();
    for (t, thread) in program.threads.iter().enumerate() {
        for (pc, instr) in thread.body.iter().enumerate() {
            let at = At { thread: t, pc };
            let mbarrier = if let Op::Mbarrier(m) = &instr.op { Some(&m.op) } else { None };
            if matches!(mbarrier, Some(MbarrierOp::Init { .. }))
                || matches!(instr.op, Op::Tcgen05(Tcgen05::Alloc { .. }))
            {
                out.push((at, x));
            }
            if mbarrier == Some(&MbarrierOp::Inval)
                || matches!(instr.op, Op::Tcgen05(Tcgen05::Dealloc { .. }))
            {
                out.push((x, at));
            }
        }
    }
    out.retain(|(a, b)| a.thread != b.thread);
    // A register of a product that is still pending.
    let body = &program.threads[x.thread].body;
    let products = (0..x.pc).filter(|pc| matches!(body[*pc].op, Op::Wgmma(Wgmma::Product(_))));
    out.extend(products.map(|pc| (At { thread: x.thread, pc }, x)));
    out
}

/// Kinds of candidate.
const CLASSES: usize = 10;

/// The candidates of one kind, likely kinds first.
fn candidates(bench: &Bench<'_>, done: &[Step], target: &Target, class: usize) -> Vec<Vec<Step>> {
    let over = |meetings: Vec<Meeting>| -> Vec<Vec<Step>> {
        let mut out = Vec::new();
        for meeting in meetings {
            out.extend(target.pairs.iter().flat_map(|(x, y)| handovers(bench, *x, *y, meeting)));
        }
        out
    };
    let all = || synchronising(&bench.program, &target.threads);
    let near = |at: &At| target.threads.contains(&at.thread);
    let one = |at: At| changes(bench, done, at).into_iter().map(|s| vec![s]);
    // A thread that never gets on lacks an arrival rather than waits for the wrong phase.
    let stuck = target.pairs.is_empty();
    match class {
        0 => {
            let waits =
                all().into_iter().filter(|at| near(at) && waits_for_groups(bench.op(done, at.thread, at.pc)));
            waits.flat_map(one).collect()
        }
        1 => target.pairs.iter().filter_map(|(x, y)| relaxed(bench, *x, *y)).collect(),
        2 => over(vec![Meeting::Already]),
        3 => waits(bench, target, false, &|w| vec![Meeting::Wait(w)]),
        4 => {
            let mut out: Vec<Vec<Step>> = all().into_iter().flat_map(one).collect();
            out.extend(twins(bench, done, &all()));
            out.retain(|steps| !steps.iter().any(|s| turns_parity(bench, s, stuck)));
            out
        }
        5 => target.pairs.iter().flat_map(|(x, y)| strong_everywhere(bench, *x, *y)).collect(),
        6 => waits(bench, target, true, &|w| vec![Meeting::Wait(w)]),
        7 => {
            let mut out = over(vec![Meeting::Line { behind: false }, Meeting::Line { behind: true }]);
            out.extend(over(vec![Meeting::Barrier]));
            let cluster = |others_at_start| Meeting::Cluster { others_at_start };
            out.extend(over(vec![cluster(false), cluster(true)]));
            out
        }
        8 => waits(bench, target, true, &|w| {
            vec![Meeting::Commit(w), Meeting::Arrive(w), Meeting::CompletedBarrier(w)]
        }),
        _ => counted(bench),
    }
}

fn waits_for_groups(op: Option<&Op>) -> bool {
    matches!(
        op,
        Some(Op::AsyncCopy(AsyncCopy::Wait(_) | AsyncCopy::BulkWait { .. }) | Op::Wgmma(Wgmma::Wait(_)))
    )
}

/// Whether a step makes a wait ask for the other parity: any wait, or only the first one of its thread for an mbarrier,
/// which is then over from the start.
fn turns_parity(bench: &Bench<'_>, step: &Step, any: bool) -> bool {
    let wait = |op: &Op| {
        let Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(wait), addr, .. }) = op else { return None };
        Some((*addr, wait.phase))
    };
    step.iter().any(|edit| match edit {
        Edit::Replace { thread, at, op } => {
            let (before, after) = (bench.op(&[], *thread, *at).and_then(wait), wait(op));
            let body = &bench.program.threads[*thread].body[..*at];
            let first = || !body.iter().any(|i| wait(&i.op).map(|w| w.0) == after.map(|w| w.0));
            let over = || after.is_some_and(|w| w.1 == Operand::Imm(1)) && first();
            before.is_some() && before.map(|w| w.1) != after.map(|w| w.1) && (any || over())
        }
        _ => false,
    })
}

/// Handovers through each mbarrier that the second thread can wait for, in both parities; without `known` only through those
/// that it does not wait for anyway.
fn waits(
    bench: &Bench<'_>,
    target: &Target,
    known: bool,
    how: &dyn Fn(WaitFor) -> Vec<Meeting>,
) -> Vec<Vec<Step>> {
    let mut out = Vec::new();
    let program = &bench.program;
    for (x, y) in &target.pairs {
        let scope = common(bench, *x, *y).min(Scope::Cluster);
        for addr in mbarriers(program, y.thread) {
            let waits = |i: &Instr| matches!(&i.op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(_), addr: a, .. }) if *a == addr);
            if !known && program.threads[y.thread].body.iter().any(waits) {
                continue;
            }
            for parity in 0..2 {
                for meeting in how(WaitFor { addr, parity, scope }) {
                    out.extend(handovers(bench, *x, *y, meeting));
                }
            }
        }
    }
    out
}

/// The steps without those that are not needed, and each in the weakest form that is enough. Also whether all was tried.
fn minimal(bench: &mut Bench<'_>, mut steps: Vec<Step>) -> (Vec<Step>, bool) {
    if bench.planted == Some(Planted::KeepsAll) {
        return (steps, false);
    }
    loop {
        let before = steps.len();
        for rank in 0..3 {
            let mut at = steps.len();
            while at > 0 {
                at -= 1;
                let mut fewer = steps.clone();
                if costly(&fewer.remove(at)) == rank && !fewer.is_empty() && accepted(bench, &fewer) {
                    steps = fewer;
                }
            }
        }
        let changed = weaken(bench, &mut steps);
        if bench.spent {
            return (steps, false);
        }
        if !changed && steps.len() == before {
            return (steps, true);
        }
    }
}

/// The order in which steps are left out: commits, which the program may have already, then fences, then the rest.
fn costly(step: &Step) -> usize {
    let Some(Edit::Insert { what: Added::Plain(op), .. }) = step.first() else { return 2 };
    if matches!(op, Op::AsyncCopy(AsyncCopy::Commit | AsyncCopy::BulkCommit) | Op::Wgmma(Wgmma::Commit)) {
        return 0;
    }
    if matches!(op, Op::Fence { .. } | Op::ProxyFence(_) | Op::ProxyOrder(_)) { 1 } else { 2 }
}

fn accepted(bench: &mut Bench<'_>, steps: &[Step]) -> bool {
    bench.standing(steps).is_some_and(|s| s.clean) && bench.keeps_order(steps)
}

/// Replaces each step by a weaker form as long as one is enough. Whether there was one.
fn weaken(bench: &mut Bench<'_>, steps: &mut [Step]) -> bool {
    let mut changed = false;
    for at in 0..steps.len() {
        while let Some(weaker) = weaker_forms(bench, &steps[at]).into_iter().find(|form| {
            let mut trial = steps.to_vec();
            trial[at] = form.clone();
            accepted(bench, &trial)
        }) {
            steps[at] = weaker;
            changed = true;
        }
    }
    changed
}

/// Every variant of the step with one thing weaker, except those that are the instruction of the program again, or give up
/// an order or a scope that it has.
fn weaker_forms(bench: &Bench<'_>, step: &Step) -> Vec<Step> {
    let forms = |edit: &Edit| -> Vec<Edit> {
        match edit {
            Edit::Insert { thread, at, what } => {
                let put = |what| Edit::Insert { thread: *thread, at: *at, what };
                match what {
                    Added::Plain(op) => weaker_ops(op).into_iter().map(|op| put(Added::Plain(op))).collect(),
                    Added::Wait(wait) if wait.scope == Scope::Cluster => {
                        vec![put(Added::Wait(WaitFor { scope: Scope::Cta, ..*wait }))]
                    }
                    Added::Wait(_) => Vec::new(),
                }
            }
            Edit::Replace { thread, at, op } => {
                let here = bench.op(&[], *thread, *at);
                let weaker = weaker_ops(op).into_iter().filter(|form| {
                    here.is_some_and(|here| here != form && !bench.below(*thread, (here, op, form)))
                });
                weaker.map(|op| Edit::Replace { thread: *thread, at: *at, op }).collect()
            }
            Edit::Delete { .. } => Vec::new(),
        }
    };
    let all: Vec<Vec<Edit>> = step.iter().map(forms).collect();
    let count = all.iter().map(Vec::len).min().unwrap_or(0);
    (0..count).map(|n| all.iter().map(|f| f[n].clone()).collect()).collect()
}

/// Weaker forms of an instruction that edits put in.
fn weaker_ops(op: &Op) -> Vec<Op> {
    // A wait for fewer threads is no weaker kind of barrier.
    if matches!(op, Op::Bar { .. } | Op::ClusterArrive { .. }) {
        return Vec::new();
    }
    let spaces = [Space::SharedCta, Space::SharedCluster, Space::Global];
    let fence = matches!(op, Op::ProxyFence(kinds) if *kinds == [ProxyFence::Of(Proxy::Async)]);
    let narrow = spaces.into_iter().filter(|_| fence);
    let narrow = narrow.map(|space| Op::ProxyOrder(ProxyOrder::AsyncSpace(space)));
    weakened(op).into_iter().chain(narrow).chain(fewer(op)).collect()
}

/// It with one more group that may stay pending.
fn fewer(op: &Op) -> Option<Op> {
    let mut next = op.clone();
    let (Op::AsyncCopy(AsyncCopy::Wait(groups) | AsyncCopy::BulkWait { groups, .. })
    | Op::Wgmma(Wgmma::Wait(groups))) = &mut next
    else {
        return None;
    };
    *groups += 1;
    (*groups <= GROUPS).then_some(next)
}

/// Most groups that an added wait leaves pending.
const GROUPS: u32 = 7;
