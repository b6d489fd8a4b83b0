//! The programs that the lane takes, and the registers that it observes.
//!
//! Contract: a program is taken only if its kernel means what its text says: threads of one grid of one device, each in its
//! own warp, with accesses to global memory and to the shared memory of their CTA, mbarriers there, and asynchronous copies
//! between the two. CTAs of one cluster are launched as one where something reaches from one to another. Everything else is
//! refused by name.
//!
//! A program without mbarriers and branches does not hang: the threads of a CTA have the same barriers in the same order,
//! and nothing leads around one. Another one may ([`may_hang`]); who gives it to a device knows first that it does not.

use crate::histogram::{Histogram, Seen};
use crate::reach::{Unknown, copies_bytes, is_known, is_multicast, ranges};
use moire_program::Refusal;
use moire_program::ir::{
    AluOp, AtomOp, BarKind, Instr, LoadOrder, Mbarrier, MbarrierOp, Object, Op, Operand, Program, Proxy,
    ProxyFence, ProxyOrder, Reg, RegInit, Scope, Space, StoreOrder, Thread, ThreadId, Ty,
};
use moire_program::jump_op;
use moire_program::validate::classes;
use std::collections::BTreeSet;

/// Most CTAs of a program, and most warps of a CTA.
const MAX_WIDTH: u16 = 8;
/// The same, as ranks of `mapa`.
const CTAS: i128 = 8;
/// Most bytes of an object.
const MAX_OBJECT_BYTES: u32 = 64;
/// The barriers that programs may use; the kernel uses the one behind them itself.
pub(crate) const BARRIERS: i128 = 15;

/// A refusal of a construct that the lane does not run.
pub(crate) fn not_run(what: &str) -> Refusal {
    Refusal::about(&format!("the GPU lane does not run {what}"))
}

/// Checks that the lane takes `program`.
///
/// # Errors
/// The construct that the lane does not run.
pub fn takes(program: &Program) -> Result<(), Refusal> {
    let refused = |what| Err(not_run(what));
    if program.launched {
        return refused("programs whose CTAs start and exit");
    }
    if program.filter.is_some() {
        return refused("programs with a filter");
    }
    objects(program)?;
    let mut places = BTreeSet::new();
    for thread in &program.threads {
        let p = &thread.place;
        if p.host || p.gpu != 0 || p.stream != 0 || p.grid != 0 {
            return refused("threads outside one grid of one device");
        }
        if reaches(program, thread) && clustered(program).is_none() {
            return refused("what reaches across CTAs, where not all CTAs are one cluster");
        }
        if p.cta >= MAX_WIDTH || p.warp >= MAX_WIDTH {
            return refused("more than eight CTAs, or warps of one");
        }
        if p.several() || !places.insert((p.cta, p.warp)) {
            return refused("several lanes of a warp");
        }
        if thread.regs.iter().any(|r| r.init != RegInit::Value(0)) {
            return refused("registers with start values");
        }
        if classes(thread).is_err() {
            return refused("a register of several widths");
        }
        let mate = program.threads.iter().find(|t| t.place.same_cta(p)).unwrap_or(thread);
        if !barriers(mate).eq(barriers(thread)) {
            return refused("threads of a CTA with different barriers");
        }
        if thread.body.iter().any(|i| is_barrier(&i.op) && i.guard.is_some()) {
            return refused("barriers with a guard");
        }
        thread.body.iter().try_for_each(|i| operation(thread, &i.op).and(within(program, thread, &i.op)))?;
        branches(program, thread)?;
    }
    clusters(program, &places)
}

/// Checks barriers of clusters. The end of the kernel is one, too, so each arrival is waited for before it.
fn clusters(program: &Program, places: &BTreeSet<(u16, u16)>) -> Result<(), Refusal> {
    let waits = |t: &Thread| -> Vec<bool> {
        t.body.iter().filter(|i| is_of_cluster(&i.op)).map(|i| i.op == Op::ClusterWait).collect()
    };
    let all: Vec<Vec<bool>> = program.threads.iter().map(waits).collect();
    if all.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let pairs = |waits: &Vec<bool>| waits.chunks(2).all(|pair| pair == [false, true]);
    if !all.iter().all(pairs) || all.iter().any(|waits| waits.len() != all[0].len()) {
        return Err(not_run("barriers of clusters at which not all threads arrive and wait in turns"));
    }
    match full(program, places) {
        true => Ok(()),
        false => Err(not_run("barriers of clusters whose CTAs have threads of their own number")),
    }
}

/// Whether a program may hang, or never end, by what its text says alone.
pub fn may_hang(program: &Program) -> bool {
    let waits =
        |op: &Op| matches!(op, Op::Mbarrier(Mbarrier { op: MbarrierOp::Wait(_), .. }) | Op::Bra { .. });
    program.threads.iter().flat_map(|t| &t.body).any(|i| waits(&i.op))
}

fn is_of_cluster(op: &Op) -> bool {
    matches!(op, Op::ClusterArrive { .. } | Op::ClusterWait)
}

/// Whether all threads of a CTA, or all of a cluster, have to come to it.
fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::Bar { .. }) || is_of_cluster(op)
}

/// Whether each warp of each CTA plays a thread.
fn full(program: &Program, places: &BTreeSet<(u16, u16)>) -> bool {
    let most = |of: fn(&(u16, u16)) -> u16| places.iter().map(of).max().map_or(0, |n| usize::from(n) + 1);
    places.len() == program.threads.len() && places.len() == most(|p| p.0) * most(|p| p.1)
}

/// Checks where branches lead. The lanes of a warp are other instances: of a barrier all of them must come to the same. A
/// loop may wait for another thread, so that one must be running: only CTAs of one cluster surely are.
fn branches(program: &Program, thread: &Thread) -> Result<(), Refusal> {
    let first = &program.threads[0].place;
    let alone = program.threads.iter().all(|t| t.place.same_cta(first));
    for (at, instr) in thread.body.iter().enumerate() {
        let Op::Bra { target } = instr.op else { continue };
        let (from, to) = (at.min(target), at.max(target));
        if thread.body[from..to].iter().any(|i| is_barrier(&i.op)) {
            return Err(not_run("branches around barriers"));
        }
        if target <= at && !alone && clustered(program).is_none() {
            return Err(not_run("loops of CTAs that may not run at once"));
        }
        let weak = |i: &Instr| matches!(i.op, Op::Load { order: LoadOrder::Weak, .. });
        if target <= at && thread.body[target..=at].iter().any(weak) {
            return Err(not_run("loops of weak loads, which an assembler may do once for all"));
        }
    }
    Ok(())
}

/// Checks memory and its names.
fn objects(program: &Program) -> Result<(), Refusal> {
    let refused = |what| Err(not_run(what));
    let in_shared = |o: &Object| o.space == Space::SharedCta;
    if program.objects.iter().any(|o| !matches!(o.space, Space::Global | Space::Generic) && !in_shared(o)) {
        return refused("tensor memory");
    }
    if program.objects.iter().any(|o| o.bytes > MAX_OBJECT_BYTES) {
        return refused("objects of more than 64 bytes");
    }
    let plain = |(n, s): (usize, &moire_program::ir::Symbol)| {
        s.virt.index() == n && s.proxy == Proxy::Generic && s.multimem.is_empty()
    };
    if !program.symbols.iter().enumerate().all(plain) || program.symbols.len() != program.objects.len() {
        return refused("aliases, other proxies and multicast addresses");
    }
    Ok(())
}

/// Whether an instruction of a thread reaches a thread of another CTA of its cluster.
fn reaches(program: &Program, thread: &Thread) -> bool {
    let other =
        |t: &Thread| thread.place.includes(Scope::Cluster, &t.place) && !thread.place.same_cta(&t.place);
    let far = |op: &Op| matches!(op, Op::Mapa { .. }) || is_of_cluster(op) || is_multicast(op);
    let scope = |op: &Op| op.clone().scope_mut() == Some(&mut Scope::Cluster);
    program.threads.iter().any(other) && thread.body.iter().any(|i| far(&i.op) || scope(&i.op))
}

/// The number of CTAs, if they are numbered from 0 on and are one cluster, across which some thread reaches.
pub(crate) fn clustered(program: &Program) -> Option<u32> {
    let first = &program.threads.first()?.place;
    let ctas: BTreeSet<u16> = program.threads.iter().map(|t| t.place.cta).collect();
    let whole = program.threads.iter().all(|t| t.place.includes(Scope::Cluster, first))
        && ctas.iter().copied().eq(0..u16::try_from(ctas.len()).ok()?);
    let used = program.threads.iter().any(|t| reaches(program, t));
    (whole && used).then_some(u32::try_from(ctas.len()).ok()?)
}

/// The barriers of a thread, in order.
fn barriers(thread: &Thread) -> impl Iterator<Item = &Operand> {
    thread.body.iter().filter_map(|i| if let Op::Bar { id, .. } = &i.op { Some(id) } else { None })
}

fn operation(thread: &Thread, op: &Op) -> Result<(), Refusal> {
    let unless = |is: bool, what| if is { Ok(()) } else { Err(not_run(what)) };
    let memory = |ty: &Ty| {
        let is =
            matches!(ty, Ty::B(8 | 16 | 32 | 64 | 128) | Ty::U(8 | 16 | 32 | 64) | Ty::S(8 | 16 | 32 | 64));
        unless(is, "types other than integers and bits")
    };
    let value = |operand: &Operand| unless(!matches!(operand, Operand::Address(_)), "addresses as values");
    // Immediates of 128 bits are not written in PTX.
    let of = |ty: &Ty, operand: &Operand| {
        let wide = matches!((ty, operand), (Ty::B(128), Operand::Imm(_)));
        unless(!wide, "immediates of 128 bits").and(value(operand))
    };
    let address = |base: &Operand| unless(is_known(thread, base), "computed addresses");
    let other =
        Err(not_run("instructions other than loads, stores, atomics, fences, barriers and arithmetic"));
    match op {
        Op::Mov { ty: Ty::Pred, src, .. } => value(src),
        Op::Mov { ty, src, .. } => memory(ty).and(of(ty, src)),
        Op::Alu { op, ty, a, b, .. } => memory(ty).and(value(a)).and(value(b)).and(defined(*op, *ty, b)),
        Op::Setp { ty, a, b, .. } | Op::Selp { ty, a, b, .. } => memory(ty).and(of(ty, a)).and(of(ty, b)),
        Op::Load { order: LoadOrder::MmioAcquire, .. } | Op::Store { order: StoreOrder::MmioRelease, .. } => {
            Err(not_run("`.mmio` with `.acquire` or `.release`"))
        }
        Op::Load { proxy: Proxy::Generic, ty, addr, .. } => memory(ty).and(address(&addr.base)),
        Op::Store { proxy: Proxy::Generic, ty, addr, src, .. } => {
            memory(ty).and(address(&addr.base)).and(src.iter().try_for_each(|s| of(ty, s)))
        }
        Op::Rmw { op: AtomOp::Sub, .. } => Err(not_run("atomics that are no PTX")),
        Op::Rmw { proxy: Proxy::Generic, ty, addr, a, b, .. } => {
            let all = [Some(a), b.as_ref()];
            memory(ty).and(address(&addr.base)).and(all.into_iter().flatten().try_for_each(|o| of(ty, o)))
        }
        Op::Bar { kind: BarKind::Sync, id: Operand::Imm(0..BARRIERS), count: None, instance: None } => Ok(()),
        Op::Bar { .. } => Err(not_run("barriers other than `bar.sync` of all threads")),
        Op::Fence { .. } => Ok(()),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } => Err(not_run("other proxies")),
        Op::Tcgen05(_) => Err(not_run("tcgen05 instructions, which need a device of the sm_100 class")),
        Op::Mapa { src: Operand::Address(_), rank: Operand::Imm(0..CTAS), .. } => Ok(()),
        Op::Mapa { .. } => Err(not_run("`mapa` of what is computed")),
        Op::Mbarrier(mbarrier) => {
            address(&mbarrier.addr.base).and(mbarrier.operands().iter().try_for_each(value))
        }
        Op::MbarrierInitFence | Op::ClusterArrive { .. } | Op::ClusterWait => Ok(()),
        Op::WarpSync { .. } => Err(not_run("`bar.warp.sync`")),
        Op::MultimemLoad { .. }
        | Op::MultimemStore { .. }
        | Op::MultimemRed { .. }
        | Op::Tile(_)
        | Op::Control(_) => other,
        Op::ProxyFence(kinds) => {
            unless(kinds.as_slice() == [ProxyFence::Of(Proxy::Async)], "fences of other proxies")
        }
        Op::ProxyOrder(ProxyOrder::AsyncSpace(_)) => Ok(()),
        Op::ProxyOrder(_) => Err(not_run("fences of proxies in one direction, and of tensor maps")),
        Op::AsyncCopy(copy) => copies_bytes(thread, copy),
        jump_op!() => Ok(()),
        Op::Wgmma(_) => other,
        Op::Book(_) => other,
    }
}

/// Whether PTX defines the result for every value: it says nothing of a division by zero, and takes the amount of a shift
/// from 32 bits, whatever the type.
fn defined(op: AluOp, ty: Ty, b: &Operand) -> Result<(), Refusal> {
    let bits = i128::from(8 * ty.bytes());
    let shifts = matches!(op, AluOp::Shl | AluOp::Shr);
    let known = matches!(b, Operand::Imm(n) if (0..bits).contains(n));
    if matches!(op, AluOp::Div | AluOp::Rem) {
        Err(not_run("division"))
    } else if shifts && !known {
        Err(not_run("shifts by a value"))
    } else {
        Ok(())
    }
}

/// Whether what an instruction reaches stays within its objects and is aligned; another one ends the launch, or reaches the
/// object of another instance.
fn within(program: &Program, thread: &Thread, op: &Op) -> Result<(), Refusal> {
    for (symbol, from, bytes) in ranges(thread, op) {
        let object = &program.objects[program.symbols[symbol.index()].object.index()];
        let aligned = bytes > 0 && from % bytes.min(16) == 0;
        if from < 0 || !aligned || from.saturating_add(bytes) > i64::from(object.bytes) {
            return Err(not_run("accesses that are not aligned, or leave their object"));
        }
    }
    Ok(())
}

/// All memory of a program, as engines list it: objects by number, those of shared memory once for each CTA, in the order of
/// first threads; each with the number of that CTA.
pub fn copies(program: &Program) -> Vec<(usize, Option<u16>)> {
    let place = |t: usize| &program.threads[t].place;
    let leads = |t: &usize| (0..*t).all(|s| !place(s).same_cta(place(*t)));
    let ctas: Vec<u16> = (0..program.threads.len()).filter(leads).map(|t| place(t).cta).collect();
    let of = |(n, o): (usize, &Object)| match o.space {
        Space::SharedCta => ctas.iter().map(|cta| (n, Some(*cta))).collect(),
        Space::Generic | Space::Global | Space::SharedCluster | Space::Tensor => vec![(n, None)],
    };
    program.objects.iter().enumerate().flat_map(of).collect()
}

/// The observed registers: those that loads and atomics write, by thread and number.
pub fn observed(program: &Program) -> Vec<(ThreadId, Reg)> {
    let mut out = BTreeSet::new();
    for (t, thread) in program.threads.iter().enumerate() {
        let t = ThreadId(u16::try_from(t).expect("threads are numbered with 16 bits"));
        for instr in &thread.body {
            if let Op::Load { dst, .. } = &instr.op {
                out.extend(dst.iter().map(|r| (t, *r)));
            }
            if let Op::Rmw { dst, .. } = &instr.op {
                out.extend(dst.iter().map(|r| (t, *r)));
            }
        }
    }
    out.into_iter().collect()
}

/// An outcome as it is compared: each observed register cut to the width that the kernel declares for it. Engines extend the
/// sign of what they load to 64 bits, and a register of a device has as many bits as it has. What engines have no values of
/// is zero, and so are mbarriers.
pub fn seen(program: &Program, regs: impl IntoIterator<Item = u128>, memory: Vec<Vec<u8>>) -> Seen {
    // `takes` refuses a thread without classes.
    let all: Vec<Vec<u32>> = program.threads.iter().map(|t| classes(t).unwrap_or_default()).collect();
    let unknown = Unknown::of(program);
    let bits = |(t, r): (ThreadId, Reg)| match unknown.register(t.index(), r) {
        true => 0,
        false => all[t.index()].get(r.index()).copied().unwrap_or(64).clamp(1, 128),
    };
    let cut =
        |(value, of): (u128, (ThreadId, Reg))| value & u128::MAX.checked_shr(128 - bits(of)).unwrap_or(0);
    let compared =
        |((object, _), bytes): ((usize, Option<u16>), Vec<u8>)| match unknown.object(program, object) {
            true => vec![0; bytes.len()],
            false => bytes,
        };
    Seen {
        regs: regs.into_iter().zip(observed(program)).map(cut).collect(),
        memory: copies(program).into_iter().zip(memory).map(compared).collect(),
    }
}

/// Outcomes as they are compared, each with its count.
pub(crate) fn compared(program: &Program, raw: Histogram) -> Histogram {
    let mut out = Histogram::default();
    for (end, n) in raw.0 {
        out.merge(Histogram([(seen(program, end.regs, end.memory), n)].into()));
    }
    out
}
