//! Instructions on mbarriers as events (PTX ISA 9.2, 9.7.13.15).

use super::event::Kind;
use super::event::deps::Deps;
use super::event::labels::mbarrier_labels;
use super::event::mbarrier::{Act, Fault, MbarUse, Object};
use super::machine::Machine;
use super::trace::{RegState, TraceEnd, View};
use crate::planted::Planted;
use moire_execution::leaf::truncate;
use moire_program::ir::*;

pub(crate) fn mbarrier<V: View>(
    m: &mut Machine<'_, V>,
    used: &Mbarrier,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let base = m.address(&used.addr);
    let Some(address) = base.value else { return Err(TraceEnd::Pending(base.deps)) };
    let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
    let access = m.layout.locate(m.program, address, MBARRIER_BYTES);
    let access = access.ok_or_else(|| wild("an mbarrier outside every object"))?;
    let home = m.layout.instances[access.instance];
    if m.program.objects[home.object.index()].space != Space::SharedCta {
        return Err(wild("an mbarrier outside shared memory"));
    }
    if access.offset % MBARRIER_BYTES != 0 {
        return Err(wild("an mbarrier that is not aligned to 8 bytes"));
    }
    let here = m.program.threads[m.thread.index()].place;
    let local = home.owner.is_some_and(|o| m.program.threads[o.index()].place.same_cta(&here));
    let (mut act, mut fault, deps) = act(m, used)?;
    let takes_remote = match &used.op {
        MbarrierOp::Arrive(a) => a.dst.is_none() && used.space != Space::SharedCta,
        MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => used.space != Space::SharedCta,
        MbarrierOp::Init { .. } | MbarrierOp::Inval | MbarrierOp::Wait(_) => false,
    };
    if !local && !takes_remote {
        fault = Some(Fault::Target);
        act = act.lost();
    }
    let object = Object { instance: access.instance, offset: access.offset };
    let (labels, scope) = mbarrier_labels(&used.op, act);
    let mut event = m.blank(instr, pc, Kind::Mbarrier(MbarUse { object, act, fault }), labels, scope);
    event.access = Some(access);
    event.needs.addr = base.deps;
    event.needs.data = deps;
    let index = event.index;
    m.emit(event);
    if let Some(dst) = used.dst() {
        m.regs[dst.index()] = RegState { value: m.view.answer(index), deps: Deps::of(index) };
    }
    Ok(())
}

/// The effect of an mbarrier instruction, a fault of its operands, and their dependencies.
fn act<V: View>(m: &Machine<'_, V>, used: &Mbarrier) -> Result<(Act, Option<Fault>, Deps), TraceEnd> {
    let mut deps = Deps::NONE;
    let mut known = |o: Operand| {
        let state = m.operand(o);
        deps = deps.with(state.deps);
        state.value.map(|v| truncate(v, 32)).ok_or(TraceEnd::Pending(state.deps))
    };
    let most = Value::from(MBARRIER_COUNT);
    let mut fault = None;
    let mut fits = |v: Value, least: Value| {
        if v < least || v > most {
            fault = Some(Fault::Range);
        }
        u32::try_from(v.clamp(least, most)).unwrap_or(MBARRIER_COUNT)
    };
    let lanes = if m.front.planted == Some(Planted::LanesOnce) { 1 } else { m.lanes.count() };
    let add = |arrivals, tx| Act::Add { arrivals, tx, drops: false, no_complete: false, returns: false };
    let act = match &used.op {
        MbarrierOp::Init { count } => Act::Init { count: fits(known(*count)?, 1) },
        MbarrierOp::Inval => Act::Inval,
        MbarrierOp::Arrive(a) => Act::Add {
            arrivals: lanes * a.count.map_or(Ok(1), |c| known(c).map(|c| fits(c, 1)))?,
            tx: i64::from(lanes) * a.tx.map_or(Ok(0), |t| known(t).map(|t| i64::from(fits(t, 0))))?,
            drops: a.drop,
            no_complete: a.no_complete,
            returns: a.dst.is_some(),
        },
        MbarrierOp::ExpectTx { bytes, .. } => add(0, i64::from(lanes) * i64::from(fits(known(*bytes)?, 0))),
        MbarrierOp::CompleteTx { bytes, .. } => {
            add(0, -i64::from(lanes) * i64::from(fits(known(*bytes)?, 0)))
        }
        MbarrierOp::Wait(w) => Act::Wait { odd: known(w.phase)? & 1 == 1 },
    };
    if lanes > 1 && act.ends() {
        fault = Some(Fault::Repeated);
    }
    Ok((act, fault, deps))
}
