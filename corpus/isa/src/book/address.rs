//! Addresses and windows; matrices between shared memory and registers; tensor maps.

use crate::entry::refuse;
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;

instructions! {
    #[doc = "Asks whether a generic address lies in a window."]
    Isspacep = "isspacep", section "isspacep", since (70, Any);
    slots { keep space: WindowSpace; }
    operands { write dst: Register = Width::Bits(1); known a: Value = Width::Either(32, 64); }
    rules {}

    #[doc = "Makes a generic address of one of a window, or the other way."]
    Cvta = "cvta", section "cvta", since (70, Any);
    slots { keep to: To; keep space: WindowSpace; keep ty: AddressTy; }
    operands { write dst: Register = ty.width(); known a: Source = ty.width(); }
    rules {}

    #[doc = "Makes the address of the same variable in another CTA of the cluster."]
    Mapa = "mapa", section "mapa", since (80, Sm(90));
    slots { keep space: InCluster; keep ty: ClusterTy; }
    operands {
        write dst: Register = ty.width();
        known a: Source = ty.width();
        known cta: Value = Width::Int(32);
    }
    rules {}

    #[doc = "Tells the CTA of the cluster in which an address lies."]
    Getctarank = "getctarank", section "getctarank", since (80, Sm(90));
    slots { keep space: InCluster; keep ty: ClusterTy; }
    operands { write dst: Register = Width::Int(32); known a: Source = ty.width(); }
    rules {}

    #[doc = "Loads matrices from shared memory, each lane a piece."]
    LdMatrix = "ldmatrix", section "ldmatrix", since (70, Any);
    begins ["sync", "aligned"]
    slots {
        keep shape: MatrixShape;
        keep count: MatrixCount;
        keep trans: Trans;
        keep space: SharedSpace;
        keep ty: MatrixTy;
        keep packed: Option<PackedTy>;
    }
    operands {
        write dst: List = (count.count() * if shape == MatrixShape::M16n16 { 2 } else { 1 }, Width::Bits(32),
            Must);
        known addr: Address = space.into();
    }
    rules {
        shape == MatrixShape::M16n8 => refuse("the shapes are .m8n8, .m16n16 and .m8n16");
        shape == MatrixShape::M16n16 && (!trans.is() || count == MatrixCount::X4)
            => refuse("`.m16n16` goes with .trans and .x1 or .x2");
        shape == MatrixShape::M8n16 && trans.is() => refuse("`.m8n16` goes with no .trans");
        !matrix_loads(shape, ty, packed) => refuse("the shape does not take these elements");
    }

    #[doc = "Stores matrices to shared memory, each lane a piece."]
    StMatrix = "stmatrix", section "stmatrix", since (80, Sm(90));
    begins ["sync", "aligned"]
    slots {
        keep shape: MatrixShape;
        keep count: MatrixCount;
        keep trans: Trans;
        keep space: SharedSpace;
        keep ty: MatrixTy;
    }
    operands { known addr: Address = space.into(); data src: List = (count.count(), Width::Bits(32), Must); }
    rules {
        !matches!((shape, ty), (MatrixShape::M8n8, MatrixTy::B16) | (MatrixShape::M16n8, MatrixTy::B8))
            => refuse("it is .m8n8.b16 or .m16n8.b8");
        src.is_numbers() => refuse("a register is among them");
        shape == MatrixShape::M16n8 && !trans.is() => refuse("`.m16n8` goes with .trans");
    }

    #[doc = "Transposes a matrix in registers."]
    MovMatrix = "movmatrix", section "movmatrix", since (78, Any);
    begins ["sync", "aligned", "m8n8", "trans", "b16"]
    slots {} operands { write dst: Register = Width::Bits(32); data a: Register = Width::Bits(32); } rules {}

    #[doc = "Writes a field of a tensor map."]
    MapReplace = "tensormap.replace", section "tensormap-replace", since (83, Sm(90));
    begins ["tile"]
    slots { keep field: MapField; keep space: MapSpace; keep size: MapSize; keep ty: MapTy; }
    operands {
        known addr: Address = space.into();
        known ordinal: Option<Number> = (field.indexed(), ());
        known value: Value = Width::Bits(if ty == MapTy::B32 { 32 } else { 64 });
    }
    rules {
        (ty == MapTy::B64) != matches!(field, MapField::GlobalAddress | MapField::GlobalStride)
            => refuse("addresses and strides have .b64, other fields .b32");
        ordinal.is_some_and(|n| !(0..5).contains(&n.0)) => refuse("a tensor has five dimensions");
        field.numbered().is_some() && value.imm().is_none() => refuse("this field takes a number");
        field.numbered().zip(value.imm()).is_some_and(|(most, n)| !(0..=most).contains(&n))
            => refuse("this field has no such value");
    }

    #[doc = "Copies a tensor map from shared to global memory, and publishes it to the proxy of tensor maps."]
    MapCopy = "tensormap.cp_fenceproxy", section "tensormap-cp-fenceproxy", since (83, Sm(90));
    begins ["global", "shared::cta", "tensormap::generic", "release"] ends ["sync", "aligned"]
    slots { keep scope: Scope; }
    operands {
        known dst: Address = Space::Global;
        known src: Unified = Space::SharedCta;
        known bytes: Number = ();
    }
    rules { bytes.0 != 128 => refuse("a tensor map has 128 bytes"); }
}

fn matrix_loads(shape: MatrixShape, ty: MatrixTy, packed: Option<PackedTy>) -> bool {
    matches!(
        (shape, ty, packed),
        (MatrixShape::M8n8, MatrixTy::B16, None)
            | (MatrixShape::M16n16, MatrixTy::B8, None)
            | (MatrixShape::M16n16 | MatrixShape::M8n16, MatrixTy::B8x16, Some(PackedTy::B4 | PackedTy::B6))
            | (MatrixShape::M8n16, MatrixTy::S8, Some(PackedTy::S4))
    )
}
