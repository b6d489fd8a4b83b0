//! Words of textures and surfaces.

use crate::operand::Width;

words! {
    /// Geometry of a surface.
    Geometry { D1 = 0 "1d"; D2 = 1 "2d"; D3 = 2 "3d"; A1 = 3 "a1d"; A2 = 4 "a2d"; }
    /// Geometry of a texture.
    TexGeometry {
        D1 = 0 "1d"; D2 = 1 "2d"; D3 = 2 "3d"; A1 = 3 "a1d"; A2 = 4 "a2d"; Cube = 5 "cube";
        Acube = 6 "acube"; Ms = 7 "2dms"; Ams = 8 "a2dms";
    }
    /// Elements of a surface.
    SurfaceTy { B8 = 0 "b8"; B16 = 1 "b16"; B32 = 2 "b32"; B64 = 3 "b64"; }
    /// Elements of a reduction on a surface.
    SuredTy { U32 = 0 "u32"; U64 = 1 "u64"; S32 = 2 "s32"; B32 = 3 "b32"; S64 = 4 "s64"; B64 = 5 "b64"; }
    /// What it does.
    SuredOp { Add = 0 "add"; Min = 1 "min"; Max = 2 "max"; And = 3 "and"; Or = 4 "or"; }
    /// What happens outside.
    Outside { Trap = 0 "trap"; Clamp = 1 "clamp"; Zero = 2 "zero"; }
    /// Elements as bytes or as formatted values.
    SustForm { Bytes = 0 "sust.b"; Formatted = 1 "sust.p"; }
    /// The same of a reduction.
    SuredForm { Bytes = 0 "sured.b"; Formatted = 1 "sured.p"; }
    /// Which level a texture is read at.
    TexForm { Auto = 0 "tex"; Base = 1 "tex.base"; Level = 2 "tex.level"; Grad = 3 "tex.grad"; }
    /// What of a texture or surface is asked for.
    TexQuery {
        Width = 0 "width"; Height = 1 "height"; Depth = 2 "depth"; DataType = 3 "channel_data_type";
        Order = 4 "channel_order";
        Normalized = 5 "normalized_coords"; ArraySize = 6 "array_size"; Levels = 7 "num_mipmap_levels";
        Samples = 8 "num_samples";
        Filter = 9 "filter_mode"; Addr0 = 10 "addr_mode_0"; Addr1 = 11 "addr_mode_1";
        Addr2 = 12 "addr_mode_2"; Unnormalized = 13 "force_unnormalized_coords";
        Layout = 14 "memory_layout";
    }
    /// What of a surface is asked for.
    SurfaceQuery {
        Width = 0 "width"; Height = 1 "height"; Depth = 2 "depth"; DataType = 3 "channel_data_type";
        Order = 4 "channel_order"; ArraySize = 6 "array_size"; Layout = 14 "memory_layout";
    }
    /// Which component four texels give.
    Component { R = 0 "r"; G = 1 "g"; B = 2 "b"; A = 3 "a"; }
    /// What kind of object an address names.
    ObjectTy { Texref = 0 "texref"; Samplerref = 1 "samplerref"; Surfref = 2 "surfref"; }
}

flags! {
    AtLevel = "level";
}

impl Geometry {
    /// How many coordinates stand in braces.
    #[must_use]
    pub fn coordinates(self) -> usize {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1 => 2,
            Geometry::D3 | Geometry::A2 => 4,
        }
    }
}

impl TexGeometry {
    /// How many coordinates stand in braces.
    #[must_use]
    pub fn coordinates(self) -> usize {
        match self {
            TexGeometry::D1 => 1,
            TexGeometry::D2 | TexGeometry::A1 => 2,
            TexGeometry::D3 | TexGeometry::A2 | TexGeometry::Cube | TexGeometry::Acube => 4,
            TexGeometry::Ms | TexGeometry::Ams => 4,
        }
    }
}

impl SurfaceTy {
    /// Bits of an element.
    #[must_use]
    pub fn bits(self) -> u16 {
        8 << (self as u16)
    }
}

impl SuredTy {
    /// What registers fit.
    #[must_use]
    pub fn width(self) -> Width {
        let bits = if matches!(self, SuredTy::U64 | SuredTy::S64 | SuredTy::B64) { 64 } else { 32 };
        Width::Of { bits, float: false, untyped: matches!(self, SuredTy::B32 | SuredTy::B64), wider: true }
    }
}
