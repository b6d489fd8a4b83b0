//! Asynchronous copies, warpgroup products and launch control of one thread: what is issued now, what happens later.
//!
//! Groups are lists of instruction numbers. A wait names the instructions it waits for, and so does an event that reports
//! to an mbarrier. The data of a copy are not kept: it leaves [`VEIL`] in the cells. (PTX ISA 9.2, 8.9.1, 9.7.9.25,
//! 9.7.13.17.)

use super::deed::{Count, Deed};
use super::event::{Event, Refusal, UNKNOWN, VEIL};
use super::motion::{Motion, Stage};
use super::pairs::Events;
use super::space::tile_of;
use super::state::{Runner, State};
use super::tags::{bit, store_tags};
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use moire_program::registers::uses;
use std::rc::Rc;

/// One side of a copy as bytes.
type Bytes = (u128, u32);

/// Whether the instruction changes an mbarrier later.
pub(super) fn reports(op: &Op) -> bool {
    let Op::AsyncCopy(copy) = op else {
        return matches!(op, Op::Control(Control::TryCancel { .. }) | Op::Tcgen05(Tcgen05::Commit(_)));
    };
    match copy {
        AsyncCopy::Bulk(c) => matches!(c.done, BulkDone::Mbarrier(_)),
        AsyncCopy::Remote(w) => matches!(w.order, RemoteOrder::Mbarrier(_)),
        AsyncCopy::Arrive { .. } => true,
        AsyncCopy::Small(_) | AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => false,
        AsyncCopy::Prefetch(_) | AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => false,
    }
}

fn odd(what: &str) -> Refusal {
    Refusal::Unsupported(what.to_owned())
}

/// Reads that the operands of the current instruction depend on, data aside.
fn depends_on(run: &Runner<'_>, s: &State) -> Events {
    let instr = &run.program.threads[run.thread].body[s.pc];
    let guard = instr.guard.map_or(0, |g| s.regs[g.reg.index()].1);
    super::operands::needed(&instr.op).iter().fold(guard, |d, r| d | s.regs[r.index()].1)
}

pub(super) fn mark(run: &Runner<'_>, s: &mut State, named: &[usize], part: Stage) {
    let mut e = run.event(s, named.iter().fold(0, |t, set| t | bit(*set)), None);
    e.motion = Some(Motion { instruction: s.instructions, late: false, part });
    Runner::push(s, e);
}

/// A later read of these bytes through a proxy.
pub(super) fn fetch(
    run: &Runner<'_>,
    s: &mut State,
    (at, bytes): Bytes,
    proxy: usize,
) -> Result<(), Refusal> {
    let range = run.memory.resolve(at, bytes).ok_or_else(|| odd("a copy from nowhere"))?;
    let tags =
        [sets::COPY_ACCESS, sets::M, sets::R, sets::WEAK, proxy].iter().fold(0, |t, set| t | bit(*set));
    let mut e = run.event(s, tags, None);
    e.range = Some(range);
    postpone(run, s, &mut e, false);
    Runner::push(s, e);
    Ok(())
}

/// A later write of unknown bytes.
fn deposit(
    run: &Runner<'_>,
    s: &mut State,
    (at, bytes): Bytes,
    tags: u128,
    scope: Option<Scope>,
) -> Result<(), Refusal> {
    let lost = || odd("a copy to nowhere");
    let range = run.memory.resolve(at, bytes).ok_or_else(lost)?;
    let cells = run.memory.cells_of(&range).ok_or_else(lost)?;
    let tags = tags | bit(sets::COPY_ACCESS) | bit(sets::M) | bit(sets::W);
    let mut e = run.event(s, tags, scope);
    e.range = Some(range);
    e.cells = cells.into_iter().map(|c| (c, VEIL)).collect();
    e.data = UNKNOWN;
    postpone(run, s, &mut e, true);
    Runner::push(s, e);
    Ok(())
}

fn postpone(run: &Runner<'_>, s: &State, e: &mut Event, writes: bool) {
    e.address |= depends_on(run, s);
    e.home = e.range.and_then(|r| run.memory.instances[r.instance].cta);
    e.motion = Some(Motion { instruction: s.instructions, late: true, part: Stage::Access { writes } });
    e.piece.get_or_insert((s.instructions, s.events.len()));
}

/// Changes an mbarrier: at once, or after the instructions of `end`.
fn report(
    run: &Runner<'_>,
    s: &mut State,
    at: u128,
    deed: Deed,
    tags: u128,
    scope: Scope,
    end: Option<Stage>,
) -> Result<(), Refusal> {
    let range = run.memory.resolve(at, MBARRIER_BYTES).ok_or_else(|| odd("an mbarrier nowhere"))?;
    let home =
        run.memory.instances[range.instance].cta.ok_or_else(|| odd("an mbarrier that is not shared"))?;
    if range.offset % MBARRIER_BYTES != 0 {
        return Err(odd("an mbarrier that is not aligned"));
    }
    let mut e = run.event(s, tags | bit(sets::MBAR), Some(scope));
    e.range = Some(range);
    e.address = depends_on(run, s);
    let mut deed = deed;
    deed.repeated(s.lanes.active.count_ones());
    e.count = Some(Count { object: (range.instance, range.offset), deed, wrong: None });
    let late = end.is_some();
    e.home = late.then_some(home);
    let part = end.unwrap_or(Stage::Start);
    e.motion = Some(Motion { instruction: s.instructions, late, part });
    Runner::push(s, e);
    Ok(())
}

/// Reports to an mbarrier that the bytes of this instruction have arrived.
/// `there`: one of several destinations, the only one that the completion is about.
fn complete(
    run: &Runner<'_>,
    s: &mut State,
    at: u128,
    bytes: u32,
    there: Option<u128>,
) -> Result<(), Refusal> {
    let tags = bit(sets::MBAR_COMPLETE) | bit(sets::COPY_DONE) | bit(sets::REL);
    let owner = |to| run.memory.instances[run.memory.resolve(to, 1)?.instance].cta;
    let end = Stage::End { of: vec![s.instructions], reads: false, cta: there.and_then(owner) };
    report(run, s, at, plain(0, -i64::from(bytes)), tags, Scope::Cluster, Some(end))
}

fn wait(run: &Runner<'_>, s: &mut State, of: Vec<usize>, reads: bool) {
    mark(run, s, &[sets::COPY_WAIT], Stage::End { of, reads, cta: None });
}

pub(super) fn copy(run: &Runner<'_>, s: &mut State, op: &AsyncCopy) -> Result<(), Refusal> {
    match op {
        AsyncCopy::Prefetch(_) => {}
        AsyncCopy::Commit => s.fleet.small.0.push(vec![]),
        AsyncCopy::BulkCommit => s.fleet.bulk.0.push(vec![]),
        AsyncCopy::Wait(n) => wait(run, s, s.fleet.small.finished(*n), false),
        AsyncCopy::WaitAll => wait(run, s, s.fleet.small.0.concat(), false),
        AsyncCopy::BulkWait { groups, reads_only } => {
            wait(run, s, s.fleet.bulk.finished(*groups), *reads_only)
        }
        AsyncCopy::Small(c) => return small(run, s, c),
        AsyncCopy::Arrive { noinc, addr, .. } => return arrive_later(run, s, *noinc, addr),
        AsyncCopy::Bulk(c) => return bulk(run, s, c),
        AsyncCopy::Remote(w) => return remote(run, s, w),
    }
    Ok(())
}

fn small(run: &Runner<'_>, s: &mut State, c: &SmallCopy) -> Result<(), Refusal> {
    let all = u32::from(c.bytes);
    let taken = match c.part {
        SmallPart::All => all,
        SmallPart::Bytes(o) => all.min(u32::try_from(run.operand(s, o).0).unwrap_or(all)),
        SmallPart::IgnoredWhen(g) if (s.regs[g.reg.index()].0 != 0) == g.negated => all,
        SmallPart::IgnoredWhen(_) => 0,
    };
    mark(run, s, &[sets::COPY_ISSUE], Stage::Start);
    if taken > 0 {
        fetch(run, s, (run.address(s, &c.src), taken), sets::GEN)?;
    }
    deposit(run, s, (run.address(s, &c.dst), all), bit(sets::WEAK) | bit(sets::GEN), None)?;
    s.fleet.small.join(s.instructions);
    Ok(())
}

fn arrive_later(run: &Runner<'_>, s: &mut State, noinc: bool, addr: &Address) -> Result<(), Refusal> {
    let at = run.address(s, addr);
    if noinc {
        mark(run, s, &[sets::COPY_ISSUE], Stage::Start);
    } else {
        let tags = bit(sets::MBAR_EXPECT) | bit(sets::RLX) | bit(sets::COPY_ISSUE);
        report(run, s, at, plain(0, 1), tags, Scope::Cta, None)?;
    }
    let deed = if noinc { plain(1, 0) } else { plain(0, -1) };
    let tags = bit(sets::MBAR_ARRIVE) | bit(sets::COPY_DONE) | bit(sets::REL);
    let end = Stage::End { of: s.fleet.small.0.concat(), reads: false, cta: None };
    report(run, s, at, deed, tags, Scope::Cta, Some(end))
}

fn bulk(run: &Runner<'_>, s: &mut State, c: &BulkCopy) -> Result<(), Refusal> {
    let unknown = || odd("a box of a tensor that is not described");
    let bytes = match c.bytes {
        Some(o) => u32::try_from(run.operand(s, o).0).unwrap_or(u32::MAX),
        None => tile_of(&c.src).or_else(|| tile_of(&c.dst)).ok_or_else(unknown)?.bytes,
    };
    if bytes == 0 {
        return Err(odd("a copy of nothing"));
    }
    let place = |end: &BulkEnd| match end {
        BulkEnd::Bytes { addr, .. } => Ok(run.address(s, addr)),
        BulkEnd::Tensor(t) => t.tile.map(|t| run.address(s, &t.addr)).ok_or_else(unknown),
    };
    let (from, to) = (place(&c.src)?, place(&c.dst)?);
    let bar = match &c.done {
        BulkDone::Mbarrier(addr) => Some(run.address(s, addr)),
        BulkDone::Group => None,
    };
    let mut goals = vec![(to, bar)];
    if let Some(m) = &c.multicast {
        let mask = run.operand(s, m.mask).0;
        let set = (0..if m.wide { 32 } else { 16 }).filter(|rank| mask >> rank & 1 == 1);
        goals = set
            .map(|rank| goal(run, to, bar, (rank, c.group == Some(CtaGroup::Two))))
            .collect::<Option<_>>()
            .ok_or_else(|| odd("a missing CTA"))?;
    }
    mark(run, s, &[sets::COPY_ISSUE], Stage::Start);
    for end in [&c.src, &c.dst] {
        if let BulkEnd::Tensor(TensorBox { map: Some(map), .. }) = end {
            fetch(run, s, (run.address(s, map), 128), sets::TMAP)?;
        }
    }
    fetch(run, s, (from, bytes), sets::ASYNC)?;
    let scope = c.relaxed.filter(|_| c.reduce.is_none());
    let tags = match (c.reduce.is_some(), scope) {
        (true, _) => bit(sets::WEAK) | bit(sets::COPY_REDUCE),
        (false, None) => bit(sets::WEAK),
        (false, Some(_)) => bit(sets::RLX),
    };
    for (to, _) in &goals {
        deposit(run, s, (*to, bytes), tags | bit(sets::ASYNC), scope)?;
    }
    let others = goals.len() > 1;
    for (to, bar) in goals {
        match bar {
            Some(bar) => complete(run, s, bar, bytes, others.then_some(to))?,
            None => s.fleet.bulk.join(s.instructions),
        }
    }
    Ok(())
}

/// The same destination and mbarrier in the CTA of a rank. The mbarriers of pairs are in their even CTAs, or in their odd ones,
/// as that of the operand.
fn goal(
    run: &Runner<'_>,
    to: u128,
    bar: Option<u128>,
    (rank, pairs): (u128, bool),
) -> Option<(u128, Option<u128>)> {
    let there = |at, rank| run.memory.mapped(at, rank, run.thread);
    let Some(bar) = bar else { return Some((there(to, rank)?, None)) };
    let mut home = rank;
    if pairs {
        let odd = (0..32).any(|r| r % 2 == 1 && there(bar, r) == Some(bar));
        home = rank / 2 * 2 + u128::from(odd);
    }
    Some((there(to, rank)?, Some(there(bar, home)?)))
}

/// `st.async` and `red.async`.
fn remote(run: &Runner<'_>, s: &mut State, w: &RemoteWrite) -> Result<(), Refusal> {
    mark(run, s, &[sets::COPY_ISSUE], Stage::Start);
    let order = match w.order {
        RemoteOrder::Mbarrier(_) => StoreOrder::Weak,
        RemoteOrder::Release(scope) => StoreOrder::Release(scope),
        RemoteOrder::MmioRelease => StoreOrder::MmioRelease,
    };
    let (tags, scope) = store_tags(order);
    let tags = tags | bit(sets::W) | bit(sets::M) | bit(sets::GEN) | bit(sets::COPY_ACCESS);
    let (pieces, address) = run.pieces(s, w.ty, w.src.len(), w.addr, false, false)?;
    for (i, (piece, operand)) in pieces.iter().zip(&w.src).enumerate() {
        let (value, data) = run.operand(s, *operand);
        let mut e = run.event(s, tags, scope);
        (e.address, e.data) = (address, data);
        run.place(&mut e, piece, (data & UNKNOWN == 0).then_some(value));
        e.piece = Some((s.instructions, i));
        postpone(run, s, &mut e, true);
        Runner::push(s, e);
    }
    let bytes = w.ty.bytes() * u32::try_from(w.src.len()).unwrap_or(u32::MAX);
    match &w.order {
        RemoteOrder::Mbarrier(addr) => complete(run, s, run.address(s, addr), bytes, None),
        _ => Ok(()),
    }
}

/// `red.async`: one continuation for each value it may find.
pub(super) fn update(
    run: &Runner<'_>,
    mut s: State,
    w: &RemoteWrite,
    todo: &mut Vec<State>,
) -> Result<(), Refusal> {
    if s.lanes.active.count_ones() > 1 {
        return Err(odd("a read-modify-write by several lanes"));
    }
    let (order, scope) = match w.order {
        RemoteOrder::Mbarrier(_) => (RmwOrder::Relaxed, Scope::Cluster),
        RemoteOrder::Release(scope) => (RmwOrder::Release, scope),
        RemoteOrder::MmioRelease => (RmwOrder::Release, Scope::Sys),
    };
    let (Some(op), Some(a)) = (w.op, w.src.first().copied()) else { return Ok(()) };
    let (ty, space, addr) = (w.ty, w.space, w.addr);
    let proxy = Proxy::Generic;
    let plain = Op::Rmw { red: true, order, scope, proxy, space, op, ty, dst: None, addr, a, b: None };
    let here = run.program.threads[run.thread].body[s.pc].clone();
    mark(run, &mut s, &[sets::COPY_ISSUE], Stage::Start);
    let (first, pc) = (s.events.len(), s.pc);
    let mut found = Vec::new();
    run.read(s, &Instr { guard: None, op: plain, ..here }, &mut found)?;
    for mut next in found {
        next.pc = pc;
        for i in first..next.events.len() {
            let mut e = (*next.events[i]).clone();
            e.tags |= bit(sets::COPY_ACCESS);
            let writes = e.is(sets::W);
            postpone(run, &next, &mut e, writes);
            next.events[i] = Rc::new(e);
        }
        if let RemoteOrder::Mbarrier(addr) = &w.order {
            let at = run.address(&next, addr);
            complete(run, &mut next, at, w.ty.bytes(), None)?;
        }
        next.pc += 1;
        todo.push(next);
    }
    Ok(())
}

pub(super) fn cancel(
    run: &Runner<'_>,
    s: &mut State,
    all: bool,
    addr: &Address,
    bar: &Address,
) -> Result<(), Refusal> {
    let (to, bar) = (run.address(s, addr), run.address(s, bar));
    let goals: Vec<(u128, Option<u128>)> = if all {
        (0..32).map_while(|rank| goal(run, to, Some(bar), (rank, false))).collect()
    } else {
        vec![(to, Some(bar))]
    };
    mark(run, s, &[sets::COPY_ISSUE], Stage::Start);
    for (to, _) in &goals {
        deposit(run, s, (*to, 16), bit(sets::WEAK) | bit(sets::ASYNC), None)?;
    }
    let others = goals.len() > 1;
    for (to, bar) in goals {
        bar.map_or(Ok(()), |bar| complete(run, s, bar, 16, others.then_some(to)))?;
    }
    Ok(())
}

fn plain(arrivals: u64, tx: i64) -> Deed {
    Deed::Add { arrivals, tx, drops: false, must_not_complete: false, reported: None }
}

/// Warpgroup products.
pub(super) fn wgmma(run: &Runner<'_>, s: &mut State, op: &Wgmma) -> Result<(), Refusal> {
    match op {
        Wgmma::Fence => {
            s.fleet.fenced.fill(true);
            mark(run, s, &[sets::WGMMA_FENCE], Stage::Start);
        }
        Wgmma::Commit => s.fleet.products.0.push(vec![]),
        Wgmma::Wait(n) => {
            let of = s.fleet.products.finished(*n);
            s.fleet.flying.retain(|(i, ..)| !of.contains(i));
            wait(run, s, of, false);
        }
        Wgmma::Product(p) => {
            mark(run, s, &[sets::WGMMA_ISSUE], Stage::Start);
            let first = if let WgmmaFactor::Shared(a) = &p.a { Some(a) } else { None };
            for matrix in first.into_iter().chain([&p.b]) {
                let Descriptor::Range { addr, bytes } = matrix else {
                    return Err(odd("a matrix descriptor in a register"));
                };
                fetch(run, s, (run.address(s, addr), *bytes), sets::ASYNC)?;
            }
            s.fleet.products.join(s.instructions);
            let a = if let WgmmaFactor::Registers(a) = &p.a { a.clone() } else { vec![] };
            s.fleet.flying.push((s.instructions, p.d.clone(), a));
            for r in &p.d {
                s.regs[r.index()] = (0, UNKNOWN);
            }
        }
    }
    Ok(())
}

/// Whether an instruction touches registers of a product in flight, or a product uses registers that no `wgmma.fence`
/// covers. Records the registers it touches.
pub(super) fn disturbs(s: &mut State, instr: &Instr) -> bool {
    let (mut reads, writes) = uses(&instr.op);
    reads.extend(instr.guard.map(|g| g.reg));
    let own = if let Op::Wgmma(Wgmma::Product(p)) = &instr.op { Some(p) } else { None };
    let factor = own.map(|p| if let WgmmaFactor::Registers(a) = &p.a { a.as_slice() } else { &[] });
    let held = own.iter().flat_map(|p| &p.d).chain(factor.into_iter().flatten());
    let mut wrong = held.copied().any(|r| !s.fleet.fenced[r.index()]);
    for (_, d, a) in &s.fleet.flying {
        let reuses = own.is_some_and(|p| p.d == *d);
        wrong |= reads.iter().any(|r| d.contains(r));
        wrong |= writes.iter().any(|r| a.contains(r) || (d.contains(r) && !reuses));
    }
    if !matches!(instr.op, Op::Wgmma(_)) {
        for r in reads.iter().chain(&writes) {
            s.fleet.fenced[r.index()] = false;
        }
    }
    wrong
}
