//! Prints `tcgen05.*`, with the tables of words that reader and printer share.

use super::operands::Printer;
use super::words::{group, multicast_words, space, type_name, word};
use crate::ir::*;

/// Shapes of loads and stores.
pub(crate) const MOVE_SHAPES: [(&str, MoveShape); 5] = [
    ("32x32b", MoveShape::L32x32b),
    ("16x64b", MoveShape::L16x64b),
    ("16x128b", MoveShape::L16x128b),
    ("16x256b", MoveShape::L16x256b),
    ("16x32bx2", MoveShape::L16x32bx2),
];

/// Shapes of `cp` with the warps that receive them.
pub(crate) const COPY_SHAPES: [(&str, CopyShape); 6] = [
    ("128x256b", CopyShape::S128x256b),
    ("4x256b", CopyShape::S4x256b),
    ("128x128b", CopyShape::S128x128b),
    ("64x128b.warpx2::02_13", CopyShape::S64x128bPairs02And13),
    ("64x128b.warpx2::01_23", CopyShape::S64x128bPairs01And23),
    ("32x128b.warpx4", CopyShape::S32x128bAllWarps),
];

/// Kinds of products.
pub(crate) const MMA_KINDS: [(&str, MmaKind); 8] = [
    ("kind::f16", MmaKind::F16),
    ("kind::tf32", MmaKind::Tf32),
    ("kind::f8f6f4", MmaKind::F8f6f4),
    ("kind::i8", MmaKind::I8),
    ("kind::ti16", MmaKind::Ti16),
    ("kind::mxf8f6f4", MmaKind::Mxf8f6f4),
    ("kind::mxf4", MmaKind::Mxf4),
    ("kind::mxf4nvf4", MmaKind::Mxf4nvf4),
];

/// Sizes of scale vectors.
pub(crate) const SCALE_SIZES: [(&str, ScaleSize); 5] = [
    ("block16", ScaleSize::Block16),
    ("block32", ScaleSize::Block32),
    ("scale_vec::1X", ScaleSize::Times1),
    ("scale_vec::2X", ScaleSize::Times2),
    ("scale_vec::4X", ScaleSize::Times4),
];

/// Uses of a collector buffer.
pub(crate) const COLLECTOR_USES: [(&str, CollectorUse); 4] = [
    ("fill", CollectorUse::Fill),
    ("use", CollectorUse::Use),
    ("lastuse", CollectorUse::LastUse),
    ("discard", CollectorUse::Discard),
];

pub(super) fn tcgen05(p: &Printer<'_>, op: &Tcgen05) -> String {
    let only = |exclusive: bool| if exclusive { ".exclusive" } else { "" };
    let name = op.name();
    match op {
        Tcgen05::Alloc { exclusive, group: g, space: s, dst, columns } => format!(
            "{name}{}{}.sync.aligned{}.b32 {}, {}",
            only(*exclusive),
            group(*g),
            space(*s),
            p.address(dst),
            p.operand(*columns)
        ),
        Tcgen05::Dealloc { exclusive, group: g, addr, columns } => format!(
            "{name}{}{}.sync.aligned.b32 {}, {}",
            only(*exclusive),
            group(*g),
            p.operand(*addr),
            p.operand(*columns)
        ),
        Tcgen05::Relinquish { group: g } => format!("{name}{}.sync.aligned", group(*g)),
        Tcgen05::WaitLoad | Tcgen05::WaitStore => format!("{name}.sync.aligned"),
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => name.to_owned(),
        Tcgen05::Load(load) => tensor_load(p, load),
        Tcgen05::Store(store) => {
            let unpack = if store.unpack { ".unpack::16b" } else { "" };
            let split = store.split.map_or(String::new(), |n| format!(", {n}"));
            format!(
                "{name}.sync.aligned.{}.x{}{unpack}.b32 {}{split}, {}",
                word(&MOVE_SHAPES, &store.shape),
                store.times,
                p.tensor_address(&store.addr),
                p.braces(&store.src)
            )
        }
        Tcgen05::Copy { group: g, shape, widen, dst, src } => {
            let widen = match widen {
                None => "",
                Some(Widening::Six) => ".b8x16.b6x16_p32",
                Some(Widening::Four) => ".b8x16.b4x16_p64",
            };
            let shape = word(&COPY_SHAPES, shape);
            let (dst, src) = (p.tensor_address(dst), p.descriptor(src));
            format!("{name}{}.{shape}{widen} {dst}, {src}", group(*g))
        }
        Tcgen05::Shift { group: g, addr } => {
            format!("{name}{}.down {}", group(*g), p.tensor_address(addr))
        }
        Tcgen05::Mma(mma) => product(p, mma),
        Tcgen05::Commit(commit) => {
            let reads = if commit.reads_only { ".sync_restrict::shared::read::mma::a" } else { "" };
            format!(
                "{name}{}.mbarrier::arrive::one{reads}{}{}.b64 {}{}",
                group(commit.group),
                space(commit.space),
                multicast_words(commit.multicast),
                p.address(&commit.addr),
                p.more(commit.multicast.map(|m| m.mask))
            )
        }
    }
}

fn tensor_load(p: &Printer<'_>, load: &TensorLoad) -> String {
    let pack = if load.pack { ".pack::16b" } else { "" };
    let split = load.split.map_or(String::new(), |n| format!(", {n}"));
    let (red, ty, reduced) = match &load.reduce {
        None => ("", ".b32".to_owned(), String::new()),
        Some(r) => {
            let op = if r.max { ".max" } else { ".min" };
            let (abs, nan) = (if r.abs { ".abs" } else { "" }, if r.nan { ".NaN" } else { "" });
            (".red", format!("{op}{abs}{nan}{}", type_name(r.ty)), format!(", {}", p.reg(r.dst)))
        }
    };
    format!(
        "tcgen05.ld{red}.sync.aligned.{}.x{}{pack}{ty} {}{reduced}, {}{split}",
        word(&MOVE_SHAPES, &load.shape),
        load.times,
        p.braces(&load.dst),
        p.tensor_address(&load.addr)
    )
}

fn product(p: &Printer<'_>, mma: &Mma) -> String {
    let mut words = String::from("tcgen05.mma");
    words.push_str(if mma.stationary { ".ws" } else { "" });
    words.push_str(if mma.metadata.is_some() { ".sp" } else { "" });
    words.push_str(&group(mma.group));
    words.push_str(&format!(".{}", word(&MMA_KINDS, &mma.kind)));
    if let Some(scales) = &mma.scales {
        words.push_str(".block_scale");
        if scales.size != ScaleSize::Default {
            words.push_str(&format!(".{}", word(&SCALE_SIZES, &scales.size)));
        }
    }
    words.push_str(if mma.ashift { ".ashift" } else { "" });
    if let Some(usage) = &mma.collector_a {
        words.push_str(&format!(".collector::a::{}", word(&COLLECTOR_USES, usage)));
    }
    if let Some(b) = &mma.collector_b {
        let buffer = b.buffer.map_or(String::new(), |n| n.to_string());
        words.push_str(&format!(".collector::b{buffer}::{}", word(&COLLECTOR_USES, &b.usage)));
    }
    let mut operands = vec![p.tensor_address(&mma.d)];
    operands.push(match &mma.a {
        Factor::Shared(matrix) => p.descriptor(matrix),
        Factor::Tensor(addr) => p.tensor_address(addr),
    });
    operands.push(p.descriptor(&mma.b));
    operands.extend(mma.metadata.map(|a| p.tensor_address(&a)));
    operands.push(match mma.shape {
        ProductShape::Packed(operand) => p.operand(operand),
        ProductShape::Tile { m, n } => format!("idesc({m}, {n})"),
    });
    operands.extend(mma.scales.iter().flat_map(|s| [s.a, s.b]).map(|a| p.tensor_address(&a)));
    if !mma.lanes_off.is_empty() {
        operands.push(p.braces(&mma.lanes_off));
    }
    operands.push(p.enable_input(mma.input));
    operands.extend(mma.scale_input.map(|n| n.to_string()));
    operands.extend(mma.zero_columns.map(|o| p.operand(o)));
    format!("{words} {}", operands.join(", "))
}
