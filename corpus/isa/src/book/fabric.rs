//! Accesses through the fabric (9.3): read and printed; no engine has a meaning for them.

use super::copy::{boxed, ragged};
use crate::entry::{refuse, since};
use crate::kind::On::{From as Sm, Only};
use crate::kinds::*;
use crate::operand::*;

/// A box needs the newest target.
const BOXES: crate::kind::On = Only(&[107]);

instructions! {
    #[doc = "Fetches bytes through the fabric."]
    FabricGet = "fabric.try_get.async", section "fabric", since (93, Sm(100));
    begins ["shared::cta", "mbarrier::complete_tx::bytes", "mbarrier::report::fabric"] ends ["relaxed", "sys",
        "b128"]
    slots {}
    operands {
        known dst: Address = Space::SharedCta;
        known src: Tensor = remote(false);
        known bytes: Value = Width::Int(32);
        known mbarrier: Address = Space::SharedCta;
    }
    rules {
        ragged(bytes) => refuse("sizes are multiples of 16"); }

    #[doc = "Fetches a box of a tensor through the fabric."]
    FabricGetBox = "fabric.try_get.async.tensor", section "fabric", since (94, BOXES);
    begins ["shared::cta", "tile", "mbarrier::complete_tx::bytes", "mbarrier::report::fabric",
        "override::global_address"] ends ["relaxed", "sys", "b128"]
    slots { keep dims: Dims; speed hint: CacheHint; abstain anew: Option<Override>; }
    operands {
        known dst: Address = Space::SharedCta;
        known tensor: Tensor = remote_box(dims, anew, false);
        known mbarrier: Address = Space::SharedCta;
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !anew_fits(dims, anew)
            => refuse("`.override::global_dim` is of .1d, `.override::global_dim_stride` of the others");
    }

    #[doc = "Writes bytes through the fabric."]
    FabricPut = "fabric.try_put.async", section "fabric", since (93, Sm(100));
    begins ["shared::cta", "mbarrier::complete_tx::16B", "mbarrier::report::fabric"] ends ["relaxed", "sys",
        "b128"]
    slots { keep many: Many; keep counted: Counted; keep cp_mask: CpMask; }
    operands {
        known dst: Tensor = remote(counted.is());
        known src: Address = Space::SharedCta;
        known bytes: Value = Width::Int(32);
        known mbarrier: Address = Space::SharedCta;
        known byte_mask: Option<Value> = (cp_mask.is(), Width::Int(16));
    }
    rules {
        ragged(bytes) => refuse("sizes are multiples of 16"); }

    #[doc = "Writes a box of a tensor through the fabric."]
    FabricPutBox = "fabric.try_put.async.tensor", section "fabric", since (94, BOXES);
    begins ["shared::cta", "tile", "mbarrier::complete_tx::16B", "mbarrier::report::fabric",
        "override::global_address"] ends ["relaxed", "sys", "b128"]
    slots {
        keep many: Many;
        keep dims: Dims;
        keep counted: Counted;
        speed hint: CacheHint;
        abstain anew: Option<Override>;
    }
    operands {
        known tensor: Tensor = remote_box(dims, anew, counted.is());
        known src: Address = Space::SharedCta;
        known bytes: Value = Width::Int(32);
        known mbarrier: Address = Space::SharedCta;
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules {
        !anew_fits(dims, anew)
            => refuse("`.override::global_dim` is of .1d, `.override::global_dim_stride` of the others");
    }

    #[doc = "Updates memory through the fabric."]
    FabricRed = "fabric.try_red.async", section "fabric", since (93, Sm(100));
    begins ["shared::cta", "mbarrier::complete_tx::16B", "mbarrier::report::fabric", "relaxed", "sys"]
    slots { keep many: Many; keep counted: Counted; keep op: MultiOp; keep ty: FabricTy; }
    operands {
        known dst: Tensor = remote(counted.is());
        known src: Address = Space::SharedCta;
        known bytes: Value = Width::Int(32);
        known mbarrier: Address = Space::SharedCta;
    }
    rules {
        !red_takes(op, ty) || op == MultiOp::Add && matches!(ty, FabricTy::S32 | FabricTy::S64)
            => refuse("the operation does not take this type");
    }

    #[doc = "Combines what many devices have, through the fabric."]
    FabricPull = "fabric.try_pullred.async.multimem", section "fabric", since (93, Sm(100));
    begins ["shared::cta", "mbarrier::complete_tx::bytes", "mbarrier::report::fabric", "relaxed",
        "sys"] ends ["sync"]
    slots { keep op: MultiOp; keep acc: AccF32; keep ty: FabricTy; }
    operands {
        known dst: Address = Space::SharedCta;
        known src: Tensor = remote(false);
        known bytes: Value = Width::Int(32);
        known mbarrier: Address = Space::SharedCta;
        known lanes: Number = ();
    }
    rules {
        lanes.0 & 0xffff_ffff != 0xffff_ffff => refuse("all lanes take part");
        acc.is() && !(op == MultiOp::Add && matches!(ty, FabricTy::F16 | FabricTy::Bf16))
            => refuse("`.acc::f32` goes with .add of halves");
        !red_takes(op, ty) || op == MultiOp::Add && matches!(ty, FabricTy::S32 | FabricTy::S64
            | FabricTy::F64)
            => refuse("the operation does not take this type");
    }

    #[doc = "Updates memory through the fabric, and returns what it read."]
    FabricAtom = "fabric.try_atom.async", section "fabric", since (94, Sm(100));
    begins ["shared::cta", "mbarrier::complete_tx::16B", "mbarrier::report::fabric"] ends ["relaxed", "sys"]
    slots { speed hint: CacheHint; keep op: AtomOp; keep ty: FabricTy; }
    operands {
        known place: Tensor = remote(false);
        known dst: Address = Space::SharedCta;
        known src: Address = Space::SharedCta;
        known mbarrier: Address = Space::SharedCta;
        hint policy: Option<Value> = (hint.is(), Width::Int(64));
    }
    rules { !fabric_takes(op, ty) => refuse("the operation does not take this type"); }

    #[doc = "Hands accesses over to the fabric."]
    FabricSubmit = form: SubmitForm, section "fabric", since (93, Sm(100));
    slots {} operands {} rules {}

    #[doc = "Waits for accesses through the fabric."]
    FabricWait = "fabric.wait", section "fabric", since (93, Sm(100));
    slots { keep what: FabricWaitFor; } operands { known groups: Maybe<Number> = (0, ()); }
    rules {
        what == FabricWaitFor::Read && groups.0.is_none()
            => refuse("`.sync_restrict::read` has a number of groups");
        what == FabricWaitFor::Read => since(95, Sm(100));
    }
}

/// A place behind the fabric: a handle and an address, and where bytes are counted.
fn remote(counted: bool) -> Vec<(usize, Width, Braces)> {
    let mut out = vec![(1, Width::Int(32), Never), (1, Width::Int(64), Never)];
    out.extend(counted.then_some((1, Width::Int(64), Never)));
    out
}

/// A box behind the fabric.
fn remote_box(dims: Dims, anew: Option<Override>, counted: bool) -> Vec<(usize, Width, Braces)> {
    let mut out = boxed(dims, Mode::Tile, NewAddress::No, anew);
    out.splice(0..1, [(1, Width::Int(64), Never)].into_iter().chain(remote(counted)));
    out
}

fn anew_fits(dims: Dims, anew: Option<Override>) -> bool {
    anew.is_none_or(|anew| (anew == Override::Dim) == (dims == Dims::D1))
}

fn red_takes(op: MultiOp, ty: FabricTy) -> bool {
    use FabricTy::*;
    match op {
        MultiOp::Add => matches!(ty, U32 | U64 | S32 | S64 | F32 | F64 | F16 | Bf16),
        MultiOp::Min | MultiOp::Max => matches!(ty, U32 | U64 | S32 | S64 | F16 | Bf16),
        MultiOp::And | MultiOp::Or | MultiOp::Xor => matches!(ty, B32 | B64),
    }
}

fn fabric_takes(op: AtomOp, ty: FabricTy) -> bool {
    use FabricTy::*;
    match op {
        AtomOp::Add => matches!(ty, U32 | U64 | F32 | F64 | F16x2 | Bf16x2),
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | U64 | F16x2 | Bf16x2),
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64),
        AtomOp::Cas | AtomOp::Exch => matches!(ty, B32 | B64 | B128),
        AtomOp::Inc | AtomOp::Dec => false,
    }
}
