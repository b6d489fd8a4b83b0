//! Fences of the async and tensormap proxies that name a space, a direction or a range, and what changes tensor maps.
//!
//! PTX ISA 9.2, 9.7.13.4 and 9.7.9.28; forms as the assembler takes them, `probe-results.txt`. Plain
//! `fence.proxy.async` and `fence.proxy.alias` are [`super::Op::ProxyFence`].

use super::parts::{Part, Role, parts_of};
use super::{Address, Operand, Scope, Space, Ty};

/// Bytes of a tensor map object.
pub const TENSORMAP_BYTES: u32 = 128;

/// Which way a one-sided fence works. The assembler also takes `.acq_rel` in some of them; the documents do not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
}

/// `.sync_restrict::*`: the memory a one-sided fence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Restrict {
    /// `shared::cta`
    SharedCta,
    /// `shared::cluster`
    SharedCluster,
    /// `shared::cluster::read`
    SharedClusterRead,
}

/// One such instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyOrder {
    /// `fence.proxy.async.global`, `.shared::cta`, `.shared::cluster`: both directions, one space.
    AsyncSpace(Space),
    /// `fence.proxy.async::generic.acquire.sync_restrict::*.cluster`, the same with `.release`.
    AsyncRestricted {
        /// Acquire or release.
        side: Side,
        /// What it is about.
        restrict: Restrict,
        /// `.cluster`; `shared::cluster::read` has `.cta` too.
        scope: Scope,
    },
    /// `fence.acquire.sync_restrict::shared::cluster.cluster`, `fence.release.sync_restrict::shared::cta.cluster`
    Restricted {
        /// Acquire or release.
        side: Side,
        /// What it is about.
        restrict: Restrict,
    },
    /// `fence.proxy.tensormap::generic.release.scope`
    TensormapRelease {
        /// Scope.
        scope: Scope,
    },
    /// `fence.proxy.tensormap::generic.acquire.scope [addr], 128`
    TensormapAcquire {
        /// Scope.
        scope: Scope,
        /// The tensor map.
        addr: Address,
    },
    /// `fence.proxy.alias.acquire.sys`, `fence.proxy.alias.release.sys`
    AliasOneSided(Side),
    /// `fence.proxy.generic::fabric.alias.*.sys`, `fence.proxy.fabric::generic.alias.*.sys`
    Fabric {
        /// Acquire or release.
        side: Side,
        /// `fabric::generic` instead of `generic::fabric`.
        from_fabric: bool,
    },
    /// `tensormap.cp_fenceproxy`: copies a tensor map from shared to global memory and releases it.
    CopyTensormap {
        /// Scope of the release.
        scope: Scope,
        /// Global memory.
        dst: Address,
        /// Shared memory.
        src: Address,
    },
    /// `tensormap.replace`: changes one field of a tensor map.
    ReplaceTensormap {
        /// Which field.
        field: TensormapField,
        /// `.global` or `.shared::cta`; generic when unsaid.
        space: Space,
        /// Type of the value.
        ty: Ty,
        /// The tensor map.
        addr: Address,
        /// Which dimension, for fields that have one a dimension.
        ordinal: Option<u8>,
        /// New value.
        value: Operand,
    },
}

/// Field of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX fields")]
pub enum TensormapField {
    GlobalAddress,
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    ElementType,
    Interleave,
    Swizzle,
    SwizzleAtomicity,
    Fill,
}

impl ProxyOrder {
    /// Name without scope and operands.
    pub fn name(&self) -> &'static str {
        match self {
            ProxyOrder::AsyncSpace(_) => "fence.proxy.async",
            ProxyOrder::AsyncRestricted { .. } => "fence.proxy.async::generic",
            ProxyOrder::Restricted { .. } => "fence.sync_restrict",
            ProxyOrder::TensormapRelease { .. } | ProxyOrder::TensormapAcquire { .. } => {
                "fence.proxy.tensormap::generic"
            }
            ProxyOrder::AliasOneSided(_) => "fence.proxy.alias",
            ProxyOrder::Fabric { .. } => "fence.proxy.generic::fabric",
            ProxyOrder::CopyTensormap { .. } => "tensormap.cp_fenceproxy",
            ProxyOrder::ReplaceTensormap { .. } => "tensormap.replace",
        }
    }
}

parts_of!(ProxyOrder, |order, see| match order {
    ProxyOrder::TensormapAcquire { addr, .. } => addr.each(see),
    ProxyOrder::CopyTensormap { dst, src, .. } => {
        dst.each(see);
        src.each(see);
    }
    ProxyOrder::ReplaceTensormap { addr, value, .. } => {
        addr.each(see);
        see(Part::Source(value, Role::Known));
    }
    ProxyOrder::AsyncSpace(_)
    | ProxyOrder::AsyncRestricted { .. }
    | ProxyOrder::Restricted { .. }
    | ProxyOrder::TensormapRelease { .. }
    | ProxyOrder::AliasOneSided(_)
    | ProxyOrder::Fabric { .. } => {}
});
