//! Operations on mbarriers of layout v0.

use super::parts::{address, maybe, register, scope, space, value};
use crate::ir::{self, Mbarrier, MbarrierOp, Op};
use moire_isa::kinds::{
    ArriveForm, ArriveOrder, BarrierSpace, Layout, NoComplete, TxForm, WaitForm, WaitOrder,
};
use moire_isa::operand::{Answer, Early, Maybe, OrSink};
use moire_isa::{MbarrierArrive, MbarrierInit, MbarrierInval, MbarrierTx, MbarrierWait, operand};

fn on(op: MbarrierOp, at: BarrierSpace, addr: &operand::Address) -> Option<Op> {
    Some(Op::Mbarrier(Mbarrier { op, space: space(at.into())?, addr: address(addr)? }))
}

pub(super) fn made(init: &MbarrierInit) -> Option<Op> {
    let MbarrierInit { layout: None | Some(Layout::V0), space, addr, count, spelling: _ } = init else {
        return None;
    };
    on(MbarrierOp::Init { count: value(count)? }, *space, addr)
}

pub(super) fn ended(inval: &MbarrierInval) -> Option<Op> {
    let MbarrierInval { space, addr, spelling: _ } = inval;
    on(MbarrierOp::Inval, *space, addr)
}

pub(super) fn arrives(arrive: &MbarrierArrive) -> Option<Op> {
    let MbarrierArrive { form, no_complete, order, space, multicast: None, state, addr, .. } = arrive else {
        return None;
    };
    let MbarrierArrive { tx, count: Maybe(count), mask: None, spelling: _, .. } = arrive else { return None };
    let dst = match state {
        OrSink(Some(state)) => Some(register(state)?),
        OrSink(None) => None,
    };
    let arrive = ir::MbarrierArrive {
        drop: matches!(form, ArriveForm::Drop | ArriveForm::DropTx),
        no_complete: *no_complete == NoComplete::Yes,
        relaxed: order.order == ArriveOrder::Relaxed,
        scope: scope(order.reach()),
        dst,
        count: maybe(count.as_ref())?,
        tx: maybe(tx.as_ref())?,
    };
    on(MbarrierOp::Arrive(arrive), *space, addr)
}

pub(super) fn counts(tx: &MbarrierTx) -> Option<Op> {
    let MbarrierTx { form, order, space, multicast: None, addr, bytes, mask: None, spelling: _ } = tx else {
        return None;
    };
    let (scope, bytes) = (scope(order.reach()), value(bytes)?);
    let op = match form {
        TxForm::Expect => MbarrierOp::ExpectTx { scope, bytes },
        TxForm::Complete => MbarrierOp::CompleteTx { scope, bytes },
    };
    on(op, *space, addr)
}

pub(super) fn waits(wait: &MbarrierWait) -> Option<Op> {
    let MbarrierWait { form, phase: None, order, space, done, report: Early(None), addr, .. } = wait else {
        return None;
    };
    let MbarrierWait { state, limit: Maybe(limit), spelling: _, .. } = wait;
    let Answer { first: Some(dst), second: None } = done else { return None };
    let wait = ir::MbarrierWait {
        suspends: matches!(form, WaitForm::Try | WaitForm::TryParity),
        relaxed: order.order == WaitOrder::Relaxed,
        scope: scope(order.reach()),
        dst: register(dst)?,
        phase: value(state)?,
        parity: form.parity(),
        hint: maybe(limit.as_ref())?,
    };
    on(MbarrierOp::Wait(wait), *space, addr)
}
