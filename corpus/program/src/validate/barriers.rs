//! Lints about barriers, placement and control flow.

use super::access::{next, reach};
use super::report::Report;
use crate::ir::*;

pub(super) fn check(report: &mut Report<'_>) {
    let program = report.program;
    for thread in &program.threads {
        flow(report, thread);
        pairs(report, thread);
        for (at, instr) in thread.body.iter().enumerate() {
            placed(report, thread, instr);
            divergent(report, thread, at);
        }
    }
    lanes(report);
    for (i, thread) in program.threads.iter().enumerate() {
        if !program.threads[..i].iter().any(|t| t.place.same_cta(&thread.place)) {
            named(report, &thread.place);
        }
    }
}

/// Refuses an instruction about the lanes of a warp where the text does not say which of them its threads are.
pub(super) fn lanes_said(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    if !matches!(instr.op, Op::WarpSync { .. } | Op::Control(Control::Elect { .. } | Control::Collective(_)))
    {
        return;
    }
    let place = &thread.place;
    let unsaid = |t: &&Thread| {
        let same = t.place.same_cta(place) && t.place.warp == place.warp && t.name != thread.name;
        same && (t.place.lane().is_none() || place.lane().is_none())
    };
    if let Some(other) = report.program.threads.iter().find(unsaid) {
        let what = format!("{} is in this warp too, and they do not name their lanes", other.name);
        let hint =
            "write `lane 0`, `lane 1`, .. for threads of one warp, and `warp 1` for one of another warp";
        report.at("ambiguous-warp", thread, instr, &what, Some(hint.to_owned()));
    }
}

fn flow(report: &mut Report<'_>, thread: &Thread) {
    let seen = reach(thread, &[0], None);
    let dead = (0..thread.body.len()).find(|at| !seen[*at]);
    if let Some(at) = dead {
        report.at("unreachable-code", thread, &thread.body[at], "this never runs", None);
    }
    let exits = seen
        .iter()
        .enumerate()
        .any(|(at, seen)| *seen && thread.body.get(at).is_none_or(|i| i.op == Op::Exit));
    if !exits {
        let what = format!("no path of {} leads to its end", thread.name);
        report.about("unreachable-code", what, None);
    }
}

/// Finds a barrier that a thread can bypass: it is guarded, or a path to the end leads around it. An exit is no bypass,
/// because a barrier does not wait for a thread that has exited.
fn divergent(report: &mut Report<'_>, thread: &Thread, at: usize) {
    let instr = &thread.body[at];
    let waits = matches!(instr.op, Op::ClusterWait | Op::ClusterArrive { .. } | Op::WarpSync { .. })
        || matches!(instr.op, Op::Bar { kind, .. } if kind != BarKind::Arrive);
    if waits && (instr.guard.is_some() || reach(thread, &[0], Some(at))[thread.body.len()]) {
        let what = "a path bypasses this barrier while others may wait at it";
        report.at("divergent-barrier", thread, instr, what, None);
    }
}

fn pairs(report: &mut Report<'_>, thread: &Thread) {
    let find = |wanted: fn(&Op) -> bool| thread.body.iter().find(|i| wanted(&i.op));
    let arrive = find(|op| matches!(op, Op::ClusterArrive { .. }));
    let wait = find(|op| *op == Op::ClusterWait);
    match (arrive, wait) {
        (Some(instr), None) => {
            report.at("barrier-pairing", thread, instr, "this thread has no cluster wait", None);
        }
        (None, Some(instr)) => {
            report.at("barrier-pairing", thread, instr, "this thread has no cluster arrival", None);
        }
        _ => {}
    }
}

fn placed(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    let program = report.program;
    let barrier = matches!(instr.op, barrier_op!());
    let shared = instr.op.place().is_some_and(|(space, address)| {
        let object = match address.base {
            Operand::Address(s) => program.objects[program.symbols[s.index()].object.index()].space,
            _ => Space::Generic,
        };
        [space, object].iter().any(|s| matches!(s, Space::SharedCta | Space::SharedCluster))
    });
    if thread.place.host && (barrier || shared) {
        report.at("placement", thread, instr, "a host thread is in no CTA", None);
    }
    let mask = if let Op::WarpSync { mask }
    | Op::Control(
        Control::Elect { mask, .. } | Control::Collective(Collective { mask, .. }),
    ) = &instr.op
    {
        Some(mask)
    } else {
        None
    };
    let alone = thread.place.lane().filter(|_| !thread.place.several());
    if let (Some(Operand::Imm(mask)), Some(lane)) = (mask, alone)
        && mask >> lane & 1 == 0
    {
        let what = format!("the mask leaves out lane {lane}, which executes it");
        report.at("placement", thread, instr, &what, None);
    }
}

fn lanes(report: &mut Report<'_>) {
    let threads = &report.program.threads;
    for (i, a) in threads.iter().enumerate() {
        let same = |b: &&Thread| {
            let (p, q) = (&a.place, &b.place);
            p.same_cta(q) && p.warp == q.warp && b.place.lane().is_some() && p.lanes() & q.lanes() != 0
        };
        if a.place.lane().is_some()
            && let Some(b) = threads[..i].iter().find(same)
        {
            report.about("placement", format!("{} and {} share a lane of one warp", b.name, a.name), None);
        }
    }
}

/// One `bar` of a CTA with a literal number.
struct Use<'p> {
    thread: &'p Thread,
    instr: &'p Instr,
    at: usize,
    arrive: bool,
    count: Option<i128>,
}

/// Checks the counts of the named barriers of one CTA.
fn named(report: &mut Report<'_>, cta: &Placement) {
    let program = report.program;
    let mut uses: [Vec<Use<'_>>; 16] = Default::default();
    for thread in program.threads.iter().filter(|t| t.place.same_cta(cta)) {
        for (at, instr) in thread.body.iter().enumerate() {
            let Op::Bar { kind, id, count, instance } = &instr.op else { continue };
            let Operand::Imm(number) = id else { return };
            let count = match count {
                Some(Operand::Imm(n)) => Some(*n),
                Some(_) => return,
                None => None,
            };
            let slot = usize::try_from(*number).ok().and_then(|n| uses.get_mut(n));
            if let (Some(slot), None) = (slot, instance) {
                slot.push(Use { thread, instr, at, arrive: *kind == BarKind::Arrive, count });
            }
        }
    }
    for all in &uses {
        counts(report, all);
    }
}

fn counts(report: &mut Report<'_>, all: &[Use<'_>]) {
    let Some(first) = all.first() else { return };
    if all.iter().all(|u| u.arrive) {
        let what = "no thread of the CTA waits at this barrier";
        report.at("barrier-pairing", first.thread, first.instr, what, None);
    }
    let Some((wanted, by)) = all.iter().filter_map(|u| Some((u.count?, u))).max_by_key(|(n, _)| *n) else {
        return;
    };
    if let Some(other) = all.iter().find(|u| u.count.is_some_and(|n| n != wanted)) {
        let what = "another use of this barrier waits for a different number of threads";
        report.at("barrier-count", other.thread, other.instr, what, None);
        return;
    }
    // An arrival in a loop may occur any number of times in one phase.
    let loops = |u: &&Use<'_>| reach(u.thread, &next(u.thread, u.at), None)[u.at];
    if all.iter().filter(|u| u.arrive).any(|u| loops(&u)) {
        return;
    }
    let lanes = |u: &&Use<'_>| i128::from(u.thread.place.lanes().count_ones());
    let arrivals: i128 = all.iter().filter(|u| u.arrive).map(|u| lanes(&u)).sum();
    let mut waiting: Vec<&Use<'_>> = all.iter().filter(|u| !u.arrive).collect();
    waiting.dedup_by_key(|u| &u.thread.name);
    let most = arrivals + waiting.iter().map(lanes).sum::<i128>();
    if most < wanted {
        let what = format!("waits for {wanted} threads, at most {most} can arrive");
        report.at("barrier-count", by.thread, by.instr, &what, None);
    }
}
