//! Words of PTX: types, special registers.

use super::module::Special;
use moire_program::ir::Ty;

/// A fundamental or packed type.
pub(crate) fn type_of(word: &str) -> Option<Ty> {
    Some(match word {
        "pred" => Ty::Pred,
        "b8" => Ty::B(8),
        "b16" => Ty::B(16),
        "b32" => Ty::B(32),
        "b64" => Ty::B(64),
        "b128" => Ty::B(128),
        "u8" => Ty::U(8),
        "u16" => Ty::U(16),
        "u32" => Ty::U(32),
        "u64" => Ty::U(64),
        "s8" => Ty::S(8),
        "s16" => Ty::S(16),
        "s32" => Ty::S(32),
        "s64" => Ty::S(64),
        "f16" | "bf16" => Ty::F(16),
        "f32" | "tf32" => Ty::F(32),
        "f64" => Ty::F(64),
        "f16x2" => Ty::F16x2,
        "bf16x2" => Ty::Bf16x2,
        _ => return None,
    })
}

/// A special register by name, `%` included.
pub(super) fn special(name: &str) -> Option<Special> {
    let axis =
        |axis: &str| ["x", "y", "z"].iter().position(|a| *a == axis).and_then(|n| u8::try_from(n).ok());
    if let Some((stem, last)) = name.split_once('.') {
        let axis = axis(last)?;
        return Some(match stem {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" => Special::Ctaid(axis),
            "%nctaid" => Special::Nctaid(axis),
            "%clusterid" => Special::Clusterid(axis),
            "%nclusterid" => Special::Nclusterid(axis),
            "%cluster_ctaid" => Special::ClusterCtaid(axis),
            "%cluster_nctaid" => Special::ClusterNctaid(axis),
            _ => return None,
        });
    }
    if let Some(number) = name.strip_prefix("%envreg").and_then(|n| n.parse::<u8>().ok()) {
        return (number < 32).then_some(Special::Envreg(number));
    }
    Some(match name {
        "%cluster_ctarank" => Special::ClusterCtarank,
        "%cluster_nctarank" => Special::ClusterNctarank,
        "%laneid" => Special::Laneid,
        "%warpid" => Special::Warpid,
        "%nwarpid" => Special::Nwarpid,
        "%lanemask_eq" => Special::LanemaskEq,
        "%lanemask_lt" => Special::LanemaskLt,
        "%lanemask_le" => Special::LanemaskLe,
        "%lanemask_gt" => Special::LanemaskGt,
        "%lanemask_ge" => Special::LanemaskGe,
        "%dynamic_smem_size" => Special::DynamicSmemSize,
        "%clock"
        | "%clock64"
        | "%clock_hi"
        | "%globaltimer"
        | "%globaltimer_lo"
        | "%globaltimer_hi"
        | "%smid"
        | "%nsmid"
        | "%gridid"
        | "%total_smem_size"
        | "%aggr_smem_size"
        | "%is_explicit_cluster"
        | "%current_graph_exec" => Special::Unknown,
        _ => return None,
    })
}
