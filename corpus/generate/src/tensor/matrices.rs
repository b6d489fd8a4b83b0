//! Products of every kind: of tensor memory, with scales, with sparse or kept factors, in one CTA or in a pair; and of a warpgroup,
//! of every type. A commit or a wait tells of them; parts of a correct program are sometimes left out.

use super::pair::Pair;
use crate::numbers::Choose;
use moire_program::ir::Program;

const MEMORY: &str = ".tmem t[128];\n.shared .b8 a[128];\n";

/// Draws a program. `None` if the drawn text is refused.
pub fn matrices(d: &mut dyn Choose) -> Option<Program> {
    let clusters = d.chance(30);
    let mut w = Pair { d, clusters };
    if !clusters && w.d.chance(25) {
        return warpgroup(&mut w);
    }
    let kind = kind(&mut w);
    let (first, more) = (product(&mut w, kind), w.d.chance(30));
    let first = if more { first + &product(&mut w, kind) } else { first };
    told(&mut w, kind, first)
}

/// Draws a program of products whose second factor is kept. `None` if the drawn text is refused.
pub fn kept(d: &mut dyn Choose) -> Option<Program> {
    let mut w = Pair { d, clusters: false };
    let kind = kind(&mut w);
    let first = (0..4).map(|_| stationary(&mut w, kind)).collect();
    told(&mut w, kind, first)
}

/// The program of these products, a commit, and what another warp does once it has heard of it.
fn told(w: &mut Pair<'_>, kind: &str, mut first: String) -> Option<Program> {
    let clusters = w.clusters;
    let group = 1 + u8::from(clusters);
    let commit = match (clusters, w.d.below(4)) {
        (true, 0..3) => {
            let (wide, mask) = (w.d.pick(&["", "::32b"]), w.d.pick(&[3, 3, 2]));
            format!(".shared::cluster.multicast::cluster{wide}.b64 [b], {mask};\n")
        }
        _ => ".shared::cluster.b64 [b];\n".to_owned(),
    };
    let restrict =
        if integers(kind) { "" } else { w.d.pick(&["", "", "", ".sync_restrict::shared::read::mma::a"]) };
    first += &w.maybe(&format!("tcgen05.commit.cta_group::{group}{restrict}.mbarrier::arrive::one{commit}"));
    let fence = w.maybe("tcgen05.fence::after_thread_sync;\n");
    let then = w.d.pick(&[
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r0}, [t+lane 32];\ntcgen05.wait::ld.sync.aligned;\n",
        "st.weak.shared::cta.b8 [a], 1;\n",
        "fence.proxy.async;\nld.weak.shared::cta.b8 r0, [a];\n",
    ]);
    let second = w.wait("L") + &fence + then;
    w.program(MEMORY, &first, &second)
}

/// A kind of numbers, of all products of a program: no architecture has all.
fn kind(w: &mut Pair<'_>) -> &'static str {
    w.d.pick(&["f16", "f16", "tf32", "f8f6f4", "i8", "ti16"])
}

fn integers(kind: &str) -> bool {
    kind.ends_with("i8") || kind.ends_with("i16")
}

fn product(w: &mut Pair<'_>, plain: &str) -> String {
    let (group, rows) = if w.clusters { (2, 256) } else { (1, 128) };
    let columns = w.d.pick(&[16, 16, 32]);
    let (sparse, metadata) = if w.d.chance(40) { (".sp", "[t+96], ") } else { ("", "") };
    let shape = format!("idesc({rows}, {columns})");
    let factor = w.d.pick(&["desc(a, 32)", "desc(a, 32)", "[t+64]"]);
    match w.d.below(4) {
        0 if !w.clusters => stationary(w, plain),
        1 | 2 if !integers(plain) => {
            let (kind, size) = w.d.pick(&[
                ("mxf8f6f4", ""),
                ("mxf8f6f4", ".scale_vec::1X"),
                ("mxf8f6f4", ".block32"),
                ("mxf4", ""),
                ("mxf4", ".scale_vec::2X"),
                ("mxf4", ".block32"),
                ("mxf4nvf4", ".scale_vec::2X"),
                ("mxf4nvf4", ".scale_vec::4X"),
                ("mxf4nvf4", ".block16"),
                ("mxf4nvf4", ".block32"),
            ]);
            let collector = collector(w);
            format!(
                "tcgen05.mma{sparse}.cta_group::{group}.kind::{kind}.block_scale{size}{collector} [t], {factor}, desc(a+32, 32), {metadata}{shape}, [t+104], [t+108], 1;\n"
            )
        }
        _ => {
            let ashift = if factor.starts_with('[') && w.d.chance(50) { ".ashift" } else { "" };
            let collector = if ashift.is_empty() { collector(w) } else { String::new() };
            let off = if w.clusters { "{o, o, o, o, o, o, o, o}, " } else { "{o, o, o, o}, " };
            let lanes = w.d.pick(&["", "", off]);
            let input = if integers(plain) { "1" } else { w.d.pick(&["0", "1", "1", "1, 3"]) };
            format!(
                "tcgen05.mma{sparse}.cta_group::{group}.kind::{plain}{ashift}{collector} [t], {factor}, desc(a+32, 32), {metadata}{shape}, {lanes}{input};\n"
            )
        }
    }
}

/// A product whose second factor is kept in a collector.
fn stationary(w: &mut Pair<'_>, kind: &str) -> String {
    let (sparse, metadata) = w.d.pick(&[("", ""), (".sp", "[t+96], ")]);
    let factor = w.d.pick(&["desc(a, 32)", "desc(a, 32)", "[t+64]"]);
    let use_of = w.d.pick(&["discard", "fill", "lastuse", "use"]);
    let collector = match w.d.below(5) {
        0 => String::new(),
        n => format!(".collector::b{}::{use_of}", n - 1),
    };
    let (columns, zeros) = (w.d.pick(&[64, 64, 128]), w.d.pick(&["", "", ", zeros"]));
    format!(
        "tcgen05.mma.ws{sparse}.cta_group::1.kind::{kind}{collector} [t], {factor}, desc(a+32, 32), {metadata}idesc(128, {columns}), 1{zeros};\n"
    )
}

fn collector(w: &mut Pair<'_>) -> String {
    let (side, how) = (w.d.pick(&["a", "b"]), w.d.pick(&["discard", "fill", "lastuse", "use"]));
    if w.d.chance(50) { format!(".collector::{side}::{how}") } else { String::new() }
}

/// A product of a warpgroup, and what is done with its factors and its result.
fn warpgroup(w: &mut Pair<'_>) -> Option<Program> {
    // Columns, inner extent, types, registers of the result, and what stands behind the factors.
    let (types, registers, flags) = w.d.pick(&[
        ("m64n8k16.f32.f16.f16", 4, "1, 1, 1, 0, 0"),
        ("m64n16k16.f32.bf16.bf16", 8, "1, 1, 1, 0, 0"),
        ("m64n8k16.f16.f16.f16", 2, "1, 1, 1, 0, 0"),
        ("m64n8k8.f32.tf32.tf32", 4, "1, 1, 1"),
        ("m64n16k8.f32.tf32.tf32", 8, "1, 1, 1"),
        ("m64n8k32.f32.e4m3.e5m2", 4, "1, 1, 1"),
        ("m64n8k32.s32.s8.u8", 4, "1"),
        ("m64n8k32.s32.u8.s8", 4, "1"),
        ("m64n64k32.s32.s8.s8", 32, "1"),
        ("m64n8k256.s32.b1.b1.and.popc", 4, "1"),
    ]);
    let d = (0..registers).map(|n| format!("d{n}")).collect::<Vec<_>>().join(", ");
    let fence = w.maybe("wgmma.fence.sync.aligned;\n");
    let product =
        format!("wgmma.mma_async.sync.aligned.{types} {{{d}}}, desc(a, 32), desc(a+32, 32), {flags};\n");
    let commit = w.maybe("wgmma.commit_group.sync.aligned;\n");
    let wait = w.maybe("wgmma.wait_group.sync.aligned 0;\n");
    let then = w.d.pick(&["", "add.u32 r, d0, 1;\n", "mov.b32 d1, 0;\n"]);
    let second =
        w.wait("L") + w.d.pick(&["st.weak.shared::cta.b8 [a], 1;\n", "ld.weak.shared::cta.b8 r, [a];\n"]);
    let first = fence + &product + &commit + &wait + then + &w.arrive();
    w.program(".shared .b8 a[128];\n", &first, &second)
}
