//! The search for edits, and the proof that none of them is too strong.

use crate::line::{follows_text, lines};
use crate::pair::{At, Meeting, common, handovers, mbarriers, named_scope, waited};
use crate::single::{
    arrives_at, changes, counted, relaxed, strong_everywhere, synchronising, twins, waits_at,
};
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
    if asked.clean && !asked.open {
        return Err(Why::Clean);
    }
    if asked.open && !bench.program.conditions.is_empty() {
        return Err(Why::Open);
    }
    bench.wide = asked.open;
    let Some(now) = bench.standing(&[]) else {
        return Err(if asked.open { Why::Open } else { Why::Budget });
    };
    if now.clean {
        return Err(Why::Open);
    }
    let all = judgement.findings.iter().map(|f| finding_of(&of, f)).collect();
    let found =
        climb(&mut bench, Vec::new(), now).filter(|(steps, _)| !bench.wide || !bench.is_refuted(steps));
    let told = found.and_then(|found| told(&mut bench, found, &all));
    told.ok_or(if bench.spent { Why::Budget } else { Why::Nothing })
}

/// The edits of `advice`, which hold under `bench`, and those that hold under `other` as well. None if there are none, or no more
/// are needed.
pub(crate) fn extend(mut bench: Bench<'_>, mut other: Bench<'_>, advice: &Advice) -> Option<Advice> {
    let mut now = other.standing(&advice.steps)?;
    if now.open {
        other.wide = other.program.conditions.is_empty();
        now = other.standing(&advice.steps)?;
    }
    if now.clean || now.open {
        return None;
    }
    bench.wide = other.wide;
    let (steps, weakest) = climb(&mut other, advice.steps.clone(), now)?;
    if !accepted(&mut bench, &steps) || bench.wide && (bench.is_refuted(&steps) || other.is_refuted(&steps)) {
        return None;
    }
    let all = advice.solves.iter().flatten().cloned().collect();
    told(&mut bench, (steps, weakest), &all)
}

/// More and more edits, until nothing is wrong, and of these only what is needed.
fn climb(bench: &mut Bench<'_>, mut done: Vec<Step>, mut now: Standing) -> Option<(Vec<Step>, bool)> {
    for _ in 0..ROUNDS {
        (done, now) = round(bench, &done, &now)?;
        if now.clean {
            return Some(minimal(bench, done));
        }
    }
    None
}

fn told(
    bench: &mut Bench<'_>,
    (steps, weakest): (Vec<Step>, bool),
    all: &BTreeSet<Finding>,
) -> Option<Advice> {
    let program = bench.finished(&steps)?;
    let solves = solves(bench, &steps, all);
    Some(Advice { steps, program, weakest, solves, explorations: bench.explorations() })
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
    let targets = targets(bench, now);
    let early = now.findings.iter().any(|f| f.flag.starts_with("early-"));
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
        // Edits of existing instructions and whole handovers are preferred to the kinds that follow. A wait that passes too early
        // waits for the wrong phase rather than at the wrong place.
        if best.is_some() && (matches!(class, 1..=3 | 7 | 9) || class == PARITY && early) {
            return best;
        }
    }
    best
}

fn tried(bench: &mut Bench<'_>, done: &[Step], candidate: Vec<Step>, now: &Standing) -> Tried {
    if candidate.is_empty() || candidate.len() > WIDE {
        return Tried::No;
    }
    let steps = joined(done, candidate);
    if bench.wide && !follows_text(&bench.program, &steps) {
        return Tried::No;
    }
    let Some(standing) = bench.standing(&steps) else { return Tried::No };
    if !(standing.clean || bench.is_better(&standing, now)) || !bench.keeps_order(&steps) {
        return Tried::No;
    }
    if standing.clean { Tried::Clean(steps, standing) } else { Tried::Better(steps, standing) }
}

/// Edits with more edits. What an access is fenced out with stands in front of a barrier that was put in at the same place.
fn joined(done: &[Step], more: Vec<Step>) -> Vec<Step> {
    let place = |e: &Edit| match e {
        Edit::Insert { thread, at, .. } => Some((*thread, *at)),
        Edit::Replace { .. } | Edit::Delete { .. } => None,
    };
    let taken: BTreeSet<_> = done.iter().flatten().filter_map(place).collect();
    let fences =
        |e: &Edit| matches!(e, Edit::Insert { what: Added::Plain(Op::Tcgen05(Tcgen05::FenceBefore)), .. });
    let first = |step: &Step| step.iter().all(|e| fences(e) && place(e).is_some_and(|p| taken.contains(&p)));
    let (mut out, rest): (Vec<Step>, Vec<Step>) = more.into_iter().partition(first);
    out.extend(done.iter().cloned().chain(rest));
    out
}

/// The target of candidates: the two instructions of a finding, or one, or none if threads only wait.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    pairs: Vec<(At, At)>,
    threads: BTreeSet<usize>,
}

fn targets(bench: &Bench<'_>, now: &Standing) -> Vec<Target> {
    let program = &bench.program;
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
            [x] => {
                pairs.extend(lives(program, *x));
                pairs.extend(other_ctas(program, *x));
            }
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
    // Threads that run the same lines show the same mistake.
    let mut seen = BTreeSet::new();
    let new = |f: &&Finding| seen.insert(bench.in_lines(f));
    let mut out: Vec<Target> = now.findings.iter().filter(new).map(one).take(TARGETS).collect();
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

/// The start and the end of the other CTAs of the cluster, whose memory an instruction may reach too early or too late.
fn other_ctas(program: &Program, x: At) -> Vec<(At, At)> {
    let place = &program.threads[x.thread].place;
    let other = |t: &Thread| !t.place.same_cta(place) && t.place.includes(Scope::Cluster, place);
    let others = program.threads.iter().enumerate().filter(|(_, t)| other(t) && !t.body.is_empty());
    others
        .flat_map(|(thread, t)| {
            let (first, last) = (At { thread, pc: 0 }, At { thread, pc: t.body.len() - 1 });
            [(x, last), (first, x)]
        })
        .collect()
}

/// Kinds of candidate.
const CLASSES: usize = 12;
/// The kind that turns the parity of a wait.
const PARITY: usize = 4;

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
    // Edits of one instruction, or of its copies: those that turn a parity, or all others.
    let turned = |parity: bool| -> Vec<Vec<Step>> {
        let mut out: Vec<Vec<Step>> = all().into_iter().flat_map(one).collect();
        out.extend(twins(bench, done, &all()));
        out.retain(|steps| steps.iter().any(|s| turns_parity(bench, s, true)) == parity);
        out.retain(|steps| !steps.iter().any(|s| turns_parity(bench, s, stuck)));
        out
    };
    match class {
        0 => {
            let waits =
                all().into_iter().filter(|at| near(at) && waits_for_groups(bench.op(done, at.thread, at.pc)));
            let added = target.pairs.iter().flat_map(|(x, y)| waited(bench, *x, *y));
            waits.flat_map(one).chain(added).collect()
        }
        1 => target.pairs.iter().filter_map(|(x, y)| relaxed(bench, *x, *y)).collect(),
        2 => over(vec![Meeting::Already]),
        3 => target.pairs.iter().flat_map(|(x, y)| at_lines(bench, *x, *y)).collect(),
        PARITY => turned(true),
        5 => waits(bench, target, false, &|w| vec![Meeting::Wait(w)]),
        6 => turned(false),
        7 => target.pairs.iter().flat_map(|(x, y)| strong_everywhere(bench, *x, *y)).collect(),
        8 => waits(bench, target, true, &|w| vec![Meeting::Wait(w)]),
        9 => {
            let mut out = over(vec![Meeting::Barrier]);
            let cluster = |others_at_start| Meeting::Cluster { others_at_start };
            out.extend(over(vec![cluster(false), cluster(true)]));
            out
        }
        10 => waits(bench, target, true, &|w| {
            vec![Meeting::Commit(w), Meeting::Arrive(w), Meeting::CompletedBarrier(w)]
        }),
        _ => counted(bench),
    }
}

/// Handovers at barriers of the lines between two accesses.
fn at_lines(bench: &Bench<'_>, x: At, y: At) -> Vec<Vec<Step>> {
    let meetings =
        lines(bench, x, y).into_iter().map(|(line, whom, behind)| Meeting::Line(line, whom, behind));
    meetings.flat_map(|meeting| handovers(bench, x, y, meeting)).collect()
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
            let body = &program.threads[y.thread].body;
            if !known && body.iter().any(|i| waits_at(&i.op, addr)) {
                continue;
            }
            // A thread that arrives itself would wait for its own arrival, unless others arrive as well.
            let own = body[..y.pc].iter().any(|i| arrives_at(&i.op, addr));
            if own && !program.threads[x.thread].body.iter().any(|i| arrives_at(&i.op, addr)) {
                continue;
            }
            // The phase of parity 1 is over from the start, unless the thread waited for the one before it.
            let later = body[..y.pc].iter().any(|i| waits_at(&i.op, addr));
            for parity in 0..=u8::from(later) {
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
                    Added::Plain(op) => {
                        let own = weaker_ops(op).into_iter().filter(|form| wide_enough(bench, *thread, form));
                        own.map(|op| put(Added::Plain(op))).collect()
                    }
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

/// Whether a form of a new instruction keeps to the scopes of the program: those that its thread names elsewhere.
fn wide_enough(bench: &Bench<'_>, thread: usize, form: &Op) -> bool {
    form.clone().scope_mut().is_none_or(|scope| *scope >= named_scope(&bench.program, thread))
}

/// Weaker forms of an instruction that edits put in.
fn weaker_ops(op: &Op) -> Vec<Op> {
    // A wait for fewer threads is no weaker kind of barrier, and an arrival that does not release hands nothing over. A
    // remote one is of the cluster.
    if matches!(op, Op::Bar { .. } | Op::ClusterArrive { .. } | Op::Mbarrier(_)) {
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
