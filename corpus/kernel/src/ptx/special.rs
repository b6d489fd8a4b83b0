//! Special registers that a launch gives a value.

use moire_isa::operand::Special as Named;

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    Laneid,
    Warpid,
    Nwarpid,
    LanemaskEq,
    LanemaskLt,
    LanemaskLe,
    LanemaskGt,
    LanemaskGe,
    DynamicSmemSize,
    Envreg(u8),
    /// A clock or a property of the machine, which may have any value.
    Unknown,
}

/// By the number that the book gives a name for good.
impl From<Named> for Special {
    fn from(named: Named) -> Special {
        let axis = named.tag() % 3;
        match named.tag() {
            0..=2 => Special::Tid(axis),
            3..=5 => Special::Ntid(axis),
            6..=8 => Special::Ctaid(axis),
            9..=11 => Special::Nctaid(axis),
            12..=14 => Special::Clusterid(axis),
            15..=17 => Special::Nclusterid(axis),
            18..=20 => Special::ClusterCtaid(axis),
            21..=23 => Special::ClusterNctaid(axis),
            24 => Special::ClusterCtarank,
            25 => Special::ClusterNctarank,
            26 => Special::Laneid,
            27 => Special::Warpid,
            28 => Special::Nwarpid,
            29 => Special::LanemaskEq,
            30 => Special::LanemaskLt,
            31 => Special::LanemaskLe,
            32 => Special::LanemaskGt,
            33 => Special::LanemaskGe,
            34 => Special::DynamicSmemSize,
            tag @ 100..=131 => Special::Envreg(tag - 100),
            _ => Special::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_names() {
        let of = |name| Named::of(name).map(Special::from);
        assert_eq!(of("%tid.z"), Some(Special::Tid(2)));
        assert_eq!(of("%cluster_nctaid.y"), Some(Special::ClusterNctaid(1)));
        assert_eq!(of("%cluster_ctarank"), Some(Special::ClusterCtarank));
        assert_eq!(of("%nwarpid"), Some(Special::Nwarpid));
        assert_eq!(of("%lanemask_ge"), Some(Special::LanemaskGe));
        assert_eq!(of("%dynamic_smem_size"), Some(Special::DynamicSmemSize));
        assert_eq!(of("%envreg31"), Some(Special::Envreg(31)));
        assert_eq!(of("%clock64"), Some(Special::Unknown));
        assert_eq!(of("%pm0"), Some(Special::Unknown));
    }
}
