//! Which base sets of the model language an instruction's events belong to (PTX ISA 9.2, 8.4 to 8.6).

use moire_cat::vocabulary::sets;
use moire_program::ir::{LoadOrder, Op, Proxy, RmwOrder, Scope, StoreOrder};
use moire_program::{barrier_op, fence_op, jump_op, register_op, unit_op};

/// The tag of one set.
pub(super) fn bit(set: usize) -> u128 {
    1 << set
}

pub(super) fn proxy_tag(proxy: Proxy) -> u128 {
    bit(match proxy {
        Proxy::Generic => sets::GEN,
        Proxy::Texture => sets::TEX,
        Proxy::Surface => sets::SUR,
        Proxy::Constant => sets::CON,
        Proxy::Async => sets::ASYNC,
        Proxy::Tensormap => sets::TMAP,
    })
}

pub(super) fn load_tags(order: LoadOrder) -> (u128, Option<Scope>) {
    match order {
        LoadOrder::Weak => (bit(sets::WEAK), None),
        LoadOrder::Relaxed(scope) => (bit(sets::RLX), Some(scope)),
        LoadOrder::Acquire(scope) => (bit(sets::ACQ), Some(scope)),
        LoadOrder::Volatile => (bit(sets::RLX) | bit(sets::VOLATILE), Some(Scope::Sys)),
        LoadOrder::MmioRelaxed => (bit(sets::RLX) | bit(sets::MMIO), Some(Scope::Sys)),
        LoadOrder::MmioAcquire => (bit(sets::ACQ) | bit(sets::MMIO), Some(Scope::Sys)),
        LoadOrder::SeqCst(scope) => (bit(sets::ACQ) | bit(sets::SCA), Some(scope)),
    }
}

pub(super) fn store_tags(order: StoreOrder) -> (u128, Option<Scope>) {
    match order {
        StoreOrder::Weak => (bit(sets::WEAK), None),
        StoreOrder::Relaxed(scope) => (bit(sets::RLX), Some(scope)),
        StoreOrder::Release(scope) => (bit(sets::REL), Some(scope)),
        StoreOrder::Volatile => (bit(sets::RLX) | bit(sets::VOLATILE), Some(Scope::Sys)),
        StoreOrder::MmioRelaxed => (bit(sets::RLX) | bit(sets::MMIO), Some(Scope::Sys)),
        StoreOrder::MmioRelease => (bit(sets::REL) | bit(sets::MMIO), Some(Scope::Sys)),
        StoreOrder::SeqCst(scope) => (bit(sets::REL) | bit(sets::SCA), Some(scope)),
    }
}

/// Tags and scope of the read an instruction makes.
pub(super) fn read_tags(op: &Op) -> (u128, Option<Scope>) {
    let half = |order: RmwOrder| match order {
        RmwOrder::Acquire | RmwOrder::AcqRel => bit(sets::ACQ),
        RmwOrder::SeqCst => bit(sets::ACQ) | bit(sets::SCA),
        RmwOrder::Relaxed | RmwOrder::Release => bit(sets::RLX),
    };
    match op {
        Op::Load { order, proxy, .. } => {
            let (tags, scope) = load_tags(*order);
            (tags | proxy_tag(*proxy), scope)
        }
        Op::MultimemLoad { order, .. } => {
            let (tags, scope) = load_tags(*order);
            (tags | bit(sets::GEN), scope)
        }
        Op::Rmw { red, order, scope, proxy, .. } => {
            let kind = bit(if *red { sets::RED } else { sets::ATOM });
            (half(*order) | kind | proxy_tag(*proxy), Some(*scope))
        }
        Op::MultimemRed { order, scope, .. } => {
            (half(*order) | bit(sets::RED) | bit(sets::GEN), Some(*scope))
        }
        // The reads of these have the tags of their own kind.
        Op::Mbarrier(_) | Op::Tile(_) | Op::Control(_) | unit_op!() => (0, None),
        Op::Store { .. } | Op::MultimemStore { .. } | jump_op!() | register_op!() => (0, None),
        fence_op!() | barrier_op!() => (0, None),
        Op::Book(_) => (0, None),
    }
}
