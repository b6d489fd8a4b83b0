//! The programs that the lane takes, and the registers that it observes.
//!
//! Contract: a program is taken only if its kernel means what its text says: threads of one grid of one device, each in its
//! own warp, that run straight through, with accesses to global memory and to the shared memory of their CTA. CTAs of one
//! cluster are launched as one where `.cluster` reaches from one to another. Everything else is refused by name.
//!
//! No program that is taken hangs. Barriers are the only instructions that wait, and the threads of a CTA have the same ones
//! in the same order, without guards.

use crate::histogram::Seen;
use moire_program::Refusal;
use moire_program::ir::{
    AluOp, AtomOp, BarKind, Object, Op, Operand, Program, Proxy, Reg, RegInit, Scope, Space, Thread,
    ThreadId, Ty,
};
use moire_program::jump_op;
use moire_program::validate::classes;
use std::collections::BTreeSet;

/// Most CTAs of a program, and most warps of a CTA.
const MAX_WIDTH: u16 = 8;
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
            return refused("`.cluster` across CTAs, where not all CTAs are one cluster");
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
        if thread.body.iter().any(|i| matches!(i.op, Op::Bar { .. }) && i.guard.is_some()) {
            return refused("barriers with a guard");
        }
        thread.body.iter().try_for_each(|i| operation(&i.op).and(within(program, &i.op)))?;
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

/// Whether `.cluster` of a thread reaches a thread of another CTA.
fn reaches(program: &Program, thread: &Thread) -> bool {
    let other =
        |t: &Thread| thread.place.includes(Scope::Cluster, &t.place) && !thread.place.same_cta(&t.place);
    program.threads.iter().any(other)
        && thread.body.iter().any(|i| i.op.clone().scope_mut() == Some(&mut Scope::Cluster))
}

/// The number of CTAs, if they are numbered from 0 on and are one cluster, whose scope some thread uses.
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

fn operation(op: &Op) -> Result<(), Refusal> {
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
    let address = |base: &Operand| unless(matches!(base, Operand::Address(_)), "computed addresses");
    let other =
        Err(not_run("instructions other than loads, stores, atomics, fences, barriers and arithmetic"));
    match op {
        Op::Mov { ty: Ty::Pred, src, .. } => value(src),
        Op::Mov { ty, src, .. } => memory(ty).and(of(ty, src)),
        Op::Alu { op, ty, a, b, .. } => memory(ty).and(value(a)).and(value(b)).and(defined(*op, *ty, b)),
        Op::Setp { ty, a, b, .. } | Op::Selp { ty, a, b, .. } => memory(ty).and(of(ty, a)).and(of(ty, b)),
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
        Op::Mapa { .. } => Err(not_run("`mapa`")),
        Op::Mbarrier(_) | Op::MbarrierInitFence => Err(not_run("mbarriers")),
        Op::ClusterArrive { .. } | Op::ClusterWait => Err(not_run("barriers of clusters")),
        Op::WarpSync { .. } => Err(not_run("`bar.warp.sync`")),
        Op::MultimemLoad { .. }
        | Op::MultimemStore { .. }
        | Op::MultimemRed { .. }
        | Op::Tile(_)
        | Op::Control(_) => other,
        Op::ProxyFence(_) | Op::ProxyOrder(_) => Err(not_run("fences of proxies")),
        Op::AsyncCopy(_) => Err(not_run("asynchronous copies")),
        jump_op!() => Err(not_run("branches")),
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

/// Whether an access stays within its object and is aligned; another one ends the launch, or reaches the object of another
/// instance.
fn within(program: &Program, op: &Op) -> Result<(), Refusal> {
    let elements = if let Op::Load { dst, .. } = op { dst.len() } else { 1 };
    let elements = if let Op::Store { src, .. } = op { src.len() } else { elements };
    let (Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } | Op::Rmw { addr, ty, .. }) = op else {
        return Ok(());
    };
    let Operand::Address(symbol) = addr.base else { return Ok(()) };
    let bytes = i64::from(ty.bytes()) * i64::try_from(elements).unwrap_or(i64::MAX / 128);
    let (from, object) =
        (i64::from(addr.offset), &program.objects[program.symbols[symbol.index()].object.index()]);
    match from >= 0 && from % bytes == 0 && from + bytes <= i64::from(object.bytes) {
        true => Ok(()),
        false => Err(not_run("accesses that are not aligned, or leave their object")),
    }
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
/// sign of what they load to 64 bits, and a register of a device has as many bits as it has.
pub fn seen(program: &Program, regs: impl IntoIterator<Item = u128>, memory: Vec<Vec<u8>>) -> Seen {
    // `takes` refuses a thread without classes.
    let all: Vec<Vec<u32>> = program.threads.iter().map(|t| classes(t).unwrap_or_default()).collect();
    let bits = |(t, r): (ThreadId, Reg)| all[t.index()].get(r.index()).copied().unwrap_or(64);
    let cut = |(value, of): (u128, (ThreadId, Reg))| value & (u128::MAX >> (128 - bits(of).clamp(1, 128)));
    Seen { regs: regs.into_iter().zip(observed(program)).map(cut).collect(), memory }
}
