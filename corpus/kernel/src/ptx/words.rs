//! Words of PTX: types, special registers, and mnemonics that litmus texts do not have.

use super::module::Special;
use moire_program::ir::Ty;
use moire_program::text::scan::closest;

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

/// Qualifiers of loads and stores that litmus texts have too. With any other the access is kept as words.
pub(super) const ACCESS: [&str; 37] = [
    "weak",
    "relaxed",
    "acquire",
    "release",
    "volatile",
    "mmio",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "v2",
    "v4",
    "v8",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f16x2",
    "f32",
    "f64",
    "bf16",
    "bf16x2",
    "async",
];

/// Further qualifiers of loads and stores (PTX ISA 9.2, 9.7.9.8 to 9.7.9.13).
const FURTHER: [&str; 17] = [
    "param",
    "param::entry",
    "param::func",
    "local",
    "const",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "nc",
    "unified",
    "bulk",
    "mbarrier::complete_tx::bytes",
    "tf32",
];

/// Removes the cache hints of an access: a hint changes no meaning (PTX ISA 9.2, 9.7.9.2). Says whether one of them is
/// `.L2::cache_hint`, which has an operand of its own behind all others.
pub(super) fn unhinted(words: &mut Vec<&str>) -> bool {
    let policy = words.contains(&"L2::cache_hint");
    words.retain(|w| !["L1::", "L2::", "level::"].iter().any(|start| w.starts_with(start)));
    policy
}

/// The first qualifier of a load or store that PTX does not have, and the one that is closest to it.
pub(super) fn wrong_qualifier<'a>(words: &[&'a str]) -> Option<(&'a str, Option<&'static str>)> {
    let known: Vec<&'static str> = ACCESS.iter().chain(&FURTHER).copied().collect();
    let open = |w: &str| ["L1::", "L2::", "level::", "const["].iter().any(|start| w.starts_with(start));
    let wrong = words[1..].iter().find(|w| !known.contains(w) && !open(w))?;
    Some((wrong, closest(wrong, &known)))
}

/// Mnemonics that litmus texts do not have (PTX ISA 9.2, chapter 9).
pub(super) const PLAIN: [&str; 99] = [
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "ex2",
    "fma",
    "fns",
    "getctarank",
    "isspacep",
    "istypep",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "match",
    "max",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "neg",
    "not",
    "or",
    "popc",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vabsdiff",
    "vabsdiff4",
    "vadd",
    "vavrg2",
    "vmad",
    "vmax",
    "vmin",
    "vote",
    "vset",
    "vshl",
    "vshr",
    "vsub",
    "wmma",
    "xor",
    "st.bulk",
    "tld",
];
