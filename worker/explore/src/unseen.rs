//! Accesses nobody looks at, by the text of the program.
//!
//! A register is *needed* if a condition names it, a memory instruction, fence, barrier or guard uses it, or arithmetic
//! on it gives one that is. A load is unseen if it fills no needed register. An object is unseen if every load from it is,
//! no compare-and-swap touches it, no atomic on it hands back a needed value, and its writers are stores and exchanges
//! only, or atomics of one kind that commutes only; then they are unseen too. Threads that loop have no unseen access, and
//! neither has a program with anything but ordinary accesses, fences and CTA barriers. Where some address of a store or an
//! atomic is computed, any object may be meant.

use crate::alike::ordinary;
use crate::flow::{defines, register_only, uses};
use crate::leaf::asked;
use crate::memory::{base_symbol, memory_operand};
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
            match &thread.body[pc].op {
                Op::Load { .. } => on.reads && idle[t][pc],
                Op::Store { addr, .. } | Op::Rmw { addr, .. } => {
                    base_symbol(thread, addr).is_some_and(|s| chosen(program.symbols[s.index()].object))
                }
                _ => false,
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
        matches!(i.op, Op::Load { .. } | Op::Rmw { .. }) && defines(&i.op).iter().all(|r| !needed.contains(r))
    };
    body.iter().map(|i| !loops && one(i)).collect()
}

fn needed(program: &Program, thread: usize, bug: Option<Planted>) -> BTreeSet<Reg> {
    let body = &program.threads[thread].body;
    let named = asked(program).registers.into_iter().filter(|(t, _)| t.index() == thread).map(|(_, r)| r);
    let named = named.filter(|_| bug != Some(Planted::UnseenAsked));
    let mut needed: BTreeSet<Reg> = named.collect();
    for i in body {
        let all = !register_only(&i.op);
        needed.extend(uses(i).into_iter().filter(|r| all || i.guard.is_some_and(|g| g.reg == *r)));
    }
    loop {
        let before = needed.len();
        for i in body {
            if defines(&i.op).iter().any(|r| needed.contains(r)) {
                needed.extend(uses(i));
            }
        }
        if needed.len() == before {
            return needed;
        }
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
            let Some((addr, ..)) = memory_operand(&instr.op) else { continue };
            let there = base_symbol(thread, addr).map(|s| &program.symbols[s.index()]);
            if there.is_some_and(|s| s.object.index() != object && s.multimem.is_empty()) {
                continue;
            }
            let seen = there.is_none_or(|s| !s.multimem.is_empty()) || loops;
            let kind = match &instr.op {
                _ if seen => Writers::Seen,
                Op::Load { .. } if (on.reads && idle[t][pc]) || bug == Some(Planted::UnseenRead) => continue,
                Op::Store { .. } => Writers::Blind,
                Op::Rmw { op: AtomOp::Exch, .. } if idle[t][pc] => Writers::Blind,
                Op::Rmw { op, ty, a, .. } if idle[t][pc] => {
                    family(*op, *ty, *a).map_or(Writers::Seen, Writers::Family)
                }
                _ => Writers::Seen,
            };
            out = match (out, kind) {
                (Writers::None, kind) => kind,
                (Writers::Family(_), Writers::Family(_)) if bug == Some(Planted::MixedFamilies) => kind,
                (a, b) if a == b => a,
                _ => Writers::Seen,
            };
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
