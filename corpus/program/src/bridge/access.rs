//! Loads, stores and updates.
//!
//! What the run ahead knows better stays as the book reads it: `.nc` and `.proxy::readonly` promise that nobody writes,
//! numbers of floating point are data, and a vector of `atom` is an access of its bytes.

use super::parts::{address, datum, elements, maybe, register_of, scope, space, ty, update};
use crate::ir::{AtomOp, LoadOrder, Op, Proxy, RmwOrder, Scope, StoreOrder};
use moire_isa::kinds::{self, Mmio, Nc, Noftz, Readonly, RedOrder, Vector};
use moire_isa::operand::{OrSink, Unified};
use moire_isa::{Atom, Ld, Red, St, Strong};

pub(super) fn load(ld: &Ld) -> Option<Op> {
    let Ld {
        mmio,
        order,
        readonly,
        space: at,
        nc,
        cache: _,
        l1: _,
        l2: _,
        hint: _,
        prefetch: _,
        vec: _,
        ty: of,
        ..
    } = ld;
    let Ld { dst, addr: Unified { address: addr, unified: _ }, policy: _, spelling: _, .. } = ld;
    if *nc != Nc::No || *readonly != Readonly::No {
        return None;
    }
    Some(Op::Load {
        order: load_order(*order, *mmio)?,
        proxy: Proxy::Generic,
        space: space(*at)?,
        ty: ty(*of)?,
        dst: elements(&dst.items)?,
        addr: address(addr)?,
    })
}

fn load_order(order: Strong<kinds::LoadOrder>, mmio: Mmio) -> Option<LoadOrder> {
    use kinds::LoadOrder as O;
    Some(match (order.order, mmio, order.scope.map(scope)) {
        (O::Weak, Mmio::No, None) => LoadOrder::Weak,
        (O::Volatile, Mmio::No, None) => LoadOrder::Volatile,
        (O::Relaxed, Mmio::No, Some(scope)) => LoadOrder::Relaxed(scope),
        (O::Acquire, Mmio::No, Some(scope)) => LoadOrder::Acquire(scope),
        (O::Relaxed, Mmio::Yes, Some(Scope::Sys)) => LoadOrder::MmioRelaxed,
        (O::Acquire, Mmio::Yes, Some(Scope::Sys)) => LoadOrder::MmioAcquire,
        (O::Weak | O::Volatile | O::Relaxed | O::Acquire, ..) => return None,
    })
}

pub(super) fn store(st: &St) -> Option<Op> {
    let St { mmio, order, space: at, cache: _, l1: _, l2: _, hint: _, vec: _, ty: of, .. } = st;
    let St { addr, src, policy: _, spelling: _, .. } = st;
    Some(Op::Store {
        order: store_order(*order, *mmio)?,
        proxy: Proxy::Generic,
        space: space(*at)?,
        ty: ty(*of)?,
        addr: address(addr)?,
        src: src.items.iter().map(|value| datum(value, of.bits())).collect::<Option<_>>()?,
    })
}

fn store_order(order: Strong<kinds::StoreOrder>, mmio: Mmio) -> Option<StoreOrder> {
    use kinds::StoreOrder as O;
    Some(match (order.order, mmio, order.scope.map(scope)) {
        (O::Weak, Mmio::No, None) => StoreOrder::Weak,
        (O::Volatile, Mmio::No, None) => StoreOrder::Volatile,
        (O::Relaxed, Mmio::No, Some(scope)) => StoreOrder::Relaxed(scope),
        (O::Release, Mmio::No, Some(scope)) => StoreOrder::Release(scope),
        (O::Relaxed, Mmio::Yes, Some(Scope::Sys)) => StoreOrder::MmioRelaxed,
        (O::Release, Mmio::Yes, Some(Scope::Sys)) => StoreOrder::MmioRelease,
        (O::Weak | O::Volatile | O::Relaxed | O::Release, ..) => return None,
    })
}

/// `.noftz` stands with all halves. With `.f32` it asks for sums that litmus texts do not compute.
pub(super) fn fetched(atom: &Atom) -> Option<Op> {
    let Atom { order, scope: wide, space: at, op, hint: _, vec: Vector::One, noftz, ty: of, .. } = atom
    else {
        return None;
    };
    let Atom { dst: OrSink(dst), addr, a, b, policy: _, spelling: _, .. } = atom;
    let order = match order {
        kinds::AtomOrder::Relaxed => RmwOrder::Relaxed,
        kinds::AtomOrder::Acquire => RmwOrder::Acquire,
        kinds::AtomOrder::Release => RmwOrder::Release,
        kinds::AtomOrder::AcqRel => RmwOrder::AcqRel,
    };
    let dst = match dst {
        Some(list) => Some(register_of(list)?),
        None => None,
    };
    flushes(*noftz, *of).then_some(Op::Rmw {
        red: false,
        order,
        scope: wide.map_or(Scope::Gpu, scope),
        proxy: Proxy::Generic,
        space: space(*at)?,
        op: atomic(*op),
        ty: ty(*of)?,
        dst,
        addr: address(addr)?,
        a: datum(a.items.first()?, of.bits())?,
        b: maybe(b.as_ref())?,
    })
}

fn flushes(noftz: Noftz, of: kinds::Ty) -> bool {
    noftz == Noftz::No || of.half()
}

fn atomic(op: kinds::AtomOp) -> AtomOp {
    use kinds::AtomOp as O;
    match op {
        O::Add => AtomOp::Add,
        O::And => AtomOp::And,
        O::Or => AtomOp::Or,
        O::Xor => AtomOp::Xor,
        O::Min => AtomOp::Min,
        O::Max => AtomOp::Max,
        O::Inc => AtomOp::Inc,
        O::Dec => AtomOp::Dec,
        O::Exch => AtomOp::Exch,
        O::Cas => AtomOp::Cas,
    }
}

pub(super) fn reduced(red: &Red) -> Option<Op> {
    let Red { order, scope: wide, space: at, op, hint: _, vec: Vector::One, noftz, ty: of, .. } = red else {
        return None;
    };
    let Red { addr, a, policy: _, spelling: _, .. } = red;
    flushes(*noftz, *of).then_some(Op::Rmw {
        red: true,
        order: if *order == RedOrder::Release { RmwOrder::Release } else { RmwOrder::Relaxed },
        scope: wide.map_or(Scope::Gpu, scope),
        proxy: Proxy::Generic,
        space: space(*at)?,
        op: update(*op),
        ty: ty(*of)?,
        dst: None,
        addr: address(addr)?,
        a: datum(a.items.first()?, of.bits())?,
        b: None,
    })
}
