//! Words of accesses to many devices at once.

use crate::kind::On::{Any, From as Sm};
use crate::operand::Width;
use crate::slot::Scoped;

words! {
    /// Type of a value on many devices.
    MultiTy {
        B32 = 0 "b32"; B64 = 1 "b64"; U32 = 2 "u32"; U64 = 3 "u64"; S32 = 4 "s32"; S64 = 5 "s64";
        F32 = 6 "f32"; F64 = 7 "f64";
        F16 = 8 "f16"; F16x2 = 9 "f16x2"; Bf16 = 10 "bf16"; Bf16x2 = 11 "bf16x2";
        E4m3x2 = 12 "e4m3x2" @ (86, Sm(100));
        E4m3x4 = 13 "e4m3x4" @ (86, Sm(100)); E5m2x2 = 14 "e5m2x2" @ (86, Sm(100));
        E5m2x4 = 15 "e5m2x4" @ (86, Sm(100));
    }
    /// How the values of many devices become one.
    MultiOp { Add = 0 "add"; Min = 1 "min"; Max = 2 "max"; And = 3 "and"; Or = 4 "or"; Xor = 5 "xor"; }
    /// In which precision they are added.
    Acc { F16 = 0 "acc::f16"; F32 = 1 "acc::f32" @ (82, Any); }
    /// Order of `multimem.ld_reduce`.
    MultiLoadOrder default Weak {
        Weak = 0 "weak"; Relaxed = 1 "relaxed" => Weak; Acquire = 2 "acquire" => Relaxed;
    }
    /// Order of `multimem.st`.
    MultiStoreOrder default Weak {
        Weak = 0 "weak"; Relaxed = 1 "relaxed" => Weak; Release = 2 "release" => Relaxed;
    }
    /// Order of `multimem.red`; neither word stands where it is relaxed on the device.
    MultiRedOrder default Usual { Usual = 0; Relaxed = 1 "relaxed"; Release = 2 "release" => Relaxed; }
    /// Order of `st.async`.
    StAsyncOrder default Weak { Weak = 0 "weak"; Release = 1 "release" @ (87, Sm(100)) => Weak; }
    /// Order of `red.async`.
    RedAsyncOrder { Relaxed = 0 "relaxed"; Release = 1 "release" @ (87, Sm(100)) => Relaxed; }
    /// How an asynchronous access tells that it is complete.
    Bytes { Mbarrier = 0 "mbarrier::complete_tx::bytes"; }
    /// Space of an asynchronous access.
    AsyncSpace default Generic {
        Generic = 0; Global = 1 "global" @ (87, Sm(100)); SharedCta = 2 "shared", "shared::cta";
        SharedCluster = 3 "shared::cluster";
    }
}

impl Scoped for MultiLoadOrder {
    const LOOSE: &'static [Self] = &[MultiLoadOrder::Weak];
}
impl Scoped for MultiStoreOrder {
    const LOOSE: &'static [Self] = &[MultiStoreOrder::Weak];
}
impl Scoped for MultiRedOrder {
    const LOOSE: &'static [Self] = &[MultiRedOrder::Usual];
}
impl Scoped for StAsyncOrder {
    const LOOSE: &'static [Self] = &[StAsyncOrder::Weak];
}

impl MultiTy {
    /// Bits of a value.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            MultiTy::F16 | MultiTy::Bf16 | MultiTy::E4m3x2 | MultiTy::E5m2x2 => 16,
            MultiTy::B64 | MultiTy::U64 | MultiTy::S64 | MultiTy::F64 => 64,
            MultiTy::B32 | MultiTy::U32 | MultiTy::S32 | MultiTy::F32 | MultiTy::F16x2 | MultiTy::Bf16x2 => {
                32
            }
            MultiTy::E4m3x4 | MultiTy::E5m2x4 => 32,
        }
    }
    /// What registers fit.
    #[must_use]
    pub fn fit(self) -> Width {
        if self.half() || self.eighth() {
            return Width::Half(self.bits());
        }
        let float = matches!(self, MultiTy::F32 | MultiTy::F64);
        Width::Of {
            bits: self.bits(),
            float,
            untyped: matches!(self, MultiTy::B32 | MultiTy::B64),
            wider: false,
        }
    }
    /// Numbers of 16 bits, alone or two of them.
    #[must_use]
    pub fn half(self) -> bool {
        matches!(self, MultiTy::F16 | MultiTy::F16x2 | MultiTy::Bf16 | MultiTy::Bf16x2)
    }
    /// Numbers of 8 bits, two or four of them.
    #[must_use]
    pub fn eighth(self) -> bool {
        matches!(self, MultiTy::E4m3x2 | MultiTy::E4m3x4 | MultiTy::E5m2x2 | MultiTy::E5m2x4)
    }
}
