//! Prints fences of the async and tensormap proxies with a space, a direction or a range, and `tensormap.*`.

use super::operands::Printer;
use super::words::{scope, space, type_name, word};
use crate::ir::*;

/// The memory that a one-sided fence orders.
pub(crate) const RESTRICTIONS: [(&str, Restrict); 3] = [
    ("sync_restrict::shared::cta", Restrict::SharedCta),
    ("sync_restrict::shared::cluster", Restrict::SharedCluster),
    ("sync_restrict::shared::cluster::read", Restrict::SharedClusterRead),
];

/// Fields of tensor maps.
pub(crate) const TENSORMAP_FIELDS: [(&str, TensormapField); 11] = [
    ("global_address", TensormapField::GlobalAddress),
    ("rank", TensormapField::Rank),
    ("box_dim", TensormapField::BoxDim),
    ("global_dim", TensormapField::GlobalDim),
    ("global_stride", TensormapField::GlobalStride),
    ("element_stride", TensormapField::ElementStride),
    ("elemtype", TensormapField::ElementType),
    ("interleave_layout", TensormapField::Interleave),
    ("swizzle_mode", TensormapField::Swizzle),
    ("swizzle_atomicity", TensormapField::SwizzleAtomicity),
    ("fill_mode", TensormapField::Fill),
];

fn side(side: Side) -> &'static str {
    match side {
        Side::Acquire => "acquire",
        Side::Release => "release",
    }
}

pub(super) fn proxy_order(p: &Printer<'_>, op: &ProxyOrder) -> String {
    match op {
        ProxyOrder::AsyncSpace(s) => format!("fence.proxy.async{}", space(*s)),
        ProxyOrder::AsyncRestricted { side: way, restrict, scope: s } => {
            let restrict = word(&RESTRICTIONS, restrict);
            format!("fence.proxy.async::generic.{}.{restrict}.{}", side(*way), scope(*s))
        }
        ProxyOrder::Restricted { side: s, restrict } => {
            format!("fence.{}.{}.cluster", side(*s), word(&RESTRICTIONS, restrict))
        }
        ProxyOrder::TensormapRelease { scope: s } => {
            format!("fence.proxy.tensormap::generic.release.{}", scope(*s))
        }
        ProxyOrder::TensormapAcquire { scope: s, addr } => format!(
            "fence.proxy.tensormap::generic.acquire.{} {}, {TENSORMAP_BYTES}",
            scope(*s),
            p.address(addr)
        ),
        ProxyOrder::AliasOneSided(s) => format!("fence.proxy.alias.{}.sys", side(*s)),
        ProxyOrder::Fabric { side: s, from_fabric } => {
            let pair = if *from_fabric { "fabric::generic" } else { "generic::fabric" };
            format!("fence.proxy.{pair}.alias.{}.sys", side(*s))
        }
        ProxyOrder::CopyTensormap { scope: s, dst, src } => format!(
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{}.sync.aligned {}, {}, {TENSORMAP_BYTES}",
            scope(*s),
            p.address(dst),
            p.address(src)
        ),
        ProxyOrder::ReplaceTensormap { field, space: s, ty, addr, ordinal, value } => {
            let ordinal = ordinal.map_or(String::new(), |n| format!(", {n}"));
            format!(
                "tensormap.replace.tile.{}{}.b1024{} {}{ordinal}, {}",
                word(&TENSORMAP_FIELDS, field),
                space(*s),
                type_name(*ty),
                p.address(addr),
                p.operand(*value)
            )
        }
    }
}
