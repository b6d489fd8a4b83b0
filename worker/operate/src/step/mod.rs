//! One instruction of one thread: what it needs, what it does to objects, and how knowledge moves.
//!
//! The transitions follow PTX ISA 9.2, 8.9 and 9.7.16.6. Each file is about one family of instructions.

mod allocator;
mod barrier;
mod book;
mod copy;
mod fence;
mod launch;
mod mbarrier;
mod memory;
mod place;
mod registers;
mod tensor;
mod warpgroup;

pub(crate) use allocator::suspects;
pub(crate) use launch::may_outlive;
pub(crate) use memory::level_needed;

use crate::engine::{At, Engine, known};
use crate::finding::{Kind, Stop};
use crate::planted::Planted;
use crate::record::AccessKind;
use crate::rows::Rows;
use crate::state::{Arm, Completion, State, ThreadState};
use crate::value::{Val, each_lane};
use moire_program::ir::{
    Control, Goes, Instr, LoadOrder, MbarrierOp, MbarrierWait, Op, Proxy, Scope, StoreOrder, Tcgen05,
};
use moire_program::registers::only_registers;
use moire_program::{fence_op, multimem_op, register_op};
use std::collections::BTreeSet;

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
    /// Nothing yet: it asks whether a phase is over, and goes on with either answer ([`peeked`]).
    Peeks,
}

/// Executes the next instruction of a thread.
pub(crate) fn step(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<Moved, Stop> {
    if s.threads[thread].exited || s.threads[thread].held {
        return Ok(Moved::Blocked);
    }
    let program = e.program;
    reconverge(&mut s.threads[thread], e.has(Planted::ArmsKnow));
    let Some(instr) = program.threads[thread].body.get(s.threads[thread].pc) else {
        leave(e, s, thread)?;
        return Ok(Moved::On);
    };
    e.steps += 1;
    let lanes = s.threads[thread].active.count_ones();
    let mut at = At { thread, cta: e.layout.cta_of[thread], instr, lanes };
    if s.threads[thread].arms.iter().any(|arm| arm.meet == s.threads[thread].pc) {
        return Err(at.abstain("lanes that come to where others wait before those that wait elsewhere"));
    }
    if !s.threads[thread].arms.is_empty() && together(&instr.op) {
        return Err(at.abstain("an instruction of a whole warp that only some lanes execute"));
    }
    match guarded(e, s, at) {
        Guarded::All => {}
        Guarded::Some(lanes) => at.lanes = lanes,
        Guarded::None => {
            s.threads[thread].pc += 1;
            return Ok(Moved::On);
        }
        Guarded::Parted(some) => {
            return part(e, s, at, some).map(|()| Moved::On);
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
    if !s.threads[thread].met {
        warpgroup::registers(e, s, at);
    }
    let before = s.threads[thread].pc;
    let moved = execute(e, s, at)?;
    if !e.mode.every_order {
        while complete_oldest(e, s, PENDING[usize::from(!e.mode.instances)])? {}
    }
    if !matches!(moved, Moved::Blocked | Moved::Peeks) && s.threads[thread].pc == before && !jumps(&instr.op)
    {
        s.threads[thread].pc += 1;
    }
    Ok(moved)
}

fn jumps(op: &Op) -> bool {
    matches!(op, Op::Bra { .. } | Op::Exit)
}

enum Guarded {
    All,
    /// So many lanes of the warp.
    Some(u32),
    /// A branch that these lanes take and others do not.
    Parted(u32),
    None,
    Unknown,
}

fn guarded(e: &Engine<'_>, s: &State, at: At<'_>) -> Guarded {
    let Some(guard) = at.instr.guard else { return Guarded::All };
    let ThreadState { regs, active, .. } = &s.threads[at.thread];
    let truth = match regs[guard.reg.index()] {
        Val::Known(value) => Some(if value != 0 { u32::MAX } else { 0 }),
        Val::Lanes(some) => Some(some),
        Val::Lane | Val::Shifted(_) | Val::Unknown => None,
    };
    let some = truth.map(|some| if guard.negated { !some } else { some } & *active);
    let parts = matches!(at.instr.op, Op::Bra { .. }) && e.program.threads[at.thread].place.joined;
    match some {
        None => Guarded::Unknown,
        Some(0) => Guarded::None,
        Some(all) if all == *active => Guarded::All,
        Some(some) if parts => Guarded::Parted(some),
        Some(_) if jumps(&at.instr.op) || only_registers(&at.instr.op) => Guarded::Unknown,
        Some(some) => Guarded::Some(some.count_ones()),
    }
}

/// Whether all lanes of a warp execute an instruction, or none.
fn together(op: &Op) -> bool {
    match op {
        Op::Bar { .. } | Op::WarpSync { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::Exit => true,
        Op::Control(Control::Ignored(_) | Control::TryCancel { .. }) => false,
        Op::Control(_) => true,
        Op::Tcgen05(op) => !op.by_one_thread() && !matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter),
        Op::Wgmma(_) | Op::Tile(_) => true,
        register_op!() | multimem_op!() | fence_op!() => false,
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::AsyncCopy(_) => false,
        Op::Bra { .. } | Op::Book(_) => false,
    }
}

/// Lanes that took a branch have come to where the others are. A register has the value of each lane there.
pub(crate) fn reconverge(thread: &mut ThreadState, know: bool) {
    while thread.arms.last().is_some_and(|arm| arm.meet == thread.pc) {
        let Some(arm) = thread.arms.pop() else { return };
        let ran = std::mem::replace(&mut thread.active, arm.lanes);
        for (now, others) in thread.regs.iter_mut().zip(arm.regs).filter(|(now, others)| **now != *others) {
            let own = *now;
            if !know {
                *now = each_lane(arm.lanes, |lane| {
                    if ran >> lane & 1 == 1 { own } else { others }.in_lane(lane)
                });
            }
        }
    }
}

/// Some lanes go one way at a branch, and the others another way. One of the ways leads at once to where they meet: the
/// lanes that go the other way run alone until then. Program order is that of the warp.
fn part(e: &Engine<'_>, s: &mut State, at: At<'_>, some: u32) -> Result<(), Stop> {
    let Op::Bra { target } = at.instr.op else { return Ok(()) };
    let body = &e.program.threads[at.thread].body;
    let thread = &mut s.threads[at.thread];
    let next = thread.pc + 1;
    let ways = [(target, next, thread.active & !some), (next, target, some)];
    for (idle, busy, lanes) in ways {
        let meet = straight(body, idle);
        if leads_to(body, busy, meet) {
            thread.arms.push(Arm { meet, lanes: thread.active, regs: thread.regs.clone() });
            (thread.active, thread.pc) = (lanes, busy);
            return Ok(());
        }
    }
    Err(at.abstain("a branch with two arms that differs among lanes"))
}

/// Where jumps without a condition lead.
fn straight(body: &[Instr], mut pc: usize) -> usize {
    for _ in 0..body.len() {
        let Some(Instr { guard: None, op: Op::Bra { target }, .. }) = body.get(pc) else { break };
        pc = *target;
    }
    pc
}

/// Whether every way from here comes there, or goes round for ever.
fn leads_to(body: &[Instr], from: usize, to: usize) -> bool {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(pc) = todo.pop() {
        if pc == to || !seen.insert(pc) {
            continue;
        }
        let Some(instr) = body.get(pc) else { return false };
        let on = instr.guard.map(|_| pc + 1);
        match instr.op.goes() {
            Goes::To(target) => todo.extend([target].into_iter().chain(on)),
            Goes::End => return false,
            Goes::On | Goes::Opens | Goes::Closes => todo.push(pc + 1),
        }
    }
    true
}

/// Whether some way leads from one instruction to another.
fn reaches(body: &[Instr], from: usize, to: usize) -> bool {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(pc) = todo.pop() {
        let Some(instr) = body.get(pc).filter(|_| seen.insert(pc)) else { continue };
        if pc == to {
            return true;
        }
        let on = instr.guard.map(|_| pc + 1);
        match instr.op.goes() {
            Goes::To(target) => todo.extend([target].into_iter().chain(on)),
            Goes::End => todo.extend(on),
            Goes::On | Goes::Opens | Goes::Closes => todo.push(pc + 1),
        }
    }
    false
}

/// The thread ends.
fn leave(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<(), Stop> {
    s.threads[thread].pc = e.program.threads[thread].body.len();
    launch::exit(e, s, thread)?;
    barrier::without(e, s, thread)
}

/// Refuses a strong load that may be one of several, for which a thread waits, and one that is none of a GPU program.
fn asks_once(e: &Engine<'_>, s: &State, at: At<'_>, order: LoadOrder) -> Result<(), Stop> {
    if matches!(order, LoadOrder::MmioRelaxed | LoadOrder::MmioAcquire | LoadOrder::SeqCst(_)) {
        return Err(at.abstain("a load of a device, or of a source program"));
    }
    let pc = s.threads[at.thread].pc;
    if reaches(&e.program.threads[at.thread].body, pc + 1, pc) {
        return Err(at.abstain("a strong load in a loop, which may wait for another thread"));
    }
    Ok(())
}

/// The scope of a strong store.
fn scope_of(at: At<'_>, order: StoreOrder) -> Result<Scope, Stop> {
    match order {
        StoreOrder::Relaxed(scope) | StoreOrder::Release(scope) => Ok(scope),
        StoreOrder::Weak | StoreOrder::Volatile | StoreOrder::SeqCst(_) => {
            Err(at.abstain("a store that is volatile or of a source program"))
        }
        StoreOrder::MmioRelaxed | StoreOrder::MmioRelease => Err(at.abstain("a store of a device")),
    }
}

fn execute(e: &mut Engine<'_>, s: &mut State, at: At<'_>) -> Result<Moved, Stop> {
    let moved = |goes: bool| if goes { Moved::Waited } else { Moved::Blocked };
    match &at.instr.op {
        register_op!() => {
            registers::compute(e, s, at);
            Ok(Moved::On)
        }
        Op::Bra { target } => {
            s.threads[at.thread].pc = *target;
            Ok(Moved::On)
        }
        Op::Exit => leave(e, s, at.thread).map(|()| Moved::On),
        Op::Load { order: LoadOrder::Weak, proxy: Proxy::Generic, space, ty, dst, addr } => {
            memory::load(e, s, at, (*space, *ty, addr), dst).map(|()| Moved::On)
        }
        Op::Store { order: StoreOrder::Weak, proxy: Proxy::Generic, space, ty, addr, src } => {
            memory::store(e, s, at, (*space, *ty, addr), (src, AccessKind::Plain)).map(|()| Moved::On)
        }
        Op::Load { order, proxy: Proxy::Generic, space, ty, dst, addr } => {
            asks_once(e, s, at, *order)?;
            memory::strong(e, s, at, addr, &e.flows.published, "a strong load of what is written strongly")?;
            memory::load(e, s, at, (*space, *ty, addr), dst).map(|()| Moved::On)
        }
        Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src } => {
            memory::strong(e, s, at, addr, &e.flows.observed, "a strong store to what is read strongly")?;
            let strong = AccessKind::Strong(scope_of(at, *order)?);
            memory::store(e, s, at, (*space, *ty, addr), (src, strong)).map(|()| Moved::On)
        }
        Op::Load { .. } | Op::Store { .. } => Err(at.abstain("an access of another proxy")),
        Op::Rmw { .. } => Err(at.abstain("an atomic operation")),
        multimem_op!() => Err(at.abstain("multimem")),
        Op::Fence { order, scope } => fence::fence(e, s, at, (*order, *scope)).map(|()| Moved::On),
        Op::ProxyFence(kinds) => {
            fence::proxies(e, s, at, kinds);
            Ok(Moved::On)
        }
        Op::MbarrierInitFence => {
            fence::mbarrier_init(e, s, at);
            Ok(Moved::On)
        }
        Op::ProxyOrder(order) => fence::ordered(e, s, at, order).map(|()| Moved::On),
        Op::Bar { instance: Some(_), .. } => Err(at.abstain("a barrier without phases")),
        Op::Bar { kind, id, count, instance: None } => {
            barrier::bar(e, s, at, (*kind, *id, *count)).map(moved)
        }
        Op::WarpSync { mask } => barrier::warp(e, s, at, *mask).map(moved),
        Op::ClusterArrive { relaxed } => {
            barrier::cluster_arrive(e, s, at, *relaxed);
            Ok(Moved::On)
        }
        Op::ClusterWait => Ok(moved(barrier::cluster_wait(e, s, at))),
        Op::Mbarrier(op) => match &op.op {
            MbarrierOp::Wait(wait) => {
                let of = crate::engine::object(e, s, at, &op.addr)?;
                let odd = known(e, s, at, wait.phase)? & 1 == 1;
                awaits(e, s, at, (of, odd), wait)
            }
            MbarrierOp::Init { .. }
            | MbarrierOp::Inval
            | MbarrierOp::Arrive(_)
            | MbarrierOp::ExpectTx { .. }
            | MbarrierOp::CompleteTx { .. } => mbarrier::operation(e, s, at, op).map(|()| Moved::On),
        },
        Op::Tcgen05(op) => tensor_core(e, s, at, op),
        Op::AsyncCopy(op) => copy::copy(e, s, at, op).map(|()| Moved::On),
        Op::Control(control) => controlled(e, s, at, control),
        Op::Wgmma(op) => {
            if barrier::gather(e, s, at, op.name())? {
                return Ok(Moved::Blocked);
            }
            warpgroup::wgmma(e, s, at, op)?;
            s.threads[at.thread].met = false;
            Ok(Moved::On)
        }
        Op::Tile(op) => Err(at.abstain(op.name())),
        Op::Book(book) => book::execute(e, s, at, book).map(|()| Moved::On),
    }
}

/// Elections, exchanges and launch control. An answer of launch control is data that no instruction here computes with.
fn controlled(e: &mut Engine<'_>, s: &mut State, at: At<'_>, control: &Control) -> Result<Moved, Stop> {
    let among = match control {
        Control::Elect { mask, .. } if barrier::elects_together(e, s, at, *mask) => (None, *mask),
        Control::Collective(c) => (Some(c.form), c.mask),
        Control::Elect { .. } | Control::QueryCancel { .. } => {
            registers::compute(e, s, at);
            return Ok(Moved::On);
        }
        Control::TryCancel { multicast, addr, mbarrier, .. } => {
            return copy::try_cancel(e, s, at, (*multicast, addr, mbarrier)).map(|()| Moved::On);
        }
        Control::LaunchDependents | Control::WaitDependencies | Control::Ignored(_) => return Ok(Moved::On),
        Control::Repeat(_) | Control::EndRepeat => return Ok(Moved::On),
    };
    let goes = barrier::exchange(e, s, at, among)?;
    registers::compute(e, s, at);
    Ok(if goes { Moved::Waited } else { Moved::Blocked })
}

/// An instruction of the tensor cores: the lanes of a warp meet before one that the whole warp executes.
fn tensor_core(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<Moved, Stop> {
    let single = op.by_one_thread() || matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
    if !single && barrier::gather(e, s, at, op.name())? {
        return Ok(Moved::Blocked);
    }
    let goes = match op {
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {
            allocator::allocator(e, s, at, op)?
        }
        Tcgen05::Load(_)
        | Tcgen05::Store(_)
        | Tcgen05::WaitLoad
        | Tcgen05::WaitStore
        | Tcgen05::Copy { .. }
        | Tcgen05::Shift { .. }
        | Tcgen05::Mma(_)
        | Tcgen05::Commit(_)
        | Tcgen05::FenceBefore
        | Tcgen05::FenceAfter => {
            tensor::tensor(e, s, at, op)?;
            s.threads[at.thread].met = false;
            return Ok(Moved::On);
        }
    };
    s.threads[at.thread].met &= !goes;
    Ok(if goes { Moved::Waited } else { Moved::Blocked })
}

/// A wait. In a loop that only waits it blocks; elsewhere it is asked once, and either answer may come.
fn awaits(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (of, odd): (crate::record::Object, bool),
    wait: &MbarrierWait,
) -> Result<Moved, Stop> {
    let (pc, answer) = (s.threads[at.thread].pc, wait.dst.index());
    let waits = s.threads[at.thread].awaits || e.has(Planted::AlwaysAnswers);
    let blocks = waits || registers::spins(e, s, at, wait.dst);
    if !blocks && !e.mode.every_order {
        return match comes_back(&e.program.threads[at.thread].body, pc) {
            true => Err(at.abstain("a wait for an mbarrier that is asked again after something else")),
            false => Ok(Moved::Peeks),
        };
    }
    let yes = mbarrier::wait(e, s, at, (of, odd), wait)?;
    if blocks && !yes {
        return Ok(Moved::Blocked);
    }
    s.threads[at.thread].awaits = false;
    s.threads[at.thread].regs[answer] = Val::Known(u128::from(yes));
    Ok(Moved::Waited)
}

/// Whether branches lead from behind an instruction back to it.
fn comes_back(body: &[Instr], pc: usize) -> bool {
    let back = body.iter().skip(pc).any(|i| matches!(i.op, Op::Bra { target } if target <= pc));
    back && reaches(body, pc + 1, pc)
}

/// The two states after a thread has asked once whether a phase is over: it has answered with no, or it will answer with yes.
///
/// With no, the wait does nothing. With yes, it is a wait that blocks; where it blocks for ever, there is no such run. It has to
/// answer with yes if everything that completes the phase comes before it. That is not decided here: if the phase is over when a
/// thread asks, what is found after a no is in doubt.
pub(crate) fn peeked(e: &mut Engine<'_>, s: State, thread: usize) -> Result<[State; 2], Stop> {
    let pc = s.threads[thread].pc;
    let instr = &e.program.threads[thread].body[pc];
    let Op::Mbarrier(moire_program::ir::Mbarrier { op: MbarrierOp::Wait(wait), addr, .. }) = &instr.op else {
        return Err(Stop::abstain("a thread that asks without a wait", instr.line));
    };
    let at = At { thread, cta: e.layout.cta_of[thread], instr, lanes: 1 };
    let (mut no, mut yes) = (s.clone(), s);
    let of = crate::engine::object(e, &no, at, addr)?;
    let odd = known(e, &no, at, wait.phase)? & 1 == 1;
    no.doubtful |= mbarrier::peek(e, &mut no, at, (of, odd))?;
    no.threads[thread].regs[wait.dst.index()] = Val::Known(0);
    no.threads[thread].pc += 1;
    yes.threads[thread].awaits = true;
    Ok([no, yes])
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

/// A thread was to be told that a phase is over, and never is ([`mbarrier::missed`]).
pub(crate) fn missed(e: &mut Engine<'_>, s: &State, thread: usize) -> Result<(), Stop> {
    let instr = &e.program.threads[thread].body[s.threads[thread].pc];
    let Op::Mbarrier(op) = &instr.op else { return Ok(()) };
    let at = At { thread, cta: e.layout.cta_of[thread], instr, lanes: 1 };
    let of = crate::engine::object(e, s, at, &op.addr)?;
    mbarrier::missed(e, s, at, of)
}

/// What a thread that cannot go on waits for.
pub(crate) fn waits_for(e: &Engine<'_>, s: &State, thread: usize) -> String {
    let body = &e.program.threads[thread].body;
    let Some(instr) = body.get(s.threads[thread].pc) else { return "nothing".to_owned() };
    if let Some(text) = stalled(e, s, thread, instr) {
        text
    } else if instr.op == Op::ClusterWait {
        "waits at the cluster barrier".to_owned()
    } else if matches!(instr.op, Op::Bar { .. }) {
        "waits at a barrier".to_owned()
    } else if matches!(instr.op, Op::WarpSync { .. }) {
        "waits for lanes of its warp".to_owned()
    } else {
        format!("waits in {}", instr.op.extended().unwrap_or("an instruction"))
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
