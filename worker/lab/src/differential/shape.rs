//! Static traits of a program, for the histogram of a campaign.

use moire_program::ir::{Access, Op, Operand, Program, Reg, SymbolId};
use moire_program::{barrier_op, fence_op, unit_op};
use std::collections::BTreeSet;

/// Static traits of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Reads and writes on the path without jumps. An atomic counts as both.
    pub memory_events: usize,
    /// The program has an atomic or a reduction.
    pub rmw: bool,
    /// A value read from memory reaches a store, an address or a branch.
    pub dependency: bool,
    /// Threads form a ring in which each reads one object and then writes the next.
    pub load_buffering: bool,
    /// The program has a backward branch.
    pub awaits: bool,
}

impl Shape {
    /// Finds the traits of `program`.
    pub fn of(program: &Program) -> Self {
        let mut shape = Shape { load_buffering: load_buffering(program), ..Shape::default() };
        for thread in &program.threads {
            let mut tainted: BTreeSet<Reg> = BTreeSet::new();
            for (pc, instr) in thread.body.iter().enumerate() {
                let from_read = |o: &Operand| matches!(o, Operand::Reg(r) if tainted.contains(r));
                let guard = instr.guard.is_some_and(|g| tainted.contains(&g.reg));
                match &instr.op {
                    Op::Load { dst, addr, .. } => {
                        shape.memory_events += dst.len();
                        shape.dependency |= guard || from_read(&addr.base);
                        tainted.extend(dst);
                    }
                    Op::Store { src, addr, .. } => {
                        shape.memory_events += src.len();
                        shape.dependency |= guard || from_read(&addr.base) || src.iter().any(from_read);
                    }
                    Op::Rmw { dst, addr, a, b, .. } => {
                        shape.memory_events += 2;
                        shape.rmw = true;
                        shape.dependency |= guard || [addr.base, *a].iter().chain(b).any(from_read);
                        tainted.extend(dst);
                    }
                    Op::Mov { dst, src, .. } if guard || from_read(src) => {
                        tainted.insert(*dst);
                    }
                    Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } | Op::Selp { dst, a, b, .. }
                        if guard || from_read(a) || from_read(b) =>
                    {
                        tainted.insert(*dst);
                    }
                    Op::Bra { target } => {
                        shape.dependency |= guard;
                        shape.awaits |= *target <= pc;
                    }
                    // Programs of this shape have none of these, or they pass nothing on.
                    Op::Mov { .. }
                    | Op::Alu { .. }
                    | Op::Setp { .. }
                    | Op::Selp { .. }
                    | Op::Mapa { .. }
                    | Op::Mbarrier(_)
                    | Op::Exit => {}
                    Op::MultimemLoad { .. }
                    | Op::MultimemStore { .. }
                    | Op::MultimemRed { .. }
                    | Op::Tile(_)
                    | Op::Control(_) => {}
                    fence_op!() | barrier_op!() | unit_op!() => {}
                    Op::Book(_) => {}
                }
            }
        }
        shape
    }
}

/// Lists, for each thread, the pairs (object read, object written later).
fn passages(program: &Program) -> Vec<BTreeSet<(u16, u16)>> {
    let object = |s: SymbolId| program.symbols[s.index()].object.0;
    let named = |o: Operand| if let Operand::Address(s) = o { Some(object(s)) } else { None };
    program
        .threads
        .iter()
        .map(|thread| {
            let (mut read, mut out) = (BTreeSet::new(), BTreeSet::new());
            for instr in &thread.body {
                let place = instr.op.place().and_then(|(_, addr)| named(addr.base));
                let (reads, writes) = match instr.op.access() {
                    Some(Access::Load(_)) => (place, None),
                    Some(Access::Store(_)) => (None, place),
                    Some(Access::Update) => (place, place),
                    None => (None, None),
                };
                out.extend(writes.into_iter().flat_map(|w| read.iter().map(move |r| (*r, w))));
                read.extend(reads);
            }
            out
        })
        .collect()
}

fn load_buffering(program: &Program) -> bool {
    let passages = passages(program);
    fn ring(passages: &[BTreeSet<(u16, u16)>], used: &mut Vec<usize>, first: u16, now: u16) -> bool {
        if used.len() > 1 && now == first {
            return true;
        }
        (0..passages.len()).any(|t| {
            !used.contains(&t)
                && passages[t].iter().filter(|(r, _)| *r == now).any(|(_, w)| {
                    used.push(t);
                    let found = ring(passages, used, first, *w);
                    used.pop();
                    found
                })
        })
    }
    let starts: BTreeSet<u16> = passages.iter().flatten().map(|(r, _)| *r).collect();
    starts.into_iter().any(|s| ring(&passages, &mut Vec::new(), s, s))
}
