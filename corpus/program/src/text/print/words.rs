//! Prints qualifiers, with the tables of words that printer and reader share.

use crate::ir::*;

pub(super) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

pub(super) fn load_order(order: LoadOrder) -> String {
    match order {
        LoadOrder::Weak => ".weak".into(),
        LoadOrder::Relaxed(s) => format!(".relaxed.{}", scope(s)),
        LoadOrder::Acquire(s) => format!(".acquire.{}", scope(s)),
        LoadOrder::Volatile => ".volatile".into(),
        LoadOrder::MmioRelaxed => ".mmio.relaxed.sys".into(),
        LoadOrder::MmioAcquire => ".mmio.acquire.sys".into(),
        LoadOrder::SeqCst(s) => format!(".seq_cst.{}", scope(s)),
    }
}

pub(super) fn store_order(order: StoreOrder) -> String {
    match order {
        StoreOrder::Weak => ".weak".into(),
        StoreOrder::Relaxed(s) => format!(".relaxed.{}", scope(s)),
        StoreOrder::Release(s) => format!(".release.{}", scope(s)),
        StoreOrder::Volatile => ".volatile".into(),
        StoreOrder::MmioRelaxed => ".mmio.relaxed.sys".into(),
        StoreOrder::MmioRelease => ".mmio.release.sys".into(),
        StoreOrder::SeqCst(s) => format!(".seq_cst.{}", scope(s)),
    }
}

pub(super) fn rmw_order(order: RmwOrder) -> &'static str {
    match order {
        RmwOrder::Relaxed => ".relaxed",
        RmwOrder::Acquire => ".acquire",
        RmwOrder::Release => ".release",
        RmwOrder::AcqRel => ".acq_rel",
        RmwOrder::SeqCst => ".seq_cst",
    }
}

pub(super) fn space(space: Space) -> &'static str {
    match space {
        Space::Generic | Space::Tensor => "",
        Space::Global => ".global",
        Space::SharedCta => ".shared::cta",
        Space::SharedCluster => ".shared::cluster",
    }
}

/// A type as PTX writes it, with its dot.
pub(crate) fn type_name(ty: Ty) -> String {
    match ty {
        Ty::Pred => ".pred".into(),
        Ty::B(n) => format!(".b{n}"),
        Ty::U(n) => format!(".u{n}"),
        Ty::S(n) => format!(".s{n}"),
        Ty::F(n) => format!(".f{n}"),
        Ty::F16x2 => ".f16x2".into(),
        Ty::Bf16x2 => ".bf16x2".into(),
    }
}

pub(crate) const ATOM_OPS: [(&str, AtomOp); 11] = [
    ("add", AtomOp::Add),
    ("sub", AtomOp::Sub),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("inc", AtomOp::Inc),
    ("dec", AtomOp::Dec),
    ("exch", AtomOp::Exch),
    ("cas", AtomOp::Cas),
];

pub(crate) const ALU_OPS: [(&str, AluOp); 12] = [
    ("add", AluOp::Add),
    ("sub", AluOp::Sub),
    ("mul", AluOp::Mul),
    ("div", AluOp::Div),
    ("rem", AluOp::Rem),
    ("and", AluOp::And),
    ("or", AluOp::Or),
    ("xor", AluOp::Xor),
    ("shl", AluOp::Shl),
    ("shr", AluOp::Shr),
    ("min", AluOp::Min),
    ("max", AluOp::Max),
];

pub(crate) const CMP_OPS: [(&str, CmpOp); 6] = [
    ("eq", CmpOp::Eq),
    ("ne", CmpOp::Ne),
    ("lt", CmpOp::Lt),
    ("le", CmpOp::Le),
    ("gt", CmpOp::Gt),
    ("ge", CmpOp::Ge),
];

pub(super) fn word<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    let found = table.iter().find(|(_, v)| v == value);
    debug_assert!(found.is_some(), "a value without a word would print as another one");
    found.map_or("", |(w, _)| w)
}

/// The mnemonic of an access through `proxy`.
pub(super) fn stem(proxy: Proxy, plain: &str) -> String {
    match (proxy, plain) {
        (Proxy::Texture, _) => format!("t{plain}"),
        (Proxy::Surface, _) => format!("su{plain}"),
        (Proxy::Constant, _) => format!("{plain}c"),
        _ => plain.to_owned(),
    }
}

/// `.cta_group::1`, `.cta_group::2`
pub(super) fn group(group: CtaGroup) -> String {
    format!(".cta_group::{}", group.ctas())
}

pub(super) fn multicast_words(multicast: Option<Multicast>) -> &'static str {
    match multicast {
        None => "",
        Some(Multicast { wide: false, .. }) => ".multicast::cluster",
        Some(Multicast { wide: true, .. }) => ".multicast::cluster::32b",
    }
}
