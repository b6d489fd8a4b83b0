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
    slots {
        speed aligned: Aligned;
        keep shape: Mnk;
        keep ty: Types<3, 3>;
        keep bits: Option<BitOp>;
        keep popc: Popc;
        keep satfinite: Satfinite;
    }
    operands {
        update d: List = (usize::from(shape.n) / if ty.at(0) == Num::F16 { 4 } else { 2 },
            if ty.at(0) == Num::F32 { Width::Bits(32) } else { Width::Int(32) }, Must);
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
        !group_shape(shape, ty, form == WgmmaForm::Sparse)
            => refuse("the shape does not go with these types");
        (ty.at(1) == Num::B1) != (bits == Some(BitOp::And) && popc.is()) || bits.is_some() != popc.is()
            => refuse("bits are multiplied with .and.popc");
        ty.at(1) == Num::B1 && form == WgmmaForm::Sparse => refuse("bits are not sparse");
        satfinite.is() && !matches!(ty.at(1), Num::S8 | Num::U8) => refuse("`.satfinite` is of integers");
        adds.value.imm().is_some_and(|n| n != 0 && n != 1) => refuse("a predicate is 0 or 1");
        [sign_a, sign_b].iter().any(|n| n.is_some_and(|n| n.0.abs() != 1)) => refuse("a sign is 1 or -1");
        [transpose_a, transpose_b].iter().any(|n| n.is_some_and(|n| n.0 != 0 && n.0 != 1))
            => refuse("a transposition is 0 or 1");
        selector.is_some_and(|n| !(0..=i64::from(ty.at(1).bits() > 8)).contains(&n.0))
            => refuse("there is no such selector");
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
    slots { speed aligned: Aligned; }
    operands { known groups: Number = (); }
    rules { groups.0 < 0 => refuse("a number of groups is not negative"); }

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
        write d: List = (pieces(shape.m, shape.n, ty.at(0), shape), piece(ty.at(0)), Must);
        data a: List = (pieces(shape.m, if form == WarpMmaForm::Dense { shape.k } else { shape.k / 2 },
            narrow(ty.at(1), kind), shape), piece(ty.at(1)), Must);
        data b: List = (pieces(shape.n, shape.k, narrow(ty.at(2), kind), shape), piece(ty.at(2)), Must);
        data c: List = (pieces(shape.m, shape.n, ty.at(3), shape), piece(ty.at(3)), Must);
        data metadata: Option<Value> = (form != WarpMmaForm::Dense, Width::Bits(32));
        known selector: Option<Number> = (form != WarpMmaForm::Dense, ());
        data scale_a: Option<Value> = (scaled.is(), Width::Bits(32));
        data lanes_a: Option<List> = (scaled.is(), (2, Width::Int(16), Must));
        data scale_b: Option<Value> = (scaled.is(), Width::Bits(32));
        data lanes_b: Option<List> = (scaled.is(), (2, Width::Int(16), Must));
    }
    rules {
        [a, b, c].iter().any(|list| list.is_numbers()) => refuse("a register is among them");
        !warp_types(shape, ty, kind, form != WarpMmaForm::Dense)
            => refuse("there is no product of these types and this shape");
        scaled.is() != scale.is_some() || scaled.is() != kind.is_some_and(|kind| kind != WarpKind::F8f6f4)
            => refuse("`.block_scale` goes with the kinds mx and a type of scales");
        blocks.is_some() && !scaled.is() => refuse("blocks go with `.block_scale`");
        (ty.at(1) == Num::B1) != bits.is_some() || bits.is_some() != popc.is()
            => refuse("bits are multiplied with .and.popc or .xor.popc");
        satfinite.is() && !ty.at(1).integer() => refuse("`.satfinite` is of integers");
        (layout.first, layout.second) != (Layout2::Row, Layout2::Col) && (ty.at(1) != Num::F16
            || shape.m != 8)
            => refuse("it is .row.col");
    }

    #[doc = "Loads a matrix of a product of a warp."]
    WmmaLoad = form: WmmaForm, section "wmma-ld", since (70, Any);
    begins ["sync", "aligned"]
    slots { keep layout: Layout2; keep shape: Mnk; keep space: WmmaSpace; keep ty: Num; }
    operands {
        write dst: List = (fragment(form, shape, ty), piece(ty), Must);
        known addr: Address = space.into();
        known stride: Maybe<Value> = (0, Width::Int(32));
    }
    rules { fragment(form, shape, ty) == 0 => refuse("there is no such matrix"); }

    #[doc = "Stores a matrix of a product of a warp."]
    WmmaStore = "wmma.store.d", section "wmma-st", since (70, Any);
    begins ["sync", "aligned"]
    slots { keep layout: Layout2; keep shape: Mnk; keep space: WmmaSpace; keep ty: Num; }
    operands {
        known addr: Address = space.into();
        data src: List = (fragment(WmmaForm::C, shape, ty), piece(ty), Must);
        known stride: Maybe<Value> = (0, Width::Int(32));
    }
    rules { fragment(WmmaForm::C, shape, ty) == 0 => refuse("there is no such matrix"); }

    #[doc = "Multiplies and adds matrices of a warp."]
    WmmaMma = "wmma.mma", section "wmma-mma", since (70, Any);
    begins ["sync", "aligned"]
    slots {
        keep bits: Option<BitOp>;
        keep popc: Popc;
        keep layout: Then<Layout2, Layout2>;
        keep shape: Mnk;
        keep round: Option<Round>;
        keep ty: Types<2, 4>;
        keep satfinite: Satfinite;
    }
    operands {
        write d: List = (0, Width::Any, Must);
        data a: List = (0, Width::Any, Must);
        data b: List = (0, Width::Any, Must);
        data c: List = (0, Width::Any, Must);
    }
    rules { ty.count() == 3 => refuse("it has the types of two matrices, or of four"); }
}

/// What a register of a product fits.
fn piece(ty: Num) -> Width {
    match ty {
        Num::F64 => Width::Of { bits: 64, float: true, untyped: false, wider: false },
        Num::F32 => Width::Of { bits: 32, float: true, untyped: false, wider: false },
        _ => Width::Int(32),
    }
}

/// Bits of an element: those of the kinds mxf4 have 4.
fn narrow(ty: Num, kind: Option<WarpKind>) -> Num {
    if matches!(kind, Some(WarpKind::Mxf4 | WarpKind::Mxf4nvf4)) { Num::U4 } else { ty }
}

/// Bits of an element in a register.
fn element(ty: Num) -> usize {
    match ty {
        Num::U4 | Num::S4 => 4,
        Num::Tf32 => 32,
        _ => usize::from(ty.bits()),
    }
}

/// Registers of a lane for a matrix.
fn pieces(rows: u16, columns: u16, ty: Num, shape: Mnk) -> usize {
    let all = usize::from(rows) * usize::from(columns) / 32;
    match ty {
        Num::F64 => all,
        // Four products of eight lanes each: `mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32` has 8, 2, 2 and 8 registers.
        Num::F16 | Num::F32 if shape == Mnk { m: 8, n: 8, k: 4 } => (4 * all * element(ty) / 32).max(1),
        _ => (all * element(ty) / 32).max(1),
    }
}

fn warp_types(shape: Mnk, ty: Types<4, 4>, kind: Option<WarpKind>, sparse: bool) -> bool {
    use Num::*;
    let k = if sparse { shape.k / 2 } else { shape.k };
    let ends = |one: &[Num]| ty.at(0) == ty.at(3) && one.contains(&ty.at(0));
    let (big, small) = (shape.m == 16 && shape.n == 8, shape.m == 8 && shape.n == 8 && !sparse);
    let eighth = |ty| matches!(ty, E4m3 | E5m2 | E3m2 | E2m3 | E2m1);
    match (ty.at(1), ty.at(2)) {
        _ if kind.is_some_and(|kind| kind == WarpKind::Mxf4 || kind == WarpKind::Mxf4nvf4) => {
            big && k == 64 && ends(&[F32]) && ty.at(1) == E2m1 && ty.at(2) == E2m1
        }
        (F16, F16) if small => k == 4 && matches!(ty.at(0), F16 | F32) && matches!(ty.at(3), F16 | F32),
        (F16, F16) => big && matches!(k, 8 | 16) && ends(&[F16, F32]),
        (Bf16, Bf16) => big && matches!(k, 8 | 16) && ends(&[F32]),
        (Tf32, Tf32) => big && matches!(k, 4 | 8) && ends(&[F32]),
        (F64, F64) => ends(&[F64]) && !sparse && (small && k == 4 || big && matches!(k, 4 | 8 | 16)),
        (S8 | U8, S8 | U8) => ends(&[S32]) && (small && k == 16 || big && matches!(k, 16 | 32)),
        (S4 | U4, S4 | U4) => ends(&[S32]) && (small && k == 32 || big && matches!(k, 32 | 64)),
        (B1, B1) => ends(&[S32]) && !sparse && (small && k == 128 || big && matches!(k, 128 | 256)),
        (a, b) => eighth(a) && eighth(b) && big && matches!(k, 16 | 32) && ends(&[F16, F32]),
    }
}

/// Registers of a lane for a matrix of `wmma`; 0 where there is none.
fn fragment(form: WmmaForm, shape: Mnk, ty: Num) -> usize {
    use Num::*;
    let Mnk { m, n, k } = shape;
    let cube = matches!((m, n), (16, 16) | (8, 32) | (32, 8)) && k == 16;
    let all =
        |rows: u16, columns: u16, ty| (usize::from(rows) * usize::from(columns) * element(ty) / 1024).max(1);
    let factor = |ty| if form == WmmaForm::A { all(m, k, ty) } else { all(n, k, ty) };
    match (form, ty) {
        (WmmaForm::A | WmmaForm::B, F16) if cube => 8,
        (WmmaForm::A | WmmaForm::B, Bf16 | S8 | U8) if cube => factor(ty),
        (WmmaForm::A | WmmaForm::B, Tf32) if (m, n, k) == (16, 16, 8) => factor(ty),
        (WmmaForm::A | WmmaForm::B, F64) if (m, n, k) == (8, 8, 4) => 1,
        (WmmaForm::A | WmmaForm::B, S4 | U4) if (m, n, k) == (8, 8, 32) => 1,
        (WmmaForm::A | WmmaForm::B, B1) if (m, n, k) == (8, 8, 128) => 1,
        (WmmaForm::C, F16) if cube => 4,
        (WmmaForm::C, F32 | S32) if cube || ty == F32 && (m, n, k) == (16, 16, 8) => 8,
        (WmmaForm::C, F64) if (m, n, k) == (8, 8, 4) => 2,
        (WmmaForm::C, S32) if (m, n) == (8, 8) && matches!(k, 32 | 128) => 2,
        _ => 0,
    }
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
    let columns = ty.at(0) != Num::S32 || shape.n <= 32 && shape.n != 0 || shape.n.is_multiple_of(16);
    let bits = if ty.at(1) == Num::Tf32 { 32 } else { ty.at(1).bits() };
    let length = 256 / bits.max(1);
    shape.m == 64 && columns && shape.k == if sparse { 2 * length } else { length }
}
