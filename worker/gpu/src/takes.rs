//! The programs that the lane takes, and the registers that it observes.
//!
//! Contract: a program is taken only if its kernel means what its text says: threads of one grid of one device, each in its
//! own warp, without branches, with ordinary accesses to global memory. Kernels are launched without clusters, so every CTA
//! is a cluster of its own, and `.cluster` may reach no other one. Everything else is refused by name.

use crate::histogram::Seen;
use moire_program::Refusal;
use moire_program::ir::{
    AtomOp, Op, Operand, Program, Proxy, Reg, RegInit, Scope, Space, Thread, ThreadId, Ty,
};
use moire_program::validate::classes;
use moire_program::{barrier_op, jump_op};
use std::collections::BTreeSet;

/// Most CTAs of a program, and most warps of a CTA.
const MAX_WIDTH: u16 = 8;
/// Most bytes of an object.
const MAX_OBJECT_BYTES: u32 = 64;

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
    if program.objects.iter().any(|o| !matches!(o.space, Space::Global | Space::Generic)) {
        return refused("shared and tensor memory");
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
    let mut places = BTreeSet::new();
    for thread in &program.threads {
        let p = &thread.place;
        if p.host || p.gpu != 0 || p.stream != 0 || p.grid != 0 {
            return refused("threads outside one grid of one device");
        }
        let reaches = |other: &Thread| p.includes(Scope::Cluster, &other.place) && !p.same_cta(&other.place);
        if program.threads.iter().any(reaches)
            && thread.body.iter().any(|i| i.op.clone().scope_mut() == Some(&mut Scope::Cluster))
        {
            return refused("`.cluster` across CTAs, because it launches them without clusters");
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
        thread.body.iter().try_for_each(|instr| match instr.guard {
            Some(_) => Err(not_run("predicated instructions")),
            None => operation(&instr.op).and(within(program, &instr.op)),
        })?;
    }
    Ok(())
}

fn operation(op: &Op) -> Result<(), Refusal> {
    let width = |ty: &Ty| match ty {
        Ty::B(32 | 64) | Ty::U(32 | 64) | Ty::S(32 | 64) => Ok(()),
        _ => Err(not_run("types other than integers of 32 and 64 bits")),
    };
    let address = |base: &Operand| match base {
        Operand::Address(_) => Ok(()),
        _ => Err(not_run("computed addresses")),
    };
    let value = |operand: &Operand| match operand {
        Operand::Address(_) => Err(not_run("addresses as values")),
        _ => Ok(()),
    };
    let other = Err(not_run("instructions other than loads, stores, atomics, fences and moves"));
    match op {
        Op::Mov { ty, src, .. } => width(ty).and(value(src)),
        Op::Load { proxy: Proxy::Generic, ty, addr, .. } => width(ty).and(address(&addr.base)),
        Op::Store { proxy: Proxy::Generic, ty, addr, src, .. } => {
            width(ty).and(address(&addr.base)).and(src.iter().try_for_each(value))
        }
        Op::Rmw { op: AtomOp::Sub, .. } => Err(not_run("atomics that are no PTX")),
        Op::Rmw { proxy: Proxy::Generic, ty, addr, a, b, .. } => {
            width(ty).and(address(&addr.base)).and(value(a)).and(b.iter().try_for_each(value))
        }
        Op::Fence { .. } => Ok(()),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } => Err(not_run("other proxies")),
        Op::Tcgen05(_) => Err(not_run("tcgen05 instructions, which need a device of the sm_100 class")),
        Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Mapa { .. } | Op::Mbarrier(_) => other,
        Op::MultimemLoad { .. }
        | Op::MultimemStore { .. }
        | Op::MultimemRed { .. }
        | Op::Tile(_)
        | Op::Control(_) => other,
        Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) | barrier_op!() => other,
        Op::AsyncCopy(_) | Op::Wgmma(_) | jump_op!() => other,
        Op::Book(_) => other,
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
