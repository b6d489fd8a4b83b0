//! Numbers in encodings: one for each word of an instruction or a condition that is a plain choice.
//!
//! Contract: a number never changes and is never used for another word of its type, because it orders the threads of a
//! canonical program. A new word gets the next number.

use crate::ir::{AluOp, AtomOp, BarRed, CmpOp, FenceOrder, Proxy, Quantifier, RmwOrder, Scope, Space};

/// What has a number.
pub(super) trait Tag {
    /// The number.
    fn tag(self) -> u8;
}

macro_rules! tags {
    ($($of:ident { $($word:ident = $tag:literal),+ $(,)? })+) => { $(
        impl Tag for $of {
            fn tag(self) -> u8 {
                match self { $($of::$word => $tag),+ }
            }
        }
    )+ };
}

tags! {
    Space { Generic = 0, Global = 1, SharedCta = 2, SharedCluster = 3, Tensor = 4 }
    Proxy { Generic = 0, Texture = 1, Surface = 2, Constant = 3, Async = 4, Tensormap = 5 }
    Scope { Cta = 0, Cluster = 1, Gpu = 2, Sys = 3 }
    RmwOrder { Relaxed = 0, Acquire = 1, Release = 2, AcqRel = 3, SeqCst = 4 }
    FenceOrder { Acquire = 0, Release = 1, AcqRel = 2, Sc = 3 }
    AtomOp {
        Add = 0, Sub = 1, And = 2, Or = 3, Xor = 4, Min = 5, Max = 6, Inc = 7, Dec = 8, Exch = 9, Cas = 10
    }
    AluOp {
        Add = 0, Sub = 1, Mul = 2, Div = 3, Rem = 4, And = 5, Or = 6, Xor = 7, Shl = 8, Shr = 9, Min = 10, Max = 11
    }
    CmpOp { Eq = 0, Ne = 1, Lt = 2, Le = 3, Gt = 4, Ge = 5 }
    BarRed { Popc = 0, And = 1, Or = 2 }
    Quantifier { Exists = 0, NotExists = 1, ForAll = 2 }
}
