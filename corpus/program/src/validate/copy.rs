//! Rules for asynchronous copies and one-sided fences that the assembler refuses: sizes, spaces, types, modes. All are
//! `PtxasEqual`; features of single architectures are in `targets`.

use super::report::Report;
use super::tensor::{Wrong, wrong};
use crate::ir::*;

pub(super) fn check(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    let found = if let Op::AsyncCopy(copy) = &instr.op {
        of_copy(copy)
    } else if let Op::ProxyOrder(order) = &instr.op {
        fence(order)
    } else {
        None
    };
    if let Some((id, what, hint)) = found {
        report.at(id, thread, instr, &what, hint);
    }
}

fn of_copy(copy: &AsyncCopy) -> Wrong {
    match copy {
        AsyncCopy::Small(copy) => small(copy),
        AsyncCopy::Bulk(copy) => bulk(copy),
        AsyncCopy::Prefetch(prefetch) => size(prefetch.bytes).or_else(|| ends(&prefetch.src, Way::Prefetch)),
        AsyncCopy::Remote(write) => remote(write),
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => None,
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => None,
    }
}

fn bad(what: &str, hint: &str) -> Wrong {
    wrong("copy-form", what, hint)
}

fn small(copy: &SmallCopy) -> Wrong {
    let known = if copy.all_levels { matches!(copy.bytes, 4 | 8 | 16) } else { copy.bytes == 16 };
    if !known {
        return bad(&format!("cp.async cannot copy {} bytes", copy.bytes), ".ca has 4, 8 and 16, .cg has 16");
    }
    match copy.part {
        SmallPart::Bytes(Operand::Imm(n)) if !(0..=i128::from(copy.bytes)).contains(&n) => {
            bad(&format!("{n} bytes of {} cannot be read", copy.bytes), "")
        }
        _ => None,
    }
}

fn size(bytes: Option<Operand>) -> Wrong {
    match bytes {
        Some(Operand::Imm(n)) if !(0..1 << 20).contains(&n) || n % 16 != 0 => {
            bad(&format!("a bulk copy cannot have {n} bytes"), "a multiple of 16 below 1048576")
        }
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Load,
    Store,
    Reduce,
    Prefetch,
}

fn bulk(copy: &BulkCopy) -> Wrong {
    let way = match (&copy.dst, copy.reduce.is_some(), copy.done) {
        (_, true, _) => Way::Reduce,
        (_, false, BulkDone::Group) => Way::Store,
        (_, false, BulkDone::Mbarrier(_)) => Way::Load,
    };
    let tensor = matches!((&copy.dst, &copy.src), (BulkEnd::Tensor(_), _) | (_, BulkEnd::Tensor(_)));
    let place = |end: &BulkEnd| match end {
        BulkEnd::Bytes { space, .. } => *space,
        BulkEnd::Tensor(_) => Space::Global,
    };
    let spaces = (place(&copy.dst), place(&copy.src));
    let known = matches!(
        spaces,
        (Space::SharedCta, Space::Global)
            | (Space::SharedCluster, Space::Global | Space::SharedCta)
            | (Space::Global, Space::SharedCta)
    );
    if !known || (way == Way::Reduce && spaces.1 != Space::SharedCta) {
        return bad("there is no copy between these state spaces", "");
    }
    if copy.multicast.is_some() && spaces != (Space::SharedCluster, Space::Global) {
        return bad("multicast is from .global to .shared::cluster", "");
    }
    if !tensor && copy.group.is_some() {
        return bad("only a copy with a tensor map has a CTA group", "");
    }
    if copy.ignored.is_some() && (tensor || spaces != (Space::SharedCta, Space::Global)) {
        return bad(".ignore_oob is from .global to .shared::cta", "");
    }
    let outside = |o: &Operand| matches!(o, Operand::Imm(n) if !(0..16).contains(n));
    if copy.ignored.iter().flatten().any(outside) {
        return bad(".ignore_oob leaves out at most 15 bytes on a side", "");
    }
    if copy.byte_mask.is_some() && (tensor || way != Way::Store) {
        return bad(".cp_mask is for copies of bytes to .global", "");
    }
    let remote = spaces == (Space::SharedCluster, Space::SharedCta);
    let wide = remote && matches!(copy.relaxed, Some(Scope::Gpu | Scope::Sys));
    if copy.relaxed.is_some() && (tensor || wide || way == Way::Reduce) {
        return bad("no such copy is .relaxed", "copies of bytes, between CTAs at .cta or .cluster");
    }
    size(copy.bytes)
        .or_else(|| ends(&copy.dst, way))
        .or_else(|| ends(&copy.src, way))
        .or_else(|| reduction(copy, spaces.0))
}

/// Checks the dimensions, coordinates and offsets of a box.
fn ends(end: &BulkEnd, way: Way) -> Wrong {
    let BulkEnd::Tensor(tensor) = end else { return None };
    let dims = usize::from(tensor.dims);
    let loads = matches!(way, Way::Load | Way::Prefetch);
    let (possible, coordinates, offsets) = match tensor.mode {
        TileMode::Tile => (true, dims, 0),
        TileMode::Gather4 => (loads && dims == 2, 5, 0),
        TileMode::Scatter4 => (!loads && dims == 2, 5, 0),
        TileMode::Im2col => (loads && dims >= 3, dims, dims.saturating_sub(2)),
        TileMode::Im2colW | TileMode::Im2colW128 => (loads && dims >= 3, dims, 2),
        TileMode::Im2colNoOffsets => (!loads && dims >= 3, dims, 0),
    };
    if !possible {
        return bad("this copy has no such mode", "");
    }
    if tensor.coordinates.len() != coordinates || tensor.offsets.len() != offsets {
        let what = format!("there must be {coordinates} coordinates and {offsets} offsets");
        return bad(&what, "");
    }
    None
}

/// Checks the operation of `cp.reduce.async.bulk`. Fewer types exist for reductions into shared memory.
fn reduction(copy: &BulkCopy, to: Space) -> Wrong {
    let (op, ty) = copy.reduce?;
    let global = to == Space::Global;
    let known = match (op, ty) {
        (AtomOp::Exch | AtomOp::Cas | AtomOp::Sub, _) => false,
        (_, None) => true,
        (AtomOp::Add, Some(ty)) => {
            matches!(ty, Ty::U(32 | 64) | Ty::S(32)) || (global && matches!(ty, Ty::F(_)))
        }
        (AtomOp::Min | AtomOp::Max, Some(ty)) => {
            matches!(ty, Ty::U(32) | Ty::S(32)) || (global && matches!(ty, Ty::U(64) | Ty::S(64) | Ty::F(16)))
        }
        (AtomOp::Inc | AtomOp::Dec, Some(ty)) => ty == Ty::U(32),
        (AtomOp::And | AtomOp::Or | AtomOp::Xor, Some(ty)) => ty == Ty::B(32) || (global && ty == Ty::B(64)),
    };
    if known { None } else { bad("this operation does not exist for this type", "") }
}

fn remote(write: &RemoteWrite) -> Wrong {
    let shared = matches!(write.space, Space::SharedCluster | Space::SharedCta);
    let reported = matches!(write.order, RemoteOrder::Mbarrier(_));
    if (reported && write.space == Space::Global) || (!reported && shared) {
        return bad("this state space has no such way of completion", "");
    }
    if matches!(write.order, RemoteOrder::Release(Scope::Cta | Scope::Cluster)) {
        return bad("the scope of the release is .gpu or .sys", "");
    }
    if write.op.is_some() && write.space == Space::SharedCta {
        return bad("red.async takes .shared::cluster", "");
    }
    let half = !reported && matches!(write.ty, Ty::B(16) | Ty::U(16) | Ty::S(16));
    let wide = half || matches!(write.ty, Ty::B(32 | 64) | Ty::U(32 | 64) | Ty::S(32 | 64) | Ty::F(32 | 64));
    let known = match write.op {
        None => wide,
        Some(AtomOp::Add) => matches!(write.ty, Ty::U(32 | 64) | Ty::S(32 | 64)),
        Some(AtomOp::Min | AtomOp::Max) => matches!(write.ty, Ty::U(32) | Ty::S(32)),
        Some(AtomOp::Inc | AtomOp::Dec) => write.ty == Ty::U(32),
        Some(AtomOp::And | AtomOp::Or | AtomOp::Xor) => write.ty == Ty::B(32),
        Some(AtomOp::Exch | AtomOp::Cas | AtomOp::Sub) => false,
    };
    let vector = write.src.len() > 1;
    if !known || (vector && (write.op.is_some() || !reported)) {
        return bad("this instruction does not exist for this type", "");
    }
    let bits = u64::from(write.ty.bytes()) * 8 * write.src.len() as u64;
    if bits > 128 { bad(&format!("{bits} bits are too many"), "at most 128") } else { None }
}

/// Whether a field of a tensor map holds an enumeration instead of a number.
fn literal(field: TensormapField) -> bool {
    matches!(
        field,
        TensormapField::ElementType
            | TensormapField::Interleave
            | TensormapField::Swizzle
            | TensormapField::SwizzleAtomicity
            | TensormapField::Fill
    )
}

fn fence(order: &ProxyOrder) -> Wrong {
    let bad = |what: &str, hint: &str| wrong("fence-form", what, hint);
    match order {
        ProxyOrder::AsyncRestricted { side, restrict, scope } => {
            let narrow = *scope == Scope::Cta && *restrict == Restrict::SharedClusterRead;
            let known = (narrow || *scope == Scope::Cluster)
                && match side {
                    Side::Acquire => *restrict == Restrict::SharedCluster,
                    Side::Release => *restrict != Restrict::SharedCluster,
                };
            let hint = ".acquire for shared::cluster, .release for shared::cta or shared::cluster::read";
            if known { None } else { bad("there is no such fence", hint) }
        }
        ProxyOrder::Restricted { side, restrict } => {
            let known = matches!(
                (side, restrict),
                (Side::Acquire, Restrict::SharedCluster) | (Side::Release, Restrict::SharedCta)
            );
            let hint = ".acquire for shared::cluster, .release for shared::cta";
            if known { None } else { bad("there is no such fence", hint) }
        }
        ProxyOrder::ReplaceTensormap { field, value, .. }
            if !matches!(value, Operand::Imm(_)) && literal(*field) =>
        {
            bad("this field takes a literal", "")
        }
        ProxyOrder::ReplaceTensormap { field, ty, space, .. } => {
            let wide = matches!(field, TensormapField::GlobalAddress | TensormapField::GlobalStride);
            let place = *space != Space::SharedCluster;
            if place && (*ty == Ty::B(64)) == wide { None } else { bad("no such type or space", "") }
        }
        ProxyOrder::AsyncSpace(_) | ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => None,
        ProxyOrder::TensormapRelease { .. } | ProxyOrder::TensormapAcquire { .. } => None,
        ProxyOrder::CopyTensormap { .. } => None,
    }
}
