//! Copies, updates and prefetches in bulk, of bytes and of boxes of tensors in every mode; stores and updates that report; what changes
//! tensor maps. The end of each is awaited as it should be, or not.

use super::pair::Pair;
use crate::numbers::Choose;
use moire_program::ir::Program;

const MEMORY: &str = ".shared .b8 s[128];\n.shared .b8 n[128];\n.global .b8 g[128];\n.global .b8 m[128];\n.global .b64 f[2];\n";

/// How the end of something asynchronous is told.
enum End {
    /// It completes bytes at the mbarrier.
    Bytes(u32),
    /// It ends with its group.
    Group,
    /// It orders what came before it, or ends unseen.
    Own,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn boxes(d: &mut dyn Choose) -> Option<Program> {
    let clusters = d.chance(40);
    let mut w = Pair { d, clusters };
    let (text, end) = match w.d.below(11) {
        0 => loaded(&mut w),
        1 | 2 => stored(&mut w),
        3 | 4 => bytes(&mut w),
        5 | 6 => (prefetched(&mut w), End::Own),
        7 | 8 => remote(&mut w),
        _ => (map(&mut w), End::Own),
    };
    let far = if clusters {
        "mapa.shared::cluster.u32 fs, s, 1;\nmapa.shared::cluster.u32 fb, b, 1;\n"
    } else {
        ""
    };
    let (own, theirs) = match end {
        End::Bytes(n) => (expect(&mut w, n, !text.contains("[fb]")), expect(&mut w, n, clusters)),
        End::Group | End::Own => (String::new(), String::new()),
    };
    let first = match end {
        End::Bytes(_) => own + far + &text,
        End::Group => {
            let wait = w.d.pick(&["cp.async.bulk.wait_group 0;\n", "cp.async.bulk.wait_group.read 0;\n"]);
            let fence = w.maybe("fence.proxy.async;\n");
            fence + &text + &w.maybe("cp.async.bulk.commit_group;\n") + &w.maybe(wait) + &w.arrive()
        }
        End::Own => text + &w.arrive(),
    };
    let then = w.d.pick(&[
        "ld.weak.shared::cta.u32 r, [s];\n",
        "st.weak.shared::cta.u32 [s], 1;\n",
        "ld.weak.global.u32 r, [g];\n",
        "ld.acquire.gpu.global.u32 r, [f];\n",
    ]);
    let second = theirs + &w.wait("L") + then;
    w.program(MEMORY, &first, &second)
}

/// An arrival that announces bytes, where they are to be announced, and not always there.
fn expect(w: &mut Pair<'_>, bytes: u32, here: bool) -> String {
    let arrive = format!("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], {bytes};\n");
    if here { w.maybe(&arrive) } else { String::new() }
}

/// Dimensions, mode, coordinates and offsets of a box.
fn shape(w: &mut Pair<'_>, modes: &[&'static str]) -> (usize, &'static str, String, String) {
    let mode = w.d.pick(modes);
    let four = mode.ends_with("4");
    let dims = match mode {
        "tile" => 1 + w.d.below(5),
        _ if four => 2,
        _ => 3 + w.d.below(3),
    };
    let offsets = match mode {
        "im2col" => dims - 2,
        "im2col::w" | "im2col::w::128" => 2,
        _ => 0,
    };
    let zeros = |n: usize| vec!["0"; n].join(", ");
    let offsets = if offsets > 0 { format!(", {{{}}}", zeros(offsets)) } else { String::new() };
    (dims, mode, zeros(if four { 5 } else { dims }), offsets)
}

fn loaded(w: &mut Pair<'_>) -> (String, End) {
    let (dims, mode, at, offsets) =
        shape(w, &["tile", "tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128"]);
    let space = if w.clusters { "cluster" } else { w.d.pick(&["cta", "cta", "cluster"]) };
    let (many, mask) = match w.d.below(3) {
        0 if space == "cluster" => {
            (w.d.pick(&[".multicast::cluster", ".multicast::cluster::32b"]), w.d.pick(&[", 3", ", 1", ", 2"]))
        }
        _ => ("", ""),
    };
    let group = w.d.pick(&["", "", ".cta_group::1", ".cta_group::2"]);
    let text = format!(
        "cp.async.bulk.tensor.{dims}d.shared::{space}.global.{mode}.mbarrier::complete_tx::bytes{many}{group} [s], [m as tile(g, 32), {{{at}}}], [b]{offsets}{mask};\n"
    );
    (text, End::Bytes(32))
}

fn stored(w: &mut Pair<'_>) -> (String, End) {
    let (dims, mode, at, _) = shape(w, &["tile", "tile", "tile::scatter4", "im2col_no_offs"]);
    let place = format!(".bulk_group [m as tile(g, 32), {{{at}}}], [s];\n");
    let text = if w.d.chance(40) {
        format!("cp.async.bulk.tensor.{dims}d.global.shared::cta.{mode}{place}")
    } else {
        let ops = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];
        let mut one = || {
            format!("cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.{}.{mode}{place}", w.d.pick(&ops))
        };
        one() + &one()
    };
    (text, End::Group)
}

/// What an update of global memory in bulk does, and its type.
const AWAY: [&str; 17] = [
    "add.u32",
    "add.s32",
    "add.u64",
    "add.f32",
    "add.f64",
    "add.noftz.f16",
    "add.noftz.bf16",
    "min.s64",
    "max.u64",
    "min.f16",
    "max.s32",
    "inc.u32",
    "dec.u32",
    "and.b32",
    "or.b64",
    "or.b32",
    "xor.b64",
];

/// A copy or updates of bytes with what they may say beyond the usual.
fn bytes(w: &mut Pair<'_>) -> (String, End) {
    let scope = w.d.pick(&["cta", "cluster", "gpu", "sys"]);
    let into = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    let out = "cp.async.bulk.global.shared::cta.bulk_group";
    match w.d.below(8) {
        0 => (format!("{into}.ignore_oob [s], [g], 32, {}, 4, [b];\n", w.d.pick(&[0, 4])), End::Bytes(32)),
        1 => (format!("{into}.relaxed.{scope}.b128 [s], [g], 32, [b];\n"), End::Bytes(32)),
        2 => (format!("{out}.cp_mask [g], [s], 32, 255;\n"), End::Group),
        3 => (format!("{out}.relaxed.{scope}.b128 [g], [s], 32;\n"), End::Group),
        4 | 5 if w.clusters => {
            let op = w.d.pick(&["add.u32", "add.s32", "add.u64", "min.s32", "max.u32", "and.b32", "inc.u32"]);
            let far = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
            (format!("{far}.{op} [fs], [n], 32, [fb];\n"), End::Bytes(32))
        }
        _ => {
            let mut one = |at| {
                format!(
                    "cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [g+{at}], [s], 32;\n",
                    w.d.pick(&AWAY)
                )
            };
            (one(0) + &one(32) + &one(64) + &one(0), End::Group)
        }
    }
}

fn prefetched(w: &mut Pair<'_>) -> String {
    if w.d.chance(30) {
        return "cp.async.bulk.prefetch.L2.global [g], 32;\n".to_owned();
    }
    let (dims, mode, at, offsets) =
        shape(w, &["tile", "tile::gather4", "im2col", "im2col::w", "im2col::w", "im2col::w::128"]);
    format!("cp.async.bulk.prefetch.tensor.{dims}d.L2.global.{mode} [m as tile(g, 32), {{{at}}}]{offsets};\n")
}

/// Types of a store that reports, with their bytes.
const TYPES: [(&str, u32); 8] =
    [("b32", 4), ("u32", 4), ("s32", 4), ("f32", 4), ("b64", 8), ("u64", 8), ("s64", 8), ("f64", 8)];
/// What an update that reports does, with its type and bytes.
const UPDATES: [(&str, u32); 12] = [
    ("add.u32", 4),
    ("add.s32", 4),
    ("add.u64", 8),
    ("inc.u32", 4),
    ("dec.u32", 4),
    ("min.s32", 4),
    ("min.u32", 4),
    ("max.u32", 4),
    ("max.s32", 4),
    ("and.b32", 4),
    ("or.b32", 4),
    ("xor.b32", 4),
];

/// Two stores or updates that report to an mbarrier of another CTA, or publish what came before them.
fn remote(w: &mut Pair<'_>) -> (String, End) {
    let how = w.d.pick(&["release.gpu", "release.sys", "mmio.release.sys"]);
    let complete = "shared::cluster.mbarrier::complete_tx::bytes";
    let (mut text, mut sum) = (String::new(), 0);
    for n in 0..3 {
        let ((ty, size), (op, bytes)) = (w.d.pick(&TYPES), w.d.pick(&UPDATES));
        text += &match (w.clusters, w.d.below(2)) {
            (true, 0) => {
                let (vec, src, count) =
                    w.d.pick(&[("", "v", 1), (".v2", "{v, v}", 2), (".v4", "{v, v, v, v}", 4)]);
                let (vec, src, count) = if size * count > 16 { ("", "v", 1) } else { (vec, src, count) };
                sum += size * count;
                format!("st.async.weak.{complete}{vec}.{ty} [fs+{}], {src}, [fb];\n", 16 * n)
            }
            (true, _) => {
                sum += bytes;
                format!("red.async.relaxed.cluster.{complete}.{op} [fs+{}], v, [fb];\n", 16 * n)
            }
            (false, 0) => {
                format!("st.async.{how}.global.{} [f], v;\n", w.d.pick(&[ty, ty, "s16", "u16", "b16"]))
            }
            (false, _) => format!("red.async.{how}.global.{} [f], v;\n", w.d.pick(&[op, op, op, "add.s64"])),
        };
    }
    if !w.clusters && w.d.chance(20) {
        let (ty, size) = w.d.pick(&TYPES);
        let own = "shared::cta.mbarrier::complete_tx::bytes";
        return (format!("mov.b64 v, 1;\nst.async.weak.{own}.{ty} [s], v, [b];\n"), End::Bytes(size));
    }
    let before = if w.clusters { "mov.b64 v, 1;\n" } else { "mov.b64 v, 1;\nst.weak.global.u32 [g], 1;\n" };
    (format!("{before}{text}"), if w.clusters { End::Bytes(sum) } else { End::Own })
}

/// A change of a tensor map, zeros in bulk, or a prefetch.
fn map(w: &mut Pair<'_>) -> String {
    let scope = w.d.pick(&["gpu", "gpu", "cta", "cluster", "sys"]);
    let release = w.maybe(&format!("fence.proxy.tensormap::generic.release.{scope};\n"));
    let acquire = w.maybe(&format!("fence.proxy.tensormap::generic.acquire.{scope} [m], 128;\n"));
    match w.d.below(8) {
        0 => "mov.u32 at, s;\nst.bulk.weak.shared::cta [at], 32, 0;\n".to_owned(),
        1 => w.d.pick(&["prefetch.global.L2 [g];\n", "prefetch.tensormap [m];\n"]).to_owned(),
        2..=4 => {
            let scope = w.d.pick(&["cta", "cluster", "gpu", "sys"]);
            format!(
                "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [m], [n], 128;\n"
            )
        }
        _ => replaced(w) + &replaced(w) + &replaced(w) + &release + &acquire,
    }
}

fn replaced(w: &mut Pair<'_>) -> String {
    let field = w.d.pick(&[
        "global_address",
        "box_dim",
        "element_stride",
        "global_dim",
        "global_stride",
        "rank",
        "elemtype",
        "interleave_layout",
        "swizzle_mode",
        "swizzle_atomicity",
        "fill_mode",
    ]);
    let (place, bits) = (
        w.d.pick(&[("global", "m"), ("global", "m"), ("shared::cta", "n")]),
        if matches!(field, "global_address" | "global_stride") { 64 } else { 32 },
    );
    let at = if matches!(field, "box_dim" | "element_stride" | "global_dim" | "global_stride") {
        ", 0"
    } else {
        ""
    };
    format!("tensormap.replace.tile.{field}.{}.b1024.b{bits} [{}]{at}, 1;\n", place.0, place.1)
}
