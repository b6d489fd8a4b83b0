//! Barrier instructions of one thread: one path passes them; if they wait, another path never does.

use super::arith::low;
use super::event::{Barrier, Refusal, Stop};
use super::state::{Paths, Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_execution::leaf::flag;
use moire_program::ir::{BarKind, BarRed, Instr, Op, Operand, Thread};
use moire_program::{fence_op, jump_op, multimem_op, register_op, unit_op};

/// Adds the paths on which a barrier is passed and, if it waits, the one on which it never is.
pub(super) fn barrier(
    run: &Runner<'_>,
    mut s: State,
    instr: &Instr,
    todo: &mut Vec<State>,
    out: &mut Paths,
) -> Result<(), Refusal> {
    let (tag, barrier, data, waits) = match &instr.op {
        Op::Bar { kind, id, count, instance } => {
            return named(run, s, (*kind, *id, *count, *instance), todo, out);
        }
        Op::ClusterArrive { relaxed } => {
            let relaxed = if *relaxed { bit(sets::CLUSTER_RELAXED) } else { 0 };
            (bit(sets::CLUSTER_ARRIVE) | relaxed, Barrier::ClusterArrive, 0, false)
        }
        Op::ClusterWait => (bit(sets::CLUSTER_WAIT), Barrier::ClusterWait, 0, true),
        Op::WarpSync { mask } => {
            let (mask, data) = run.operand(&s, *mask);
            (bit(sets::WARP_SYNC), Barrier::Warp { mask: low(mask, 32) }, data, true)
        }
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => return Ok(()),
        multimem_op!() | Op::Control(_) => {
            return Ok(());
        }
        register_op!() => {
            return Ok(());
        }
        fence_op!() | unit_op!() | Op::Book(_) | jump_op!() => return Ok(()),
    };
    if let Barrier::Warp { mask } = barrier
        && run.program.threads[run.thread].place.mask != 0
    {
        let mask = u32::try_from(mask).unwrap_or(0);
        if s.lanes.active & !mask != 0 {
            s.flags.insert(flag::MASK);
        }
        if s.lanes.active & mask == 0 {
            s.pc += 1;
            todo.push(s);
            return Ok(());
        }
    }
    if !takes_place(&mut s, &barrier) {
        s.pc += 1;
        todo.push(s);
        return Ok(());
    }
    let mut e = run.event(&s, bit(sets::B) | tag, None);
    (e.barrier, e.data) = (Some(barrier), data);
    Runner::push(&mut s, e);
    if waits {
        run.end(s.clone(), Stop::AtBarrier, out);
    }
    s.pc += 1;
    todo.push(s);
    Ok(())
}

/// Lanes that have arrived at the cluster barrier and have not waited since.
fn owing(s: &State) -> u32 {
    s.events.iter().fold(0, |lanes, e| match e.barrier {
        Some(Barrier::ClusterArrive) => lanes | e.lanes,
        Some(Barrier::ClusterWait) => lanes & !e.lanes,
        _ => lanes,
    })
}

/// The rule of its barrier that the next arrival or wait breaks, and whether it takes place nevertheless: a lane arrives at the
/// cluster barrier once, then waits (9.7.13.3); a count is at least that of the lanes that arrive (9.7.13.1).
fn against(s: &State, barrier: &Barrier) -> Option<(&'static str, bool)> {
    let (now, owing) = (s.lanes.active, owing(s));
    match barrier {
        Barrier::ClusterArrive if now & owing != 0 => Some((flag::CLUSTER_AGAIN, now & !owing != 0)),
        Barrier::ClusterWait if now & !owing != 0 => Some((flag::CLUSTER_WAIT, true)),
        Barrier::Named { count: Some(n), instance: None, .. } if u128::from(now.count_ones()) > *n => {
            Some((flag::BARRIER_COUNT, false))
        }
        _ => None,
    }
}

/// Raises the flag of a broken rule. Returns whether the arrival or wait takes place.
fn takes_place(s: &mut State, barrier: &Barrier) -> bool {
    let broken = against(s, barrier);
    s.flags.extend(broken.map(|b| b.0));
    broken.is_none_or(|b| b.1)
}

pub(super) fn named(
    run: &Runner<'_>,
    s: State,
    (kind, id, count, instance): (BarKind, Operand, Option<Operand>, Option<u32>),
    todo: &mut Vec<State>,
    out: &mut Paths,
) -> Result<(), Refusal> {
    let (id, mut data) = run.operand(&s, id);
    let count = count.map(|c| run.operand(&s, c));
    data |= count.map_or(0, |c| c.1);
    let count = count.map(|c| low(c.0, 32));
    let waits = !matches!(kind, BarKind::Arrive);
    let results: Vec<Option<(BarRed, bool, u128)>> = match kind {
        BarKind::Red { op, pred, .. } => {
            let (value, deps) = run.operand(&s, Operand::Reg(pred.reg));
            data |= deps;
            let mine = (value != 0) != pred.negated;
            let lanes = |t: &Thread| t.place.lanes().count_ones() as usize;
            let all: usize = run.program.threads.iter().map(lanes).sum();
            let most = if op == BarRed::Popc { all } else { 1 };
            (0..=most).map(|v| Some((op, mine, v as u128))).collect()
        }
        BarKind::Sync | BarKind::Arrive => vec![None],
    };
    for (i, reduces) in results.into_iter().enumerate() {
        let mut next = s.clone();
        let tag = if waits { sets::BAR_SYNC } else { sets::BAR_ARRIVE };
        let barrier = Barrier::Named { id: low(id, 32), instance, count, waits, reduces };
        if !takes_place(&mut next, &barrier) {
            if count == Some(0) || reduces.is_some() {
                return Err(Refusal::Unsupported("a barrier with too small a count".into()));
            }
            next.pc += 1;
            todo.push(next);
            continue;
        }
        let mut e = run.event(&next, bit(sets::B) | bit(tag), None);
        e.data = data;
        e.barrier = Some(barrier);
        Runner::push(&mut next, e);
        if waits && i == 0 {
            run.end(next.clone(), Stop::AtBarrier, out);
        }
        if let (BarKind::Red { dst, .. }, Some((_, _, value))) = (kind, reduces) {
            next.regs[dst.index()] = (value, data);
            next.lanes.assigned(dst);
        }
        next.pc += 1;
        todo.push(next);
    }
    Ok(())
}
