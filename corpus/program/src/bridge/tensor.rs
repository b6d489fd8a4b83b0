//! Instructions of the tensor core of the fifth generation.

use super::copy::pair;
use super::matrix::input;
use super::parts::{address, elements, number, register, space, value};
use crate::ir::{
    self, BlockScale, CollectorB, CollectorUse, Commit, CopyShape, CtaGroup, Descriptor, Factor, Mma,
    MmaKind, MoveShape, Multicast, Op, ProductShape, ScaleSize, Tcgen05, TensorLoad, TensorReduction,
    TensorStore, Ty, Widening,
};
use moire_isa::kinds::{
    self, Abs, ArriveOne, Ashift, CommitFor, CpPacked, CpShape, CpWarps, Exclusive, LdRedForm, LdRedTy,
    MinMax, MmaForm, MmaWsForm, NaN, Pack, ScaleVec, Shape, Times, Unpack,
};
use moire_isa::operand::{Early, Factor as Given, Maybe, Number, TensorAddress};
use moire_isa::{
    TcAlloc, TcCommit, TcCp, TcDealloc, TcLd, TcLdRed, TcMma, TcMmaWs, TcRelinquish, TcShift, TcSt, Value,
};

pub(super) fn allocated(alloc: &TcAlloc) -> Option<Op> {
    let TcAlloc { exclusive, group, space: at, dst, columns, spelling: _ } = alloc;
    Some(Op::Tcgen05(Tcgen05::Alloc {
        exclusive: *exclusive == Exclusive::Yes,
        group: pair(*group),
        space: space((*at).into())?,
        dst: address(dst)?,
        columns: value(columns)?,
    }))
}

pub(super) fn freed(dealloc: &TcDealloc) -> Option<Op> {
    let TcDealloc { exclusive, group, addr, columns, spelling: _ } = dealloc;
    let (exclusive, group) = (*exclusive == Exclusive::Yes, pair(*group));
    Some(Op::Tcgen05(Tcgen05::Dealloc { exclusive, group, addr: value(addr)?, columns: value(columns)? }))
}

pub(super) fn relinquished(relinquish: &TcRelinquish) -> Op {
    let TcRelinquish { group, spelling: _ } = relinquish;
    Op::Tcgen05(Tcgen05::Relinquish { group: pair(*group) })
}

/// An address in tensor memory.
fn in_tensor(of: &TensorAddress) -> Option<ir::Address> {
    address(&of.0)
}

fn moved(shape: Shape) -> MoveShape {
    match shape {
        Shape::S16x64 => MoveShape::L16x64b,
        Shape::S16x128 => MoveShape::L16x128b,
        Shape::S16x256 => MoveShape::L16x256b,
        Shape::S32x32 => MoveShape::L32x32b,
        Shape::S16x32x2 => MoveShape::L16x32bx2,
    }
}

fn repeated(times: Times) -> Option<u8> {
    u8::try_from(times.count()).ok()
}

/// The number behind the address of `.16x32bx2`.
fn split(half: Option<&Number>) -> Option<Option<i32>> {
    half.map_or(Some(None), |half| number(*half).map(Some))
}

pub(super) fn load(ld: &TcLd) -> Option<Op> {
    let TcLd { shape, times, pack, dst, addr, half, spelling: _ } = ld;
    Some(Op::Tcgen05(Tcgen05::Load(TensorLoad {
        shape: moved(*shape),
        times: repeated(*times)?,
        pack: *pack == Pack::Yes,
        dst: elements(&dst.items)?,
        reduce: None,
        addr: in_tensor(addr)?,
        split: split(half.as_ref())?,
    })))
}

pub(super) fn load_reduced(ld: &TcLdRed) -> Option<Op> {
    let TcLdRed { form: LdRedForm::Plain, shape, times, op, sparse: _, abs, nan, ty, packed: _, .. } = ld
    else {
        return None;
    };
    let TcLdRed { metadata: _, dst, red, addr, half, spelling: _, .. } = ld;
    let ty = match ty {
        LdRedTy::F32 => Ty::F(32),
        LdRedTy::U32 => Ty::U(32),
        LdRedTy::S32 => Ty::S(32),
    };
    let reduce = TensorReduction {
        max: *op == MinMax::Max,
        abs: *abs == Abs::Yes,
        nan: *nan == NaN::Yes,
        ty,
        dst: register(red)?,
    };
    Some(Op::Tcgen05(Tcgen05::Load(TensorLoad {
        shape: moved(*shape),
        times: repeated(*times)?,
        pack: false,
        dst: elements(&dst.items)?,
        reduce: Some(reduce),
        addr: in_tensor(addr)?,
        split: split(half.as_ref())?,
    })))
}

pub(super) fn store(st: &TcSt) -> Option<Op> {
    let TcSt { shape, times, unpack, addr, half, src, spelling: _ } = st;
    Some(Op::Tcgen05(Tcgen05::Store(TensorStore {
        shape: moved(*shape),
        times: repeated(*times)?,
        unpack: *unpack == Unpack::Yes,
        addr: in_tensor(addr)?,
        split: split(half.as_ref())?,
        src: elements(&src.items)?,
    })))
}

pub(super) fn copied(cp: &TcCp) -> Option<Op> {
    let TcCp { group, shape, warps, unpacked: _, packed, dst, src, spelling: _ } = cp;
    let shape = match (shape, warps) {
        (CpShape::S128x256, _) => CopyShape::S128x256b,
        (CpShape::S4x256, _) => CopyShape::S4x256b,
        (CpShape::S128x128, _) => CopyShape::S128x128b,
        (CpShape::S64x128, Some(CpWarps::Pairs02)) => CopyShape::S64x128bPairs02And13,
        (CpShape::S64x128, Some(CpWarps::Pairs01)) => CopyShape::S64x128bPairs01And23,
        (CpShape::S64x128, Some(CpWarps::All) | None) => return None,
        (CpShape::S32x128, _) => CopyShape::S32x128bAllWarps,
    };
    let widen = packed.map(|packed| match packed {
        CpPacked::B6 => Widening::Six,
        CpPacked::B4 => Widening::Four,
    });
    let src = Descriptor::Packed(value(src)?);
    Some(Op::Tcgen05(Tcgen05::Copy { group: pair(*group), shape, widen, dst: in_tensor(dst)?, src }))
}

pub(super) fn shifted(shift: &TcShift) -> Option<Op> {
    let TcShift { group, addr, spelling: _ } = shift;
    Some(Op::Tcgen05(Tcgen05::Shift { group: pair(*group), addr: in_tensor(addr)? }))
}

pub(super) fn committed(commit: &TcCommit) -> Option<Op> {
    let TcCommit { group, done: ArriveOne::One, restrict, space: at, multicast, addr, mask, spelling: _ } =
        commit;
    let multicast = match (multicast, mask) {
        (Some(how), Some(mask)) => {
            Some(Multicast { wide: *how == kinds::Multicast::Mask32, mask: value(mask)? })
        }
        (None, _) => None,
        (Some(_), None) => return None,
    };
    Some(Op::Tcgen05(Tcgen05::Commit(Commit {
        group: pair(*group),
        reads_only: *restrict == Some(CommitFor::ReadA),
        space: space((*at).into())?,
        addr: address(addr)?,
        multicast,
    })))
}

fn kind(of: kinds::Kind) -> MmaKind {
    match of {
        kinds::Kind::F16 => MmaKind::F16,
        kinds::Kind::Tf32 => MmaKind::Tf32,
        kinds::Kind::F8f6f4 => MmaKind::F8f6f4,
        kinds::Kind::I8 => MmaKind::I8,
        kinds::Kind::Ti16 => MmaKind::Ti16,
        kinds::Kind::Mxf8f6f4 => MmaKind::Mxf8f6f4,
        kinds::Kind::Mxf4 => MmaKind::Mxf4,
        kinds::Kind::Mxf4nvf4 => MmaKind::Mxf4nvf4,
    }
}

fn blocks(of: Option<ScaleVec>) -> ScaleSize {
    match of {
        None => ScaleSize::Default,
        Some(ScaleVec::X1) => ScaleSize::Times1,
        Some(ScaleVec::X2) => ScaleSize::Times2,
        Some(ScaleVec::X4) => ScaleSize::Times4,
        Some(ScaleVec::Block16) => ScaleSize::Block16,
        Some(ScaleVec::Block32) => ScaleSize::Block32,
    }
}

fn factor(of: &Given) -> Option<Factor> {
    Some(match of {
        Given::Tensor(addr) => Factor::Tensor(in_tensor(addr)?),
        Given::Values(list) => Factor::Shared(Descriptor::Packed(value(list.items.first()?)?)),
    })
}

fn maybe_at(of: Option<&TensorAddress>) -> Option<Option<ir::Address>> {
    of.map_or(Some(None), |of| in_tensor(of).map(Some))
}

pub(super) fn product(mma: &TcMma) -> Option<Op> {
    let TcMma {
        form, group, kind: of, scaled: _, blocks: size, ashift, collector, collector_b, d, a, b, ..
    } = mma;
    let TcMma { sparsity, shape, scale_a, scale_b, lanes, adds, scale_d, spelling: _, .. } = mma;
    let scales = match (maybe_at(scale_a.as_ref())?, maybe_at(scale_b.as_ref())?) {
        (Some(a), Some(b)) => Some(BlockScale { size: blocks(*size), a, b }),
        (None, _) | (_, None) => None,
    };
    let Early(lanes) = lanes;
    let Maybe(scale_d) = scale_d;
    let metadata = maybe_at(sparsity.as_ref())?;
    (metadata.is_some() == (*form == MmaForm::Sparse)).then_some(())?;
    // A scale of 16-bit integers (9.4) has no place in a litmus text.
    if *of == kinds::Kind::Ti16 && scale_d.is_some() {
        return None;
    }
    Some(Op::Tcgen05(Tcgen05::Mma(Box::new(Mma {
        group: pair(*group),
        kind: kind(*of),
        stationary: false,
        ashift: *ashift == Ashift::Yes,
        collector_a: collector.map(collected),
        collector_b: collector_b.map(|how| CollectorB { buffer: None, usage: collected_b(how) }),
        d: in_tensor(d)?,
        a: factor(a)?,
        b: Descriptor::Packed(value(b)?),
        metadata,
        shape: ProductShape::Packed(value(shape)?),
        scales,
        lanes_off: lanes.as_ref().map_or(Some(Vec::new()), |list| elements(&list.items))?,
        input: input(adds)?,
        scale_input: scale_d.map_or(Some(None), |n| number(n).map(Some))?,
        zero_columns: None,
    }))))
}

fn collected(how: kinds::Collector) -> CollectorUse {
    match how {
        kinds::Collector::Fill => CollectorUse::Fill,
        kinds::Collector::Use => CollectorUse::Use,
        kinds::Collector::LastUse => CollectorUse::LastUse,
        kinds::Collector::Discard => CollectorUse::Discard,
    }
}

fn collected_b(how: kinds::CollectorOfB) -> CollectorUse {
    match how {
        kinds::CollectorOfB::Fill => CollectorUse::Fill,
        kinds::CollectorOfB::Use => CollectorUse::Use,
        kinds::CollectorOfB::LastUse => CollectorUse::LastUse,
        kinds::CollectorOfB::Discard => CollectorUse::Discard,
    }
}

pub(super) fn stationary(mma: &TcMmaWs) -> Option<Op> {
    let TcMmaWs {
        form,
        kind: of,
        collector,
        d,
        a,
        b,
        sparsity,
        shape,
        adds,
        zeros: Maybe(zeros),
        spelling: _,
    } = mma;
    let metadata = maybe_at(sparsity.as_ref())?;
    (metadata.is_some() == (*form == MmaWsForm::Sparse)).then_some(())?;
    Some(Op::Tcgen05(Tcgen05::Mma(Box::new(Mma {
        group: CtaGroup::One,
        kind: kind(*of),
        stationary: true,
        ashift: false,
        collector_a: None,
        collector_b: collector.map(kept),
        d: in_tensor(d)?,
        a: factor(a)?,
        b: Descriptor::Packed(value(b)?),
        metadata,
        shape: ProductShape::Packed(value(shape)?),
        scales: None,
        lanes_off: Vec::new(),
        input: input(adds)?,
        scale_input: None,
        zero_columns: zeros.as_ref().map_or(Some(None), |zeros: &Value| value(zeros).map(Some))?,
    }))))
}

/// The buffer of a kept factor and what happens with it: the words come in fours.
fn kept(how: kinds::CollectorB) -> CollectorB {
    let (buffer, usage) = (how as u8 / 4, how as u8 % 4);
    let usage = [CollectorUse::Fill, CollectorUse::Use, CollectorUse::LastUse, CollectorUse::Discard]
        [usize::from(usage)];
    CollectorB { buffer: Some(buffer), usage }
}
