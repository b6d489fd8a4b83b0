//! Words of products in registers.

use crate::kind::On::{Any, Only};

words! {
    /// Product of a warp group, or one with a sparse first factor.
    WgmmaForm { Dense = 0 "wgmma.mma_async"; Sparse = 1 "wgmma.mma_async.sp" @ (82, Any); }
    /// Product of a warp, or one with a sparse first factor.
    WarpMmaForm {
        Dense = 0 "mma"; Sparse = 1 "mma.sp" @ (71, Any); Ordered = 2 "mma.sp::ordered_metadata" @ (85, Any);
    }
    /// What a warp loads for a product.
    WmmaForm { A = 0 "wmma.load.a"; B = 1 "wmma.load.b"; C = 2 "wmma.load.c"; }
    /// Order of the elements of a matrix.
    Layout2 { Row = 0 "row"; Col = 1 "col"; }
    /// How bits are multiplied.
    BitOp { And = 0 "and"; Xor = 1 "xor"; }
    /// Numbers of a product of a warp.
    WarpKind {
        Mxf8f6f4 = 0 "kind::mxf8f6f4" @ (87, Only(&[120])); Mxf4 = 1 "kind::mxf4" @ (87, Only(&[120]));
        Mxf4nvf4 = 2 "kind::mxf4nvf4" @ (87, Only(&[120]));
        F8f6f4 = 3 "kind::f8f6f4" @ (87, Only(&[120]));
    }
    /// Type of the scales.
    ScaleTy { Ue8m0 = 0 "ue8m0"; Ue4m3 = 1 "ue4m3"; }
}

flags! {
    Popc = "popc";
}
