//! The stand-in for a missing device: runs a program instance by instance, its threads interleaved one instruction at a time
//! in an order drawn from the seed.
//!
//! Contract: every instruction that the lane takes is executed, so its outcomes are those of an interleaving, in which a copy
//! is complete at once. They are
//! sequentially consistent, so every shipped model allows them and it finds no bug. It exists for
//! its interface and bookkeeping, which are those of a device. One that lies ([`StandIn::lying`]) is a bug on purpose: with it
//! the way of an outcome that no model allows is tried, from the device to the finding.

use crate::device::{Batch, Device, DeviceError, Identity, STAND_IN, Samples};
use crate::histogram::{Histogram, Seen};
use crate::strategy::draw;
use crate::takes::{compared, copies, observed};
use moire_program::ir::{
    Address, AluOp, AsyncCopy, AtomOp, BulkCopy, BulkDone, BulkEnd, CmpOp, Instr, Mbarrier, MbarrierOp,
    Multicast, Op, Operand, Program, Reg, RemoteOrder, Space, SymbolId, ThreadId, Ty,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The stand-in for a device.
#[derive(Debug)]
pub struct StandIn {
    identity: Identity,
    instances_max: u32,
    lies: bool,
}

/// Of so many instances that could lie, one does.
const LIES: u64 = 32;

impl StandIn {
    /// A stand-in that runs at most so many instances a launch, one after the other.
    pub fn new(instances_max: u32) -> Self {
        let identity = Identity {
            name: "stand-in".to_owned(),
            uuid: STAND_IN.to_owned(),
            capability: (9, 0),
            driver: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Self { identity, instances_max, lies: false }
    }

    /// A stand-in that sometimes lies: an exchange of a word of global memory gives a value that nobody wrote.
    pub fn lying(instances_max: u32) -> Self {
        let honest = Self::new(instances_max);
        let identity = Identity { name: "stand-in that lies".to_owned(), ..honest.identity };
        Self { identity, lies: true, ..honest }
    }

    /// The outcome of one instance, perhaps with a lie.
    fn told(&self, program: &Program, end: Seen, state: &mut u64) -> Seen {
        // Of one sort only, so that all lies are one: what is left of any of them is the same program.
        let lied = |op: &Op, r: Reg| {
            let sort = |op, space, ty| (op, space, ty) == (AtomOp::Exch, Space::Global, Ty::B(32));
            matches!(op, Op::Rmw { op, space, ty, dst, a: Operand::Imm(_), .. }
                if sort(*op, *space, *ty) && *dst == Some(r))
        };
        let body = |t: ThreadId| &program.threads[t.index()].body;
        let is_lie = |(t, r): &(ThreadId, Reg)| body(*t).iter().any(|i| lied(&i.op, *r));
        let at = observed(program)
            .iter()
            .position(is_lie)
            .filter(|_| self.lies && draw(state).is_multiple_of(LIES));
        let mut end = end;
        at.into_iter().for_each(|at| end.regs[at] ^= 0x40);
        end
    }
}

impl Device for StandIn {
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        let mut raw = Histogram::default();
        let mut state = batch.seed;
        for _ in 0..batch.strategy.instances().min(self.instances_max) {
            let mut instance = Instance::new(batch.program);
            let end = instance.run(&mut state);
            let end = end.ok_or_else(|| DeviceError::Failed {
                call: "the stand-in",
                why: "an access outside its object, an mbarrier that is none, or a hang".to_owned(),
            })?;
            raw.add(self.told(batch.program, end, &mut state));
        }
        Ok(compared(batch.program, raw))
    }
}

struct Instance<'p> {
    program: &'p Program,
    /// See [`copies`].
    copies: Vec<(usize, Option<u16>)>,
    memory: Vec<Vec<u8>>,
    regs: Vec<Vec<u128>>,
    at: Vec<usize>,
    /// The mbarriers, by copy of memory and offset there.
    mbarriers: BTreeMap<(usize, usize), Phase>,
}

/// Most instructions of one instance; a program that is known to end needs fewer, if no thread is forgotten.
const MAX_STEPS: u32 = 100_000;

/// An mbarrier.
#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    expected: i128,
    /// Arrivals that are missing.
    pending: i128,
    /// Bytes that are announced and not complete.
    bytes: i128,
    number: u128,
}

impl Phase {
    fn count(&mut self, arrivals: i128, bytes: i128) {
        self.pending -= arrivals;
        self.bytes += bytes;
        if self.pending == 0 && self.bytes == 0 {
            *self = Self { pending: self.expected, number: self.number + 1, ..*self };
        }
    }
}

impl<'p> Instance<'p> {
    fn new(program: &'p Program) -> Self {
        let copies = copies(program);
        Self {
            program,
            memory: copies
                .iter()
                .map(|(n, _)| program.objects[*n].init.bytes(program.objects[*n].bytes))
                .collect(),
            copies,
            regs: program.threads.iter().map(|t| vec![0; t.regs.len()]).collect(),
            at: vec![0; program.threads.len()],
            mbarriers: BTreeMap::new(),
        }
    }

    /// `None`: an access outside its object, an mbarrier that is none, or threads that wait for each other for ever.
    fn run(&mut self, state: &mut u64) -> Option<Seen> {
        let mut left = MAX_STEPS;
        loop {
            left = left.checked_sub(1)?;
            let going = |t: &usize| self.at[*t] < self.program.threads[*t].body.len();
            if !(0..self.at.len()).any(|t| going(&t)) {
                break;
            }
            let ready: Vec<usize> = (0..self.at.len()).filter(|t| going(t) && !self.waits(*t)).collect();
            let among = u64::try_from(ready.len()).ok().filter(|n| *n > 0)?;
            let t = ready[usize::try_from(draw(state) % among).ok()?];
            let at = self.at[t];
            self.at[t] += 1;
            self.step(t, &self.program.threads[t].body[at])?;
        }
        let all = observed(self.program);
        let regs = all.iter().map(|(t, r)| self.regs[t.index()][r.index()]);
        Some(Seen { regs: regs.collect(), memory: self.memory.clone() })
    }

    /// Whether a thread is at a barrier to which another one of its CTA, or its cluster, has not come. Nothing leads around a
    /// barrier, so where a thread is says how many it has behind it.
    fn waits(&self, t: usize) -> bool {
        let threads = &self.program.threads;
        let arrives = |i: &Instr| matches!(i.op, Op::ClusterArrive { .. });
        let arrived = |u: usize| threads[u].body[..self.at[u]].iter().filter(|i| arrives(i)).count();
        if threads[t].body[self.at[t]].op == Op::ClusterWait {
            return (0..threads.len()).any(|u| arrived(u) < arrived(t));
        }
        let is_barrier = |i: &Instr| matches!(i.op, Op::Bar { .. });
        let behind = |u: usize| threads[u].body[..self.at[u]].iter().filter(|i| is_barrier(i)).count();
        let stands = |u: usize| threads[u].body.get(self.at[u]).is_some_and(is_barrier);
        let come = |u: usize| behind(u) + usize::from(stands(u));
        let mates = (0..threads.len()).filter(|u| threads[*u].place.same_cta(&threads[t].place));
        stands(t) && mates.map(come).any(|others| others <= behind(t))
    }

    fn step(&mut self, t: usize, instr: &Instr) -> Option<()> {
        if instr.guard.is_some_and(|g| (self.regs[t][g.reg.index()] != 0) == g.negated) {
            return Some(());
        }
        match &instr.op {
            Op::Mov { ty, dst, src } => self.regs[t][dst.index()] = self.value(t, src, *ty),
            Op::Alu { op, ty, dst, a, b } => {
                let amount = if matches!(op, AluOp::Shl | AluOp::Shr) { Ty::U(32) } else { *ty };
                let (a, b) = (self.value(t, a, *ty), self.value(t, b, amount));
                self.regs[t][dst.index()] = computed(*op, *ty, a, b);
            }
            Op::Setp { op, ty, dst, a, b } => {
                let (a, b) = (self.value(t, a, *ty), self.value(t, b, *ty));
                self.regs[t][dst.index()] = u128::from(holds(*op, number(*ty, a).cmp(&number(*ty, b))));
            }
            Op::Selp { ty, dst, a, b, p } => {
                let of = if self.regs[t][p.index()] != 0 { a } else { b };
                self.regs[t][dst.index()] = self.value(t, of, *ty);
            }
            Op::Load { ty, dst, addr, .. } => {
                for (k, reg) in dst.iter().enumerate() {
                    self.regs[t][reg.index()] = self.loaded(t, addr, *ty, k)?;
                }
            }
            Op::Store { ty, addr, src, .. } => {
                for (k, source) in src.iter().enumerate() {
                    let value = self.value(t, source, *ty);
                    self.write(t, addr, *ty, k, value)?;
                }
            }
            Op::Rmw { op, ty, dst, addr, a, b, .. } => {
                let old = self.read(t, addr, *ty, 0)?;
                let a = self.value(t, a, *ty);
                let b = b.as_ref().map_or(0, |b| self.value(t, b, *ty));
                self.write(t, addr, *ty, 0, atomic(*op, *ty, old, a, b))?;
                if let Some(dst) = dst {
                    self.regs[t][dst.index()] = old;
                }
            }
            // One thread after the other: a fence has nothing to order, and who leaves a barrier has waited.
            Op::Fence { .. } | Op::Bar { .. } => {}
            Op::ClusterArrive { .. } | Op::ClusterWait => {}
            Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) => {}
            Op::Mapa { dst, src, rank, .. } => {
                let (Operand::Address(symbol), Operand::Imm(rank)) = (src, rank) else { return None };
                self.regs[t][dst.index()] = mapped(*symbol, u16::try_from(*rank).ok()?);
            }
            Op::Mbarrier(mbarrier) => self.mbarrier(t, mbarrier)?,
            Op::AsyncCopy(copy) => self.copy(t, copy)?,
            Op::Bra { target } => self.at[t] = *target,
            Op::Exit => self.at[t] = self.program.threads[t].body.len(),
            // The device is given none of these (`takes`).
            Op::MultimemLoad { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } => return None,
            Op::Tcgen05(_) | Op::Wgmma(_) | Op::Tile(_) | Op::Control(_) | Op::Book(_) => return None,
            Op::WarpSync { .. } => return None,
        }
        Some(())
    }

    fn value(&self, t: usize, operand: &Operand, ty: Ty) -> u128 {
        let all = match operand {
            Operand::Reg(reg) => self.regs[t][reg.index()],
            // Two's complement is what an immediate is cut from.
            Operand::Imm(n) => n.cast_unsigned(),
            Operand::Address(_) => 0,
        };
        if ty == Ty::Pred { u128::from(all != 0) } else { all & mask(ty) }
    }

    /// An mbarrier instruction (PTX ISA 9.7.13.15).
    fn mbarrier(&mut self, t: usize, mbarrier: &Mbarrier) -> Option<()> {
        let at = self.place(t, &mbarrier.addr, None)?;
        let number = |operand: &Operand| number(Ty::U(32), self.value(t, operand, Ty::U(32)));
        match &mbarrier.op {
            MbarrierOp::Init { count } => {
                let expected = number(count);
                self.mbarriers.insert(at, Phase { expected, pending: expected, ..Phase::default() });
            }
            MbarrierOp::Inval => self.mbarriers.remove(&at).map(|_| ())?,
            MbarrierOp::Arrive(arrive) => {
                let (count, bytes) =
                    (arrive.count.as_ref().map_or(1, number), arrive.tx.as_ref().map_or(0, number));
                let phase = self.mbarriers.get_mut(&at)?;
                let was = phase.number;
                phase.expected -= if arrive.drop { count } else { 0 };
                phase.count(count, bytes);
                arrive.dst.into_iter().for_each(|dst| self.regs[t][dst.index()] = was);
            }
            MbarrierOp::ExpectTx { bytes, .. } => {
                let bytes = number(bytes);
                self.mbarriers.get_mut(&at)?.count(0, bytes);
            }
            MbarrierOp::CompleteTx { bytes, .. } => {
                let bytes = number(bytes);
                self.mbarriers.get_mut(&at)?.count(0, -bytes);
            }
            MbarrierOp::Wait(wait) => {
                let asked = self.value(t, &wait.phase, Ty::U(64));
                let number = self.mbarriers.get(&at)?.number;
                let over = if wait.parity { number & 1 != asked & 1 } else { number > asked };
                self.regs[t][wait.dst.index()] = u128::from(over);
            }
        }
        Some(())
    }

    /// An asynchronous copy, which is complete at once.
    fn copy(&mut self, t: usize, copy: &AsyncCopy) -> Option<()> {
        match copy {
            AsyncCopy::Small(c) => self.moved(t, (&c.dst, None), &c.src, c.bytes.into())?,
            AsyncCopy::Arrive { noinc, addr, .. } => {
                let at = self.place(t, addr, None)?;
                self.mbarriers.get_mut(&at)?.count(i128::from(*noinc), 0);
            }
            AsyncCopy::Bulk(c) => self.bulk(t, c)?,
            AsyncCopy::Remote(r) => {
                let RemoteOrder::Mbarrier(mbarrier) = &r.order else { return None };
                for (k, source) in r.src.iter().enumerate() {
                    let (old, value) = (self.read(t, &r.addr, r.ty, k)?, self.value(t, source, r.ty));
                    let value = r.op.map_or(value, |op| atomic(op, r.ty, old, value, 0));
                    self.write(t, &r.addr, r.ty, k, value)?;
                }
                let (at, bytes) = (self.place(t, mbarrier, None)?, i128::from(r.ty.bytes()));
                self.mbarriers.get_mut(&at)?.count(0, -bytes * i128::try_from(r.src.len()).ok()?);
            }
            // Complete as they are, copies have no groups to wait for.
            AsyncCopy::Prefetch(_) | AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => {}
            AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => {}
        }
        Some(())
    }

    /// A bulk copy, into each CTA of its mask.
    fn bulk(&mut self, t: usize, copy: &BulkCopy) -> Option<()> {
        let BulkEnd::Bytes { addr: dst, .. } = &copy.dst else { return None };
        let BulkEnd::Bytes { addr: src, .. } = &copy.src else { return None };
        let Some(Operand::Imm(bytes)) = copy.bytes else { return None };
        let mask =
            if let Some(Multicast { mask: Operand::Imm(mask), .. }) = copy.multicast { mask } else { 0 };
        let ctas: Vec<Option<u16>> = match copy.multicast {
            Some(_) => (0..16).filter(|cta| mask >> cta & 1 == 1).map(Some).collect(),
            None => vec![None],
        };
        for cta in ctas {
            self.moved(t, (dst, cta), src, usize::try_from(bytes).ok()?)?;
            if let BulkDone::Mbarrier(mbarrier) = &copy.done {
                let at = self.place(t, mbarrier, cta)?;
                self.mbarriers.get_mut(&at)?.count(0, -bytes);
            }
        }
        Some(())
    }

    fn moved(&mut self, t: usize, to: (&Address, Option<u16>), src: &Address, bytes: usize) -> Option<()> {
        let ((from, at), (to, start)) = (self.place(t, src, None)?, self.place(t, to.0, to.1)?);
        let content = self.memory[from].get(at..at + bytes)?.to_vec();
        self.memory[to].get_mut(start..start + bytes)?.copy_from_slice(&content);
        Some(())
    }

    /// The copy of memory that an address is in, and the offset there; `cta`: of this CTA instead of that of the thread.
    fn place(&self, t: usize, addr: &Address, cta: Option<u16>) -> Option<(usize, usize)> {
        let own = cta.unwrap_or(self.program.threads[t].place.cta);
        let (symbol, cta) = match addr.base {
            Operand::Address(symbol) => (symbol, own),
            Operand::Reg(reg) => of_mapped(self.regs[t][reg.index()])?,
            Operand::Imm(_) => return None,
        };
        let object = self.program.symbols.get(symbol.index())?.object.index();
        let is = |(n, of): &(usize, Option<u16>)| *n == object && of.is_none_or(|of| of == cta);
        Some((self.copies.iter().position(is)?, usize::try_from(addr.offset).ok()?))
    }

    /// The bytes of element `k` of an access.
    fn bytes(&mut self, t: usize, addr: &Address, ty: Ty, k: usize) -> Option<&mut [u8]> {
        let (copy, start) = self.place(t, addr, None)?;
        let width = ty.bytes() as usize;
        let from = start + k * width;
        self.memory.get_mut(copy)?.get_mut(from..from + width)
    }
    fn read(&mut self, t: usize, addr: &Address, ty: Ty, k: usize) -> Option<u128> {
        let bytes = self.bytes(t, addr, ty, k)?;
        Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte)))
    }
    /// What a load leaves in its register: signed values fill it.
    fn loaded(&mut self, t: usize, addr: &Address, ty: Ty, k: usize) -> Option<u128> {
        let value = self.read(t, addr, ty, k)?;
        let negative = matches!(ty, Ty::S(_)) && value >> (8 * ty.bytes() - 1) & 1 == 1;
        Some(if negative { value | !mask(ty) } else { value })
    }
    fn write(&mut self, t: usize, addr: &Address, ty: Ty, k: usize, value: u128) -> Option<()> {
        let bytes = self.bytes(t, addr, ty, k)?;
        bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
        Some(())
    }
}

/// What a register has of an address that `mapa` made.
fn mapped(symbol: SymbolId, cta: u16) -> u128 {
    1 << 64 | u128::from(cta) << 16 | u128::from(symbol.0)
}

fn of_mapped(value: u128) -> Option<(SymbolId, u16)> {
    let halves = u32::try_from(value.checked_sub(1 << 64)?).ok()?;
    Some((SymbolId(u16::try_from(halves & 0xffff).ok()?), u16::try_from(halves >> 16).ok()?))
}

fn mask(ty: Ty) -> u128 {
    u128::MAX >> (128 - 8 * ty.bytes())
}

/// The number of a pattern of a type.
fn number(ty: Ty, pattern: u128) -> i128 {
    let left = 128 - 8 * ty.bytes();
    match ty {
        Ty::S(_) => (pattern << left).cast_signed() >> left,
        _ => (pattern & mask(ty)).cast_signed(),
    }
}

/// The value of arithmetic (PTX ISA 9.7.1 and 9.7.8).
fn computed(op: AluOp, ty: Ty, a: u128, b: u128) -> u128 {
    let (x, y) = (number(ty, a), number(ty, b));
    let amount = u32::try_from(b).unwrap_or(u32::MAX);
    let value = match op {
        AluOp::Add => x.wrapping_add(y),
        AluOp::Sub => x.wrapping_sub(y),
        AluOp::Mul => x.wrapping_mul(y),
        AluOp::And => x & y,
        AluOp::Or => x | y,
        AluOp::Xor => x ^ y,
        AluOp::Shl => x.checked_shl(amount).unwrap_or(0),
        AluOp::Shr => x.checked_shr(amount).unwrap_or(if x < 0 { -1 } else { 0 }),
        AluOp::Min => x.min(y),
        AluOp::Max => x.max(y),
        // The device is given none of these (`takes`).
        AluOp::Div | AluOp::Rem => 0,
    };
    value.cast_unsigned() & mask(ty)
}

fn holds(op: CmpOp, order: Ordering) -> bool {
    match op {
        CmpOp::Eq => order.is_eq(),
        CmpOp::Ne => order.is_ne(),
        CmpOp::Lt => order.is_lt(),
        CmpOp::Le => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::Ge => order.is_ge(),
    }
}

/// The value that an atomic writes to memory (PTX ISA, `atom`).
fn atomic(op: AtomOp, ty: Ty, old: u128, a: u128, b: u128) -> u128 {
    let bits = 8 * ty.bytes();
    let signed = |v: u128| (v << (128 - bits)).cast_signed();
    let less = match ty {
        Ty::S(_) => signed(a) < signed(old),
        _ => a < old,
    };
    let new = match op {
        AtomOp::Add => old.wrapping_add(a),
        AtomOp::Sub => old.wrapping_sub(a),
        AtomOp::And => old & a,
        AtomOp::Or => old | a,
        AtomOp::Xor => old ^ a,
        AtomOp::Min => {
            if less {
                a
            } else {
                old
            }
        }
        AtomOp::Max => {
            if less {
                old
            } else {
                a
            }
        }
        AtomOp::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        AtomOp::Exch => a,
        AtomOp::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
    };
    new & mask(ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_that_of_the_isa() {
        let s = |op, a, b| computed(op, Ty::S(16), a, b);
        assert_eq!(
            (s(AluOp::Add, 0xffff, 2), s(AluOp::Sub, 1, 2), s(AluOp::Mul, 0xffff, 3)),
            (1, 0xffff, 0xfffd)
        );
        assert_eq!((s(AluOp::Shr, 0x8000, 3), computed(AluOp::Shr, Ty::U(16), 0x8000, 3)), (0xf000, 0x1000));
        assert_eq!((s(AluOp::Min, 1, 0xffff), computed(AluOp::Min, Ty::U(16), 1, 0xffff)), (0xffff, 1));
        assert!(holds(CmpOp::Lt, number(Ty::S(8), 0x80).cmp(&number(Ty::S(8), 0))));
        assert!(!holds(CmpOp::Lt, number(Ty::U(8), 0x80).cmp(&number(Ty::U(8), 0))));
    }

    #[test]
    fn atomics_are_those_of_the_isa() {
        let u = |op, old, a, b| atomic(op, Ty::U(32), old, a, b);
        assert_eq!(u(AtomOp::Add, 0xffff_ffff, 2, 0), 1);
        assert_eq!((u(AtomOp::Inc, 3, 3, 0), u(AtomOp::Inc, 2, 3, 0)), (0, 3));
        assert_eq!((u(AtomOp::Dec, 0, 3, 0), u(AtomOp::Dec, 4, 3, 0), u(AtomOp::Dec, 2, 3, 0)), (3, 3, 1));
        assert_eq!((u(AtomOp::Cas, 1, 1, 5), u(AtomOp::Cas, 2, 1, 5)), (5, 2));
        assert_eq!((u(AtomOp::Min, 1, 0xffff_ffff, 0), u(AtomOp::Max, 1, 0xffff_ffff, 0)), (1, 0xffff_ffff));
        assert_eq!(atomic(AtomOp::Min, Ty::S(32), 1, 0xffff_ffff, 0), 0xffff_ffff);
    }
}
