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
    operands { write dst: List = (vec.count(), Width::Least(ty.bits()), May); known addr: Sampled = geometry.coordinates(); }
    rules { vec == Vector::V8 || vec.count() * usize::from(ty.bits()) > 128 => refuse("a vector has at most 4 elements and 128 bits"); }

    #[doc = "Stores to a surface."]
    Sust = form: SustForm, section "sust", since (70, Any);
    slots { keep geometry: Geometry; keep vec: Vector; keep ty: SurfaceTy; keep outside: Outside; }
    operands { known addr: Sampled = geometry.coordinates(); data src: List = (vec.count(), Width::Least(ty.bits()), May); }
    rules {
        vec == Vector::V8 || vec.count() * usize::from(ty.bits()) > 128 => refuse("a vector has at most 4 elements and 128 bits");
        form == SustForm::Formatted && ty != SurfaceTy::B32 => refuse("formatted elements are .b32");
    }

    #[doc = "Updates a surface."]
    Sured = form: SuredForm, section "sured", since (70, Any);
    slots { keep op: SuredOp; keep geometry: Geometry; keep ty: SuredTy; keep outside: Outside; }
    operands { known addr: Sampled = geometry.coordinates(); data src: Value = ty.width(); }
    rules {
        matches!(geometry, Geometry::A1 | Geometry::A2) => refuse("arrays of surfaces are not updated");
        !surface_takes(form, op, ty) => refuse("the operation does not take this type");
        matches!(ty, SuredTy::S64 | SuredTy::B64) || ty == SuredTy::U64 && op != SuredOp::Add => since(81, Any);
    }

    #[doc = "Asks for a property of a surface."]
    Suq = "suq", section "suq", since (70, Any);
    ends ["b32"]
    slots { keep query: SurfaceQuery; } operands { write dst: Register = Width::Bits(32); known addr: Sampled = 0; } rules {}

    #[doc = "Asks for a property of a texture."]
    Txq = "txq", section "txq", since (70, Any);
    ends ["b32"]
    slots { keep level: AtLevel; keep query: TexQuery; }
    operands { write dst: Register = Width::Bits(32); known addr: Sampled = 0; known lod: Option<Value> = (level.is(), Width::Int(32)); }
    rules {}

    #[doc = "Reads a texture."]
    Tex = form: TexForm, section "tex", since (70, Any);
    slots { keep geometry: TexGeometry; keep vec: Vector; keep ty: Types<2, 2>; }
    operands {
        write dst: List = (0, Width::Least(32), Must);
        known addr: Sampled = 0;
        known more: Maybe<Packed> = (0, Width::Any);
        known further: Maybe<Packed> = (0, Width::Any);
        known last: Maybe<Packed> = (0, Width::Any);
    }
    rules { !matches!(vec, Vector::V2 | Vector::V4) => refuse("it reads .v4, or .v2.f16x2"); }

    #[doc = "Reads one component of four texels."]
    Tld4 = "tld4", section "tld4", since (70, Any);
    slots { keep component: Component; keep geometry: TexGeometry; keep vec: Vector; keep ty: Types<2, 2>; }
    operands { write dst: List = (0, Width::Least(32), Must); known addr: Sampled = 0; known offset: Maybe<Packed> = (0, Width::Any); known compare: Maybe<Packed> = (0, Width::Any); }
    rules { vec != Vector::V4 => refuse("it reads .v4"); }

    #[doc = "Asks what kind of object an address names."]
    Istypep = "istypep", section "istypep", since (70, Any);
    slots { keep what: ObjectTy; } operands { write dst: Register = Width::Bits(1); known a: Value = Width::Bits(64); } rules {}
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
