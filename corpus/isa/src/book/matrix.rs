//! Products in registers: of a warp group, and of a warp.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, Only};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::{Mnk, Then, Types};

/// Targets with products of warp groups.
const GROUPS: crate::kind::On = Only(&[90]);

instructions! {
    #[doc = "Multiplies and adds with a warp group, asynchronously."]
    Wgmma = form: WgmmaForm, section "wgmma-mma", since (80, GROUPS);
    begins ["sync"]
    slots { speed aligned: Aligned; keep shape: Mnk; keep ty: Types<3, 3>; keep bits: Option<BitOp>; keep popc: Popc; keep satfinite: Satfinite; }
    operands {
        update d: List = (usize::from(shape.n) / if ty.at(0) == Num::F16 { 4 } else { 2 }, if ty.at(0) == Num::F32 { Width::Bits(32) } else { Width::Int(32) }, Must);
        opaque a: Factor = Some(4);
        opaque b: Register = Width::Int(64);
        opaque metadata: Option<Register> = (form == WgmmaForm::Sparse, Width::Bits(32));
        known selector: Option<Number> = (form == WgmmaForm::Sparse, ());
        known adds: Pred = ();
        known sign_a: Option<Number> = (ty.at(0) != Num::S32, ());
        known sign_b: Option<Number> = (ty.at(0) != Num::S32, ());
        known transpose_a: Option<Number> = (halves(ty.at(1)) && !a.is_registers(), ());
        known transpose_b: Option<Number> = (halves(ty.at(1)), ());
    }
    rules {
        matches!(a, Factor::Values(list) if list.is_numbers()) => refuse("a register is among them");
        a.is_tensor() => refuse("the first factor is registers or a descriptor");
        !group_types(ty) => refuse("there is no product of these types");
        !group_shape(shape, ty, form == WgmmaForm::Sparse) => refuse("the shape does not go with these types");
        (ty.at(1) == Num::B1) != (bits == Some(BitOp::And) && popc.is()) || bits.is_some() != popc.is() => refuse("bits are multiplied with .and.popc");
        ty.at(1) == Num::B1 && form == WgmmaForm::Sparse => refuse("bits are not sparse");
        satfinite.is() && !matches!(ty.at(1), Num::S8 | Num::U8) => refuse("`.satfinite` is of integers");
        [sign_a, sign_b].iter().any(|n| n.is_some_and(|n| n.0.abs() != 1)) => refuse("a sign is 1 or -1");
        [transpose_a, transpose_b].iter().any(|n| n.is_some_and(|n| n.0 != 0 && n.0 != 1)) => refuse("a transposition is 0 or 1");
        selector.is_some_and(|n| !(0..=i64::from(ty.at(1).bits() > 8)).contains(&n.0)) => refuse("there is no such selector");
        ty.at(1).bits() == 8 && ty.at(1) != ty.at(2) && ty.at(0) == Num::S32 => since(84, GROUPS);
    }

    #[doc = "Orders registers and shared memory before products of a warp group."]
    WgmmaFence = "wgmma.fence", section "wgmma-fence", since (80, GROUPS);
    begins ["sync"]
    slots { speed aligned: Aligned; } operands {} rules {}

    #[doc = "Ends a group of products."]
    WgmmaCommit = "wgmma.commit_group", section "wgmma-commit-group", since (80, GROUPS);
    begins ["sync"]
    slots { speed aligned: Aligned; } operands {} rules {}

    #[doc = "Waits until so many groups of products are pending."]
    WgmmaWait = "wgmma.wait_group", section "wgmma-wait-group", since (80, GROUPS);
    begins ["sync"]
    slots { speed aligned: Aligned; } operands { known groups: Number = (); } rules { groups.0 < 0 => refuse("a number of groups is not negative"); }

    #[doc = "Multiplies and adds with a warp."]
    Mma = form: WarpMmaForm, section "mma", since (70, Any);
    begins ["sync", "aligned"]
    slots {
        keep shape: Mnk;
        keep layout: Then<Layout2, Layout2>;
        keep kind: Option<WarpKind>;
        keep scaled: BlockScale;
        keep blocks: Option<ScaleVec>;
        keep ty: Types<4, 4>;
        keep scale: Option<ScaleTy>;
        keep satfinite: Satfinite;
        keep bits: Option<BitOp>;
        keep popc: Popc;
    }
    operands {
        write d: List = (0, Width::Any, Must);
        data a: List = (0, Width::Any, Must);
        data b: List = (0, Width::Any, Must);
        data c: List = (0, Width::Any, Must);
        data metadata: Option<Value> = (form != WarpMmaForm::Dense, Width::Int(32));
        known selector: Option<Number> = (form != WarpMmaForm::Dense, ());
        data scale_a: Option<Value> = (scaled.is(), Width::Int(32));
        data lanes_a: Option<List> = (scaled.is(), (2, Width::Bits(16), Must));
        data scale_b: Option<Value> = (scaled.is(), Width::Int(32));
        data lanes_b: Option<List> = (scaled.is(), (2, Width::Bits(16), Must));
    }
    rules {
        scaled.is() != scale.is_some() => refuse("`.block_scale` goes with a type of scales");
        bits.is_some() != popc.is() => refuse("bits are multiplied with .and.popc or .xor.popc");
    }

    #[doc = "Loads a matrix of a product of a warp."]
    WmmaLoad = form: WmmaForm, section "wmma-ld", since (70, Any);
    begins ["sync", "aligned"]
    slots { keep layout: Layout2; keep shape: Mnk; keep space: WmmaSpace; keep ty: Num; }
    operands { write dst: List = (0, Width::Any, Must); known addr: Address = space.into(); known stride: Maybe<Value> = (0, Width::Int(32)); }
    rules {}

    #[doc = "Stores a matrix of a product of a warp."]
    WmmaStore = "wmma.store.d", section "wmma-st", since (70, Any);
    begins ["sync", "aligned"]
    slots { keep layout: Layout2; keep shape: Mnk; keep space: WmmaSpace; keep ty: Num; }
    operands { known addr: Address = space.into(); data src: List = (0, Width::Any, Must); known stride: Maybe<Value> = (0, Width::Int(32)); }
    rules {}

    #[doc = "Multiplies and adds matrices of a warp."]
    WmmaMma = "wmma.mma", section "wmma-mma", since (70, Any);
    begins ["sync", "aligned"]
    slots { keep bits: Option<BitOp>; keep popc: Popc; keep layout: Then<Layout2, Layout2>; keep shape: Mnk; keep round: Option<Round>; keep ty: Types<2, 4>; keep satfinite: Satfinite; }
    operands { write d: List = (0, Width::Any, Must); data a: List = (0, Width::Any, Must); data b: List = (0, Width::Any, Must); data c: List = (0, Width::Any, Must); }
    rules {}
}

/// Factors of 16 bits may be transposed.
fn halves(ty: Num) -> bool {
    matches!(ty, Num::F16 | Num::Bf16)
}

fn group_types(ty: Types<3, 3>) -> bool {
    use Num::*;
    match (ty.at(1), ty.at(2)) {
        (F16, F16) => matches!(ty.at(0), F16 | F32),
        (Bf16, Bf16) | (Tf32, Tf32) => ty.at(0) == F32,
        (E4m3 | E5m2, E4m3 | E5m2) => matches!(ty.at(0), F16 | F32),
        (S8 | U8, S8 | U8) | (B1, B1) => ty.at(0) == S32,
        _ => false,
    }
}

fn group_shape(shape: Mnk, ty: Types<3, 3>, sparse: bool) -> bool {
    // `.m64n40k32.s32.s8.s8` is refused: behind 32 columns integers go in steps of 16.
    let columns = ty.at(0) != Num::S32 || shape.n <= 32 && shape.n != 0 || shape.n % 16 == 0;
    let bits = if ty.at(1) == Num::Tf32 { 32 } else { ty.at(1).bits() };
    let length = 256 / bits.max(1);
    shape.m == 64 && columns && shape.k == if sparse { 2 * length } else { length }
}
