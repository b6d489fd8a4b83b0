//! Words of addresses, of matrices in registers, and of tensor maps.

use crate::kind::On::{Any, From as Sm};
use crate::operand::Width;

words! {
    /// A space with a window in the generic one.
    WindowSpace {
        Global = 1 "global"; SharedCta = 2 "shared", "shared::cta" @ (78, Any);
        SharedCluster = 3 "shared::cluster" @ (80, Sm(90));
        Local = 4 "local"; Const = 5 "const"; Param = 6 "param" @ (77, Any), "param::entry" @ (83, Any);
    }
    /// Size of an address.
    AddressTy { U32 = 0 "u32"; U64 = 1 "u64"; }
    /// Size of an address in a cluster. The sign makes no difference.
    ClusterTy { U32 = 0 "u32"; U64 = 1 "u64"; S32 = 2 "s32"; S64 = 3 "s64"; }
    /// Shape of a matrix that a warp loads or stores.
    MatrixShape {
        M8n8 = 0 "m8n8"; M16n16 = 1 "m16n16" @ (86, Sm(100)); M8n16 = 2 "m8n16";
        M16n8 = 3 "m16n8" @ (86, Sm(100));
    }
    /// How many matrices.
    MatrixCount { X1 = 0 "x1"; X2 = 1 "x2"; X4 = 2 "x4"; }
    /// Elements of a matrix.
    MatrixTy { B16 = 0 "b16"; B8 = 1 "b8"; B8x16 = 2 "b8x16" @ (86, Sm(100)); S8 = 3 "s8" @ (94, Sm(90)); }
    /// Elements as they stand in memory.
    PackedTy { B4 = 0 "b4x16_p64"; B6 = 1 "b6x16_p32"; S4 = 2 "s4"; }
    /// Field of a tensor map.
    MapField {
        GlobalAddress = 0 "global_address"; Rank = 1 "rank"; BoxDim = 2 "box_dim"; GlobalDim = 3 "global_dim";
        GlobalStride = 4 "global_stride"; ElementStride = 5 "element_stride"; Elemtype = 6 "elemtype";
        InterleaveLayout = 7 "interleave_layout"; SwizzleMode = 8 "swizzle_mode"; FillMode = 9 "fill_mode";
        SwizzleAtomicity = 10 "swizzle_atomicity" @ (86, Sm(100));
    }
    /// Size of a field.
    MapTy { B32 = 0 "b32"; B64 = 1 "b64"; }
    /// Size of a tensor map.
    MapSize { B1024 = 0 "b1024"; }
    /// Space of a tensor map.
    MapSpace default Generic { Generic = 0; Global = 1 "global"; SharedCta = 2 "shared::cta"; }
}

flags! {
    To = "to";
    InCluster = "shared::cluster";
    Trans = "trans";
}

impl AddressTy {
    /// Bits of an address.
    #[must_use]
    pub fn bits(self) -> u16 {
        if self == AddressTy::U32 { 32 } else { 64 }
    }
    /// What registers fit.
    #[must_use]
    pub fn width(self) -> Width {
        Width::Int(self.bits())
    }
}

impl ClusterTy {
    /// What registers fit.
    #[must_use]
    pub fn width(self) -> Width {
        Width::Int(if matches!(self, ClusterTy::U32 | ClusterTy::S32) { 32 } else { 64 })
    }
}

impl MatrixCount {
    /// How many matrices.
    #[must_use]
    pub fn count(self) -> usize {
        1 << (self as usize)
    }
}

impl MapField {
    /// Whether it has one entry a dimension.
    #[must_use]
    pub fn indexed(self) -> bool {
        matches!(
            self,
            MapField::BoxDim | MapField::GlobalDim | MapField::GlobalStride | MapField::ElementStride
        )
    }
    /// The greatest number of a field whose values are numbered and must be known.
    #[must_use]
    pub fn numbered(self) -> Option<i64> {
        match self {
            MapField::Elemtype => Some(15),
            MapField::InterleaveLayout => Some(2),
            MapField::SwizzleMode => Some(4),
            MapField::FillMode => Some(1),
            MapField::SwizzleAtomicity => Some(3),
            MapField::GlobalAddress | MapField::Rank | MapField::BoxDim | MapField::GlobalDim => None,
            MapField::GlobalStride | MapField::ElementStride => None,
        }
    }
}
