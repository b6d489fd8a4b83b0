//! The tensor core of the fifth generation.

use super::copy::mask_fits;
use crate::entry::{refuse, since};
use crate::kind::On::{Any, Only};
use crate::kind::TENSOR;
use crate::kinds::*;
use crate::operand::*;

instructions! {
    #[doc = "Allocates columns of tensor memory."]
    TcAlloc = "tcgen05.alloc", section "tcgen05-alloc", since (86, TENSOR);
    ends ["sync", "aligned", "b32"]
    slots { abstain exclusive: Exclusive; keep group: CtaGroup; keep space: CtaSpace; }
    operands { known dst: Address = space.into(); known columns: Value = Width::Int(32); }
    rules {
        columns.imm().is_some_and(|n| !columns_fit(exclusive, n))
            => refuse("columns are a power of two from 32 to 512, with .exclusive any multiple of 32");
    }

    #[doc = "Frees columns of tensor memory."]
    TcDealloc = "tcgen05.dealloc", section "tcgen05-dealloc", since (86, TENSOR);
    ends ["sync", "aligned", "b32"]
    slots { abstain exclusive: Exclusive; keep group: CtaGroup; }
    operands { known addr: Value = Width::Int(32); known columns: Value = Width::Int(32); }
    rules {
        columns.imm().is_some_and(|n| !columns_fit(exclusive, n))
            => refuse("columns are a power of two from 32 to 512, with .exclusive any multiple of 32");
    }

    #[doc = "Gives up allocation."]
    TcRelinquish = "tcgen05.relinquish_alloc_permit", section "tcgen05-relinquish", since (86, TENSOR);
    ends ["sync", "aligned"]
    slots { keep group: CtaGroup; } operands {} rules {}

    #[doc = "Loads from tensor memory."]
    TcLd = "tcgen05.ld", section "tcgen05-ld", since (86, TENSOR);
    begins ["sync", "aligned"] ends ["b32"]
    slots { keep shape: Shape; keep times: Times; keep pack: Pack; }
    operands {
        write dst: List = (shape.registers(times), Width::Bits(32), Must);
        known addr: TensorAddress = Width::Int(32);
        known half: Option<Number> = (shape == Shape::S16x32x2, ());
    }
    rules {
        shape.registers(times) > 128 => refuse("a thread loads at most 128 registers");
        dst.has_sink() => refuse("every register is wanted");
        dst.has_odd() => refuse("no predicate is loaded");
    }

    #[doc = "Loads from tensor memory, and combines what it loads."]
    TcLdRed = form: LdRedForm, section "tcgen05-ld", since (88, Only(&[103, 107, 110]));
    begins ["sync", "aligned"]
    slots {
        keep shape: Shape;
        keep times: Times;
        keep op: MinMax;
        keep sparse: SparsePair;
        keep abs: Abs;
        keep nan: NaN;
        keep ty: LdRedTy;
        keep packed: B2;
    }
    operands {
        write metadata: Option<List> = (form == LdRedForm::Compress, (times.count().div_ceil(32),
            Width::Bits(32), Must));
        write dst: List = (if form == LdRedForm::Compress { times.count() / 2 } else { times.count() },
            Width::Bits(32), Must);
        write red: Register = Width::Bits(32);
        known addr: TensorAddress = Width::Int(32);
        known half: Option<Number> = (shape == Shape::S16x32x2, ());
    }
    rules {
        !matches!(shape, Shape::S32x32 | Shape::S16x32x2) => refuse("the shapes are .32x32b and .16x32bx2");
        times == Times::X1 => refuse("it loads two registers at least");
        dst.has_odd() => refuse("no predicate is loaded");
        (abs.is() || nan.is()) && ty != LdRedTy::F32 => refuse("`.abs` and `.NaN` go with .f32");
        (form == LdRedForm::Compress) != (sparse.is() && packed.is()) || sparse.is() != packed.is()
            => refuse("`.spcompress` goes with .sp::2:4 and .b2");
        form == LdRedForm::Compress && (shape != Shape::S32x32 || times == Times::X2 || nan.is()
            || ty != LdRedTy::F32)
            => refuse("`.spcompress` is of .32x32b and .f32");
        dst.has_sink() => refuse("every register is wanted");
    }

    #[doc = "Stores to tensor memory."]
    TcSt = "tcgen05.st", section "tcgen05-st", since (86, TENSOR);
    begins ["sync", "aligned"] ends ["b32"]
    slots { keep shape: Shape; keep times: Times; keep unpack: Unpack; }
    operands {
        known addr: TensorAddress = Width::Int(32);
        known half: Option<Number> = (shape == Shape::S16x32x2, ());
        data src: List = (shape.registers(times), Width::Bits(32), Must);
    }
    rules {
        shape.registers(times) > 128 => refuse("a thread stores at most 128 registers");
        src.is_numbers() => refuse("a register is among them");
        src.has_odd() => refuse("registers and integers are stored");
    }

    #[doc = "Copies from shared to tensor memory."]
    TcCp = "tcgen05.cp", section "tcgen05-cp", since (86, TENSOR);
    slots {
        keep group: CtaGroup;
        keep shape: CpShape;
        keep warps: Option<CpWarps>;
        keep unpacked: CpUnpacked;
        keep packed: Option<CpPacked>;
    }
    operands { known dst: TensorAddress = Width::Int(32); opaque src: Value = Width::Int(64); }
    rules {
        unpacked.is() != packed.is_some() => refuse("it is .b8x16 with .b6x16_p32 or .b4x16_p64");
        !warps_fit(shape, warps) => refuse("`.64x128b` goes to .warpx2::02_13 or .warpx2::01_23, `.32x128b` to .warpx4, others name none");
    }

    #[doc = "Moves rows of tensor memory down."]
    TcShift = "tcgen05.shift", section "tcgen05-shift", since (86, TENSOR);
    ends ["down"]
    slots { keep group: CtaGroup; } operands { known addr: TensorAddress = Width::Base; } rules {}

    #[doc = "Waits for loads of tensor memory."]
    TcWaitLd = "tcgen05.wait::ld", section "tcgen05-wait", since (86, TENSOR);
    ends ["sync", "aligned"]
    slots {} operands {} rules {}

    #[doc = "Waits for stores to tensor memory."]
    TcWaitSt = "tcgen05.wait::st", section "tcgen05-wait", since (86, TENSOR);
    ends ["sync", "aligned"]
    slots {} operands {} rules {}

    #[doc = "Arrives at an mbarrier when the earlier operations of the tensor core are complete."]
    TcCommit = "tcgen05.commit", section "tcgen05-commit", since (86, TENSOR);
    ends ["b64"]
    slots {
        keep group: CtaGroup;
        keep done: ArriveOne;
        abstain restrict: Option<CommitFor>;
        keep space: ClusterSpace;
        keep multicast: Option<Multicast>;
    }
    operands {
        known addr: Address = space.into();
        known mask: Option<Value> = (multicast.is_some(),
            if multicast == Some(Multicast::Mask16) { Width::Int(16) } else { Width::Int(32) });
    }
    rules { !mask_fits(multicast, mask.as_ref()) => refuse("a mask has 16 or 32 bits"); }

    #[doc = "Multiplies and adds in tensor memory."]
    TcMma = form: MmaForm, section "tcgen05-mma", since (86, TENSOR);
    slots {
        keep group: CtaGroup;
        keep kind: Kind;
        keep scaled: BlockScale;
        keep blocks: Option<ScaleVec>;
        keep ashift: Ashift;
        speed collector: Option<Collector>;
        speed collector_b: Option<CollectorOfB>;
    }
    operands {
        opaque d: TensorAddress = Width::Int(32);
        opaque a: Factor = None;
        opaque b: Value = Width::Int(64);
        opaque sparsity: Option<TensorAddress> = (form == MmaForm::Sparse, Width::Int(32));
        opaque shape: Value = Width::Int(32);
        opaque scale_a: Option<TensorAddress> = (scaled.is(), Width::Int(32));
        opaque scale_b: Option<TensorAddress> = (scaled.is(), Width::Int(32));
        known lanes: Early<List> = ("{", true, (if group == CtaGroup::One { 4 } else { 8 }, Width::Bits(32),
            Must));
        known adds: Pred = ();
        known scale_d: Maybe<Number> = (0, ());
    }
    rules {
        lanes.0.as_ref().is_some_and(List::is_numbers) => refuse("a register is among them");
        scaled.is() != matches!(kind, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4)
            => refuse("`.block_scale` goes with the kinds mx");
        scaled.is() && (lanes.0.is_some() || scale_d.0.is_some() || ashift.is())
            => refuse("the kinds mx take no lanes, no scale of d, and no shift");
        !blocks_fit(kind, blocks) => refuse("these blocks do not go with this kind");
        scale_d.0.as_ref().is_some_and(|n| !(0..16).contains(&n.0)) => refuse("a scale of d is 0 to 15");
        scale_d.0.is_some() && matches!(kind, Kind::F8f6f4) => refuse("this kind takes no scale of d");
        ashift.is() && !a.is_tensor() => refuse("`.ashift` is for a first factor in tensor memory");
        ashift.is() && matches!(collector, Some(Collector::Use | Collector::Fill))
            => refuse("`.ashift` goes with .lastuse and .discard");
        scale_d.0.is_some() && matches!(kind, Kind::F16 | Kind::Tf32) => since(86, Only(&[100, 103, 107]));
        form == MmaForm::Sparse && lanes.0.is_some() && scale_d.0.is_some() && matches!(kind, Kind::I8
            | Kind::Ti16)
            => refuse("sparse products of integers take lanes or a scale of d");
        kind == Kind::Mxf4nvf4 => since(87, Any);
    }

    #[doc = "Multiplies and adds in tensor memory, with the second factor kept."]
    TcMmaWs = form: MmaWsForm, section "tcgen05-mma-ws", since (86, TENSOR);
    begins ["cta_group::1"]
    slots { keep kind: Kind; speed collector: Option<CollectorB>; }
    operands {
        opaque d: TensorAddress = Width::Int(32);
        opaque a: Factor = None;
        opaque b: Value = Width::Int(64);
        opaque sparsity: Option<TensorAddress> = (form == MmaWsForm::Sparse, Width::Int(32));
        opaque shape: Value = Width::Int(32);
        known adds: Pred = ();
        opaque zeros: Maybe<Value> = (0, Width::Int(64));
    }
    rules {
        matches!(kind, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4) => refuse("the kinds mx are not of .ws");
    }

    #[doc = "Orders operations of the tensor core before what the thread does next to synchronise."]
    TcFenceBefore = "tcgen05.fence::before_thread_sync", section "tcgen05-fence", since (86, TENSOR);
    slots {} operands {} rules {}

    #[doc = "Orders what the thread did to synchronise before operations of the tensor core."]
    TcFenceAfter = "tcgen05.fence::after_thread_sync", section "tcgen05-fence", since (86, TENSOR);
    slots {} operands {} rules {}
}

fn blocks_fit(kind: Kind, blocks: Option<ScaleVec>) -> bool {
    match kind {
        Kind::Mxf8f6f4 => matches!(blocks, None | Some(ScaleVec::X1 | ScaleVec::Block32)),
        Kind::Mxf4 => matches!(blocks, None | Some(ScaleVec::X2 | ScaleVec::Block32)),
        Kind::Mxf4nvf4 => {
            matches!(blocks, Some(ScaleVec::X2 | ScaleVec::X4 | ScaleVec::Block16 | ScaleVec::Block32))
        }
        Kind::F16 | Kind::Tf32 | Kind::F8f6f4 | Kind::I8 | Kind::Ti16 => blocks.is_none(),
    }
}

fn columns_fit(exclusive: Exclusive, n: i64) -> bool {
    n >= 32 && n % 32 == 0 && (exclusive.is() || (n <= 512 && n.count_ones() == 1))
}

fn warps_fit(shape: CpShape, warps: Option<CpWarps>) -> bool {
    match shape {
        CpShape::S128x256 | CpShape::S4x256 | CpShape::S128x128 => warps.is_none(),
        CpShape::S64x128 => matches!(warps, Some(CpWarps::Pairs02 | CpWarps::Pairs01)),
        CpShape::S32x128 => warps == Some(CpWarps::All),
    }
}
