//! One instruction of one thread: what it needs, what it does to objects, and how knowledge moves.
//!
//! The transitions follow PTX ISA 9.2, 8.9 and 9.7.16.6. Each file is about one family of instructions.

mod allocator;
mod barrier;
mod copy;
mod fence;
mod launch;
mod mbarrier;
mod memory;
mod place;
mod registers;
mod tensor;

pub(crate) use allocator::suspects;
pub(crate) use memory::level_needed;

use crate::engine::{At, Engine, known};
use crate::finding::{Kind, Stop};
use crate::rows::Rows;
use crate::state::{Completion, State};
use crate::value::Val;
use moire_program::ir::{Control, Instr, MbarrierOp, MbarrierWait, Op, Tcgen05};
use moire_program::registers::only_registers;

/// Most asynchronous operations under way where they complete late, without and with free loops: those have many states.
const PENDING: [usize; 2] = [24, 1];

/// What a step of a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Nothing: it waits, or has exited.
    Blocked,
    /// It executed an instruction.
    On,
    /// It executed an instruction that waits for other threads.
    Waited,
}

/// Executes the next instruction of a thread.
pub(crate) fn step(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<Moved, Stop> {
    if s.threads[thread].exited || s.threads[thread].held {
        return Ok(Moved::Blocked);
    }
    let program = e.program;
    let Some(instr) = program.threads[thread].body.get(s.threads[thread].pc) else {
        leave(e, s, thread)?;
        return Ok(Moved::On);
    };
    e.steps += 1;
    let lanes = program.threads[thread].place.lanes().count_ones();
    let mut at = At { thread, cta: e.layout.cta_of[thread], instr, lanes };
    match guarded(s, at)? {
        Guarded::All => {}
        Guarded::One => at.lanes = 1,
        Guarded::None => {
            s.threads[thread].pc += 1;
            return Ok(Moved::On);
        }
        Guarded::Unknown if only_registers(&instr.op) => {
            moire_program::registers::written(&instr.op, &mut |reg| {
                s.threads[thread].regs[reg.index()] = Val::Unknown;
            });
            s.threads[thread].pc += 1;
            return Ok(Moved::On);
        }
        Guarded::Unknown => return Err(at.abstain("a guard that comes from memory or differs among lanes")),
    }
    if e.settings.complete_by_use {
        tensor::reading(e, s, at);
    }
    let before = s.threads[thread].pc;
    let moved = execute(e, s, at)?;
    if !e.mode.every_order {
        while complete_oldest(e, s, PENDING[usize::from(!e.mode.instances)])? {}
    }
    if moved != Moved::Blocked && s.threads[thread].pc == before && !jumps(&instr.op) {
        s.threads[thread].pc += 1;
    }
    Ok(moved)
}

fn jumps(op: &Op) -> bool {
    matches!(op, Op::Bra { .. } | Op::Exit)
}

enum Guarded {
    All,
    /// One lane of the warp.
    One,
    None,
    Unknown,
}

fn guarded(s: &State, at: At<'_>) -> Result<Guarded, Stop> {
    let Some(guard) = at.instr.guard else { return Ok(Guarded::All) };
    Ok(match s.threads[at.thread].regs[guard.reg.index()] {
        Val::Known(value) if (value != 0) != guard.negated => Guarded::All,
        Val::Known(_) => Guarded::None,
        Val::Elected if !guard.negated && !jumps(&at.instr.op) && !only_registers(&at.instr.op) => {
            Guarded::One
        }
        Val::Elected | Val::Unknown => Guarded::Unknown,
    })
}

/// The thread ends.
fn leave(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<(), Stop> {
    s.threads[thread].pc = e.program.threads[thread].body.len();
    launch::exit(e, s, thread)?;
    barrier::without(e, s, thread)
}

fn execute(e: &mut Engine<'_>, s: &mut State, at: At<'_>) -> Result<Moved, Stop> {
    let moved = |goes: bool| if goes { Moved::Waited } else { Moved::Blocked };
    match &at.instr.op {
        op if only_registers(op) && !barrier::elects_together(e, s, at) => {
            registers::compute(e, s, at);
            Ok(Moved::On)
        }
        Op::Bra { target } => {
            s.threads[at.thread].pc = *target;
            Ok(Moved::On)
        }
        Op::Exit => leave(e, s, at.thread).map(|()| Moved::On),
        Op::Load { .. } | Op::Store { .. } => memory::plain(e, s, at).map(|()| Moved::On),
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) => {
            fence::fence(e, s, at).map(|()| Moved::On)
        }
        Op::Bar { .. } | Op::WarpSync { .. } => barrier::meet(e, s, at).map(moved),
        Op::ClusterArrive { .. } => barrier::cluster(e, s, at).map(|_| Moved::On),
        Op::ClusterWait => barrier::cluster(e, s, at).map(moved),
        Op::Mbarrier(op) => match &op.op {
            MbarrierOp::Wait(wait) => {
                let of = crate::engine::object(e, s, at, &op.addr)?;
                let odd = known(e, s, at, wait.phase)? & 1 == 1;
                awaits(e, s, at, (of, odd), wait).map(moved)
            }
            _ => mbarrier::operation(e, s, at, op).map(|()| Moved::On),
        },
        Op::Tcgen05(op) => tensor_core(e, s, at, op),
        Op::AsyncCopy(op) => copy::copy(e, s, at, op).map(|()| Moved::On),
        Op::Control(Control::Elect { .. } | Control::Collective(_)) => {
            let goes = barrier::meet(e, s, at)?;
            registers::compute(e, s, at);
            Ok(moved(goes))
        }
        Op::Control(_) => copy::control(e, s, at).map(|()| Moved::On),
        op => Err(at.abstain(name(op))),
    }
}

/// An instruction of the tensor cores: the lanes of a warp meet before one that the whole warp executes.
fn tensor_core(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<Moved, Stop> {
    if barrier::gather(e, s, at, op)? {
        return Ok(Moved::Blocked);
    }
    let goes = match op {
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {
            allocator::allocator(e, s, at, op)?
        }
        _ => {
            tensor::tensor(e, s, at, op)?;
            s.threads[at.thread].met = false;
            return Ok(Moved::On);
        }
    };
    s.threads[at.thread].met &= !goes;
    Ok(if goes { Moved::Waited } else { Moved::Blocked })
}

/// The name of an instruction that no step executes.
fn name(op: &Op) -> &'static str {
    match op {
        Op::Rmw { .. } => "an atomic operation",
        Op::MultimemLoad { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } => "multimem",
        op => op.extended().unwrap_or("this instruction"),
    }
}

/// A wait in a loop that only waits.
fn awaits(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (of, odd): (crate::record::Object, bool),
    wait: &MbarrierWait,
) -> Result<bool, Stop> {
    if !registers::spins(e, s, at, wait.dst) {
        return Err(at.abstain("a wait for an mbarrier whose answer decides more than whether to wait on"));
    }
    if !mbarrier::wait(e, s, at, (of, odd), wait)? {
        return Ok(false);
    }
    s.threads[at.thread].regs[wait.dst.index()] = Val::Known(1);
    Ok(true)
}

/// Completes an asynchronous operation that is under way.
pub(crate) fn complete(
    e: &mut Engine<'_>,
    s: &mut State,
    (completion, vector): (Completion, Rows),
) -> Result<(), Stop> {
    if !s.mbarriers.get(&completion.of).is_some_and(|m| m.valid) {
        let text =
            format!("{}: invalidated while a completion is under way", e.name_of_object(completion.of));
        e.find(Kind::Lifetime, text, vec![completion.place]);
        return Ok(());
    }
    mbarrier::add(e, s, completion.place, completion.of, vec![(completion.class, vector)], completion.added)
}

/// Completes the oldest operation under way if there are more than `most`. Returns whether it did.
pub(crate) fn complete_oldest(e: &mut Engine<'_>, s: &mut State, most: usize) -> Result<bool, Stop> {
    if s.pending.len() <= most {
        return Ok(false);
    }
    let oldest = s.pending.remove(0);
    complete(e, s, oldest)?;
    Ok(true)
}

/// What a thread that cannot go on waits for.
pub(crate) fn waits_for(e: &Engine<'_>, s: &State, thread: usize) -> String {
    let body = &e.program.threads[thread].body;
    let Some(instr) = body.get(s.threads[thread].pc) else { return "nothing".to_owned() };
    match stalled(e, s, thread, instr) {
        Some(text) => text,
        None => match &instr.op {
            Op::ClusterWait => "waits at the cluster barrier".to_owned(),
            Op::Bar { .. } => "waits at a barrier".to_owned(),
            Op::WarpSync { .. } => "waits for lanes of its warp".to_owned(),
            op => format!("waits in {}", op.extended().unwrap_or("an instruction")),
        },
    }
}

/// What the phase of an mbarrier lacks that a thread waits for.
fn stalled(e: &Engine<'_>, s: &State, thread: usize, instr: &Instr) -> Option<String> {
    let Op::Mbarrier(op) = &instr.op else { return None };
    let at = At { thread, cta: e.layout.cta_of[thread], instr, lanes: 1 };
    let of = crate::engine::object(e, s, at, &op.addr).ok()?;
    let name = e.name_of_object(of);
    Some(match s.mbarriers.get(&of).filter(|m| m.valid) {
        Some(m) => {
            format!("waits for {name}: {} of {} arrivals and {} bytes are missing", m.pending, m.count, m.tx)
        }
        None => format!("waits for {name}, which is not initialised"),
    })
}
