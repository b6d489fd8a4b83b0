//! Barrier instructions of one thread: one path passes them; if they wait, another path never does.

use super::arith::low;
use super::event::{Barrier, Refusal, Stop};
use super::state::{Paths, Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_program::ir::{BarKind, BarRed, Instr, Op, Operand, Thread};

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
        _ => return Ok(()),
    };
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
        let mut e = run.event(&next, bit(sets::B) | bit(tag), None);
        e.data = data;
        e.barrier = Some(Barrier::Named { id: low(id, 32), instance, count, waits, reduces });
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
