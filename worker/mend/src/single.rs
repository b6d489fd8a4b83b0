//! Candidates that change what is there: an order, a scope, a parity, an object; and single instructions to put in.

use crate::pair::{At, commit, common, end, mbarriers, sites, symbols};
use crate::trial::Bench;
use crate::{Planted, Step};
use moire_program::edit::{Added, Edit, WaitFor};
use moire_program::ir::*;
use moire_program::mutate::synchronises;
use moire_program::registers::uses;
use moire_program::text::instruction;
use moire_program::{barrier_op, jump_op, multimem_op, register_op};
use std::collections::BTreeSet;

/// Most places of a thread at which an arrival is tried.
const PLACES: usize = 16;

/// Every other form of the instruction at `at`: one candidate each. Edits before it are in `steps`.
pub(crate) fn changes(bench: &Bench<'_>, steps: &[Step], at: At) -> Vec<Step> {
    // One instruction of a kernel may be several of the program, of which only one is this one.
    let kind = |site: &At| bench.op(&[], site.thread, site.pc).map(std::mem::discriminant);
    let all: Vec<At> = sites(bench, at).into_iter().filter(|site| kind(site) == kind(&at)).collect();
    let forms = |site: &At| -> Vec<Op> {
        let op = bench.op(steps, site.thread, site.pc);
        let commit = op.and_then(|op| committed(&bench.program, *site, op));
        op.map_or_else(Vec::new, |op| stronger(&bench.program, site.thread, op))
            .into_iter()
            .chain(commit)
            .collect()
    };
    let by_site: Vec<Vec<Op>> = all.iter().map(forms).collect();
    let count = by_site.iter().map(Vec::len).min().unwrap_or(0);
    let same = by_site.iter().all(|f| f.len() == count);
    let one = |n: usize| -> Step {
        let forms = all.iter().zip(&by_site);
        forms.map(|(s, f)| Edit::Replace { thread: s.thread, at: s.pc, op: f[n].clone() }).collect()
    };
    if same { (0..count).map(one).collect() } else { Vec::new() }
}

/// The same change of equal instructions of several threads, as the CTAs of a cluster have them: one edit each.
pub(crate) fn twins(bench: &Bench<'_>, steps: &[Step], all: &[At]) -> Vec<Vec<Step>> {
    let text = |at: &At| {
        let thread = &bench.program.threads[at.thread];
        instruction(&bench.program, thread, &thread.body[at.pc])
    };
    let mut out = Vec::new();
    for (n, at) in all.iter().enumerate() {
        let equal = |other: &&At| text(other) == text(at);
        if all[..n].iter().any(|other| equal(&other)) {
            continue;
        }
        let group: Vec<At> = all[n..].iter().filter(equal).copied().collect();
        let apart: BTreeSet<usize> = group.iter().map(|a| a.thread).collect();
        if apart.len() < 2 || apart.len() != group.len() {
            continue;
        }
        let forms: Vec<Vec<Step>> = group.iter().map(|at| changes(bench, steps, *at)).collect();
        let count = forms.iter().map(Vec::len).min().unwrap_or(0);
        out.extend((0..count).map(|n| forms.iter().map(|f| f[n].clone()).collect::<Vec<Step>>()));
    }
    out
}

/// Other forms of an instruction, likely ones first.
fn stronger(program: &Program, thread: usize, op: &Op) -> Vec<Op> {
    let mut out = Vec::new();
    match op {
        Op::Mbarrier(m) => mbarrier(program, thread, m, &mut out),
        Op::AsyncCopy(copy) => groups(copy, &mut out),
        Op::Wgmma(Wgmma::Wait(n)) => out.extend((0..*n).rev().map(|n| Op::Wgmma(Wgmma::Wait(n)))),
        Op::Tcgen05(op) => tensor(program, thread, op, &mut out),
        Op::Bar { .. } => barrier(program, op, &mut out),
        Op::ClusterArrive { .. } => out.extend(op.stronger()),
        Op::ProxyFence(kinds) => {
            let known = [Proxy::Async, Proxy::Texture, Proxy::Surface, Proxy::Constant].map(ProxyFence::Of);
            let other = known.into_iter().chain([ProxyFence::Alias]).filter(|k| !kinds.contains(k));
            out.extend(other.map(|k| Op::ProxyFence(vec![k])));
        }
        Op::ProxyOrder(order) => {
            let space = matches!(order, ProxyOrder::AsyncSpace(_));
            out.extend(space.then(|| Op::ProxyFence(vec![ProxyFence::Of(Proxy::Async)])));
        }
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. } => out.extend(ordered(op)),
        multimem_op!() => out.extend(ordered(op)),
        register_op!() | Op::ClusterWait | Op::WarpSync { .. } | Op::MbarrierInitFence | Op::Wgmma(_) => {}
        Op::Tile(_) | Op::Control(_) | jump_op!() => {}
        Op::Book(_) => {}
    }
    out.extend(op.wider());
    out.retain(|o| o != op);
    out
}

/// The instruction with the strongest order of an update, or one stronger order. None if it has none.
fn ordered(op: &Op) -> Option<Op> {
    let next = op.stronger().pop()?;
    if matches!(op, Op::Rmw { .. } | Op::MultimemRed { .. }) {
        ordered(&next).or(Some(next))
    } else {
        Some(next)
    }
}

fn mbarrier(program: &Program, thread: usize, m: &Mbarrier, out: &mut Vec<Op>) {
    let mut put = |op: MbarrierOp| out.push(Op::Mbarrier(Mbarrier { op, ..m.clone() }));
    match &m.op {
        MbarrierOp::Arrive(arrive) => {
            if arrive.relaxed {
                put(MbarrierOp::Arrive(MbarrierArrive { relaxed: false, ..arrive.clone() }));
            }
            if arrive.no_complete {
                put(MbarrierOp::Arrive(MbarrierArrive { no_complete: false, ..arrive.clone() }));
            }
        }
        MbarrierOp::Wait(wait) => {
            if wait.relaxed {
                put(MbarrierOp::Wait(MbarrierWait { relaxed: false, ..wait.clone() }));
            }
            if let (true, Operand::Imm(parity)) = (wait.parity, wait.phase) {
                put(MbarrierOp::Wait(MbarrierWait { phase: Operand::Imm(parity ^ 1), ..wait.clone() }));
            }
        }
        MbarrierOp::Init { .. } | MbarrierOp::Inval => {}
        MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => {}
    }
    let other = mbarriers(program, thread).into_iter().filter(|a| *a != m.addr);
    if !matches!(m.op, MbarrierOp::Init { .. } | MbarrierOp::Inval) {
        out.extend(other.map(|addr| Op::Mbarrier(Mbarrier { addr, ..m.clone() })));
    }
    if m.space == Space::SharedCta
        && let MbarrierOp::Arrive(arrive) = &m.op
        && arrive.dst.is_none()
    {
        let op =
            MbarrierOp::Arrive(MbarrierArrive { scope: arrive.scope.max(Scope::Cluster), ..arrive.clone() });
        out.push(Op::Mbarrier(Mbarrier { op, space: Space::SharedCluster, ..m.clone() }));
    }
}

/// A commit in place of an arrival, which does not wait for the products that its thread issued in front of it and did not commit.
fn committed(program: &Program, at: At, op: &Op) -> Option<Op> {
    let Op::Mbarrier(Mbarrier { op: MbarrierOp::Arrive(arrive), addr, .. }) = op else { return None };
    let mut own = program.threads[at.thread].body[..at.pc].iter().rev().map(|i| &i.op);
    let last = own.find(|op| commit(op, *addr).is_some() || matches!(op, Op::Tcgen05(Tcgen05::Commit(_))))?;
    let one = arrive.tx.is_none() && arrive.count.is_none() && arrive.dst.is_none();
    commit(last, *addr).filter(|_| one)
}

/// Fewer groups that may stay pending, and all of their accesses.
fn groups(copy: &AsyncCopy, out: &mut Vec<Op>) {
    match copy {
        AsyncCopy::Wait(n) => out.extend((0..*n).rev().map(|n| Op::AsyncCopy(AsyncCopy::Wait(n)))),
        AsyncCopy::BulkWait { groups, reads_only } => {
            for groups in (0..*groups).rev() {
                out.push(Op::AsyncCopy(AsyncCopy::BulkWait { groups, reads_only: *reads_only }));
            }
            for groups in (0..=*groups).rev().filter(|_| *reads_only) {
                out.push(Op::AsyncCopy(AsyncCopy::BulkWait { groups, reads_only: false }));
            }
        }
        AsyncCopy::Small(_) | AsyncCopy::Bulk(_) | AsyncCopy::Prefetch(_) | AsyncCopy::Remote(_) => {}
        AsyncCopy::Commit | AsyncCopy::BulkCommit | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => {}
    }
}

fn tensor(program: &Program, thread: usize, op: &Tcgen05, out: &mut Vec<Op>) {
    let columns = || {
        let all = program.threads.iter().flat_map(|t| &t.body).filter_map(|i| {
            if let Op::Tcgen05(Tcgen05::Alloc { columns, .. }) = &i.op { Some(*columns) } else { None }
        });
        let known = [32, 64, 128, 256, 512].map(Operand::Imm);
        all.chain(known).collect::<Vec<_>>()
    };
    match op {
        Tcgen05::Commit(commit) => {
            if commit.reads_only {
                out.push(Op::Tcgen05(Tcgen05::Commit(Commit { reads_only: false, ..commit.clone() })));
            }
            for addr in mbarriers(program, thread).into_iter().filter(|a| *a != commit.addr) {
                out.push(Op::Tcgen05(Tcgen05::Commit(Commit { addr, ..commit.clone() })));
            }
            if commit.group == CtaGroup::Two {
                for mask in [3, 1, 2].map(Operand::Imm) {
                    let multicast = Some(Multicast { wide: false, mask });
                    out.push(Op::Tcgen05(Tcgen05::Commit(Commit { multicast, ..commit.clone() })));
                }
            }
        }
        Tcgen05::Dealloc { exclusive, group, addr, .. } => {
            out.extend(columns().into_iter().map(|columns| {
                Op::Tcgen05(Tcgen05::Dealloc { exclusive: *exclusive, group: *group, addr: *addr, columns })
            }));
            if let Tcgen05::Dealloc { exclusive, group, addr, columns } = op {
                let exclusive = !exclusive;
                out.push(Op::Tcgen05(Tcgen05::Dealloc {
                    exclusive,
                    group: *group,
                    addr: *addr,
                    columns: *columns,
                }));
            }
        }
        Tcgen05::Alloc { exclusive, group, space, dst, .. } => {
            out.extend(columns().into_iter().map(|columns| {
                Op::Tcgen05(Tcgen05::Alloc {
                    exclusive: *exclusive,
                    group: *group,
                    space: *space,
                    dst: *dst,
                    columns,
                })
            }));
        }
        Tcgen05::Relinquish { .. } | Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::Mma(_) => {}
        Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::Copy { .. } | Tcgen05::Shift { .. } => {}
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
    }
}

/// Other numbers of a barrier, and waiting at it.
fn barrier(program: &Program, op: &Op, out: &mut Vec<Op>) {
    let Op::Bar { kind, id, count, instance } = op else { return };
    let number = |i: &Instr| if let Op::Bar { id, .. } = i.op { Some(id) } else { None };
    let ids: BTreeSet<Operand> = program.threads.iter().flat_map(|t| &t.body).filter_map(number).collect();
    let make = |kind, id| Op::Bar { kind, id, count: *count, instance: *instance };
    if matches!(kind, BarKind::Arrive) {
        out.push(make(BarKind::Sync, *id));
    }
    out.extend(ids.into_iter().map(|id| make(*kind, id)));
}

/// Instructions that synchronise, those of these threads first.
pub(crate) fn synchronising(program: &Program, first: &BTreeSet<usize>) -> Vec<At> {
    let mut out = Vec::new();
    for own in [true, false] {
        for (t, thread) in program.threads.iter().enumerate().filter(|(t, _)| first.contains(t) == own) {
            for (pc, instr) in thread.body.iter().enumerate() {
                let counts = matches!(instr.op, Op::Tcgen05(Tcgen05::Alloc { .. }));
                if synchronises(&instr.op) || counts {
                    out.push(At { thread: t, pc });
                }
            }
        }
    }
    out
}

/// Release, acquire and a wide enough scope in every synchronising access of the threads of two accesses, one edit each.
pub(crate) fn strong_everywhere(bench: &Bench<'_>, x: At, y: At) -> Vec<Vec<Step>> {
    let program = &bench.program;
    let near = common(bench, x, y);
    let threads = BTreeSet::from([x.thread, y.thread]);
    let all = |within: Option<&BTreeSet<usize>>, least: Scope| -> Vec<Step> {
        let mut out = Vec::new();
        for at in synchronising(program, &threads) {
            if within.is_some_and(|w| !w.contains(&at.thread)) {
                continue;
            }
            let op = &program.threads[at.thread].body[at.pc].op;
            let strong = released(op, least);
            if strong != *op {
                out.push(vec![Edit::Replace { thread: at.thread, at: at.pc, op: strong }]);
            }
        }
        out
    };
    vec![all(Some(&threads), near), all(None, near), all(None, near.max(Scope::Gpu)), all(None, Scope::Sys)]
}

/// The instruction with the strongest order that its kind allows, and at least this scope.
fn released(op: &Op, least: Scope) -> Op {
    let strong = ordered(op).filter(|_| !matches!(op, Op::Fence { .. } | Op::AsyncCopy(_)));
    let out = strong.unwrap_or_else(|| op.clone());
    let wide = op.scopes().iter().rev().find(|scope| **scope <= least);
    let wider = wide.filter(|to| out.clone().scope_mut().is_some_and(|own| *own < **to));
    wider.and_then(|to| out.at_scope(*to)).unwrap_or(out)
}

/// Whether a loop polls the word that this access loads: a branch back around it depends on what it loaded.
fn polls(program: &Program, at: At) -> bool {
    let body = &program.threads[at.thread].body;
    let Op::Load { dst, .. } = &body[at.pc].op else { return false };
    let mut from: BTreeSet<usize> = dst.iter().map(|r| r.index()).collect();
    for instr in &body[at.pc + 1..] {
        let asks = instr.guard.is_some_and(|g| from.contains(&g.reg.index()));
        if matches!(instr.op, Op::Bra { target } if target <= at.pc) {
            return asks;
        }
        let (reads, writes) = uses(&instr.op);
        if reads.iter().any(|r| from.contains(&r.index())) {
            from.extend(writes.iter().map(|r| r.index()));
        }
    }
    false
}

/// Both accesses of a flag that a loop polls relaxed instead of weak. For data that would hide a race and keep the mistake.
pub(crate) fn relaxed(bench: &Bench<'_>, x: At, y: At) -> Option<Vec<Step>> {
    let program = &bench.program;
    if bench.planted != Some(Planted::StrongPayload) && !polls(program, x) && !polls(program, y) {
        return None;
    }
    let scope = common(bench, x, y);
    let strong = |at: At| -> Option<Step> {
        let one = |site: At| {
            let mut op = program.threads[site.thread].body[site.pc].op.clone();
            let plain = matches!(
                op,
                Op::Load { proxy: Proxy::Generic, .. }
                    | Op::Store { proxy: Proxy::Generic, .. }
                    | Op::Rmw { .. }
            );
            match op.order_mut().filter(|_| plain)? {
                Order::Load(order @ LoadOrder::Weak) => *order = LoadOrder::Relaxed(scope),
                Order::Store(order @ StoreOrder::Weak) => *order = StoreOrder::Relaxed(scope),
                Order::Load(_) | Order::Store(_) | Order::Update(_) | Order::Reduction(_) => {}
                Order::Fence(_) | Order::Flag(_) => return None,
            }
            op.scope_mut().into_iter().for_each(|own| *own = (*own).max(scope));
            Some(Edit::Replace { thread: site.thread, at: site.pc, op })
        };
        sites(bench, at).into_iter().map(one).collect()
    };
    let mut steps = vec![strong(x)?];
    if sites(bench, x) != sites(bench, y) {
        steps.push(strong(y)?);
    }
    steps.retain(|step| {
        step.iter().any(
            |e| matches!(e, Edit::Replace { thread, at, op } if program.threads[*thread].body[*at].op != *op),
        )
    });
    (!steps.is_empty()).then_some(steps)
}

/// Single instructions to put in: an arrival that is missing, the start and the end of an mbarrier, the fence behind its
/// start.
pub(crate) fn counted(bench: &Bench<'_>) -> Vec<Vec<Step>> {
    let program = &bench.program;
    let mut out: Vec<Vec<Step>> = Vec::new();
    let put = |thread: usize, at: usize, op: Op| -> Step {
        vec![Edit::Insert { thread, at, what: Added::Plain(op) }]
    };
    for (t, thread) in program.threads.iter().enumerate() {
        let is_init = |i: &Instr| matches!(&i.op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Init { .. }, .. }));
        if let Some(last) = thread.body.iter().rposition(is_init) {
            out.push(vec![put(t, last + 1, Op::MbarrierInitFence)]);
        }
        for addr in mbarriers(program, t) {
            let wait = WaitFor { addr, parity: 0, scope: Scope::Cta };
            let arrive = crate::pair::arrive(wait);
            let places = (0..=end(thread)).rev().filter(|at| hands_over(program, (t, *at), addr));
            out.extend(places.take(PLACES).map(|at| vec![put(t, at, arrive.clone())]));
        }
        for (pc, instr) in thread.body.iter().enumerate() {
            if let Op::Mbarrier(m) = &instr.op {
                out.extend(lives(program, t, m));
            }
            if matches!(instr.op, Op::Wgmma(Wgmma::Product(_))) {
                out.push(vec![put(t, pc, Op::Wgmma(Wgmma::Fence))]);
            }
        }
    }
    out
}

/// Whether an arrival of thread `t` in front of `at` keeps to what the program is for. If threads that wait for the mbarrier touch
/// data of others behind their wait, then `t` touched some of it before, and one of them writes. If they touch none, then no order
/// is asked for, and only an arrival is missing: one beside another of the same phase, if `t` waits itself.
fn hands_over(program: &Program, (t, at): (usize, usize), addr: Address) -> bool {
    let own = &program.threads[t].body;
    let waits = |i: &Instr| waits_at(&i.op, addr);
    let mut shared = false;
    for (u, other) in program.threads.iter().enumerate() {
        let Some(wait) = other.body.iter().position(waits) else { continue };
        let theirs = data(&other.body[wait..]);
        if u != t && conflict(&data(&own[..at]), &theirs) {
            return true;
        }
        let before = data(&other.body[..wait]);
        let owned = |s: &SymbolId| before.iter().any(|(b, _)| b == s) && alone(program, u, *s);
        shared |= theirs.iter().any(|(s, _)| !owned(s));
    }
    let phase = own[..at].iter().rposition(waits).map_or(0, |wait| wait + 1);
    let beside = || own[phase..at].iter().any(|i| arrives(&i.op, addr));
    !shared && (!own.iter().any(waits) || beside())
}

/// The memory that instructions use as data, each with whether one may write it.
fn data(body: &[Instr]) -> BTreeSet<(SymbolId, bool)> {
    let signals = |op: &Op| {
        let commit = matches!(op, Op::Tcgen05(Tcgen05::Commit(_)));
        commit || matches!(op, Op::Mbarrier(_) | Op::AsyncCopy(AsyncCopy::Arrive { .. }))
    };
    let all = body.iter().filter(|i| !signals(&i.op));
    all.flat_map(|i| symbols(&i.op).into_iter().map(|s| (s, !matches!(i.op, Op::Load { .. })))).collect()
}

fn conflict(a: &BTreeSet<(SymbolId, bool)>, b: &BTreeSet<(SymbolId, bool)>) -> bool {
    a.iter().any(|(s, w)| b.iter().any(|(o, v)| s == o && (*w || *v)))
}

/// Whether no other thread uses this memory.
fn alone(program: &Program, thread: usize, symbol: SymbolId) -> bool {
    let others = program.threads.iter().enumerate().filter(|(u, _)| *u != thread);
    !others.flat_map(|(_, t)| &t.body).any(|i| symbols(&i.op).contains(&symbol))
}

/// Whether an instruction waits for a phase of an mbarrier.
pub(crate) fn waits_at(op: &Op, addr: Address) -> bool {
    matches!(op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(_), addr: a, .. }) if *a == addr)
}

/// Whether an instruction arrives without bytes that come later.
pub(crate) fn arrives_at(op: &Op, addr: Address) -> bool {
    let Op::Mbarrier(Mbarrier { op: MbarrierOp::Arrive(arrive), addr: a, .. }) = op else { return false };
    arrive.tx.is_none() && *a == addr
}

/// Whether an instruction arrives at an mbarrier, or has copies arrive there, without bytes that come later.
fn arrives(op: &Op, addr: Address) -> bool {
    arrives_at(op, addr) || matches!(op, Op::AsyncCopy(AsyncCopy::Arrive { addr: a, .. }) if *a == addr)
}

/// The start of an mbarrier that is used without one, at the start of a thread of its CTA; its end, in front of another one.
fn lives(program: &Program, thread: usize, m: &Mbarrier) -> Vec<Vec<Step>> {
    let op = |op: MbarrierOp| Op::Mbarrier(Mbarrier { op, space: Space::SharedCta, addr: m.addr });
    let put = |at: usize, op: Op| -> Step { vec![Edit::Insert { thread, at, what: Added::Plain(op) }] };
    let body = &program.threads[thread].body;
    let inits: Vec<usize> = (0..body.len())
        .filter(|pc| {
            matches!(&body[*pc].op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Init { .. }, addr, .. }) if *addr == m.addr)
        })
        .collect();
    if !mbarriers(program, thread).contains(&m.addr) && matches!(m.addr.base, Operand::Address(_)) {
        let init = put(0, op(MbarrierOp::Init { count: Operand::Imm(1) }));
        return vec![vec![init, put(0, Op::MbarrierInitFence)]];
    }
    // Two starts with nothing between them are a mistake in an address, or one too many: an end between them would hide it.
    let between = |pc: &usize| {
        let last = inits.iter().rev().find(|init| *init < pc).map_or(0, |init| init + 1);
        body[last..*pc]
            .iter()
            .any(|i| matches!(i.op, barrier_op!()) || matches!(&i.op, Op::Mbarrier(o) if o.addr == m.addr))
    };
    let twice = inits.iter().skip(1).filter(|pc| between(pc));
    let again = twice.map(|pc| vec![put(*pc, op(MbarrierOp::Inval))]);
    let reused = |pc: &usize| !inits.is_empty() && *pc > inits[0];
    let bytes = (0..body.len()).filter(|pc| reused(pc) && touches(&body[*pc].op, m.addr));
    again.chain(bytes.map(|pc| vec![put(pc, op(MbarrierOp::Inval))])).collect()
}

/// Whether an instruction uses the bytes of an mbarrier as data.
fn touches(op: &Op, mbarrier: Address) -> bool {
    matches!(op, Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } if addr.base == mbarrier.base)
}
