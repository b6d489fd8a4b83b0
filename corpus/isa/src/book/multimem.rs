//! Accesses to many devices at once, and asynchronous accesses of one element.

use super::copy::{bulk_takes, ragged};
use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::Strong;

instructions! {
    #[doc = "Loads from many devices at once, and combines what they have."]
    MultiLoad = "multimem.ld_reduce", section "multimem", since (81, Sm(90));
    slots {
        keep order: Strong<MultiLoadOrder>;
        keep space: GlobalSpace;
        keep op: MultiOp;
        keep acc: Option<Acc>;
        keep vec: Vector;
        keep ty: MultiTy;
    }
    operands { write dst: List = (vec.count(), ty.fit(), Never); known addr: Address = space.into(); }
    rules {
        !multi_vector(vec, ty)
            => refuse("vectors are of floating point up to 128 bits, and halves stand in vectors");
        !multi_takes(op, ty) => refuse("the operation does not take this type");
        acc.is_some() && op != MultiOp::Add => refuse("a precision goes with .add");
        acc == Some(Acc::F32) && !ty.half() || acc == Some(Acc::F16) && !ty.eighth()
            => refuse("`.acc::f32` goes with halves, `.acc::f16` with .e4m3 and .e5m2");
    }

    #[doc = "Stores to many devices at once."]
    MultiStore = "multimem.st", section "multimem", since (81, Sm(90));
    slots {
        keep order: Strong<MultiStoreOrder>;
        keep space: GlobalSpace;
        keep vec: Vector;
        keep ty: MultiTy;
    }
    operands { known addr: Address = space.into(); data src: List = (vec.count(), ty.fit(), Never); }
    rules {
        !multi_vector(vec, ty)
            => refuse("vectors are of floating point up to 128 bits, and halves stand in vectors");
    }

    #[doc = "Updates many devices at once."]
    MultiRed = "multimem.red", section "multimem", since (81, Sm(90));
    slots {
        keep order: Strong<MultiRedOrder>;
        keep space: GlobalSpace;
        keep op: MultiOp;
        keep vec: Vector;
        keep ty: MultiTy;
    }
    operands { known addr: Address = space.into(); data src: List = (vec.count(), ty.fit(), Never); }
    rules {
        (space == GlobalSpace::Global || vec != Vector::One) && addr.base.has_bits(32)
            => refuse("`.global` takes an address of 64 bits");
        !multi_vector(vec, ty) || ty.eighth()
            => refuse("vectors are of floating point up to 128 bits, and halves stand in vectors");
        !multi_takes(op, ty) || op != MultiOp::Add && ty.half() && vec == Vector::One
            => refuse("the operation does not take this type");
    }

    #[doc = "Stores to many devices at once, asynchronously."]
    MultiStoreAsync = "multimem.st.async", section "multimem-async", since (93, Sm(100));
    begins ["release"]
    slots { keep scope: Scope; keep space: GlobalSpace; keep ty: Ty; }
    operands {
        known addr: Address = space.into();
        data src: Value = if ty.bits() < 64 { ty.fit(!ty.float()) } else { ty.fit(false) };
    }
    rules {
        matches!(scope, Scope::Cta | Scope::Cluster) => refuse("the scope is .gpu or .sys");
        ty.half() || ty == Ty::B128 => refuse("elements have no halves and at most 64 bits");
    }

    #[doc = "Updates many devices at once, asynchronously."]
    MultiRedAsync = "multimem.red.async", section "multimem-async", since (93, Sm(100));
    begins ["release"]
    slots { keep scope: Scope; keep space: GlobalSpace; keep op: RedOp; keep ty: Ty; }
    operands { known addr: Address = space.into(); data src: Value = ty.fit(false); }
    rules {
        matches!(scope, Scope::Cta | Scope::Cluster) => refuse("the scope is .gpu or .sys");
        op != RedOp::Add || !matches!(ty, Ty::U32 | Ty::S32 | Ty::U64) => refuse("it adds .u32, .s32, .u64");
    }

    #[doc = "Copies bytes to many devices at once, asynchronously."]
    MultiBulk = "multimem.cp.async.bulk", section "multimem-async", since (91, Sm(90));
    begins ["global", "shared::cta", "bulk_group"]
    slots { keep cp_mask: CpMask; keep order: Strong<CopyOrder>; keep b128: B128; }
    operands {
        known dst: Address = Space::Global;
        known src: Unified = Space::SharedCta;
        known bytes: Value = Width::Int(32);
        known byte_mask: Option<Value> = (cp_mask.is(), Width::Int(16));
    }
    rules it {
        ragged(bytes) => refuse("sizes are multiples of 16");
        b128.is() && it.spelling.says("weak") => refuse("`.b128` goes with .relaxed.scope or alone");
        order.order == CopyOrder::Relaxed && !b128.is() => refuse("`.relaxed.scope` goes with .b128");
    }

    #[doc = "Updates many devices at once in bulk, asynchronously."]
    MultiReduce = "multimem.cp.reduce.async.bulk", section "multimem-async", since (91, Sm(90));
    begins ["global", "shared::cta", "bulk_group"]
    slots { keep order: Strong<ReduceOrder>; keep op: RedOp; keep noftz: Noftz; keep ty: Ty; }
    operands {
        known dst: Address = Space::Global;
        known src: Unified = Space::SharedCta;
        known bytes: Value = Width::Int(32);
    }
    rules {
        ragged(bytes) => refuse("sizes are multiples of 16");
        !bulk_takes(op, ty, BulkSpace::Global) => refuse("the operation does not take this type");
        noftz.is() != (op == RedOp::Add && matches!(ty, Ty::F16 | Ty::Bf16))
            => refuse("`.noftz` goes with .add of halves");
    }

    #[doc = "Stores an element, asynchronously."]
    StAsync = "st.async", section "st-async", since (81, Sm(90));
    slots {
        keep mmio: Mmio;
        keep order: Strong<StAsyncOrder>;
        keep space: AsyncSpace;
        keep done: Option<Bytes>;
        keep vec: Vector;
        keep ty: Ty;
    }
    operands {
        known addr: Address = space.into();
        data src: List = (vec.count(), ty.fit(false), if done.is_some() { Whole } else { Never });
        known mbarrier: Option<Address> = (done.is_some(), space.into());
    }
    rules {
        ty.half() || ty.bits() == 8 => refuse("elements are no halves and no bytes");
        vec == Vector::V8 || vec != Vector::One && (ty.bits() < 32
            || vec.count() * usize::from(ty.bits()) > 128)
            => refuse("vectors are of 32 or 64 bits, up to 128");
        done.is_some() && (space == AsyncSpace::Global || order.scope.is_some() || ty.bits() == 16)
            => refuse("with an mbarrier it goes to shared memory, weak, 32 bits at least");
        done.is_none() && (space == AsyncSpace::SharedCluster || vec != Vector::One || ty == Ty::B128)
            => refuse("in the cluster, and for vectors, an mbarrier is needed");
        order.scope.is_some() && !matches!(space, AsyncSpace::Generic | AsyncSpace::Global)
            => refuse("`.release` is for global memory");
        matches!(order.scope, Some(Scope::Cta | Scope::Cluster)) => refuse("the scope is .gpu or .sys");
        mmio.is() && order.scope != Some(Scope::Sys) => refuse("`.mmio` goes with .release.sys");
        ty == Ty::B128 => since(92, Any);
    }

    #[doc = "Updates an element, asynchronously."]
    RedAsync = "red.async", section "red-async", since (81, Sm(90));
    slots {
        keep mmio: Mmio;
        keep order: RedAsyncOrder;
        keep scope: Scope;
        keep space: AsyncSpace;
        keep done: Option<Bytes>;
        keep op: RedOp;
        keep ty: Ty;
    }
    operands {
        known addr: Address = space.into();
        data src: Value = Width::Int(ty.bits());
        known mbarrier: Option<Address> = (done.is_some(), space.into());
    }
    rules {
        !async_takes(op, ty) => refuse("the operation does not take this type");
        done.is_some() && (order != RedAsyncOrder::Relaxed || scope != Scope::Cluster
            || !matches!(space, AsyncSpace::Generic | AsyncSpace::SharedCluster))
            => refuse("with an mbarrier it is .relaxed.cluster in the cluster");
        done.is_none() && (matches!(scope, Scope::Cta | Scope::Cluster)
            || !matches!(space, AsyncSpace::Generic | AsyncSpace::Global))
            => refuse("without an mbarrier it goes to global memory with .gpu or .sys");
        mmio.is() && (order != RedAsyncOrder::Release || scope != Scope::Sys)
            => refuse("`.mmio` goes with .release.sys");
    }
}

/// Whether a vector has these elements.
fn multi_vector(vec: Vector, ty: MultiTy) -> bool {
    let bits = vec.count() * usize::from(ty.bits());
    match vec {
        Vector::One => ty.bits() != 16,
        Vector::V2 | Vector::V4 | Vector::V8 => {
            (ty == MultiTy::F32 || ty.half() || ty.eighth()) && bits <= 128
        }
    }
}

fn multi_takes(op: MultiOp, ty: MultiTy) -> bool {
    use MultiTy::*;
    match op {
        MultiOp::Add => matches!(ty, U32 | S32 | U64 | F32 | F64) || ty.half() || ty.eighth(),
        MultiOp::Min | MultiOp::Max => matches!(ty, U32 | S32 | U64 | S64) || ty.half() || ty.eighth(),
        MultiOp::And | MultiOp::Or | MultiOp::Xor => matches!(ty, B32 | B64),
    }
}

fn async_takes(op: RedOp, ty: Ty) -> bool {
    match op {
        RedOp::Add => matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64),
        RedOp::Min | RedOp::Max => matches!(ty, Ty::U32 | Ty::S32),
        RedOp::And | RedOp::Or | RedOp::Xor => ty == Ty::B32,
        RedOp::Inc | RedOp::Dec => ty == Ty::U32,
    }
}
