//! Accesses nobody looks at, by the text of the program.
//!
//! A register is *needed* if a condition names it, a memory instruction, fence, barrier or guard uses it, or arithmetic
//! on it gives one that is. A load is unseen if it fills no needed register. An object is unseen if every load from it is,
//! no compare-and-swap touches it, no atomic on it hands back a needed value, and its writers are stores and exchanges
//! only, or atomics of one kind that commutes only; then they are unseen too. An access of a tile is unseen if each of its
//! elements is; its token says what comes before what, which no value changes, so that a token needs nothing. Threads that
//! loop have no unseen access, and neither has a program with anything but ordinary accesses, those of tile blocks, fences
//! and CTA barriers. Where some address of a store or an atomic is computed, any object may be meant.

use crate::alike::ordinary;
use crate::flow::{defines, register_only, uses};
use crate::leaf::asked;
use crate::memory::base_symbol;
use crate::planted::Planted;
use crate::reduce::Reductions;
use moire_program::ir::*;
use std::collections::BTreeSet;

/// What is known of the accesses of a program.
#[derive(Clone, Debug)]
pub(crate) struct Unseen {
    /// By thread and pc: placed when nothing else is left.
    late: Vec<Vec<bool>>,
    /// Objects whose writers are atomics that commute.
    pub(crate) commuting: BTreeSet<ObjectId>,
}

/// Who writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// Nobody.
    None,
    /// Whatever they read, they write the same.
    Blind,
    /// Atomics that commute with each other.
    Family(Family),
    /// Somebody who is seen, or no two of a kind.
    Seen,
}

/// What two atomics have in common that commute, and the operand where it matters.
type Family = (AtomOp, Ty, Option<i128>);

impl Unseen {
    /// `None` where there is nothing to gain.
    pub(crate) fn new(program: &Program, on: Reductions, bug: Option<Planted>) -> Option<Unseen> {
        let any = on.reads || on.writes || on.atomics;
        if !any || program.launched || !program.threads.iter().flat_map(|t| &t.body).all(|i| ordinary(&i.op))
        {
            return None;
        }
        let idle: Vec<Vec<bool>> = (0..program.threads.len()).map(|t| idle(program, t, bug)).collect();
        let writers: Vec<Writers> =
            (0..program.objects.len()).map(|o| writers(program, o, &idle, on, bug)).collect();
        let chosen = |o: ObjectId| match writers[o.index()] {
            Writers::Blind => on.writes,
            Writers::Family(_) => on.atomics,
            Writers::None | Writers::Seen => false,
        };
        let late = |t: usize, pc: usize| {
            let thread = &program.threads[t];
            let there = |addr: &Address| {
                base_symbol(thread, addr).is_some_and(|s| chosen(program.symbols[s.index()].object))
            };
            let touched = touched(&thread.body[pc].op);
            let few = if bug == Some(Planted::FirstElement) { 1 } else { touched.len() };
            match touched.first() {
                None => false,
                Some((_, Does::Load)) => on.reads && idle[t][pc],
                Some(_) => touched[..few].iter().all(|(addr, _)| there(addr)),
            }
        };
        let late: Vec<Vec<bool>> = (0..program.threads.len())
            .map(|t| (0..program.threads[t].body.len()).map(|pc| late(t, pc)).collect())
            .collect();
        let object = |o: usize| ObjectId(u16::try_from(o).unwrap_or(u16::MAX));
        let commuting = (0..writers.len()).filter(|o| matches!(writers[*o], Writers::Family(_))).map(object);
        late.iter().flatten().any(|l| *l).then(|| Unseen { commuting: commuting.collect(), late })
    }

    /// Whether the events of an instruction wait for all others.
    pub(crate) fn late(&self, thread: usize, pc: usize) -> bool {
        self.late[thread][pc]
    }
}

/// By pc: nothing needs what the instruction reads.
fn idle(program: &Program, thread: usize, bug: Option<Planted>) -> Vec<bool> {
    let body = &program.threads[thread].body;
    let loops = body.iter().enumerate().any(|(pc, i)| matches!(i.op, Op::Bra { target } if target <= pc));
    let needed = needed(program, thread, bug);
    let one = |i: &Instr| {
        let reads = touched(&i.op).first().is_some_and(|(_, does)| *does != Does::Store);
        reads && defines(&i.op).iter().all(|r| !needed.contains(r))
    };
    body.iter().map(|i| !loops && one(i)).collect()
}

fn needed(program: &Program, thread: usize, bug: Option<Planted>) -> BTreeSet<Reg> {
    let body = &program.threads[thread].body;
    let named = asked(program).registers.into_iter().filter(|(t, _)| t.index() == thread).map(|(_, r)| r);
    let named = named.filter(|_| bug != Some(Planted::UnseenAsked));
    let mut needed: BTreeSet<Reg> = named.collect();
    let tokens = tokens(body);
    let used = |i: &Instr| uses(i).into_iter().filter(|r| !tokens.contains(r)).collect::<Vec<Reg>>();
    for i in body {
        let all = !register_only(&i.op);
        needed.extend(used(i).into_iter().filter(|r| all || i.guard.is_some_and(|g| g.reg == *r)));
    }
    loop {
        let before = needed.len();
        for i in body {
            if defines(&i.op).iter().any(|r| needed.contains(r)) {
                needed.extend(used(i));
            }
        }
        if needed.len() == before {
            return needed;
        }
    }
}

/// Registers that only ever hold tokens.
fn tokens(body: &[Instr]) -> BTreeSet<Reg> {
    let token = |i: &Instr| if let Op::Tile(op) = &i.op { op.token() } else { None };
    let values = |i: &Instr| {
        let token = token(i);
        let mut written = defines(&i.op);
        // A register that an instruction writes twice holds a value as well.
        if let Some(at) = written.iter().position(|r| Some(*r) == token) {
            written.remove(at);
        }
        written
    };
    let other: BTreeSet<Reg> = body.iter().flat_map(values).collect();
    body.iter().filter_map(token).filter(|r| !other.contains(r)).collect()
}

/// What an instruction does at a place it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Load,
    Store,
    Atomic(AtomOp, Ty, Operand),
}

/// The places an ordinary access names, or those of the elements of a tile.
fn touched(op: &Op) -> Vec<(&Address, Does)> {
    match op {
        Op::Load { addr, .. } => vec![(addr, Does::Load)],
        Op::Store { addr, .. } => vec![(addr, Does::Store)],
        Op::Rmw { addr, op, ty, a, .. } => vec![(addr, Does::Atomic(*op, *ty, *a))],
        Op::Tile(TileOp::Access(access)) => {
            let does = |e: &TileElement| match access.kind {
                TileKind::Load(_) => Does::Load,
                TileKind::Store(_) => Does::Store,
                TileKind::Rmw { op, .. } => Does::Atomic(op, access.ty, e.a.unwrap_or(Operand::Imm(0))),
            };
            access.elements.iter().map(|e| (&e.addr, does(e))).collect()
        }
        _ => Vec::new(),
    }
}

fn writers(
    program: &Program,
    object: usize,
    idle: &[Vec<bool>],
    on: Reductions,
    bug: Option<Planted>,
) -> Writers {
    let mut out = Writers::None;
    for (t, thread) in program.threads.iter().enumerate() {
        let loops =
            thread.body.iter().enumerate().any(|(pc, i)| matches!(i.op, Op::Bra { target } if target <= pc));
        for (pc, instr) in thread.body.iter().enumerate() {
            for (addr, does) in touched(&instr.op) {
                let there = base_symbol(thread, addr).map(|s| &program.symbols[s.index()]);
                if there.is_some_and(|s| s.object.index() != object && s.multimem.is_empty()) {
                    continue;
                }
                let seen = there.is_none_or(|s| !s.multimem.is_empty()) || loops;
                let kind = match does {
                    _ if seen => Writers::Seen,
                    Does::Load if (on.reads && idle[t][pc]) || bug == Some(Planted::UnseenRead) => continue,
                    Does::Store => Writers::Blind,
                    Does::Atomic(AtomOp::Exch, ..) if idle[t][pc] => Writers::Blind,
                    Does::Atomic(op, ty, a) if idle[t][pc] => {
                        family(op, ty, a).map_or(Writers::Seen, Writers::Family)
                    }
                    Does::Load | Does::Atomic(..) => Writers::Seen,
                };
                out = match (out, kind) {
                    (Writers::None, kind) => kind,
                    (Writers::Family(_), Writers::Family(_)) if bug == Some(Planted::MixedFamilies) => kind,
                    (a, b) if a == b => a,
                    _ => Writers::Seen,
                };
            }
        }
    }
    out
}

/// Atomics that give one result in every order; of increments and decrements only those with one bound do.
fn family(op: AtomOp, ty: Ty, a: Operand) -> Option<Family> {
    let number = matches!(ty, Ty::B(_) | Ty::U(_) | Ty::S(_)) && ty.bytes() <= 8;
    let bound = if let Operand::Imm(n) = a { Some(n) } else { None };
    match op {
        _ if !number => None,
        AtomOp::Add | AtomOp::Sub => Some((AtomOp::Add, ty, None)),
        AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Min | AtomOp::Max => Some((op, ty, None)),
        AtomOp::Inc | AtomOp::Dec => bound.map(|n| (op, ty, Some(n))),
        AtomOp::Exch | AtomOp::Cas => None,
    }
}
