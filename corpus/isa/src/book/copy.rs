//! Asynchronous copies.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm, Only};
use crate::kind::TENSOR;
use crate::kinds::*;
use crate::operand::*;
use crate::slot::{Strong, Then};

instructions! {
    #[doc = "Copies 4, 8 or 16 bytes to shared memory, asynchronously."]
    CpAsync = "cp.async", section "cp-async", since (70, Any);
    slots {
        keep level: SmallLevel;
        keep spaces: Then<SmallSpace, GlobalWord>;
        speed hint: CacheHint;
        speed prefetch: Option<Prefetch>;
    }
    operands {
        known dst: Address = Space::SharedCta;
        known src: Address = Space::Global;
        known bytes: Number = ();
        known part: Maybe<SizeOrPred> = (usize::from(hint.is()), ());
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        level == SmallLevel::Cg && bytes.0 != 16 => refuse("`.cg` copies 16 bytes");
        ![4, 8, 16].contains(&bytes.0) => refuse("4, 8 or 16 bytes are copied");
        matches!(&part.0, Some(SizeOrPred::Size(Value::Imm(n))) if *n < 0 || *n > bytes.0)
            => refuse("the source is longer than the copy");
        matches!(&part.0, Some(SizeOrPred::Ignore(_))) => since(75, Any);
    }

    #[doc = "Ends a group of small copies."]
    CpCommit = "cp.async.commit_group", section "cp-async-commit-group", since (70, Any);
    slots {} operands {} rules {}

    #[doc = "Waits until so many groups of small copies are pending."]
    CpWait = "cp.async.wait_group", section "cp-async-wait-group", since (70, Any);
    slots {} operands { known groups: Number = (); } rules {}

    #[doc = "Waits for all small copies."]
    CpWaitAll = "cp.async.wait_all", section "cp-async-wait-group", since (70, Any);
    slots {} operands {} rules {}

    #[doc = "Arrives at an mbarrier when the earlier small copies are complete."]
    CpArrive = "cp.async.mbarrier.arrive", section "cp-async-mbarrier-arrive", since (70, Any);
    ends ["b64"]
    slots { keep noinc: Noinc; keep space: BarrierSpace; }
    operands { known addr: Address = space.into(); }
    rules { space == BarrierSpace::SharedCluster => refuse("it arrives in this CTA"); }

    #[doc = "Copies bytes in bulk, asynchronously."]
    CpBulk = "cp.async.bulk", section "cp-async-bulk", since (80, Sm(90));
    slots {
        keep dst_space: BulkSpace;
        keep src_space: BulkSpace;
        keep done: Completion;
        keep multicast: Option<Multicast>;
        abstain report: Option<Report>;
        speed hint: CacheHint;
        keep cp_mask: CpMask;
        keep ignore_oob: IgnoreOob;
        keep order: Strong<CopyOrder>;
        keep b128: B128;
    }
    operands {
        known dst: Address = dst_space.into();
        known src: Unified = src_space.into();
        known bytes: Value = Width::Int(32);
        known left: Option<Value> = (ignore_oob.is(), Width::Int(32));
        known right: Option<Value> = (ignore_oob.is(), Width::Int(32));
        known mbarrier: Option<Address> = (done == Completion::Mbarrier, Space::SharedCluster);
        known mask: Option<Value> = (multicast.is_some(),
            if multicast == Some(Multicast::Mask16) { Width::Int(16) } else { Width::Int(32) });
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
        known byte_mask: Option<Value> = (cp_mask.is(), Width::Int(16));
    }
    rules it {
        !mask_fits(multicast, mask.as_ref()) => refuse("a mask has 16 or 32 bits");
        ragged(bytes) => refuse("sizes are multiples of 16 below 1048576");
        src.unified && dst_space != BulkSpace::Global => refuse("`.unified` is for copies to global memory");
        !bulk_ends(dst_space, src_space) => refuse("no copy goes between these spaces");
        (dst_space == BulkSpace::Global) != (done == Completion::Group)
            => refuse("a copy to global memory ends with its group, every other with an mbarrier");
        multicast.is_some() && !(dst_space == BulkSpace::SharedCluster && src_space == BulkSpace::Global)
            => refuse("multicast is from global memory to the cluster");
        hint.is() && src_space != BulkSpace::Global && dst_space != BulkSpace::Global
            => refuse("`.L2::cache_hint` is for global memory");
        cp_mask.is() && dst_space != BulkSpace::Global => refuse("`.cp_mask` is for copies to global memory");
        ignore_oob.is() && !(dst_space == BulkSpace::SharedCta && src_space == BulkSpace::Global)
            => refuse("`.ignore_oob` is for copies from global memory to this CTA");
        [left, right].iter().any(|n| n.as_ref().and_then(Value::imm).is_some_and(|n| !(0..16).contains(&n)))
            => refuse("at most 15 bytes are ignored at each end");
        report.is_some_and(|r| r != Report::Disabled) && ignore_oob.is()
            => refuse("a report of validity goes with no .ignore_oob");
        report.is_some() && src_space != BulkSpace::Global
            => refuse("a report is for copies from global memory");
        b128.is() && it.spelling.says("weak") => refuse("`.b128` goes with .relaxed.scope or alone");
        order.order == CopyOrder::Relaxed && !b128.is() => refuse("`.relaxed.scope` goes with .b128");
        src_space == BulkSpace::SharedCta && dst_space == BulkSpace::SharedCluster
            && matches!(order.scope, Some(Scope::Gpu | Scope::Sys))
            => refuse("in the cluster the scope is .cta or .cluster");
        dst_space == BulkSpace::SharedCta => since(86, Sm(90));
        order.order == CopyOrder::Relaxed && dst_space == BulkSpace::SharedCluster
            && src_space == BulkSpace::Global
            => since(93, Only(&[90, 100, 103, 107, 110]));
    }

    #[doc = "Copies a box of a tensor in bulk, asynchronously."]
    CpTensor = "cp.async.bulk.tensor", section "cp-async-bulk-tensor", since (80, Sm(90));
    slots {
        keep dims: Dims;
        keep dst_space: BulkSpace;
        keep src_space: BulkSpace;
        keep mode: Mode;
        keep done: Completion;
        keep multicast: Option<Multicast>;
        keep group: Option<CtaGroup>;
        abstain report: Option<Report>;
        speed hint: CacheHint;
        abstain address: NewAddress;
        abstain anew: Option<Override>;
    }
    operands {
        known dst: Option<Address> = (dst_space != BulkSpace::Global, dst_space.into());
        known tensor: Tensor = boxed(dims, mode, address, anew);
        known src: Option<Address> = (dst_space == BulkSpace::Global, src_space.into());
        known mbarrier: Option<Address> = (done == Completion::Mbarrier, Space::SharedCluster);
        known offsets: Option<List> = (offsets_of(dims, mode) > 0, (offsets_of(dims, mode), Width::Int(16),
            Must));
        known mask: Option<Value> = (multicast.is_some(),
            if multicast == Some(Multicast::Mask16) { Width::Int(16) } else { Width::Int(32) });
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !mask_fits(multicast, mask.as_ref()) => refuse("a mask has 16 or 32 bits");
        !bulk_ends(dst_space, src_space) || dst_space == BulkSpace::SharedCluster
            && src_space == BulkSpace::SharedCta
            => refuse("no copy goes between these spaces");
        (dst_space == BulkSpace::Global) != (done == Completion::Group)
            => refuse("a copy to global memory ends with its group, every other with an mbarrier");
        multicast.is_some() && dst_space != BulkSpace::SharedCluster
            => refuse("multicast is from global memory to the cluster");
        dst_space == BulkSpace::Global && group.is_some()
            => refuse("a copy to global memory arrives nowhere");
        anew.is_some() && matches!(mode, Mode::NoOffsets | Mode::NoOffsetsW)
            => refuse("dimensions are said anew of tiles");
        dst_space == BulkSpace::Global && !matches!(mode, Mode::Tile | Mode::Scatter4 | Mode::NoOffsets
            | Mode::NoOffsetsW)
            => refuse("this mode loads");
        dst_space != BulkSpace::Global && matches!(mode, Mode::Scatter4 | Mode::NoOffsets | Mode::NoOffsetsW)
            => refuse("this mode stores");
        matches!(mode, Mode::Gather4 | Mode::Scatter4) && dims != Dims::D2 => refuse("four rows are of .2d");
        !matches!(mode, Mode::Tile | Mode::Gather4 | Mode::Scatter4) && matches!(dims, Dims::D1 | Dims::D2)
            => refuse("im2col is of .3d to .5d");
        anew.is_some() && !address.is() => refuse("the address is said anew with the rest");
        dst_space == BulkSpace::SharedCta => since(86, Any);
        group.is_some() => since(86, TENSOR);
        matches!(mode, Mode::Gather4 | Mode::Im2colW) && dst_space == BulkSpace::SharedCluster
            => since(86, TENSOR);
    }

    #[doc = "Updates a box of a tensor in bulk, asynchronously."]
    TensorReduce = "cp.reduce.async.bulk.tensor", section "cp-reduce-async-bulk-tensor", since (80, Sm(90));
    begins ["global", "shared::cta", "bulk_group"]
    slots {
        keep dims: Dims;
        keep op: RedOp;
        keep mode: Mode;
        speed hint: CacheHint;
        abstain address: NewAddress;
        abstain anew: Option<Override>;
    }
    operands {
        known tensor: Tensor = boxed(dims, mode, address, anew);
        known src: Address = Space::SharedCta;
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !matches!(mode, Mode::Tile | Mode::Scatter4 | Mode::NoOffsets | Mode::NoOffsetsW)
            => refuse("this mode loads");
        anew.is_some() && matches!(mode, Mode::NoOffsets | Mode::NoOffsetsW)
            => refuse("dimensions are said anew of tiles");
        mode == Mode::Scatter4 && dims != Dims::D2 => refuse("four rows are of .2d");
        !matches!(mode, Mode::Tile | Mode::Scatter4) && matches!(dims, Dims::D1 | Dims::D2)
            => refuse("im2col is of .3d to .5d");
        anew.is_some() && !address.is() => refuse("the address is said anew with the rest");
    }

    #[doc = "Brings a box of a tensor to the second level."]
    TensorPrefetch = "cp.async.bulk.prefetch.tensor", section "cp-async-bulk-prefetch-tensor", since (80,
        Sm(90));
    begins ["L2", "global"]
    slots {
        keep dims: Dims;
        keep mode: Mode;
        speed hint: CacheHint;
        speed last: EvictLast;
        abstain address: NewAddress;
        abstain anew: Option<Override>;
    }
    operands {
        known tensor: Tensor = boxed(dims, mode, address, anew);
        known offsets: Option<List> = (offsets_of(dims, mode) > 0, (offsets_of(dims, mode), Width::Int(16),
            Must));
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        matches!(mode, Mode::Scatter4 | Mode::NoOffsets | Mode::NoOffsetsW) => refuse("this mode stores");
        mode == Mode::Gather4 && dims != Dims::D2 => refuse("four rows are of .2d");
        !matches!(mode, Mode::Tile | Mode::Gather4) && matches!(dims, Dims::D1 | Dims::D2)
            => refuse("im2col is of .3d to .5d");
        anew.is_some() && !address.is() => refuse("the address is said anew with the rest");
        hint.is() && last.is() => refuse("one hint at a time");
        matches!(mode, Mode::Gather4 | Mode::Im2colW) => since(86, TENSOR);
    }

    #[doc = "Ends a group of bulk copies."]
    BulkCommit = "cp.async.bulk.commit_group", section "cp-async-bulk-commit-group", since (80, Sm(90));
    slots {} operands {} rules {}

    #[doc = "Waits until so many groups of bulk copies are pending."]
    BulkWait = "cp.async.bulk.wait_group", section "cp-async-bulk-wait-group", since (80, Sm(90));
    slots { keep what: WaitFor; } operands { known groups: Number = (); } rules {}

    #[doc = "Brings bytes to the second level."]
    BulkPrefetch = "cp.async.bulk.prefetch", section "cp-async-bulk-prefetch", since (80, Sm(90));
    begins ["L2"]
    slots { keep space: GlobalWord; speed hint: CacheHint; speed last: EvictLast; }
    operands {
        known src: Address = Space::Global;
        known bytes: Value = Width::Int(32);
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        ragged(bytes) => refuse("sizes are multiples of 16 below 1048576");
        hint.is() && last.is() => refuse("one hint at a time");
    }

    #[doc = "Changes bytes in bulk, asynchronously."]
    BulkReduce = "cp.reduce.async.bulk", section "cp-reduce-async-bulk", since (80, Sm(90));
    slots {
        keep dst_space: BulkSpace;
        keep src_space: BulkSpace;
        keep done: Completion;
        speed hint: CacheHint;
        keep order: Strong<ReduceOrder>;
        keep op: RedOp;
        keep noftz: Noftz;
        keep ty: Ty;
    }
    operands {
        known dst: Address = dst_space.into();
        known src: Unified = src_space.into();
        known bytes: Value = Width::Int(32);
        known mbarrier: Option<Address> = (done == Completion::Mbarrier, Space::SharedCluster);
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        ragged(bytes) => refuse("sizes are multiples of 16 below 1048576");
        src.unified && dst_space != BulkSpace::Global => refuse("`.unified` is for copies to global memory");
        !matches!((dst_space, src_space), (BulkSpace::Global
            | BulkSpace::SharedCluster, BulkSpace::SharedCta))
            => refuse("it goes from this CTA to global memory or to the cluster");
        (dst_space == BulkSpace::Global) != (done == Completion::Group)
            => refuse("one to global memory ends with its group, every other with an mbarrier");
        hint.is() && dst_space != BulkSpace::Global => refuse("`.L2::cache_hint` is for global memory");
        !bulk_takes(op, ty, dst_space) => refuse("the operation does not take this type");
        noftz.is() != (op == RedOp::Add && matches!(ty, Ty::F16 | Ty::Bf16))
            => refuse("`.noftz` goes with .add of halves");
        order.scope.is_some_and(|s| s != Scope::Cluster) && dst_space == BulkSpace::SharedCluster
            => refuse("in shared memory the scope is .cluster");
    }

    #[doc = "Stores zeros to a range of shared memory."]
    StBulk = "st.bulk", section "st-bulk", since (86, Sm(100));
    slots { keep weak: WeakWord; keep space: CtaSpace; }
    operands {
        known addr: Address = space.into();
        known bytes: Value = Width::Either(32, 64);
        known value: Number = ();
    }
    rules {
        value.0 != 0 => refuse("it stores zeros");
        space == CtaSpace::SharedCta && addr.home.is_some() => refuse("the address is in a register");
        bytes.imm().is_some_and(|n| n % 8 != 0) => refuse("the size is a multiple of 8");
        bytes.has_bits(32) => since(90, Any);
    }

}

/// A size that is no multiple of 16.
pub(super) fn ragged(bytes: &Value) -> bool {
    bytes.imm().is_some_and(|n| n % 16 != 0 || !(0..1 << 20).contains(&n))
}

/// Whether a mask of CTAs has the bits that its word says.
pub(super) fn mask_fits(multicast: Option<Multicast>, mask: Option<&Value>) -> bool {
    let most = if multicast == Some(Multicast::Mask16) { 0xffff } else { 0xffff_ffff };
    mask.and_then(Value::imm).is_none_or(|n| (0..=most).contains(&n))
}

fn bulk_ends(dst: BulkSpace, src: BulkSpace) -> bool {
    use BulkSpace::*;
    matches!(
        (dst, src),
        (SharedCta | SharedCluster, Global) | (SharedCluster, SharedCta) | (Global, SharedCta)
    )
}

pub(super) fn bulk_takes(op: RedOp, ty: Ty, dst: BulkSpace) -> bool {
    use Ty::*;
    let cluster = dst == BulkSpace::SharedCluster;
    match op {
        RedOp::Add if cluster => matches!(ty, U32 | S32 | U64),
        RedOp::Add => matches!(ty, U32 | S32 | U64 | F32 | F64 | F16 | Bf16),
        RedOp::Min | RedOp::Max if cluster => matches!(ty, U32 | S32),
        RedOp::Min | RedOp::Max => matches!(ty, U32 | S32 | U64 | S64 | F16 | Bf16),
        RedOp::And | RedOp::Or | RedOp::Xor if cluster => ty == B32,
        RedOp::And | RedOp::Or | RedOp::Xor => matches!(ty, B32 | B64),
        RedOp::Inc | RedOp::Dec => ty == U32,
    }
}

pub(super) fn offsets_of(dims: Dims, mode: Mode) -> usize {
    match mode {
        Mode::Im2col => (dims as usize).saturating_sub(2),
        Mode::Im2colW | Mode::Im2colW128 => 2,
        Mode::Tile | Mode::Gather4 | Mode::Scatter4 | Mode::NoOffsets | Mode::NoOffsetsW => 0,
    }
}

pub(super) fn boxed(
    dims: Dims,
    mode: Mode,
    address: NewAddress,
    anew: Option<Override>,
) -> Vec<(usize, Width, Braces)> {
    let n = dims as usize;
    let mut out = vec![(1, Width::Map, Never)];
    out.extend(address.is().then_some((1, Width::Int(64), Never)));
    out.extend(anew.map(|_| (n, Width::Int(16), Must)));
    if anew == Some(Override::DimStride) {
        out.extend([(n - 1, Width::Int(32), Must), (1, Width::Int(16), Never)]);
    }
    let rows = if matches!(mode, Mode::Gather4 | Mode::Scatter4) { 5 } else { n };
    out.push((rows, Width::Int(32), Must));
    out
}
