//! Candidates for two accesses: a whole handover from the first to the second.

use crate::Step;
use crate::line::{Whom, barrier_at, places};
use crate::trial::Bench;
use moire_program::edit::{Added, Edit, WaitFor};
use moire_program::ir::*;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op};
use std::collections::BTreeSet;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub(crate) thread: usize,
    pub(crate) pc: usize,
}

/// How the threads of two accesses synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// By the synchronisation that is there, if there is any.
    Already,
    /// At a barrier in front of this line or behind it, of all threads of a cluster or a CTA, or of the lanes of each warp.
    Line(At, Whom, bool),
    /// At a barrier of these threads, or of their warp.
    Barrier,
    /// The same, and the first access completes at an mbarrier before it.
    CompletedBarrier(WaitFor),
    /// All threads of the cluster meet; the others at their start, or at their end.
    Cluster { others_at_start: bool },
    /// The second thread waits for an mbarrier.
    Wait(WaitFor),
    /// The same, and the first thread arrives there.
    Arrive(WaitFor),
    /// The same, and the first access is committed to it.
    Commit(WaitFor),
}

/// The sites of an instruction: where the same place of the text was put into the program.
pub(crate) fn sites(bench: &Bench<'_>, at: At) -> Vec<At> {
    let of = |at: At| bench.original.threads.get(at.thread).and_then(|t| t.body.get(at.pc));
    let Some(instr) = of(at).filter(|i| i.line > 0) else { return vec![at] };
    let mut out = Vec::new();
    for (t, thread) in bench.original.threads.iter().enumerate() {
        for (pc, other) in thread.body.iter().enumerate() {
            if (other.line, other.column) == (instr.line, instr.column) {
                out.push(At { thread: t, pc });
            }
        }
    }
    out
}

/// The edit that puts code in front of each site, or behind each.
pub(crate) fn put(bench: &Bench<'_>, at: At, behind: bool, what: &Added) -> Step {
    let one = |site: At| Edit::Insert {
        thread: site.thread,
        at: site.pc + usize::from(behind),
        what: what.clone(),
    };
    sites(bench, at).into_iter().map(one).collect()
}

/// Handovers from `x` to `y` in this way of meeting: behind what completes the first access already, behind the commit of its group,
/// behind itself, and for a cluster behind the next barrier of its CTA, which the others of the CTA wait at.
pub(crate) fn handovers(bench: &Bench<'_>, x: At, y: At, meeting: Meeting) -> Vec<Vec<Step>> {
    let early = |at: &At| at.thread != y.thread || at.pc < y.pc;
    let complete = completed(&bench.program, x).filter(early);
    let cluster = matches!(meeting, Meeting::Cluster { .. });
    let joined = joined(&bench.program, x).filter(|at| cluster && early(at));
    let places =
        complete.into_iter().chain(grouped(&bench.program, x).filter(early)).chain([x]).chain(joined);
    places.filter_map(|place| handover(bench, (x, place), y, meeting)).collect()
}

/// The handover that stands behind `place`: the first access, the commit of its group, or where it is complete.
fn handover(bench: &Bench<'_>, (x, place): (At, At), y: At, meeting: Meeting) -> Option<Vec<Step>> {
    let program = &bench.program;
    let first = &program.threads.get(x.thread)?.body.get(x.pc)?.op;
    program.threads.get(y.thread)?.body.get(y.pc)?;
    let plain = |op: Op| put(bench, place, true, &Added::Plain(op));
    let mut steps: Vec<Step> = Vec::new();
    if place == x {
        steps.extend(completion(first).into_iter().map(plain));
    } else if grouped(program, x) == Some(place) {
        steps.extend(completion(first).into_iter().skip(1).map(plain));
    }
    let (own, other) = meeting_steps(bench, place, y, meeting, first)?;
    steps.extend(fences_out(bench, x, y).into_iter().map(plain));
    steps.extend(own);
    steps.extend(other);
    steps.extend(fences_in(bench, x, y).into_iter().map(|op| put(bench, y, false, &Added::Plain(op))));
    (!steps.is_empty()).then_some(steps)
}

/// What a thread that issues an asynchronous access waits for.
enum Completes {
    /// `tcgen05.wait::ld`
    Load,
    /// `tcgen05.wait::st`
    Store,
    /// The mbarrier of a later `tcgen05.commit`.
    Committed,
    /// A group of `cp.async`.
    Group,
    /// A group of bulk copies.
    BulkGroup,
    /// This mbarrier.
    Mbarrier(Address),
    /// A group of `wgmma`.
    Product,
}

/// What the issuing thread waits for. None if the access is complete with the instruction, or nobody can wait for it.
fn completes(op: &Op) -> Option<Completes> {
    match op {
        Op::Tcgen05(op) => match op {
            Tcgen05::Load(_) => Some(Completes::Load),
            Tcgen05::Store(_) => Some(Completes::Store),
            Tcgen05::Mma(_) | Tcgen05::Copy { .. } | Tcgen05::Shift { .. } => Some(Completes::Committed),
            Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => None,
            Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::Commit(_) => None,
            Tcgen05::FenceBefore | Tcgen05::FenceAfter => None,
        },
        Op::AsyncCopy(copy) => match copy {
            AsyncCopy::Small(_) => Some(Completes::Group),
            AsyncCopy::Bulk(copy) => match copy.done {
                BulkDone::Group => Some(Completes::BulkGroup),
                BulkDone::Mbarrier(addr) => Some(Completes::Mbarrier(addr)),
            },
            // The mbarrier of a remote write is one of the other CTA.
            AsyncCopy::Remote(_) | AsyncCopy::Prefetch(_) | AsyncCopy::Arrive { .. } => None,
            AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => None,
            AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => None,
        },
        Op::Wgmma(op) => matches!(op, Wgmma::Product(_)).then_some(Completes::Product),
        // Nor can it be waited for in front of the mbarrier of the answer.
        Op::Control(_) => None,
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => None,
        multimem_op!() | register_op!() | fence_op!() | barrier_op!() | jump_op!() => None,
        Op::Book(_) => None,
    }
}

/// The end of the wait that completes an access, in its thread.
fn completed(program: &Program, x: At) -> Option<At> {
    let body = &program.threads.get(x.thread)?.body;
    let behind = || (x.pc + 1..body.len()).map(|pc| (pc, &body[pc].op));
    let find = |is: &dyn Fn(&Op) -> bool| behind().find(|(_, op)| is(op)).map(|(pc, _)| pc);
    let wait_for = |addr: Address| {
        let is = |op: &Op| matches!(op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(_), addr: a, .. }) if *a == addr);
        let wait = find(&is)?;
        let back = behind().find(|(_, op)| matches!(op, Op::Bra { target } if *target == wait));
        Some(back.map_or(wait, |(pc, _)| pc))
    };
    let commit = |(_, op): (usize, &Op)| {
        if let Op::Tcgen05(Tcgen05::Commit(commit)) = op { wait_for(commit.addr) } else { None }
    };
    let pc = match completes(&body.get(x.pc)?.op)? {
        Completes::Load => find(&|op| matches!(op, Op::Tcgen05(Tcgen05::WaitLoad))),
        Completes::Store => find(&|op| matches!(op, Op::Tcgen05(Tcgen05::WaitStore))),
        Completes::Committed => behind().find_map(commit),
        Completes::Group => find(&|op| matches!(op, Op::AsyncCopy(AsyncCopy::Wait(_) | AsyncCopy::WaitAll))),
        Completes::BulkGroup => find(&|op| matches!(op, Op::AsyncCopy(AsyncCopy::BulkWait { .. }))),
        Completes::Mbarrier(addr) => wait_for(addr),
        Completes::Product => find(&|op| matches!(op, Op::Wgmma(Wgmma::Wait(_)))),
    }?;
    Some(At { thread: x.thread, pc })
}

/// The two sides of a meeting.
fn meeting_steps(
    bench: &Bench<'_>,
    x: At,
    y: At,
    meeting: Meeting,
    first: &Op,
) -> Option<(Vec<Step>, Vec<Step>)> {
    let program = &bench.program;
    let place = |at: At| &program.threads[at.thread].place;
    let wait = |w: WaitFor| put(bench, y, false, &Added::Wait(w));
    Some(match meeting {
        Meeting::Already => (Vec::new(), Vec::new()),
        Meeting::Wait(w) => (Vec::new(), vec![wait(w)]),
        Meeting::Commit(w) => {
            (vec![put(bench, x, true, &Added::Plain(commit(first, w.addr)?))], vec![wait(w)])
        }
        Meeting::Arrive(w) => (vec![put(bench, x, true, &Added::Plain(arrive(w)))], vec![wait(w)]),
        Meeting::Line(line, whom, behind) => {
            let ops = barrier_at(bench, line, whom, [x.thread, y.thread])?;
            let at = |site: At| ops.iter().map(move |op| insert(site.thread, site.pc, op));
            (vec![places(bench, line, behind).into_iter().flat_map(at).collect()], Vec::new())
        }
        Meeting::Barrier | Meeting::CompletedBarrier(_) => {
            if x.thread == y.thread {
                return None;
            }
            let op = apart(program, &sites(bench, x), &sites(bench, y))?;
            let mut own = Vec::new();
            if let Meeting::CompletedBarrier(w) = meeting {
                own.extend(commit(first, w.addr).map(|op| put(bench, x, true, &Added::Plain(op))));
                own.push(put(bench, x, true, &Added::Wait(w)));
                own.push(put(bench, x, true, &Added::Plain(Op::Tcgen05(Tcgen05::FenceAfter))));
                own.push(put(bench, x, true, &Added::Plain(Op::Tcgen05(Tcgen05::FenceBefore))));
            }
            own.push(put(bench, x, true, &Added::Plain(op.clone())));
            (own, vec![put(bench, y, false, &Added::Plain(op))])
        }
        Meeting::Cluster { others_at_start } => {
            let (p, q) = (place(x), place(y));
            // A barrier of the CTA is enough within one. A line that several threads run is no place for one of them alone.
            let alone = sites(bench, x).len() == 1 && sites(bench, y).len() == 1;
            if p.same_cta(q) || !p.includes(Scope::Cluster, q) || !alone {
                return None;
            }
            let both = [Op::ClusterArrive { relaxed: false }, Op::ClusterWait];
            let at = |at: At, behind: bool| {
                both.iter().map(|op| insert(at.thread, at.pc + usize::from(behind), op)).collect::<Step>()
            };
            let own = vec![at(x, true)];
            let mut other = vec![at(y, false)];
            for (t, thread) in program.threads.iter().enumerate() {
                let apart = t != x.thread && t != y.thread && thread.place.includes(Scope::Cluster, p);
                let to = if others_at_start { 0 } else { end(thread) };
                other.extend(apart.then(|| both.iter().map(|op| insert(t, to, op)).collect::<Step>()));
            }
            (own, other)
        }
    })
}

fn insert(thread: usize, at: usize, op: &Op) -> Edit {
    Edit::Insert { thread, at, what: Added::Plain(op.clone()) }
}

/// The end of a thread, in front of a last `exit`.
pub(crate) fn end(thread: &Thread) -> usize {
    let last = thread.body.last().is_some_and(|i| matches!(i.op, Op::Exit) && i.guard.is_none());
    thread.body.len() - usize::from(last)
}

/// Instructions that complete an asynchronous access in its own thread.
fn completion(op: &Op) -> Vec<Op> {
    match completes(op) {
        Some(Completes::Load) => vec![Op::Tcgen05(Tcgen05::WaitLoad)],
        Some(Completes::Store) => vec![Op::Tcgen05(Tcgen05::WaitStore)],
        Some(Completes::Group) => vec![Op::AsyncCopy(AsyncCopy::Commit), Op::AsyncCopy(AsyncCopy::Wait(0))],
        Some(Completes::BulkGroup) => {
            let wait = AsyncCopy::BulkWait { groups: 0, reads_only: false };
            vec![Op::AsyncCopy(AsyncCopy::BulkCommit), Op::AsyncCopy(wait)]
        }
        Some(Completes::Product) => vec![Op::Wgmma(Wgmma::Commit), Op::Wgmma(Wgmma::Wait(0))],
        Some(Completes::Committed | Completes::Mbarrier(_)) | None => Vec::new(),
    }
}

/// The commit of the group that an access belongs to.
fn grouped(program: &Program, x: At) -> Option<At> {
    let body = &program.threads[x.thread].body;
    let [commit, _] = completion(&body[x.pc].op).try_into().ok()?;
    let pc = (x.pc + 1..body.len()).find(|pc| body[*pc].op == commit)?;
    Some(At { thread: x.thread, pc })
}

/// The next barrier of the CTA behind an access.
fn joined(program: &Program, x: At) -> Option<At> {
    let body = &program.threads[x.thread].body;
    let pc = (x.pc + 1..body.len()).find(|pc| matches!(body[*pc].op, Op::Bar { .. }))?;
    Some(At { thread: x.thread, pc })
}

/// Waits for a group that the program commits: in front of the second access, or behind the commit.
pub(crate) fn waited(bench: &Bench<'_>, x: At, y: At) -> Vec<Vec<Step>> {
    let wait = completion(&bench.program.threads[x.thread].body[x.pc].op).pop();
    let (Some(commit), Some(wait)) = (grouped(&bench.program, x), wait) else { return Vec::new() };
    let own = x.thread == y.thread && commit.pc < y.pc;
    let late = own.then(|| put(bench, y, false, &Added::Plain(wait.clone())));
    let early = put(bench, commit, true, &Added::Plain(wait));
    late.into_iter().chain([early]).map(|step| vec![step]).collect()
}

fn tensor(op: &Op) -> bool {
    matches!(op, Op::Tcgen05(_))
}

/// Whether an instruction reaches memory through the async proxy.
fn asynchronous(op: &Op) -> bool {
    matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(_) | AsyncCopy::Remote(_)) | Op::Wgmma(Wgmma::Product(_)))
        || matches!(op, Op::Tcgen05(Tcgen05::Mma(_) | Tcgen05::Copy { .. }))
        || matches!(op, Op::Control(Control::TryCancel { .. }))
}

/// The names of memory that an instruction takes.
pub(crate) fn symbols(op: &Op) -> BTreeSet<SymbolId> {
    let named = |o: Operand| if let Operand::Address(s) = o { Some(s) } else { None };
    Parts::sources(op).into_iter().filter_map(named).collect()
}

/// Proxy fences between two instructions, by the proxies they use.
fn proxy_fences(program: &Program, a: &Op, b: &Op) -> Vec<Op> {
    let mut out = Vec::new();
    if asynchronous(a) || asynchronous(b) {
        out.push(Op::ProxyFence(vec![ProxyFence::Of(Proxy::Async)]));
    }
    let via = |op: &Op| -> BTreeSet<Proxy> {
        let own = if let Op::Load { proxy, .. } | Op::Store { proxy, .. } | Op::Rmw { proxy, .. } = op {
            Some(*proxy)
        } else {
            None
        };
        symbols(op).into_iter().map(|s| program.symbols[s.index()].proxy).chain(own).collect()
    };
    for proxy in via(a).union(&via(b)) {
        if matches!(proxy, Proxy::Texture | Proxy::Surface | Proxy::Constant) {
            out.push(Op::ProxyFence(vec![ProxyFence::Of(*proxy)]));
        }
    }
    let virt = |op: &Op| -> BTreeSet<(ObjectId, SymbolId)> {
        let one = |s: SymbolId| (program.symbols[s.index()].object, program.symbols[s.index()].virt);
        symbols(op).into_iter().map(one).collect()
    };
    let (p, q) = (virt(a), virt(b));
    if p.iter().any(|(object, name)| q.iter().any(|(o, n)| o == object && n != name)) {
        out.push(Op::ProxyFence(vec![ProxyFence::Alias]));
    }
    out
}

/// The map of a tensor copy.
fn map(op: &Op) -> Option<Address> {
    let of = |end: &BulkEnd| match end {
        BulkEnd::Tensor(tensor) => tensor.map,
        BulkEnd::Bytes { .. } => None,
    };
    let Op::AsyncCopy(AsyncCopy::Bulk(copy)) = op else { return None };
    of(&copy.dst).or_else(|| of(&copy.src))
}

/// The narrowest scope that has the threads of both in common. CTAs of a text without clusters are in none.
pub(crate) fn common(bench: &Bench<'_>, x: At, y: At) -> Scope {
    let place = |at: At| &bench.program.threads[at.thread].place;
    let all = [Scope::Cta, Scope::Cluster, Scope::Gpu].into_iter();
    let mut all = all.filter(|s| *s != Scope::Cluster || bench.clusters);
    all.find(|s| place(x).includes(*s, place(y))).unwrap_or(Scope::Sys)
}

/// The narrowest scope that strong accesses and fences of a thread name.
pub(crate) fn named_scope(program: &Program, thread: usize) -> Scope {
    let scope = |op: &Op| {
        let strong = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. });
        op.clone().scope_mut().filter(|_| strong).map(|scope| *scope)
    };
    program.threads[thread].body.iter().filter_map(|i| scope(&i.op)).min().unwrap_or(Scope::Cta)
}

/// The scope of a fence between two accesses.
fn fence_scope(bench: &Bench<'_>, x: At, y: At) -> Scope {
    let named = |at: At| named_scope(&bench.program, at.thread);
    common(bench, x, y).max(named(x)).max(named(y))
}

fn fences_out(bench: &Bench<'_>, x: At, y: At) -> Vec<Op> {
    let program = &bench.program;
    let (a, b) = (&program.threads[x.thread].body[x.pc].op, &program.threads[y.thread].body[y.pc].op);
    let scope = fence_scope(bench, x, y);
    let mut out = Vec::new();
    if map(b).is_some() {
        out.push(Op::ProxyOrder(ProxyOrder::TensormapRelease { scope: scope.max(Scope::Cta) }));
    }
    out.extend(proxy_fences(program, a, b));
    if x.thread != y.thread {
        if !tensor(a) || !tensor(b) {
            out.push(Op::Fence { order: FenceOrder::AcqRel, scope });
        }
        if tensor(a) || tensor(b) {
            out.push(Op::Tcgen05(Tcgen05::FenceBefore));
        }
    }
    out
}

fn fences_in(bench: &Bench<'_>, x: At, y: At) -> Vec<Op> {
    let program = &bench.program;
    let (a, b) = (&program.threads[x.thread].body[x.pc].op, &program.threads[y.thread].body[y.pc].op);
    let scope = fence_scope(bench, x, y);
    let mut out = Vec::new();
    if x.thread != y.thread && (!tensor(a) || !tensor(b)) {
        out.push(Op::Fence { order: FenceOrder::AcqRel, scope });
    }
    if tensor(a) || tensor(b) {
        out.push(Op::Tcgen05(Tcgen05::FenceAfter));
    }
    if x.thread != y.thread {
        out.extend(proxy_fences(program, a, b));
    }
    if let Some(addr) = map(b) {
        out.push(Op::ProxyOrder(ProxyOrder::TensormapAcquire { scope, addr }));
    }
    if matches!(b, Op::Wgmma(Wgmma::Product(_))) {
        out.push(Op::Wgmma(Wgmma::Fence));
    }
    out
}

/// A commit of what a tensor-core instruction issued.
pub(crate) fn commit(op: &Op, addr: Address) -> Option<Op> {
    let Op::Tcgen05(op) = op else { return None };
    let issues = matches!(op, Tcgen05::Mma(_) | Tcgen05::Copy { .. } | Tcgen05::Shift { .. });
    let group = op.group().filter(|_| issues)?;
    let commit = Commit { group, reads_only: false, space: Space::SharedCluster, addr, multicast: None };
    Some(Op::Tcgen05(Tcgen05::Commit(commit)))
}

/// One arrival at an mbarrier of the own CTA.
pub(crate) fn arrive(wait: WaitFor) -> Op {
    let op = MbarrierOp::Arrive(MbarrierArrive {
        drop: false,
        no_complete: false,
        relaxed: false,
        scope: wait.scope,
        dst: None,
        count: None,
        tx: None,
    });
    Op::Mbarrier(Mbarrier { op, space: Space::SharedCta, addr: wait.addr })
}

/// A barrier behind some places and in front of others, in threads that have places of one kind only.
fn apart(program: &Program, xs: &[At], ys: &[At]) -> Option<Op> {
    let both = xs.iter().any(|x| ys.iter().any(|y| x.thread == y.thread));
    let all: Vec<At> = xs.iter().chain(ys).copied().collect();
    if both { None } else { barrier(program, &all) }
}

/// A barrier of the threads of all these places, in each of their CTAs, or of their warp. None if some thread of a CTA would come
/// to it more often than another, or the CTAs have different numbers of lanes there.
pub(crate) fn barrier(program: &Program, places: &[At]) -> Option<Op> {
    let place = |t: usize| &program.threads[t].place;
    let times = |t: usize| places.iter().filter(|at| at.thread == t).count();
    let threads: BTreeSet<usize> = places.iter().map(|at| at.thread).collect();
    let first = *threads.first()?;
    let lanes = |t: usize| -> u32 {
        let near = threads.iter().filter(|u| place(**u).same_cta(place(t)));
        near.map(|u| place(*u).lanes().count_ones()).sum()
    };
    let equal = |t: &usize| {
        lanes(*t) == lanes(first)
            && threads.iter().all(|u| !place(*u).same_cta(place(*t)) || times(*u) == times(*t))
    };
    // The lanes of a warp may meet alone.
    let meet = threads.len() > 1 || place(first).several();
    if !meet || !threads.iter().all(equal) {
        return None;
    }
    if threads.iter().all(|t| {
        place(*t).same_cta(place(first)) && place(*t).warp == place(first).warp && place(*t).lane().is_some()
    }) {
        let mask = threads.iter().fold(0u32, |all, t| all | place(*t).lanes());
        return Some(Op::WarpSync { mask: Operand::Imm(i128::from(mask)) });
    }
    let missing = |(t, thread): (usize, &Thread)| {
        !threads.contains(&t) && threads.iter().any(|u| thread.place.same_cta(place(*u)))
    };
    let whole = !program.threads.iter().enumerate().any(missing);
    let (id, count) = match whole.then(|| whole_barrier(program)).flatten() {
        Some(id) => (id, None),
        None => (free_barrier(program)?, Some(Operand::Imm(i128::from(lanes(first))))),
    };
    Some(Op::Bar { kind: BarKind::Sync, id: Operand::Imm(id), count, instance: None })
}

/// The barrier 0, if each use of it is one of all threads.
fn whole_barrier(program: &Program) -> Option<i128> {
    let whole = |i: &Instr| {
        let Op::Bar { id, count, .. } = &i.op else { return true };
        matches!(id, Operand::Imm(n) if *n != 0) || count.is_none()
    };
    program.threads.iter().flat_map(|t| &t.body).all(whole).then_some(0)
}

/// The least number above 0 of a barrier that no instruction names. None if one is not known.
fn free_barrier(program: &Program) -> Option<i128> {
    let mut used = BTreeSet::new();
    for instr in program.threads.iter().flat_map(|t| &t.body) {
        if let Op::Bar { id, .. } = &instr.op {
            let Operand::Imm(id) = id else { return None };
            used.insert(*id);
        }
    }
    (1..16).find(|id| !used.contains(id))
}

/// The mbarriers of the CTA of a thread that the program initialises, by address.
pub(crate) fn mbarriers(program: &Program, thread: usize) -> Vec<Address> {
    let mut out: Vec<Address> = Vec::new();
    let here = &program.threads[thread].place;
    for other in program.threads.iter().filter(|t| t.place.same_cta(here)) {
        for instr in &other.body {
            if let Op::Mbarrier(Mbarrier { op: MbarrierOp::Init { .. }, addr, .. }) = &instr.op
                && matches!(addr.base, Operand::Address(_))
                && !out.contains(addr)
            {
                out.push(*addr);
            }
        }
    }
    out
}
