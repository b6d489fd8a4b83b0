//! Words of the tensor core.

use crate::kind::Lattice;
use crate::kind::On::{Any, Only};

words! {
    /// How a commit arrives.
    ArriveOne { One = 0 "mbarrier::arrive::one"; }
    /// One CTA or a pair.
    CtaGroup { One = 0 "cta_group::1"; Two = 1 "cta_group::2"; }
    /// Shape of a piece of tensor memory.
    Shape {
        S16x64 = 0 "16x64b"; S16x128 = 1 "16x128b"; S16x256 = 2 "16x256b"; S32x32 = 3 "32x32b";
        S16x32x2 = 4 "16x32bx2";
    }
    /// How often the shape repeats.
    Times {
        X1 = 0 "x1"; X2 = 1 "x2"; X4 = 2 "x4"; X8 = 3 "x8"; X16 = 4 "x16"; X32 = 5 "x32"; X64 = 6 "x64";
        X128 = 7 "x128";
    }
    /// Whether a load that combines is compressed too.
    LdRedForm { Plain = 0 "tcgen05.ld.red"; Compress = 1 "tcgen05.ld.red.spcompress" @ (94, Only(&[107])); }
    /// What it combines with.
    MinMax { Min = 0 "min"; Max = 1 "max"; }
    /// Type of what it combines.
    LdRedTy { F32 = 0 "f32"; U32 = 1 "u32"; S32 = 2 "s32"; }
    /// Shape of a copy to tensor memory.
    CpShape {
        S128x256 = 0 "128x256b"; S4x256 = 1 "4x256b"; S128x128 = 2 "128x128b"; S64x128 = 3 "64x128b";
        S32x128 = 4 "32x128b";
    }
    /// Which warps it goes to.
    CpWarps { Pairs02 = 0 "warpx2::02_13"; Pairs01 = 1 "warpx2::01_23"; All = 2 "warpx4"; }
    /// How its elements stand in shared memory.
    CpPacked { B6 = 0 "b6x16_p32"; B4 = 1 "b4x16_p64"; }
    /// Product that keeps its second factor, or one with a sparse first factor.
    MmaWsForm { Dense = 0 "tcgen05.mma.ws"; Sparse = 1 "tcgen05.mma.ws.sp"; }
    /// What a collector does with the second factor.
    CollectorB {
        Fill0 = 0 "collector::b0::fill"; Use0 = 1 "collector::b0::use";
        LastUse0 = 2 "collector::b0::lastuse"; Discard0 = 3 "collector::b0::discard";
        Fill1 = 4 "collector::b1::fill"; Use1 = 5 "collector::b1::use";
        LastUse1 = 6 "collector::b1::lastuse"; Discard1 = 7 "collector::b1::discard";
        Fill2 = 8 "collector::b2::fill"; Use2 = 9 "collector::b2::use";
        LastUse2 = 10 "collector::b2::lastuse"; Discard2 = 11 "collector::b2::discard";
        Fill3 = 12 "collector::b3::fill"; Use3 = 13 "collector::b3::use";
        LastUse3 = 14 "collector::b3::lastuse"; Discard3 = 15 "collector::b3::discard";
    }
    /// What a commit waits for.
    CommitFor { ReadA = 0 "sync_restrict::shared::read::mma::a" @ (94, Only(&[107])); }
    /// Product, or one with a sparse first factor.
    MmaForm { Dense = 0 "tcgen05.mma"; Sparse = 1 "tcgen05.mma.sp"; }
    /// Numbers of a product.
    Kind {
        F16 = 0 "kind::f16"; Tf32 = 1 "kind::tf32"; F8f6f4 = 2 "kind::f8f6f4";
        I8 = 3 "kind::i8" @ (86, Only(&[100, 110])); Ti16 = 4 "kind::ti16" @ (94, Only(&[107]));
        Mxf8f6f4 = 5 "kind::mxf8f6f4"; Mxf4 = 6 "kind::mxf4"; Mxf4nvf4 = 7 "kind::mxf4nvf4";
    }
    /// Size of the blocks that are scaled.
    ScaleVec {
        X1 = 0 "scale_vec::1X"; X2 = 1 "scale_vec::2X"; X4 = 2 "scale_vec::4X";
        Block16 = 3 "block16" @ (88, Any); Block32 = 4 "block32" @ (88, Any);
    }
    /// What the collector does with the first factor.
    Collector {
        Fill = 0 "collector::a::fill"; Use = 1 "collector::a::use"; LastUse = 2 "collector::a::lastuse";
        Discard = 3 "collector::a::discard";
    }
    /// What it does with the second factor, which only one target keeps.
    CollectorOfB {
        Fill = 0 "collector::b::fill" @ (94, Only(&[107])); Use = 1 "collector::b::use" @ (94, Only(&[107]));
        LastUse = 2 "collector::b::lastuse" @ (94, Only(&[107]));
        Discard = 3 "collector::b::discard" @ (94, Only(&[107]));
    }
}

flags! {
    Exclusive = "exclusive" @ (94, Only(&[100, 103, 107, 110]));
    Pack = "pack::16b";
    Unpack = "unpack::16b";
    CpUnpacked = "b8x16";
    SparsePair = "sp::2:4";
    B2 = "b2";
    BlockScale = "block_scale";
    Ashift = "ashift";
}

impl Times {
    /// How many times.
    #[must_use]
    pub fn count(self) -> usize {
        1 << Lattice::tag(self)
    }
}

impl Shape {
    /// Registers of a thread for one repetition, halved.
    #[must_use]
    pub fn registers(self, times: Times) -> usize {
        let halves = match self {
            Shape::S16x64 | Shape::S32x32 | Shape::S16x32x2 => 1,
            Shape::S16x128 => 2,
            Shape::S16x256 => 4,
        };
        halves * times.count()
    }
}
