//! The memory accesses that can be read off the text (object, place, strength), and the control flow of a thread.

use crate::ir::*;
use crate::registers::uses;

/// One access of one instruction.
pub(super) struct Access {
    pub(super) thread: usize,
    pub(super) at: usize,
    /// The name it goes through and the offset of its first byte, if known from the text.
    pub(super) place: Option<(SymbolId, i64)>,
    /// Bytes of the whole access.
    pub(super) bytes: u32,
    pub(super) writes: bool,
    /// The scope, if the access is strong.
    pub(super) scope: Option<Scope>,
    pub(super) proxy: Proxy,
    pub(super) multimem: bool,
}

impl Access {
    pub(super) fn symbol<'p>(&self, program: &'p Program) -> Option<&'p Symbol> {
        self.place.map(|(symbol, _)| &program.symbols[symbol.index()])
    }

    /// All objects it may access; `None` if the text does not say.
    pub(super) fn objects(&self, program: &Program) -> Option<Vec<ObjectId>> {
        let symbol = self.symbol(program)?;
        let more = if self.multimem { symbol.multimem.as_slice() } else { &[] };
        Some(std::iter::once(symbol.object).chain(more.iter().copied()).collect())
    }
}

/// For each register that is never written, the address it holds.
fn fixed(thread: &Thread) -> Vec<Option<SymbolId>> {
    let mut held: Vec<Option<SymbolId>> = thread
        .regs
        .iter()
        .map(|r| match r.init {
            RegInit::Address(symbol) => Some(symbol),
            RegInit::Value(_) | RegInit::Lane => None,
        })
        .collect();
    for instr in &thread.body {
        for reg in uses(&instr.op).1 {
            held[reg.index()] = None;
        }
    }
    held
}

/// All accesses in the order of the text.
pub(super) fn accesses(program: &Program) -> Vec<Access> {
    let mut all = Vec::new();
    for (thread, t) in program.threads.iter().enumerate() {
        let held = fixed(t);
        for (at, instr) in t.body.iter().enumerate() {
            let Some((_, address)) = instr.op.place() else { continue };
            let symbol = match address.base {
                Operand::Address(symbol) => Some(symbol),
                Operand::Reg(reg) => held[reg.index()],
                Operand::Imm(_) => None,
            };
            let place = symbol.map(|s| (s, i64::from(address.offset)));
            let (bytes, writes, scope, proxy) = strength(&instr.op);
            let multimem = matches!(instr.op, multimem_op!());
            all.push(Access { thread, at, place, bytes, writes, scope, proxy, multimem });
        }
    }
    all
}

/// Bytes, whether they are written, the scope of a strong access, the proxy.
fn strength(op: &Op) -> (u32, bool, Option<Scope>, Proxy) {
    const NOTHING: (u32, bool, Option<Scope>, Proxy) = (0, false, None, Proxy::Generic);
    let load = |order: LoadOrder| match order {
        LoadOrder::Weak => None,
        LoadOrder::Relaxed(s) | LoadOrder::Acquire(s) | LoadOrder::SeqCst(s) => Some(s),
        LoadOrder::Volatile | LoadOrder::MmioRelaxed | LoadOrder::MmioAcquire => Some(Scope::Sys),
    };
    let store = |order: StoreOrder| match order {
        StoreOrder::Weak => None,
        StoreOrder::Relaxed(s) | StoreOrder::Release(s) | StoreOrder::SeqCst(s) => Some(s),
        StoreOrder::Volatile | StoreOrder::MmioRelaxed | StoreOrder::MmioRelease => Some(Scope::Sys),
    };
    let times = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    match op {
        Op::Load { order, ty, dst, proxy, .. } => {
            (ty.bytes().saturating_mul(times(dst.len())), false, load(*order), *proxy)
        }
        Op::Store { order, ty, src, proxy, .. } => {
            (ty.bytes().saturating_mul(times(src.len())), true, store(*order), *proxy)
        }
        Op::Rmw { scope, ty, proxy, .. } => (ty.bytes(), true, Some(*scope), *proxy),
        Op::MultimemLoad { order, ty, .. } => (ty.bytes(), false, load(*order), Proxy::Generic),
        Op::MultimemStore { order, ty, .. } => (ty.bytes(), true, store(*order), Proxy::Generic),
        Op::MultimemRed { scope, ty, .. } => (ty.bytes(), true, Some(*scope), Proxy::Generic),
        Op::Mbarrier(m) => (MBARRIER_BYTES, !matches!(m.op, MbarrierOp::Wait(_)), None, Proxy::Generic),
        register_op!() | fence_op!() | barrier_op!() | unit_op!() | Op::Tile(_) | Op::Control(_) => NOTHING,
        jump_op!() => NOTHING,
        Op::Book(_) => NOTHING,
    }
}

/// The successors of instruction `at`; `body.len()` is the end.
pub(super) fn next(thread: &Thread, at: usize) -> Vec<usize> {
    let Some(instr) = thread.body.get(at) else { return Vec::new() };
    let mut out = if let Op::Bra { target } = instr.op { vec![target] } else { Vec::new() };
    if out.is_empty() && instr.op != Op::Exit {
        return vec![at + 1];
    }
    if instr.guard.is_some() {
        out.push(at + 1);
    }
    out
}

/// Instructions (and the end) reachable from any of `from`, these included, without entering `avoid`.
pub(super) fn reach(thread: &Thread, from: &[usize], avoid: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; thread.body.len() + 1];
    let mut open: Vec<usize> = from.to_vec();
    while let Some(at) = open.pop() {
        if Some(at) != avoid && !std::mem::replace(&mut seen[at], true) {
            open.extend(next(thread, at));
        }
    }
    seen
}

/// Instructions from which control can reach `to` in at least one step.
pub(super) fn reach_back(thread: &Thread, to: usize) -> Vec<bool> {
    let mut before = vec![Vec::new(); thread.body.len() + 1];
    for at in 0..thread.body.len() {
        next(thread, at).into_iter().for_each(|n| before[n].push(at));
    }
    let mut seen = vec![false; thread.body.len() + 1];
    let mut open = before[to].clone();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut seen[at], true) {
            open.extend(&before[at]);
        }
    }
    seen
}
