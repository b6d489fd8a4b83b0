//! Accesses through multimem addresses, one element each.

use super::parts::{address, element, scope, value};
use crate::ir::{AtomOp, LoadOrder, Op, RmwOrder, Scope, StoreOrder, Ty};
use moire_isa::kinds::{
    GlobalSpace, MultiLoadOrder, MultiOp, MultiRedOrder, MultiStoreOrder, MultiTy, Vector,
};
use moire_isa::{MultiLoad, MultiRed, MultiStore};

/// Litmus texts have no `.bf16`, no types of 8 bits, and no precision of sums.
fn ty(of: MultiTy) -> Option<Ty> {
    use MultiTy as T;
    Some(match of {
        T::B32 => Ty::B(32),
        T::B64 => Ty::B(64),
        T::U32 => Ty::U(32),
        T::U64 => Ty::U(64),
        T::S32 => Ty::S(32),
        T::S64 => Ty::S(64),
        T::F32 => Ty::F(32),
        T::F64 => Ty::F(64),
        T::F16 => Ty::F(16),
        T::F16x2 => Ty::F16x2,
        T::Bf16x2 => Ty::Bf16x2,
        T::Bf16 | T::E4m3x2 | T::E4m3x4 | T::E5m2x2 | T::E5m2x4 => return None,
    })
}

fn combine(op: MultiOp) -> AtomOp {
    match op {
        MultiOp::Add => AtomOp::Add,
        MultiOp::Min => AtomOp::Min,
        MultiOp::Max => AtomOp::Max,
        MultiOp::And => AtomOp::And,
        MultiOp::Or => AtomOp::Or,
        MultiOp::Xor => AtomOp::Xor,
    }
}

pub(super) fn load(load: &MultiLoad) -> Option<Op> {
    let MultiLoad { order, space, op, acc: None, vec: Vector::One, ty: of, dst, addr, spelling: _ } = load
    else {
        return None;
    };
    let (GlobalSpace::Generic | GlobalSpace::Global) = space;
    let order = match (order.order, order.scope.map(scope)) {
        (MultiLoadOrder::Weak, _) => LoadOrder::Weak,
        (MultiLoadOrder::Relaxed, scope) => LoadOrder::Relaxed(scope?),
        (MultiLoadOrder::Acquire, scope) => LoadOrder::Acquire(scope?),
    };
    let (op, dst) = (combine(*op), element(dst.items.first()?)?);
    Some(Op::MultimemLoad { order, op, ty: ty(*of)?, dst, addr: address(addr)? })
}

pub(super) fn store(store: &MultiStore) -> Option<Op> {
    let MultiStore { order, space, vec: Vector::One, ty: of, addr, src, spelling: _ } = store else {
        return None;
    };
    let (GlobalSpace::Generic | GlobalSpace::Global) = space;
    let order = match (order.order, order.scope.map(scope)) {
        (MultiStoreOrder::Weak, _) => StoreOrder::Weak,
        (MultiStoreOrder::Relaxed, scope) => StoreOrder::Relaxed(scope?),
        (MultiStoreOrder::Release, scope) => StoreOrder::Release(scope?),
    };
    Some(Op::MultimemStore { order, ty: ty(*of)?, addr: address(addr)?, src: value(src.items.first()?)? })
}

pub(super) fn reduced(red: &MultiRed) -> Option<Op> {
    let MultiRed { order, space, op, vec: Vector::One, ty: of, addr, src, spelling: _ } = red else {
        return None;
    };
    let (GlobalSpace::Generic | GlobalSpace::Global) = space;
    let release = order.order == MultiRedOrder::Release;
    Some(Op::MultimemRed {
        order: if release { RmwOrder::Release } else { RmwOrder::Relaxed },
        scope: order.scope.map_or(Scope::Gpu, scope),
        op: combine(*op),
        ty: ty(*of)?,
        addr: address(addr)?,
        src: value(src.items.first()?)?,
    })
}
