//! Prints asynchronous copies and remote writes.

use super::operands::Printer;
use super::words::{ATOM_OPS, group, multicast_words, scope, space, type_name, word};
use crate::ir::*;

/// Modes of tensor copies.
pub(crate) const TILE_MODES: [(&str, TileMode); 7] = [
    ("tile", TileMode::Tile),
    ("tile::gather4", TileMode::Gather4),
    ("tile::scatter4", TileMode::Scatter4),
    ("im2col", TileMode::Im2col),
    ("im2col::w", TileMode::Im2colW),
    ("im2col::w::128", TileMode::Im2colW128),
    ("im2col_no_offs", TileMode::Im2colNoOffsets),
];

pub(super) fn copy(p: &Printer<'_>, op: &AsyncCopy) -> String {
    match op {
        AsyncCopy::Small(copy) => {
            let level = if copy.all_levels { "ca" } else { "cg" };
            let part = match copy.part {
                SmallPart::All => String::new(),
                SmallPart::Bytes(bytes) => p.more(Some(bytes)),
                SmallPart::IgnoredWhen(g) => {
                    format!(", @{}{}", if g.negated { "!" } else { "" }, p.reg(g.reg))
                }
            };
            let (dst, src) = (p.address(&copy.dst), p.address(&copy.src));
            format!("cp.async.{level}.shared::cta.global {dst}, {src}, {}{part}", copy.bytes)
        }
        AsyncCopy::Wait(groups) => format!("cp.async.wait_group {groups}"),
        AsyncCopy::Commit | AsyncCopy::WaitAll | AsyncCopy::BulkCommit => op.name().to_owned(),
        AsyncCopy::BulkWait { groups, reads_only } => {
            format!("cp.async.bulk.wait_group{} {groups}", if *reads_only { ".read" } else { "" })
        }
        AsyncCopy::Arrive { noinc, space: s, addr } => {
            let noinc = if *noinc { ".noinc" } else { "" };
            format!("cp.async.mbarrier.arrive{noinc}{}.b64 {}", space(*s), p.address(addr))
        }
        AsyncCopy::Bulk(copy) => bulk(p, copy),
        AsyncCopy::Prefetch(prefetch) => {
            let (dims, mode) = tensor_words(&prefetch.src);
            let src = bulk_end(p, &prefetch.src);
            let size = p.more(prefetch.bytes);
            format!("cp.async.bulk.prefetch{dims}.L2.global{mode} {src}{size}{}", offsets(p, &prefetch.src))
        }
        AsyncCopy::Remote(write) => remote(p, write),
    }
}

/// `.tensor.Nd` and the mode of a tensor copy.
fn tensor_words(end: &BulkEnd) -> (String, String) {
    match end {
        BulkEnd::Bytes { .. } => (String::new(), String::new()),
        BulkEnd::Tensor(tensor) => {
            (format!(".tensor.{}d", tensor.dims), format!(".{}", word(&TILE_MODES, &tensor.mode)))
        }
    }
}

fn bulk_end(p: &Printer<'_>, end: &BulkEnd) -> String {
    let tensor = match end {
        BulkEnd::Bytes { addr, .. } => return p.address(addr),
        BulkEnd::Tensor(tensor) => tensor,
    };
    let map = tensor.map.map(|map| {
        let offset = if map.offset == 0 { String::new() } else { format!("+{}", map.offset) };
        format!("{}{offset}", p.operand(map.base))
    });
    let tile = tensor.tile.map(|tile| p.bytes_of("tile", &tile.addr, tile.bytes));
    let source: Vec<String> = map.into_iter().chain(tile).collect();
    let at: Vec<String> = tensor.coordinates.iter().map(|o| p.operand(*o)).collect();
    format!("[{}, {{{}}}]", source.join(" as "), at.join(", "))
}

fn offsets(p: &Printer<'_>, end: &BulkEnd) -> String {
    match end {
        BulkEnd::Tensor(tensor) if !tensor.offsets.is_empty() => {
            let all: Vec<String> = tensor.offsets.iter().map(|o| p.operand(*o)).collect();
            format!(", {{{}}}", all.join(", "))
        }
        _ => String::new(),
    }
}

fn bulk(p: &Printer<'_>, copy: &BulkCopy) -> String {
    let tensor = if matches!(copy.dst, BulkEnd::Tensor(_)) { &copy.dst } else { &copy.src };
    let (dims, mode) = tensor_words(tensor);
    let place = |end: &BulkEnd| match end {
        BulkEnd::Bytes { space: s, .. } => space(*s),
        BulkEnd::Tensor(_) => ".global",
    };
    let mut words = format!("cp{}.async.bulk{dims}", if copy.reduce.is_some() { ".reduce" } else { "" });
    words.push_str(place(&copy.dst));
    words.push_str(place(&copy.src));
    words.push_str(&mode);
    words.push_str(match copy.done {
        BulkDone::Mbarrier(_) => ".mbarrier::complete_tx::bytes",
        BulkDone::Group => ".bulk_group",
    });
    words.push_str(multicast_words(copy.multicast));
    words.push_str(&copy.group.map_or(String::new(), group));
    words.push_str(if copy.byte_mask.is_some() { ".cp_mask" } else { "" });
    words.push_str(if copy.ignored.is_some() { ".ignore_oob" } else { "" });
    if let Some((op, ty)) = copy.reduce {
        let noftz = op == AtomOp::Add && ty == Some(Ty::F(16));
        words.push_str(&format!(".{}{}", word(&ATOM_OPS, &op), if noftz { ".noftz" } else { "" }));
        words.push_str(&ty.map_or(String::new(), type_name));
    }
    words.push_str(&copy.relaxed.map_or(String::new(), |s| format!(".relaxed.{}.b128", scope(s))));
    let mut operands =
        format!(" {}, {}{}", bulk_end(p, &copy.dst), bulk_end(p, &copy.src), p.more(copy.bytes));
    copy.ignored.iter().flatten().for_each(|o| operands.push_str(&p.more(Some(*o))));
    if let BulkDone::Mbarrier(addr) = &copy.done {
        operands.push_str(&format!(", {}", p.address(addr)));
    }
    operands.push_str(&offsets(p, &copy.src));
    operands.push_str(&p.more(copy.multicast.map(|m| m.mask)));
    operands.push_str(&p.more(copy.byte_mask));
    words + &operands
}

fn remote(p: &Printer<'_>, write: &RemoteWrite) -> String {
    let (v, src) = p.vector(&write.src, |o| p.operand(o));
    let (name, op) = match &write.op {
        None => ("st.async", String::new()),
        Some(op) => ("red.async", format!(".{}", word(&ATOM_OPS, op))),
    };
    let relaxed = if write.op.is_some() { ".relaxed.cluster" } else { ".weak" };
    let (order, done, at) = match &write.order {
        RemoteOrder::Mbarrier(addr) => {
            (relaxed.to_owned(), ".mbarrier::complete_tx::bytes", format!(", {}", p.address(addr)))
        }
        RemoteOrder::Release(s) => (format!(".release.{}", scope(*s)), "", String::new()),
        RemoteOrder::MmioRelease => (".mmio.release.sys".to_owned(), "", String::new()),
    };
    let (place, ty, to) = (space(write.space), type_name(write.ty), p.address(&write.addr));
    format!("{name}{order}{place}{done}{op}{v}{ty} {to}, {src}{at}")
}
