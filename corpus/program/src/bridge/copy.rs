//! Asynchronous copies, and stores and updates that report to an mbarrier.

use super::parts::{address, guard, maybe, number, scope, space, update, value, values};
use crate::ir::{
    self, AsyncCopy, AtomOp, BulkCopy, BulkDone, BulkEnd, CtaGroup, Multicast, Op, Operand, RemoteOrder,
    RemoteWrite, Scope, SmallCopy, SmallPart, Space, TensorBox, TileMode, Ty,
};
use moire_isa::kinds::{
    self, BulkSpace, Completion, CopyOrder, Dims, Mmio, Mode, Noinc, RedAsyncOrder, ReduceOrder, Report,
    StAsyncOrder, WaitFor,
};
use moire_isa::operand::{SizeOrPred, Tensor};
use moire_isa::{
    BulkPrefetch, BulkReduce, BulkWait, CpArrive, CpAsync, CpBulk, CpTensor, CpWait, RedAsync, StAsync,
    Strong, TensorPrefetch, TensorReduce, Value, operand,
};

pub(super) fn small(copy: &CpAsync) -> Option<Op> {
    let CpAsync { level, spaces: _, hint: _, prefetch: _, dst, src, bytes, part, policy: _, spelling: _ } =
        copy;
    let part = match &part.0 {
        None => SmallPart::All,
        Some(SizeOrPred::Size(size)) => SmallPart::Bytes(value(size)?),
        Some(SizeOrPred::Ignore(pred)) => SmallPart::IgnoredWhen(guard(pred)?),
    };
    let all_levels = *level == kinds::SmallLevel::Ca;
    let copy = SmallCopy { all_levels, dst: address(dst)?, src: address(src)?, bytes: number(*bytes)?, part };
    Some(Op::AsyncCopy(AsyncCopy::Small(copy)))
}

pub(super) fn waits(wait: &CpWait) -> Option<Op> {
    let CpWait { groups, spelling: _ } = wait;
    Some(Op::AsyncCopy(AsyncCopy::Wait(number(*groups)?)))
}

pub(super) fn arrives(arrive: &CpArrive) -> Option<Op> {
    let CpArrive { noinc, space: at, addr, spelling: _ } = arrive;
    let (noinc, space) = (*noinc == Noinc::Yes, space((*at).into())?);
    Some(Op::AsyncCopy(AsyncCopy::Arrive { noinc, space, addr: address(addr)? }))
}

/// A wait for less than all or the reads says what litmus texts do not.
pub(super) fn bulk_waits(wait: &BulkWait) -> Option<Op> {
    let BulkWait { what, groups, spelling: _ } = wait;
    let reads_only = match what {
        WaitFor::All => false,
        WaitFor::Read => true,
        WaitFor::Cta | WaitFor::Cluster | WaitFor::Async => return None,
    };
    Some(Op::AsyncCopy(AsyncCopy::BulkWait { groups: number(*groups)?, reads_only }))
}

fn end(at: BulkSpace) -> Space {
    match at {
        BulkSpace::Global => Space::Global,
        BulkSpace::SharedCta => Space::SharedCta,
        BulkSpace::SharedCluster => Space::SharedCluster,
    }
}

fn bytes_at(at: BulkSpace, addr: &operand::Address) -> Option<BulkEnd> {
    Some(BulkEnd::Bytes { space: end(at), addr: address(addr)? })
}

fn done(how: Completion, mbarrier: Option<&operand::Address>) -> Option<BulkDone> {
    match how {
        Completion::Mbarrier => address(mbarrier?).map(BulkDone::Mbarrier),
        Completion::Group => Some(BulkDone::Group),
    }
}

/// None if a mask stands that litmus texts cannot say.
fn multicast(how: Option<kinds::Multicast>, mask: Option<&Value>) -> Option<Option<Multicast>> {
    let Some(how) = how else { return Some(None) };
    Some(Some(Multicast { wide: how == kinds::Multicast::Mask32, mask: value(mask?)? }))
}

/// A copy that reports what went wrong is another one; without a report it is the usual one.
fn unreported(report: Option<Report>) -> bool {
    matches!(report, None | Some(Report::Disabled))
}

pub(super) fn bulk(copy: &CpBulk) -> Option<Op> {
    let CpBulk {
        dst_space,
        src_space,
        done: how,
        multicast: many,
        report,
        hint: _,
        cp_mask: _,
        ignore_oob: _,
        ..
    } = copy;
    let CpBulk {
        order,
        b128,
        dst,
        src,
        bytes,
        left,
        right,
        mbarrier,
        mask,
        policy: _,
        byte_mask,
        spelling: _,
        ..
    } = copy;
    let relaxed = relaxed(*order, b128.is());
    let ignored = match (left, right) {
        (Some(left), Some(right)) => Some([value(left)?, value(right)?]),
        (None, _) | (_, None) => None,
    };
    let copy = BulkCopy {
        dst: bytes_at(*dst_space, dst)?,
        src: bytes_at(*src_space, src)?,
        bytes: Some(value(bytes)?),
        reduce: None,
        done: done(*how, mbarrier.as_ref())?,
        multicast: multicast(*many, mask.as_ref())?,
        group: None,
        relaxed: relaxed?,
        byte_mask: maybe(byte_mask.as_ref())?,
        ignored,
    };
    unreported(*report).then_some(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(copy))))
}

/// The scope of an ordered copy. `.b128` alone says how wide accesses are, which litmus texts do not.
fn relaxed(order: Strong<CopyOrder>, b128: bool) -> Option<Option<Scope>> {
    match order.order {
        CopyOrder::Weak => (!b128).then_some(None),
        CopyOrder::Relaxed => order.scope.map(|s| Some(scope(s))),
    }
}

pub(super) fn reduced(reduce: &BulkReduce) -> Option<Op> {
    let BulkReduce { dst_space, src_space, done: how, hint: _, order, op, noftz: _, ty, .. } = reduce;
    let BulkReduce { dst, src, bytes, mbarrier, policy: _, spelling: _, .. } = reduce;
    if order.order == ReduceOrder::Relaxed {
        return None;
    }
    Some(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(BulkCopy {
        dst: bytes_at(*dst_space, dst)?,
        src: bytes_at(*src_space, src)?,
        bytes: Some(value(bytes)?),
        reduce: Some((update(*op), Some(element(*ty)?))),
        done: done(*how, mbarrier.as_ref())?,
        multicast: None,
        group: None,
        relaxed: None,
        byte_mask: None,
        ignored: None,
    }))))
}

/// What a bulk update does with data is not followed, so both halves are 16 bits.
fn element(of: kinds::Ty) -> Option<Ty> {
    if of == kinds::Ty::Bf16 { Some(Ty::F(16)) } else { super::parts::ty(of) }
}

fn mode(of: Mode) -> Option<TileMode> {
    Some(match of {
        Mode::Tile => TileMode::Tile,
        Mode::Gather4 => TileMode::Gather4,
        Mode::Scatter4 => TileMode::Scatter4,
        Mode::Im2col => TileMode::Im2col,
        Mode::Im2colW => TileMode::Im2colW,
        Mode::Im2colW128 => TileMode::Im2colW128,
        Mode::NoOffsets => TileMode::Im2colNoOffsets,
        Mode::NoOffsetsW => return None,
    })
}

/// `[map, {coordinates}]`. A map of which something is said anew has more parts.
fn tensor_box(tensor: &Tensor, dims: Dims, of: Mode, offsets: &[Value]) -> Option<TensorBox> {
    let [map, coordinates] = &tensor.parts[..] else { return None };
    let base = match value(map.items.first()?)? {
        Operand::Imm(_) => return None,
        base => base,
    };
    Some(TensorBox {
        map: Some(ir::Address { base, offset: 0 }),
        tile: None,
        dims: dims as u8,
        mode: mode(of)?,
        coordinates: values(&coordinates.items)?,
        offsets: values(offsets)?,
    })
}

fn items(list: Option<&operand::List>) -> &[Value] {
    list.map_or(&[], |list| &list.items)
}

pub(super) fn boxed(copy: &CpTensor) -> Option<Op> {
    let CpTensor {
        dims, dst_space, src_space, mode, done: how, multicast: many, group, report, hint: _, ..
    } = copy;
    let CpTensor {
        address: _,
        anew: _,
        dst,
        tensor,
        src,
        mbarrier,
        offsets,
        mask,
        policy: _,
        spelling: _,
        ..
    } = copy;
    let tensor = BulkEnd::Tensor(tensor_box(tensor, *dims, *mode, items(offsets.as_ref()))?);
    let (dst, src) = match (dst, src) {
        (Some(dst), None) => (bytes_at(*dst_space, dst)?, tensor),
        (None, Some(src)) => (tensor, bytes_at(*src_space, src)?),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let copy = BulkCopy {
        dst,
        src,
        bytes: None,
        reduce: None,
        done: done(*how, mbarrier.as_ref())?,
        multicast: multicast(*many, mask.as_ref())?,
        group: group.map(pair),
        relaxed: None,
        byte_mask: None,
        ignored: None,
    };
    unreported(*report).then_some(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(copy))))
}

pub(super) fn pair(group: kinds::CtaGroup) -> CtaGroup {
    match group {
        kinds::CtaGroup::One => CtaGroup::One,
        kinds::CtaGroup::Two => CtaGroup::Two,
    }
}

pub(super) fn box_reduced(reduce: &TensorReduce) -> Option<Op> {
    let TensorReduce { dims, op, mode, hint: _, address: _, anew: _, tensor, src, policy: _, spelling: _ } =
        reduce;
    Some(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(BulkCopy {
        dst: BulkEnd::Tensor(tensor_box(tensor, *dims, *mode, &[])?),
        src: bytes_at(BulkSpace::SharedCta, src)?,
        bytes: None,
        reduce: Some((update(*op), None)),
        done: BulkDone::Group,
        multicast: None,
        group: None,
        relaxed: None,
        byte_mask: None,
        ignored: None,
    }))))
}

fn prefetch(src: BulkEnd, bytes: Option<Operand>) -> Op {
    Op::AsyncCopy(AsyncCopy::Prefetch(Box::new(ir::BulkPrefetch { src, bytes })))
}

pub(super) fn box_prefetched(fetch: &TensorPrefetch) -> Option<Op> {
    let TensorPrefetch {
        dims,
        mode,
        hint: _,
        last: _,
        address: _,
        anew: _,
        tensor,
        offsets,
        policy: _,
        spelling: _,
    } = fetch;
    let tensor = tensor_box(tensor, *dims, *mode, items(offsets.as_ref()))?;
    Some(prefetch(BulkEnd::Tensor(tensor), None))
}

pub(super) fn prefetched(fetch: &BulkPrefetch) -> Option<Op> {
    let BulkPrefetch {
        space: kinds::GlobalWord::Global,
        hint: _,
        last: _,
        src,
        bytes,
        policy: _,
        spelling: _,
    } = fetch;
    Some(prefetch(bytes_at(BulkSpace::Global, src)?, Some(value(bytes)?)))
}

fn remote(
    op: Option<AtomOp>,
    space: Space,
    ty: Ty,
    addr: ir::Address,
    src: Vec<Operand>,
    order: RemoteOrder,
) -> Op {
    let write = RemoteWrite { op, space, ty, addr, src, order };
    Op::AsyncCopy(AsyncCopy::Remote(Box::new(write)))
}

/// How a remote write is ordered. None of the orders of litmus texts is weak without an mbarrier.
fn remote_order(
    mbarrier: Option<&operand::Address>,
    release: Option<kinds::Scope>,
    mmio: Mmio,
) -> Option<RemoteOrder> {
    match (mbarrier, release, mmio) {
        (Some(mbarrier), None, Mmio::No) => address(mbarrier).map(RemoteOrder::Mbarrier),
        (None, Some(_), Mmio::Yes) => Some(RemoteOrder::MmioRelease),
        (None, Some(wide), Mmio::No) => Some(RemoteOrder::Release(scope(wide))),
        (None, None, _) | (Some(_), ..) => None,
    }
}

pub(super) fn stored_away(st: &StAsync) -> Option<Op> {
    let StAsync { mmio, order, space: at, done: _, vec, ty, addr, src, mbarrier, spelling: _ } = st;
    let release = if order.order == StAsyncOrder::Release { order.scope } else { None };
    let order = remote_order(mbarrier.as_ref(), release, *mmio)?;
    // One register that holds a vector, or 128 bits, is more than a value of litmus texts.
    if src.items.len() != vec.count() || *ty == kinds::Ty::B128 {
        return None;
    }
    let (space, ty) = (space((*at).into())?, super::parts::ty(*ty)?);
    Some(remote(None, space, ty, address(addr)?, values(&src.items)?, order))
}

pub(super) fn reduced_away(red: &RedAsync) -> Option<Op> {
    let RedAsync { mmio, order, scope: wide, space: at, done: _, op, ty, addr, src, mbarrier, spelling: _ } =
        red;
    let release = (*order == RedAsyncOrder::Release).then_some(*wide);
    let order = remote_order(mbarrier.as_ref(), release, *mmio)?;
    let (space, ty) = (space((*at).into())?, super::parts::ty(*ty)?);
    Some(remote(Some(update(*op)), space, ty, address(addr)?, vec![value(src)?], order))
}
