//! Barrier instructions as events (PTX ISA 9.2, 9.7.13.1 bar, 9.7.13.2 bar.warp.sync, 9.7.13.3 barrier.cluster).

use super::event::Kind;
use super::event::barrier::{BarrierObject, BarrierUse};
use super::event::deps::Deps;
use super::event::labels::barrier_labels;
use super::machine::Machine;
use super::trace::{RegState, TraceEnd, View};
use moire_execution::leaf::{flag, sign_extend};
use moire_program::ir::*;
use moire_program::{fence_op, jump_op, multimem_op, register_op, unit_op};

pub(crate) fn barrier<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
    let (barrier, deps, relaxed) = barrier_use(m, instr)?;
    if !counts(m, instr, &barrier)? {
        return Ok(());
    }
    if let BarrierObject::Warp { mask } = barrier.object
        && !within(m, mask, instr.line)
    {
        return Ok(());
    }
    let Some(value) = arrive(m, instr, pc, (barrier, deps, relaxed))? else { return Ok(()) };
    if let Op::Bar { kind: BarKind::Red { dst, .. }, .. } = instr.op {
        m.regs[dst.index()] = RegState { value: Some(value), deps: Deps::NONE };
    }
    Ok(())
}

/// Adds the event of an arrival or a wait. Returns what it hands back, if it waits.
pub(crate) fn arrive<V: View>(
    m: &mut Machine<'_, V>,
    instr: &Instr,
    pc: usize,
    (barrier, deps, relaxed): (BarrierUse, Deps, bool),
) -> Result<Option<Value>, TraceEnd> {
    if barrier.waits {
        m.lanes.may_wait(instr.line)?;
    }
    let mut event = m.blank(instr, pc, Kind::Barrier(barrier), barrier_labels(barrier, relaxed), None);
    event.needs.ctrl = event.needs.ctrl.with(deps);
    let index = event.index;
    m.events.push(Some(event));
    if !barrier.waits {
        return Ok(None);
    }
    m.view.passed(index).map(Some).ok_or(TraceEnd::Barrier(index))
}

/// Raises the flag of a lane that executes an instruction whose mask leaves it out (9.7.13.2: undefined). Whether any lane
/// takes part.
pub(crate) fn within<V: View>(m: &mut Machine<'_, V>, mask: u32, line: u32) -> bool {
    if m.place().mask != 0 && m.lanes.active & !mask != 0 {
        m.flags.insert((flag::MASK, line));
    }
    m.place().mask == 0 || m.lanes.active & mask != 0
}

/// Raises a flag if the arrival breaks a rule of its barrier; whether it still counts. One that does not is no event.
fn counts<V: View>(m: &mut Machine<'_, V>, instr: &Instr, barrier: &BarrierUse) -> Result<bool, TraceEnd> {
    match (barrier.object, barrier.count) {
        (BarrierObject::Cluster, _) => Ok(takes_turn(m, barrier.arrives, instr.line)),
        (BarrierObject::Cta { instance: None, .. }, Some(count)) if m.lanes.count() > count => {
            let reduces = matches!(instr.op, Op::Bar { kind: BarKind::Red { .. }, .. });
            let more = reduces.then_some("bar.red by more threads than its count");
            let unsaid = if count == 0 { Some("a barrier count of zero") } else { more };
            m.flags.insert((flag::BARRIER_COUNT, instr.line));
            unsaid.map_or(Ok(false), |what| Err(TraceEnd::Unsupported(what.into(), instr.line)))
        }
        _ => Ok(true),
    }
}

/// Each thread arrives at the cluster barrier once before it completes, and waits for what it has arrived at (9.7.13.3).
/// Returns whether some lane does so in its turn, or waits.
fn takes_turn<V: View>(m: &mut Machine<'_, V>, arrives: bool, line: u32) -> bool {
    let (active, arrived) = (m.lanes.active, m.arrived);
    let (broken, after, flag) = match arrives {
        true => (arrived & active, arrived | active, flag::CLUSTER_AGAIN),
        false => (active & !arrived, arrived & !active, flag::CLUSTER_WAIT),
    };
    m.arrived = after;
    if broken != 0 {
        m.flags.insert((flag, line));
    }
    !arrives || broken != active
}

fn barrier_use<V: View>(m: &Machine<'_, V>, instr: &Instr) -> Result<(BarrierUse, Deps, bool), TraceEnd> {
    let known = |o: Operand| {
        let state = m.operand(o);
        state.value.map(|v| (sign_extend(v, 64), state.deps)).ok_or(TraceEnd::Pending(state.deps))
    };
    let plain = |object, arrives, waits| BarrierUse {
        object,
        count: None,
        arrives,
        waits,
        votes: 0,
        given: 0,
        from: [0; 2],
    };
    let none = Err(TraceEnd::Unsupported("this barrier".into(), instr.line));
    match &instr.op {
        Op::Bar { kind, id, count, instance } => {
            let (id, mut deps) = known(*id)?;
            let mut total = None;
            if let Some(count) = count {
                let (count, more) = known(*count)?;
                let wild = |_| {
                    TraceEnd::Unsupported("a barrier count that is no number of threads".into(), instr.line)
                };
                total = Some(u32::try_from(count).map_err(wild)?);
                deps = deps.with(more);
            }
            let part = total.filter(|n| {
                instance.is_none() && *n != moire_execution::columns::cta_lanes(m.program, m.thread)
            });
            let id = i64::try_from(id).expect("operands have 64 bits");
            let object = BarrierObject::Cta { id, instance: *instance, count: part };
            let mut barrier = plain(object, true, *kind != BarKind::Arrive);
            barrier.count = total;
            if let BarKind::Red { pred, .. } = kind {
                let (value, more) = known(Operand::Reg(pred.reg))?;
                barrier.votes = if (value != 0) == pred.negated { 0 } else { m.lanes.active };
                deps = deps.with(more);
            }
            Ok((barrier, deps, false))
        }
        Op::ClusterArrive { relaxed } => {
            Ok((plain(BarrierObject::Cluster, true, false), Deps::NONE, *relaxed))
        }
        Op::ClusterWait => Ok((plain(BarrierObject::Cluster, false, true), Deps::NONE, false)),
        Op::WarpSync { mask } => {
            let (mask, deps) = known(*mask)?;
            let mask = u32::try_from(mask & 0xffff_ffff).expect("32 bits are left");
            Ok((plain(BarrierObject::Warp { mask }, true, true), deps, false))
        }
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => none,
        multimem_op!() | Op::Control(_) | register_op!() | fence_op!() | unit_op!() | jump_op!() => none,
        Op::Book(_) => none,
    }
}
