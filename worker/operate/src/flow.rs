//! Which registers can still decide something: an address, a count, a branch, or a value that is stored and decides later.
//!
//! A register that only feeds its own increment decides nothing. Leaving it out of the state is what lets a loop with a
//! counter come back to a state it had before.

use crate::finding::Stop;
use moire_program::ir::{
    Address, AsyncCopy, Goes, LoadOrder, Op, Operand, Part, Parts, Program, Reg, Role, StoreOrder, Thread,
};
use moire_program::registers::only_registers;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::BTreeSet;
use std::ops::Range;

/// Most positions times registers of a thread.
const MOST: usize = 1 << 26;

/// By position the registers that can still decide something before it.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    words: usize,
    live: Vec<u64>,
}

impl Flow {
    pub(crate) fn is_live(&self, pc: usize, reg: Reg) -> bool {
        let at = pc * self.words + reg.index() / 64;
        self.live.get(at).is_some_and(|word| word >> (reg.index() % 64) & 1 == 1)
    }

    /// `stored`: stored values may be loaded again and decide something.
    fn new(thread: &Thread, stored: bool) -> Result<Self, Stop> {
        let words = thread.regs.len().div_ceil(64).max(1);
        if words * 64 * (thread.body.len() + 1) > MOST {
            return Err(Stop::abstain("a thread with so many instructions and registers", 0));
        }
        let mut flow = Flow { words, live: vec![0; words * (thread.body.len() + 1)] };
        let back: Vec<Option<usize>> = opening(thread);
        loop {
            let mut changed = false;
            for pc in (0..thread.body.len()).rev() {
                changed |= flow.transfer(thread, pc, stored, &back);
            }
            if !changed {
                return Ok(flow);
            }
        }
    }

    /// Computes what is live before an instruction; returns whether that is more than before.
    fn transfer(&mut self, thread: &Thread, pc: usize, stored: bool, back: &[Option<usize>]) -> bool {
        let instr = &thread.body[pc];
        let mut row = vec![0u64; self.words];
        for next in successors(thread, pc, back) {
            for (word, more) in row.iter_mut().zip(&self.live[next * self.words..]) {
                *word |= more;
            }
        }
        let has = |row: &[u64], reg: Reg| row[reg.index() / 64] >> (reg.index() % 64) & 1 == 1;
        let mut written = Vec::new();
        moire_program::registers::written(&instr.op, &mut |reg| written.push(reg));
        let wanted = !only_registers(&instr.op) || written.iter().any(|reg| has(&row, *reg));
        if instr.guard.is_none() {
            written.iter().for_each(|reg| row[reg.index() / 64] &= !(1 << (reg.index() % 64)));
        }
        let mut use_of = |reg: Reg| row[reg.index() / 64] |= 1 << (reg.index() % 64);
        if wanted {
            if let Some(guard) = instr.guard {
                use_of(guard.reg);
            }
            let data = only_registers(&instr.op) || (stored && matches!(instr.op, Op::Store { .. }));
            Parts::each(&instr.op, &mut |part| match part {
                Part::Source(Operand::Reg(reg), role) | Part::Read(reg, role)
                    if role == Role::Known || (data && role == Role::Data) =>
                {
                    use_of(*reg);
                }
                _ => {}
            });
        }
        let old = &mut self.live[pc * self.words..][..self.words];
        let more = old.iter().zip(&row).any(|(a, b)| b & !a != 0);
        old.iter_mut().zip(&row).for_each(|(a, b)| *a |= b);
        more
    }
}

/// By closing brace of a loop the position of the loop.
fn opening(thread: &Thread) -> Vec<Option<usize>> {
    let (mut out, mut open) = (vec![None; thread.body.len()], Vec::new());
    for (pc, instr) in thread.body.iter().enumerate() {
        match instr.op.goes() {
            Goes::Opens => open.push(pc),
            Goes::Closes => out[pc] = open.pop(),
            Goes::On | Goes::To(_) | Goes::End => {}
        }
    }
    out
}

fn successors(thread: &Thread, pc: usize, back: &[Option<usize>]) -> Vec<usize> {
    let instr = &thread.body[pc];
    let jump = match instr.op.goes() {
        Goes::To(target) => Some(target),
        Goes::End => Some(thread.body.len()),
        Goes::Opens => {
            let end = back.iter().position(|start| *start == Some(pc));
            return vec![pc + 1, end.map_or(back.len(), |end| end + 1)];
        }
        Goes::Closes | Goes::On => back[pc],
    };
    match jump {
        None => vec![pc + 1],
        Some(to) if instr.guard.is_none() => vec![to],
        Some(to) => vec![to, pc + 1],
    }
}

/// The registers and the memory of a program that can decide something.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    pub(crate) threads: Vec<Flow>,
    /// Objects whose content is loaded and decides something.
    pub(crate) read: BTreeSet<usize>,
    /// Objects that are read strongly: a strong store may synchronise with such a read.
    pub(crate) observed: BTreeSet<usize>,
    /// Objects that are written strongly: a strong load may synchronise with such a write.
    pub(crate) published: BTreeSet<usize>,
}

impl Flows {
    pub(crate) fn new(program: &Program) -> Result<Self, Stop> {
        let all =
            |stored| program.threads.iter().map(|t| Flow::new(t, stored)).collect::<Result<Vec<_>, _>>();
        let [observed, published] = [reads_strongly, writes_strongly].map(|strong| touched(program, strong));
        let threads = all(false)?;
        let read = deciding(program, &threads);
        if read.is_empty() {
            return Ok(Flows { threads, read, observed, published });
        }
        let threads = all(true)?;
        let read = deciding(program, &threads);
        Ok(Flows { threads, read, observed, published })
    }
}

/// The objects that some instruction reaches which is `strong`.
fn touched(program: &Program, strong: fn(&Op) -> bool) -> BTreeSet<usize> {
    let all = program.threads.iter().flat_map(|t| &t.body).filter(|i| strong(&i.op));
    let reached = |op: &Op| match op {
        Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. } => Some(*addr),
        Op::AsyncCopy(_) | Op::Tcgen05(_) | Op::Wgmma(_) | Op::Mbarrier(_) | Op::Control(_) => None,
        multimem_op!() | register_op!() | fence_op!() | barrier_op!() | jump_op!() => None,
        Op::Tile(_) | Op::Book(_) => None,
    };
    all.flat_map(|i| reached(&i.op).map_or(0..program.objects.len(), |addr| named(program, &addr))).collect()
}

/// The object that an address names; all of them if a register does.
fn named(program: &Program, addr: &Address) -> Range<usize> {
    match addr.base {
        Operand::Address(symbol) => {
            let object = program.symbols[symbol.index()].object.index();
            object..object + 1
        }
        Operand::Reg(_) | Operand::Imm(_) => 0..program.objects.len(),
    }
}

fn reads_strongly(op: &Op) -> bool {
    match op {
        Op::Load { order, .. } => *order != LoadOrder::Weak,
        Op::Rmw { .. } | multimem_op!() | Op::Tile(_) => true,
        Op::Store { .. } | Op::Mbarrier(_) | Op::Control(_) | Op::Book(_) => false,
        register_op!() | fence_op!() | barrier_op!() | unit_op!() | jump_op!() => false,
    }
}

fn writes_strongly(op: &Op) -> bool {
    match op {
        Op::Store { order, .. } => *order != StoreOrder::Weak,
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => copy.reduce.is_some(),
        Op::AsyncCopy(AsyncCopy::Remote(_)) | Op::Rmw { .. } | multimem_op!() | Op::Tile(_) => true,
        Op::AsyncCopy(_) | Op::Tcgen05(_) | Op::Wgmma(_) => false,
        Op::Load { .. } | Op::Mbarrier(_) | Op::Control(_) | Op::Book(_) => false,
        register_op!() | fence_op!() | barrier_op!() | jump_op!() => false,
    }
}

/// Objects that a load reads whose destination can decide something.
fn deciding(program: &Program, flows: &[Flow]) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    for (thread, flow) in program.threads.iter().zip(flows) {
        for (pc, instr) in thread.body.iter().enumerate() {
            let Op::Load { dst, addr, .. } = &instr.op else { continue };
            if !dst.iter().any(|reg| flow.is_live(pc + 1, *reg)) {
                continue;
            }
            out.extend(named(program, addr));
        }
    }
    out
}
