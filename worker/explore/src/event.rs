//! Events as a thread emits them: static labels, footprint, dependencies.

use crate::allocator::AllocUse;
use crate::copies::CopyUse;
use crate::lanes::Arms;
use crate::mbarrier::{Act, MbarUse};
use crate::memory::Access;
use crate::proxies::Covers;
use crate::tensor::TensorUse;
use moire_cat::vocabulary::sets;
use moire_program::ir::{
    FenceOrder, LoadOrder, MbarrierOp, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder, ThreadId,
};
use std::rc::Rc;

/// Reads of the same thread an event depends on, by event index.
pub(crate) type Deps = [u64; 4];

/// Events one thread may emit: the width of [`Deps`].
pub(crate) const THREAD_EVENTS: usize = 256;

pub(crate) fn dep(index: u16) -> Deps {
    let mut d = [0; 4];
    d[index as usize / 64] |= 1 << (index % 64);
    d
}

pub(crate) fn join(a: Deps, b: Deps) -> Deps {
    [a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]]
}

pub(crate) fn has_dep(d: &Deps, index: u16) -> bool {
    d[index as usize / 64] >> (index % 64) & 1 == 1
}

/// What an event is to the explorer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Fence,
    Barrier(BarrierUse),
    Mbarrier(MbarUse),
    Allocator(AllocUse),
}

/// A barrier event: which object, how many arrivals it wants, what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierUse {
    pub(crate) object: BarrierObject,
    /// Explicit count.
    pub(crate) count: Option<u32>,
    /// Counts as an arrival.
    pub(crate) arrives: bool,
    /// Blocks until its phase is complete.
    pub(crate) waits: bool,
    /// The predicate given to `bar.red`.
    pub(crate) pred: bool,
}

/// Identity of a barrier; the CTA, cluster or warp is that of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BarrierObject {
    /// CTA barrier: number, the instance of the Dat3M dialect, and the count where it is not that of all threads:
    /// phases of different counts are kept apart, and `bar-mixed` says which must not meet.
    Cta {
        id: i64,
        instance: Option<u32>,
        count: Option<u32>,
    },
    Cluster,
    /// Warp barrier: arrivals meet only under the same mask.
    Warp {
        mask: u32,
    },
}

/// One event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Emitted {
    pub(crate) index: u16,
    pub(crate) pc: usize,
    pub(crate) line: u32,
    pub(crate) kind: Kind,
    pub(crate) access: Option<Access>,
    /// Written value, once known.
    pub(crate) value: Option<u128>,
    /// Bit per base set of the vocabulary.
    pub(crate) labels: u128,
    pub(crate) scope: Option<Scope>,
    pub(crate) addr: Deps,
    pub(crate) data: Deps,
    pub(crate) ctrl: Deps,
    pub(crate) ctrl_reconv: Deps,
    /// For the write half of a read-modify-write: its read half.
    pub(crate) mate: Option<u16>,
    /// Whether the write half needs the value read.
    pub(crate) rmw_dep: bool,
    /// Events of one instruction execution share it.
    pub(crate) unit: u16,
    /// Asynchronous: after its issue, and outside program order.
    pub(crate) detached: bool,
    /// A thread of the other CTA whose memory it touches, where CTAs start and exit.
    pub(crate) reaches: Option<ThreadId>,
    /// Of an asynchronous event: a thread of the CTA whose memory or mbarrier it touches.
    pub(crate) home: Option<ThreadId>,
    /// The lanes that take part, a bit a lane.
    pub(crate) lanes: u32,
    /// The arms of branches it stands in, where lanes parted.
    pub(crate) arms: Arms,
    /// Of an event with an access to shared memory: a thread of the CTA whose memory it is.
    pub(crate) owner: Option<ThreadId>,
    /// Part in an asynchronous copy.
    pub(crate) copy: Option<Rc<CopyUse>>,
    /// Of a proxy fence: what it is about.
    pub(crate) covers: Option<Covers>,
    /// What a tcgen05 instruction does.
    pub(crate) tensor: Option<Rc<TensorUse>>,
    /// Of an event of a tile block: what came before by token order, and the last steps of that.
    pub(crate) token: Deps,
    pub(crate) token_direct: Deps,
}

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
    };
    (MEMORY | label(sets::W) | order | proxy_label(proxy) | scope.map_or(0, scope_label), scope)
}

/// Labels of the two halves of a read-modify-write.
pub(crate) fn rmw_labels(order: RmwOrder, scope: Scope, proxy: Proxy, red: bool) -> (u128, u128) {
    let (read, write) = match order {
        RmwOrder::Relaxed => (sets::RLX, sets::RLX),
        RmwOrder::Acquire => (sets::ACQ, sets::RLX),
        RmwOrder::Release => (sets::RLX, sets::REL),
        RmwOrder::AcqRel => (sets::ACQ, sets::REL),
    };
    let both =
        MEMORY | proxy_label(proxy) | scope_label(scope) | label(if red { sets::RED } else { sets::ATOM });
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
    };
    let relaxed = if relaxed { label(sets::CLUSTER_RELAXED) } else { 0 };
    label(sets::ANY) | label(sets::B) | label(set) | relaxed
}
