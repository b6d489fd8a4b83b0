//! Textures and surfaces: read and printed, and interpreted by nobody.

use crate::entry::{refuse, since};
use crate::kind::On::Any;
use crate::kinds::*;
use crate::operand::*;
use crate::slot::Types;

instructions! {
    #[doc = "Loads from a surface."]
    Suld = "suld.b", section "suld", since (70, Any);
    slots { keep geometry: Geometry; keep vec: Vector; keep ty: SurfaceTy; keep outside: Outside; }
    operands {
        write dst: List = (vec.count(), Width::Least(ty.bits()), May);
        known addr: Sampled = (geometry.coordinates(), Width::Int(32), false);
    }
    rules {
        vec == Vector::V8 || vec.count() * usize::from(ty.bits()) > 128
            => refuse("a vector has at most 4 elements and 128 bits");
    }

    #[doc = "Stores to a surface."]
    Sust = form: SustForm, section "sust", since (70, Any);
    slots { keep geometry: Geometry; keep vec: Vector; keep ty: SurfaceTy; keep outside: Outside; }
    operands {
        known addr: Sampled = (geometry.coordinates(), Width::Int(32), false);
        data src: List = (vec.count(), Width::Least(ty.bits()), May);
    }
    rules {
        vec == Vector::V8 || vec.count() * usize::from(ty.bits()) > 128
            => refuse("a vector has at most 4 elements and 128 bits");
        form == SustForm::Formatted && ty != SurfaceTy::B32 => refuse("formatted elements are .b32");
    }

    #[doc = "Updates a surface."]
    Sured = form: SuredForm, section "sured", since (70, Any);
    slots { keep op: SuredOp; keep geometry: Geometry; keep ty: SuredTy; keep outside: Outside; }
    operands {
        known addr: Sampled = (geometry.coordinates(), Width::Int(32), false);
        data src: Value = ty.width();
    }
    rules {
        matches!(geometry, Geometry::A1 | Geometry::A2) => refuse("arrays of surfaces are not updated");
        !surface_takes(form, op, ty) => refuse("the operation does not take this type");
        matches!(ty, SuredTy::S64 | SuredTy::B64) || ty == SuredTy::U64 && op != SuredOp::Add
            => since(81, Any);
    }

    #[doc = "Asks for a property of a surface."]
    Suq = "suq", section "suq", since (70, Any);
    ends ["b32"]
    slots { keep query: SurfaceQuery; }
    operands { write dst: Register = Width::Bits(32); known addr: Sampled = (0, Width::Any, false); }
    rules {}

    #[doc = "Asks for a property of a texture."]
    Txq = "txq", section "txq", since (70, Any);
    ends ["b32"]
    slots { keep level: AtLevel; keep query: TexQuery; }
    operands {
        write dst: Register = Width::Bits(32);
        known addr: Sampled = (0, Width::Any, false);
        known lod: Option<Value> = (level.is(), Width::Int(32));
    }
    rules {}

    #[doc = "Reads a texture."]
    Tex = form: TexForm, section "tex", since (70, Any);
    slots { keep geometry: TexGeometry; keep vec: Vector; keep ty: Types<2, 2>; }
    operands {
        write dst: List = (vec.count(), texel(ty.at(0)), Must);
        known addr: Sampled = (geometry.coordinates(), Width::Bits(32), true);
        known more: Maybe<Packed> = (0, Width::Any);
        known further: Maybe<Packed> = (0, Width::Any);
        known last: Maybe<Packed> = (0, Width::Any);
    }
    rules {
        (vec == Vector::V2) != (ty.at(0) == Num::F16x2) || !matches!(vec, Vector::V2 | Vector::V4)
            => refuse("it reads .v4, or .v2.f16x2");
        !sampled(ty) => refuse("it reads .f32, .s32, .u32 or .f16x2 at .f32 or .s32");
        form == TexForm::Level && more.0.is_none() || form == TexForm::Grad && further.0.is_none()
            => refuse("a level or a gradient is missing");
    }

    #[doc = "Reads one component of four texels."]
    Tld4 = "tld4", section "tld4", since (70, Any);
    slots { keep component: Component; keep geometry: TexGeometry; keep vec: Vector; keep ty: Types<2, 2>; }
    operands {
        write dst: List = (vec.count(), texel(ty.at(0)), Must);
        known addr: Sampled = (geometry.coordinates(), Width::Bits(32), true);
        known offset: Maybe<Packed> = (0, Width::Any);
        known compare: Maybe<Packed> = (0, Width::Any);
    }
    rules {
        vec != Vector::V4 => refuse("it reads .v4");
        !sampled(ty) || ty.at(1) != Num::F32 => refuse("it reads .f32, .s32 or .u32 at .f32");
        !matches!(geometry, TexGeometry::D2 | TexGeometry::A2 | TexGeometry::Cube | TexGeometry::Acube)
            => refuse("four texels are of .2d, .a2d, .cube, .acube");
    }

    #[doc = "Asks what kind of object an address names."]
    Istypep = "istypep", section "istypep", since (70, Any);
    slots { keep what: ObjectTy; }
    operands { write dst: Register = Width::Bits(1); known a: Value = Width::Int(64); }
    rules {}
}

/// What a register of a texel fits.
fn texel(ty: Num) -> Width {
    Width::Of { bits: 32, float: ty == Num::F32, untyped: ty == Num::F16x2, wider: false }
}

fn sampled(ty: Types<2, 2>) -> bool {
    matches!(ty.at(0), Num::F32 | Num::S32 | Num::U32 | Num::F16x2) && matches!(ty.at(1), Num::F32 | Num::S32)
}

fn surface_takes(form: SuredForm, op: SuredOp, ty: SuredTy) -> bool {
    use SuredTy::*;
    match (form, op) {
        (SuredForm::Bytes, SuredOp::Add) => matches!(ty, U32 | S32 | U64),
        (SuredForm::Bytes, SuredOp::Min | SuredOp::Max) => matches!(ty, U32 | S32 | U64 | S64),
        (SuredForm::Bytes, SuredOp::And | SuredOp::Or) => ty == B32,
        (SuredForm::Formatted, SuredOp::Min | SuredOp::Max) => matches!(ty, B32 | B64),
        (SuredForm::Formatted, SuredOp::Add | SuredOp::And | SuredOp::Or) => ty == B32,
    }
}
