//! Labels of events: which base sets of the model language an event is in, by the qualifiers of its instruction.

use super::barrier::{BarrierObject, BarrierUse};
use super::mbarrier::Act;
use moire_cat::vocabulary::sets;
use moire_program::ir::{FenceOrder, LoadOrder, MbarrierOp, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder};

/// Labels of an event that is in these sets and in no other.
pub(crate) fn labels(named: &[usize]) -> u128 {
    named.iter().fold(label(sets::ANY), |all, set| all | label(*set))
}

fn label(set: usize) -> u128 {
    1 << set
}

fn scope_label(scope: Scope) -> u128 {
    label(match scope {
        Scope::Cta => sets::CTA,
        Scope::Cluster => sets::CLUSTER,
        Scope::Gpu => sets::GPU,
        Scope::Sys => sets::SYS,
    })
}

pub(crate) fn proxy_label(proxy: Proxy) -> u128 {
    label(match proxy {
        Proxy::Generic => sets::GEN,
        Proxy::Texture => sets::TEX,
        Proxy::Surface => sets::SUR,
        Proxy::Constant => sets::CON,
        Proxy::Async => sets::ASYNC,
        Proxy::Tensormap => sets::TMAP,
    })
}

const MEMORY: u128 = 1 << sets::ANY | 1 << sets::M;

/// Labels and scope of a read.
pub(crate) fn load_labels(order: LoadOrder, proxy: Proxy) -> (u128, Option<Scope>) {
    let (order, scope) = match order {
        LoadOrder::Weak => (label(sets::WEAK), None),
        LoadOrder::Relaxed(s) => (label(sets::RLX), Some(s)),
        LoadOrder::Acquire(s) => (label(sets::ACQ), Some(s)),
        LoadOrder::Volatile => (label(sets::RLX) | label(sets::VOLATILE), Some(Scope::Sys)),
        LoadOrder::MmioRelaxed => (label(sets::RLX) | label(sets::MMIO), Some(Scope::Sys)),
        LoadOrder::MmioAcquire => (label(sets::ACQ) | label(sets::MMIO), Some(Scope::Sys)),
        LoadOrder::SeqCst(s) => (label(sets::ACQ) | label(sets::SCA), Some(s)),
    };
    (MEMORY | label(sets::R) | order | proxy_label(proxy) | scope.map_or(0, scope_label), scope)
}

/// Labels and scope of a write.
pub(crate) fn store_labels(order: StoreOrder, proxy: Proxy) -> (u128, Option<Scope>) {
    let (order, scope) = match order {
        StoreOrder::Weak => (label(sets::WEAK), None),
        StoreOrder::Relaxed(s) => (label(sets::RLX), Some(s)),
        StoreOrder::Release(s) => (label(sets::REL), Some(s)),
        StoreOrder::Volatile => (label(sets::RLX) | label(sets::VOLATILE), Some(Scope::Sys)),
        StoreOrder::MmioRelaxed => (label(sets::RLX) | label(sets::MMIO), Some(Scope::Sys)),
        StoreOrder::MmioRelease => (label(sets::REL) | label(sets::MMIO), Some(Scope::Sys)),
        StoreOrder::SeqCst(s) => (label(sets::REL) | label(sets::SCA), Some(s)),
    };
    (MEMORY | label(sets::W) | order | proxy_label(proxy) | scope.map_or(0, scope_label), scope)
}

/// Labels of the two halves of a read-modify-write.
pub(crate) fn rmw_labels(order: RmwOrder, scope: Scope, proxy: Proxy, red: bool) -> (u128, u128) {
    let (read, write) = match order {
        RmwOrder::Relaxed => (sets::RLX, sets::RLX),
        RmwOrder::Acquire => (sets::ACQ, sets::RLX),
        RmwOrder::Release => (sets::RLX, sets::REL),
        RmwOrder::AcqRel | RmwOrder::SeqCst => (sets::ACQ, sets::REL),
    };
    let kind = label(if red { sets::RED } else { sets::ATOM });
    let seq_cst = if order == RmwOrder::SeqCst { label(sets::SCA) } else { 0 };
    let both = MEMORY | proxy_label(proxy) | scope_label(scope) | kind | seq_cst;
    (both | label(sets::R) | label(read), both | label(sets::W) | label(write))
}

/// Labels of a memory fence.
pub(crate) fn fence_labels(order: FenceOrder, scope: Scope) -> u128 {
    let order = match order {
        FenceOrder::Acquire => label(sets::ACQ),
        FenceOrder::Release => label(sets::REL),
        FenceOrder::AcqRel => label(sets::ACQ_REL),
        FenceOrder::Sc => label(sets::ACQ_REL) | label(sets::SC),
    };
    label(sets::ANY) | label(sets::F) | label(sets::MF) | label(sets::GEN) | order | scope_label(scope)
}

/// Labels of a proxy fence.
pub(crate) fn proxy_fence_labels(kinds: &[ProxyFence]) -> u128 {
    let named = kinds.iter().map(|k| match k {
        ProxyFence::Alias => label(sets::ALIAS),
        ProxyFence::Of(p) => proxy_label(*p),
    });
    named.fold(label(sets::ANY) | label(sets::F) | label(sets::PF), |a, b| a | b)
}

/// Labels and scope of an operation on an mbarrier.
pub(crate) fn mbarrier_labels(m: &MbarrierOp, act: Act) -> (u128, Option<Scope>) {
    let order = |relaxed: bool, strong: usize| label(if relaxed { sets::RLX } else { strong });
    let expects = |tx: i64| if tx > 0 { label(sets::MBAR_EXPECT) } else { 0 };
    let (kind, scope) = match (m, act) {
        (MbarrierOp::Init { .. }, _) => (label(sets::MBAR_INIT), None),
        (MbarrierOp::Inval, _) => (label(sets::MBAR_INVAL), None),
        (MbarrierOp::Arrive(a), Act::Add { tx, .. }) => {
            (label(sets::MBAR_ARRIVE) | expects(tx) | order(a.relaxed, sets::REL), Some(a.scope))
        }
        (MbarrierOp::Arrive(a), _) => (label(sets::MBAR_ARRIVE), Some(a.scope)),
        (MbarrierOp::ExpectTx { scope, .. }, _) => {
            (label(sets::MBAR_EXPECT) | label(sets::RLX), Some(*scope))
        }
        (MbarrierOp::CompleteTx { scope, .. }, _) => {
            (label(sets::MBAR_COMPLETE) | label(sets::RLX), Some(*scope))
        }
        (MbarrierOp::Wait(w), _) => (label(sets::MBAR_WAIT) | order(w.relaxed, sets::ACQ), Some(w.scope)),
    };
    (label(sets::ANY) | label(sets::MBAR) | kind | scope.map_or(0, scope_label), scope)
}

/// Labels of fence.mbarrier_init.
pub(crate) fn init_fence_labels() -> u128 {
    label(sets::ANY) | label(sets::F) | label(sets::MBAR_FENCE)
}

/// Labels of a barrier event.
pub(crate) fn barrier_labels(barrier: BarrierUse, relaxed: bool) -> u128 {
    let set = match (barrier.object, barrier.arrives, barrier.waits) {
        (BarrierObject::Cta { .. }, _, true) => sets::BAR_SYNC,
        (BarrierObject::Cta { .. }, _, false) => sets::BAR_ARRIVE,
        (BarrierObject::Cluster, true, _) => sets::CLUSTER_ARRIVE,
        (BarrierObject::Cluster, false, _) => sets::CLUSTER_WAIT,
        (BarrierObject::Warp { .. }, ..) => sets::WARP_SYNC,
        (BarrierObject::Collective { .. }, ..) => sets::COLLECTIVE,
    };
    let relaxed = if relaxed { label(sets::CLUSTER_RELAXED) } else { 0 };
    label(sets::ANY) | label(sets::B) | label(set) | relaxed
}

/// The set of operations of a scope.
pub(crate) fn scope_set(scope: Scope) -> usize {
    match scope {
        Scope::Cta => sets::CTA,
        Scope::Cluster => sets::CLUSTER,
        Scope::Gpu => sets::GPU,
        Scope::Sys => sets::SYS,
    }
}
