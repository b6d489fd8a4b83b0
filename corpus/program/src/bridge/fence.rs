//! Fences, and what changes tensor maps.

use super::parts::{address, number, scope, space, value};
use crate::ir::{
    FenceOrder, Op, Proxy, ProxyFence, ProxyOrder, Restrict, Scope, Side, Space, TensormapField, Ty,
};
use moire_isa::kinds::{self, Alias, MapField, MapTy, MembarLevel, MembarProxy, ProxyPair, ProxySpace};
use moire_isa::{Fence, FenceProxy, MapCopy, MapReplace, Membar, MembarProxies};

pub(super) fn fence(fence: &Fence) -> Option<Op> {
    let Fence { order, restrict, scope: wide, spelling: _ } = fence;
    if let Some(restrict) = restrict {
        let side = match order {
            kinds::FenceOrder::Acquire => Side::Acquire,
            kinds::FenceOrder::Release => Side::Release,
            kinds::FenceOrder::AcqRel | kinds::FenceOrder::Sc => return None,
        };
        let restrict = restricted(*restrict);
        return (*wide == kinds::Scope::Cluster)
            .then_some(Op::ProxyOrder(ProxyOrder::Restricted { side, restrict }));
    }
    let order = match order {
        kinds::FenceOrder::Acquire => FenceOrder::Acquire,
        kinds::FenceOrder::Release => FenceOrder::Release,
        kinds::FenceOrder::AcqRel => FenceOrder::AcqRel,
        kinds::FenceOrder::Sc => FenceOrder::Sc,
    };
    Some(Op::Fence { order, scope: scope(*wide) })
}

fn restricted(restrict: kinds::Restrict) -> Restrict {
    match restrict {
        kinds::Restrict::Cta => Restrict::SharedCta,
        kinds::Restrict::Cluster => Restrict::SharedCluster,
        kinds::Restrict::ClusterRead => Restrict::SharedClusterRead,
    }
}

/// `membar` is `fence.sc` (PTX ISA 9.2, 9.7.13.4).
pub(super) fn membar(membar: &Membar) -> Op {
    let Membar { level, spelling: _ } = membar;
    let scope = match level {
        MembarLevel::Cta => Scope::Cta,
        MembarLevel::Gl => Scope::Gpu,
        MembarLevel::Sys => Scope::Sys,
    };
    Op::Fence { order: FenceOrder::Sc, scope }
}

/// `membar.proxy` is `fence.proxy` (the same section).
pub(super) fn membar_proxy(membar: &MembarProxies) -> Op {
    let MembarProxies { proxy, spelling: _ } = membar;
    Op::ProxyFence(vec![match proxy {
        MembarProxy::Alias => ProxyFence::Alias,
        MembarProxy::Async => ProxyFence::Of(Proxy::Async),
    }])
}

pub(super) fn proxy(fence: &FenceProxy) -> Option<Op> {
    let FenceProxy { pair, alias, space: at, order, restrict, scope: wide, addr, bytes: _, spelling: _ } =
        fence;
    let (side, wide) = (order.map(side), wide.map(scope));
    let order = match (pair, alias, at, side, restrict, wide) {
        (None, Alias::Yes, None, None, None, None) => return Some(Op::ProxyFence(vec![ProxyFence::Alias])),
        (None, Alias::Yes, None, Some(Some(side)), None, Some(Scope::Sys)) => ProxyOrder::AliasOneSided(side),
        (Some(ProxyPair::Async), Alias::No, None, None, None, None) => {
            return Some(Op::ProxyFence(vec![ProxyFence::Of(Proxy::Async)]));
        }
        (Some(ProxyPair::Async), Alias::No, Some(space), None, None, None) => {
            ProxyOrder::AsyncSpace(place(*space))
        }
        (Some(ProxyPair::AsyncGeneric), Alias::No, None, Some(Some(side)), Some(restrict), Some(scope)) => {
            ProxyOrder::AsyncRestricted { side, restrict: restricted(*restrict), scope }
        }
        (Some(ProxyPair::TensormapGeneric), Alias::No, None, Some(Some(side)), None, Some(scope)) => {
            match addr {
                Some(addr) => ProxyOrder::TensormapAcquire { scope, addr: address(addr)? },
                None if side == Side::Release => ProxyOrder::TensormapRelease { scope },
                None => return None,
            }
        }
        (Some(pair), Alias::Yes, None, Some(Some(side)), None, Some(Scope::Sys)) => {
            let from_fabric = match pair {
                ProxyPair::FabricGeneric => true,
                ProxyPair::GenericFabric => false,
                ProxyPair::FabricFabric
                | ProxyPair::Async
                | ProxyPair::AsyncGeneric
                | ProxyPair::TensormapGeneric => {
                    return None;
                }
            };
            ProxyOrder::Fabric { side, from_fabric }
        }
        (None | Some(_), Alias::Yes | Alias::No, ..) => return None,
    };
    Some(Op::ProxyOrder(order))
}

/// One side of a fence; both sides have none.
fn side(order: kinds::ProxyOrder) -> Option<Side> {
    match order {
        kinds::ProxyOrder::Acquire => Some(Side::Acquire),
        kinds::ProxyOrder::Release => Some(Side::Release),
        kinds::ProxyOrder::AcqRel => None,
    }
}

fn place(space: ProxySpace) -> Space {
    match space {
        ProxySpace::Global => Space::Global,
        ProxySpace::SharedCta => Space::SharedCta,
        ProxySpace::SharedCluster => Space::SharedCluster,
    }
}

pub(super) fn copied(copy: &MapCopy) -> Option<Op> {
    let MapCopy { scope: wide, dst, src, bytes: _, spelling: _ } = copy;
    let (scope, dst, src) = (scope(*wide), address(dst)?, address(src)?);
    Some(Op::ProxyOrder(ProxyOrder::CopyTensormap { scope, dst, src }))
}

pub(super) fn replaced(replace: &MapReplace) -> Option<Op> {
    let MapReplace { field, space: at, size: _, ty, addr, ordinal, value: new, spelling: _ } = replace;
    let ordinal = match ordinal {
        Some(n) => Some(number(*n)?),
        None => None,
    };
    Some(Op::ProxyOrder(ProxyOrder::ReplaceTensormap {
        field: map_field(*field),
        space: space((*at).into())?,
        ty: if *ty == MapTy::B32 { Ty::B(32) } else { Ty::B(64) },
        addr: address(addr)?,
        ordinal,
        value: value(new)?,
    }))
}

fn map_field(field: MapField) -> TensormapField {
    match field {
        MapField::GlobalAddress => TensormapField::GlobalAddress,
        MapField::Rank => TensormapField::Rank,
        MapField::BoxDim => TensormapField::BoxDim,
        MapField::GlobalDim => TensormapField::GlobalDim,
        MapField::GlobalStride => TensormapField::GlobalStride,
        MapField::ElementStride => TensormapField::ElementStride,
        MapField::Elemtype => TensormapField::ElementType,
        MapField::InterleaveLayout => TensormapField::Interleave,
        MapField::SwizzleMode => TensormapField::Swizzle,
        MapField::FillMode => TensormapField::Fill,
        MapField::SwizzleAtomicity => TensormapField::SwizzleAtomicity,
    }
}
