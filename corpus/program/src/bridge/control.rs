//! Barriers, election, launch control, and instructions that change nothing that other threads see.

use super::parts::{address, element, guard, maybe, number, reg, register, space, value};
use crate::ir::{BarKind, BarRed as Red, CancelQuery, Control, Ignored, Op, Operand, Ty};
use moire_isa::kinds::{
    Aligned, BarOp, ClusterArriveOrder, ClusterTy, ClusterWaitOrder, FirstForm, GridDepForm, InCluster, Mask,
    MulticastAll, PrefetchTo, RegChange,
};
use moire_isa::operand::{Answer, Maybe};
use moire_isa::{
    BarArrive, BarRed, BarSync, ClusterArrive, ClusterFirst, ClusterTake, ClusterTaken, ClusterWait, Elect,
    GridDep, Mapa, Nanosleep, Pmevent, PrefetchLine, Prefetchu, Setmaxnreg, Value, WarpSync, kinds,
};

/// `bar` is aligned, `barrier` need not be: where lanes arrive is a rule of the run, not of the order of accesses.
pub(super) fn synced(bar: &BarSync) -> Option<Op> {
    let BarSync { form: _, aligned: Aligned::No | Aligned::Yes, id, count: Maybe(count), spelling: _ } = bar;
    Some(Op::Bar { kind: BarKind::Sync, id: value(id)?, count: maybe(count.as_ref())?, instance: None })
}

pub(super) fn arrived(bar: &BarArrive) -> Option<Op> {
    let BarArrive { form: _, aligned: Aligned::No | Aligned::Yes, id, count, spelling: _ } = bar;
    Some(Op::Bar { kind: BarKind::Arrive, id: value(id)?, count: Some(value(count)?), instance: None })
}

pub(super) fn reduced(bar: &BarRed) -> Option<Op> {
    let BarRed { form: _, op, aligned: Aligned::No | Aligned::Yes, ty: _, dst, id, count, pred, spelling: _ } =
        bar;
    let op = match op {
        BarOp::Popc => Red::Popc,
        BarOp::And => Red::And,
        BarOp::Or => Red::Or,
    };
    let kind = BarKind::Red { op, dst: register(dst)?, pred: guard(pred)? };
    Some(Op::Bar { kind, id: value(id)?, count: maybe(count.0.as_ref())?, instance: None })
}

pub(super) fn warp(sync: &WarpSync) -> Option<Op> {
    let WarpSync { mask, spelling: _ } = sync;
    Some(Op::WarpSync { mask: value(mask)? })
}

pub(super) fn cluster_arrives(arrive: &ClusterArrive) -> Op {
    let ClusterArrive { order, aligned: Aligned::No | Aligned::Yes, spelling: _ } = arrive;
    Op::ClusterArrive { relaxed: *order == ClusterArriveOrder::Relaxed }
}

pub(super) fn cluster_waits(wait: &ClusterWait) -> Op {
    let ClusterWait { order: ClusterWaitOrder::Acquire, aligned: Aligned::No | Aligned::Yes, spelling: _ } =
        wait;
    Op::ClusterWait
}

pub(super) fn mapped(mapa: &Mapa) -> Option<Op> {
    let Mapa { space, ty, dst, a, cta, spelling: _ } = mapa;
    Some(Op::Mapa {
        ty: match ty {
            ClusterTy::U32 => Ty::U(32),
            ClusterTy::U64 => Ty::U(64),
            ClusterTy::S32 => Ty::S(32),
            ClusterTy::S64 => Ty::S(64),
        },
        shared: *space == InCluster::Yes,
        dst: register(dst)?,
        src: value(&a.0)?,
        rank: value(cta)?,
    })
}

pub(super) fn elected(elect: &Elect) -> Option<Op> {
    let Elect { leader: Answer { first, second }, mask, spelling: _ } = elect;
    let dst = match first {
        Some(dst) => Some(register(dst)?),
        None => None,
    };
    let pred = register(&(*second)??)?;
    Some(Op::Control(Control::Elect { dst, pred, mask: value(mask)? }))
}

pub(super) fn grid(grid: &GridDep) -> Op {
    let GridDep { form, spelling: _ } = grid;
    Op::Control(match form {
        GridDepForm::Launch => Control::LaunchDependents,
        GridDepForm::Wait => Control::WaitDependencies,
    })
}

pub(super) fn taking(take: &ClusterTake) -> Option<Op> {
    let ClusterTake { space: at, done: kinds::Bytes::Mbarrier, multicast, dst, mbarrier, spelling: _ } = take;
    Some(Op::Control(Control::TryCancel {
        multicast: *multicast == MulticastAll::Yes,
        space: space((*at).into())?,
        addr: address(dst)?,
        mbarrier: address(mbarrier)?,
    }))
}

pub(super) fn taken(taken: &ClusterTaken) -> Option<Op> {
    let ClusterTaken { dst, a, spelling: _ } = taken;
    let dst = vec![Some(register(dst)?)];
    let src = Operand::Reg(reg(a.reg()?)?);
    Some(Op::Control(Control::QueryCancel { ask: CancelQuery::IsCanceled, dst, src }))
}

pub(super) fn first(first: &ClusterFirst) -> Option<Op> {
    let ClusterFirst { form, all: _, dst, a, spelling: _ } = first;
    let ask = match form {
        FirstForm::All => CancelQuery::FirstCta,
        FirstForm::X => CancelQuery::FirstCtaAxis(0),
        FirstForm::Y => CancelQuery::FirstCtaAxis(1),
        FirstForm::Z => CancelQuery::FirstCtaAxis(2),
    };
    let one = |value: &Value| if *value == Value::Sink { Some(None) } else { element(value).map(Some) };
    let dst = dst.items.iter().map(one).collect::<Option<_>>()?;
    Some(Op::Control(Control::QueryCancel { ask, dst, src: Operand::Reg(reg(a.reg()?)?) }))
}

fn ignored(what: Ignored) -> Op {
    Op::Control(Control::Ignored(what))
}

pub(super) fn registers(set: &Setmaxnreg) -> Option<Op> {
    let Setmaxnreg { change, count, spelling: _ } = set;
    let (inc, count) = (*change == RegChange::Inc, number(*count)?);
    Some(ignored(Ignored::SetMaxRegisters { inc, count }))
}

pub(super) fn sleeps(sleep: &Nanosleep) -> Option<Op> {
    let Nanosleep { time, spelling: _ } = sleep;
    Some(ignored(Ignored::Nanosleep(value(time)?)))
}

pub(super) fn counted(event: &Pmevent) -> Option<Op> {
    let Pmevent { mask, event, spelling: _ } = event;
    if *mask == Mask::Yes {
        return None;
    }
    Some(ignored(Ignored::PerformanceEvent(number(*event)?)))
}

/// Every prefetch is a hint.
pub(super) fn prefetched(prefetch: &PrefetchLine) -> Option<Op> {
    let PrefetchLine { space: _, to, valid: _, addr, spelling: _ } = prefetch;
    let addr = address(addr)?;
    let map = *to == PrefetchTo::Tensormap;
    Some(ignored(if map { Ignored::PrefetchTensormap(addr) } else { Ignored::Prefetch(addr) }))
}

pub(super) fn prefetched_uniform(prefetch: &Prefetchu) -> Option<Op> {
    let Prefetchu { addr, spelling: _ } = prefetch;
    Some(ignored(Ignored::Prefetch(address(addr)?)))
}
