//! Accesses that no condition observes, found from the program text alone.
//!
//! A register is *needed* if a condition names it, if a memory instruction, fence, barrier or guard uses it, or if arithmetic
//! on it gives a needed register. A load is unobserved if it fills no needed register. An object is unobserved if
//!
//! - every load from it is unobserved,
//! - no compare-and-swap touches it, and no atomic on it returns a needed value,
//! - its writers are stores and exchanges only, or atomics of one commuting kind only.
//!
//! Then its writers are unobserved too. An access of a tile is unobserved if each of its elements is; a token orders events,
//! and no value changes it, so a token needs nothing. A thread that loops has no unobserved access. Neither has a program
//! with anything but ordinary accesses, those of tile blocks, fences and CTA barriers. If an address of a store or an atomic
//! is computed, it may be any object.

use crate::graph::event::Event;
use crate::graph::events::Events;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::planted::Planted;
use crate::reduce::Reductions;
use crate::reduce::symmetry::ordinary;
use crate::thread::footprint::base_symbol;
use crate::thread::ids::Table;
use crate::thread::operands::{defines, uses};
use moire_execution::leaf::asked;
use moire_program::ir::*;
use moire_program::registers::only_registers;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::BTreeSet;

/// What is known of the accesses of a program.
#[derive(Clone, Debug)]
pub(crate) struct Unobserved {
    /// By thread and pc: placed when nothing else is left.
    late: Table<ThreadId, Vec<bool>>,
    /// Objects whose writers are atomics that commute.
    pub(crate) commuting: BTreeSet<ObjectId>,
}

/// Who writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    /// None.
    None,
    /// Whatever they read, they write the same.
    Blind,
    /// Atomics that commute with each other.
    Family(Family),
    /// Some that are observed, or of different kinds.
    Seen,
}

/// What two atomics have in common that commute, and the operand where it matters.
type Family = (AtomOp, Ty, Option<i128>);

impl Unobserved {
    /// `None` where there is nothing to gain.
    pub(crate) fn new(program: &Program, on: Reductions, bug: Option<Planted>) -> Option<Unobserved> {
        let any = on.reads || on.writes || on.atomics;
        if !any || program.launched || !program.threads.iter().flat_map(|t| &t.body).all(|i| ordinary(&i.op))
        {
            return None;
        }
        let threads = || (0..program.threads.len()).map(ThreadId::at);
        let idle: Table<ThreadId, Vec<bool>> = threads().map(|t| idle(program, t, bug)).collect();
        let writers: Vec<Writers> =
            (0..program.objects.len()).map(|o| writers(program, ObjectId::at(o), &idle, on, bug)).collect();
        let chosen = |o: ObjectId| match writers[o.index()] {
            Writers::Blind => on.writes,
            Writers::Family(_) => on.atomics,
            Writers::None | Writers::Seen => false,
        };
        let late = |t: ThreadId, pc: usize| {
            let thread = &program.threads[t.index()];
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
        let of_thread =
            |t: ThreadId| (0..program.threads[t.index()].body.len()).map(|pc| late(t, pc)).collect();
        let late: Table<ThreadId, Vec<bool>> = threads().map(of_thread).collect();
        let commuting =
            (0..writers.len()).filter(|o| matches!(writers[*o], Writers::Family(_))).map(ObjectId::at);
        late.iter().flatten().any(|l| *l).then(|| Unobserved { commuting: commuting.collect(), late })
    }

    /// Whether the events of an instruction wait for all others.
    fn late(&self, thread: ThreadId, pc: usize) -> bool {
        self.late[thread][pc]
    }

    /// Whether an event waits until nothing else is left.
    pub(crate) fn is_late(&self, event: &Event) -> bool {
        event.thread.is_some_and(|t| self.late(t, event.emitted.pc))
    }

    /// The first event that waited and can be placed: writes, so that no read is left open for one, then atomics.
    pub(crate) fn next<const W: usize>(&self, events: &Events<'_, W>) -> Option<EventId> {
        let absent = |id: &EventId| !row::has(&events.present, *id) && self.is_late(&events[*id]);
        let mut late = events.of_threads().filter(absent);
        let mut reads = late.clone().filter(|id| !events[*id].is_write());
        let write = late.find(|id| events[*id].is_write() && events.ready(*id));
        write.or_else(|| reads.find(|id| events[*id].is_rmw()))
    }
}

/// By pc: nothing needs what the instruction reads.
fn idle(program: &Program, thread: ThreadId, bug: Option<Planted>) -> Vec<bool> {
    let body = &program.threads[thread.index()].body;
    let loops = body.iter().enumerate().any(|(pc, i)| matches!(i.op, Op::Bra { target } if target <= pc));
    let needed = needed(program, thread, bug);
    let one = |i: &Instr| {
        let reads = touched(&i.op).first().is_some_and(|(_, does)| *does != Does::Store);
        reads && defines(&i.op).iter().all(|r| !needed.contains(r))
    };
    body.iter().map(|i| !loops && one(i)).collect()
}

fn needed(program: &Program, thread: ThreadId, bug: Option<Planted>) -> BTreeSet<Reg> {
    let body = &program.threads[thread.index()].body;
    let named = asked(program).registers.into_iter().filter(|(t, _)| *t == thread).map(|(_, r)| r);
    let named = named.filter(|_| bug != Some(Planted::UnseenAsked));
    let mut needed: BTreeSet<Reg> = named.collect();
    let tokens = tokens(body);
    let used = |i: &Instr| uses(i).into_iter().filter(|r| !tokens.contains(r)).collect::<Vec<Reg>>();
    for i in body {
        let all = !only_registers(&i.op);
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
        Op::Tile(_) | jump_op!() | register_op!() | fence_op!() | barrier_op!() => Vec::new(),
        // A program with one of these has no unobserved access.
        multimem_op!() | Op::Mbarrier(_) => Vec::new(),
        unit_op!() | Op::Control(_) => Vec::new(),
        Op::Book(_) => Vec::new(),
    }
}

fn writers(
    program: &Program,
    object: ObjectId,
    idle: &Table<ThreadId, Vec<bool>>,
    on: Reductions,
    bug: Option<Planted>,
) -> Writers {
    let mut out = Writers::None;
    for (t, thread) in program.threads.iter().enumerate().map(|(t, thread)| (ThreadId::at(t), thread)) {
        let loops =
            thread.body.iter().enumerate().any(|(pc, i)| matches!(i.op, Op::Bra { target } if target <= pc));
        for (pc, instr) in thread.body.iter().enumerate() {
            for (addr, does) in touched(&instr.op) {
                let there = base_symbol(thread, addr).map(|s| &program.symbols[s.index()]);
                if there.is_some_and(|s| s.object != object && s.multimem.is_empty()) {
                    continue;
                }
                let seen = there.is_none_or(|s| !s.multimem.is_empty()) || loops;
                let kind = match does {
                    _ if seen => Writers::Seen,
                    Does::Load if (on.reads && idle[t][pc]) || bug == Some(Planted::UnseenRead) => {
                        continue;
                    }
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
