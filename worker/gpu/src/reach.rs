//! What a thread reaches: the objects whose names its instructions have, here and in other CTAs, and the asynchronous copies
//! that are taken.

use crate::takes::not_run;
use moire_program::Refusal;
use moire_program::ir::{
    Address, AsyncCopy, BulkCopy, BulkDone, BulkEnd, Instr, MBARRIER_BYTES, Op, Operand, Program, Reg,
    RemoteOrder, SmallPart, Space, SymbolId, Thread, Ty,
};
use moire_program::jump_op;
use moire_program::registers::{used, written};
use std::collections::BTreeSet;

/// Bytes of an mbarrier.
const MBARRIER: i64 = MBARRIER_BYTES as i64;

/// The name of an object, or what one `mapa` at the start of the thread makes of it.
pub(crate) fn is_known(thread: &Thread, base: &Operand) -> bool {
    match base {
        Operand::Address(_) => true,
        Operand::Reg(reg) => mapped(thread, *reg).is_some(),
        Operand::Imm(_) => false,
    }
}

/// The object whose address in another CTA a register has: it is written once, before any branch.
fn mapped(thread: &Thread, reg: Reg) -> Option<SymbolId> {
    let writes = |op: &Op| {
        let mut all = Vec::new();
        written(op, &mut |r| all.push(r));
        all.contains(&reg)
    };
    let mut all = thread.body.iter().enumerate().filter(|(_, i)| writes(&i.op));
    let (Some((at, instr)), None) = (all.next(), all.next()) else { return None };
    let Op::Mapa { src: Operand::Address(symbol), .. } = instr.op else { return None };
    let straight = !thread.body[..at].iter().any(|i| matches!(i.op, jump_op!())) && instr.guard.is_none();
    straight.then_some(symbol)
}

pub(crate) fn is_multicast(op: &Op) -> bool {
    matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.multicast.is_some())
}

/// Checks an asynchronous copy: whole bytes at known places.
pub(crate) fn copies_bytes(thread: &Thread, copy: &AsyncCopy) -> Result<(), Refusal> {
    let known = |addr: &Address| match is_known(thread, &addr.base) {
        true => Ok(()),
        false => Err(not_run("computed addresses")),
    };
    let other = Err(not_run("copies of this form"));
    match copy {
        AsyncCopy::Small(c) if c.part == SmallPart::All => known(&c.dst).and(known(&c.src)),
        AsyncCopy::Bulk(c) => bulk(c, known),
        AsyncCopy::Arrive { addr, .. } => known(addr),
        AsyncCopy::Remote(r) => match &r.order {
            RemoteOrder::Mbarrier(mbarrier) => known(&r.addr).and(known(mbarrier)),
            RemoteOrder::Release(_) | RemoteOrder::MmioRelease => other,
        },
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => Ok(()),
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => Ok(()),
        AsyncCopy::Small(_) | AsyncCopy::Prefetch(_) => other,
    }
}

fn bulk(copy: &BulkCopy, known: impl Fn(&Address) -> Result<(), Refusal>) -> Result<(), Refusal> {
    let end = |end: &BulkEnd| match end {
        BulkEnd::Bytes { addr, .. } => known(addr),
        BulkEnd::Tensor(_) => Err(not_run("tensor maps")),
    };
    let BulkCopy { dst, src, bytes, reduce, done, multicast, group, relaxed, byte_mask, ignored } = copy;
    let plain = reduce.is_none() && group.is_none() && relaxed.is_none();
    let whole = byte_mask.is_none() && ignored.is_none() && matches!(bytes, Some(Operand::Imm(_)));
    let masked = multicast.is_none_or(|m| matches!(m.mask, Operand::Imm(_)));
    if !(plain && whole && masked) {
        return Err(not_run("copies of this form"));
    }
    let mbarrier = if let BulkDone::Mbarrier(mbarrier) = done { known(mbarrier) } else { Ok(()) };
    end(dst).and(end(src)).and(mbarrier)
}

/// What a thread reaches by an instruction: the name, the first byte, and how many.
pub(crate) fn ranges(thread: &Thread, op: &Op) -> Vec<(SymbolId, i64, i64)> {
    let name = |base: &Operand| match base {
        Operand::Address(symbol) => Some(*symbol),
        Operand::Reg(reg) => mapped(thread, *reg),
        Operand::Imm(_) => None,
    };
    let mut op = op.clone();
    let range =
        |(addr, _, bytes): (&mut Address, _, _)| Some((name(&addr.base)?, i64::from(addr.offset), bytes));
    addresses(&mut op).into_iter().filter_map(range).collect()
}

/// The addresses of an instruction, in the order of the text, the state space of each, and how many bytes it reaches there.
pub(crate) fn addresses(op: &mut Op) -> Vec<(&mut Address, Space, i64)> {
    let of = |ty: &Ty, n: usize| i64::from(ty.bytes()).saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
    if let Op::Load { addr, space, ty, dst, .. } = op {
        vec![(addr, *space, of(ty, dst.len()))]
    } else if let Op::Store { addr, space, ty, src, .. } = op {
        vec![(addr, *space, of(ty, src.len()))]
    } else if let Op::Rmw { addr, space, ty, .. } = op {
        vec![(addr, *space, of(ty, 1))]
    } else if let Op::Mbarrier(mbarrier) = op {
        vec![(&mut mbarrier.addr, mbarrier.space, MBARRIER)]
    } else if let Op::AsyncCopy(copy) = op {
        of_copy(copy)
    } else {
        Vec::new()
    }
}

fn of_copy(copy: &mut AsyncCopy) -> Vec<(&mut Address, Space, i64)> {
    match copy {
        AsyncCopy::Small(c) => {
            let bytes = c.bytes.into();
            vec![(&mut c.dst, Space::SharedCta, bytes), (&mut c.src, Space::Global, bytes)]
        }
        AsyncCopy::Arrive { addr, space, .. } => vec![(addr, *space, MBARRIER)],
        AsyncCopy::Remote(r) => {
            let bytes =
                i64::from(r.ty.bytes()).saturating_mul(i64::try_from(r.src.len()).unwrap_or(i64::MAX));
            let mbarrier = if let RemoteOrder::Mbarrier(m) = &mut r.order { Some(m) } else { None };
            let mbarrier = mbarrier.map(|m| (m, r.space, MBARRIER));
            [(&mut r.addr, r.space, bytes)].into_iter().chain(mbarrier).collect()
        }
        AsyncCopy::Bulk(c) => {
            let BulkCopy { dst, src, bytes, done, .. } = &mut **c;
            let bytes = if let Some(Operand::Imm(n)) = bytes { i64::try_from(*n).unwrap_or(0) } else { 0 };
            let ends = [dst, src].into_iter().filter_map(|end| match end {
                BulkEnd::Bytes { addr, space } => Some((addr, *space, bytes)),
                BulkEnd::Tensor(_) => None,
            });
            let done =
                if let BulkDone::Mbarrier(m) = done { Some((m, Space::SharedCta, MBARRIER)) } else { None };
            ends.chain(done).collect()
        }
        AsyncCopy::Prefetch(_) | AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => Vec::new(),
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => Vec::new(),
    }
}

/// Whether an object is not compared at the end: an mbarrier, which is opaque, and shared memory that a copy writes which
/// reports to one, because it may still be under way when the kernel ends.
fn is_opaque(program: &Program, object: usize) -> bool {
    let about = |thread: &Thread, op: &Op| {
        let named =
            |(symbol, ..): &(SymbolId, i64, i64)| program.symbols[symbol.index()].object.index() == object;
        op.clone().mbarrier_mut().is_some() && ranges(thread, op).iter().any(named)
    };
    let shared = program.objects[object].space == Space::SharedCta;
    shared && program.threads.iter().any(|t| t.body.iter().any(|i| about(t, &i.op)))
}

/// What an engine keeps no values of: memory that copies write, and what is computed from it.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    registers: BTreeSet<(usize, Reg)>,
    objects: BTreeSet<usize>,
}

impl Unknown {
    /// Of a program.
    pub(crate) fn of(program: &Program) -> Self {
        let mut all = Self::default();
        let size = |all: &Self| (all.registers.len(), all.objects.len());
        loop {
            let before = size(&all);
            for (t, thread) in program.threads.iter().enumerate() {
                thread.body.iter().for_each(|instr| all.step(program, t, instr));
            }
            if size(&all) == before {
                return all;
            }
        }
    }

    /// Whether the values of a register are unknown.
    pub(crate) fn register(&self, thread: usize, reg: Reg) -> bool {
        self.registers.contains(&(thread, reg))
    }

    /// Whether the content of an object is not compared.
    pub(crate) fn object(&self, program: &Program, object: usize) -> bool {
        self.objects.contains(&object) || is_opaque(program, object)
    }

    fn step(&mut self, program: &Program, t: usize, instr: &Instr) {
        let object = |(symbol, ..): (SymbolId, i64, i64)| program.symbols[symbol.index()].object.index();
        let objects: Vec<usize> = ranges(&program.threads[t], &instr.op).into_iter().map(object).collect();
        let (mut reads, mut writes) =
            (instr.guard.map(|g| g.reg).into_iter().collect::<Vec<_>>(), Vec::new());
        used(&instr.op, &mut |reg| reads.push(reg));
        written(&instr.op, &mut |reg| writes.push(reg));
        let copies = matches!(&instr.op, Op::AsyncCopy(AsyncCopy::Small(_) | AsyncCopy::Bulk(_)));
        let unknown = reads.iter().any(|reg| self.register(t, *reg));
        if copies {
            self.objects.extend(objects.first());
        } else if unknown || objects.iter().any(|o| self.objects.contains(o)) {
            self.registers.extend(writes.into_iter().map(|reg| (t, reg)));
            self.objects.extend(objects);
        }
    }
}
