//! Spaces, types, operations and cache hints of memory accesses.

use super::{AsyncSpace, GlobalSpace, MapSpace, PrefetchSpace};
use crate::kind::Lattice;
use crate::kind::On::{Any, From as Sm};
use crate::operand::Width;

words! {
    /// State space.
    Space default Generic {
        Generic = 0;
        Global = 1 "global";
        SharedCta = 2 "shared", "shared::cta" @ (78, Any);
        SharedCluster = 3 "shared::cluster" @ (80, Sm(90));
        Local = 4 "local";
        Const = 5 "const";
        Param = 6 "param", "param::entry" @ (83, Any), "param::func" @ (83, Any);
    }
    /// State space of an mbarrier.
    BarrierSpace default Generic {
        Generic = 0;
        SharedCta = 2 "shared", "shared::cta" @ (78, Any);
        SharedCluster = 3 "shared::cluster" @ (80, Sm(90));
    }
    /// Shared memory of this CTA.
    CtaSpace default Generic { Generic = 0; SharedCta = 2 "shared::cta"; }
    /// Shared memory of this CTA, by its old name too.
    SharedSpace default Generic { Generic = 0; SharedCta = 2 "shared", "shared::cta" @ (78, Any); }
    /// Space of a matrix of a warp.
    WmmaSpace default Generic {
        Generic = 0; Global = 1 "global"; SharedCta = 2 "shared", "shared::cta" @ (78, Any);
    }
    /// Shared memory of the cluster.
    ClusterSpace default Generic { Generic = 0; SharedCluster = 3 "shared::cluster"; }
    /// One end of a bulk copy.
    BulkSpace { Global = 1 "global"; SharedCta = 2 "shared::cta"; SharedCluster = 3 "shared::cluster"; }
    /// Destination of a small copy.
    SmallSpace { SharedCta = 2 "shared", "shared::cta"; }
    /// Type of a value.
    Ty {
        B8 = 0 "b8"; B16 = 1 "b16"; B32 = 2 "b32"; B64 = 3 "b64"; B128 = 4 "b128";
        U8 = 5 "u8"; U16 = 6 "u16"; U32 = 7 "u32"; U64 = 8 "u64";
        S8 = 9 "s8"; S16 = 10 "s16"; S32 = 11 "s32"; S64 = 12 "s64";
        F32 = 13 "f32"; F64 = 14 "f64"; F16 = 15 "f16"; F16x2 = 16 "f16x2";
        Bf16 = 17 "bf16" @ (80, Sm(90)); Bf16x2 = 18 "bf16x2" @ (80, Sm(90));
    }
    /// Elements of a vector.
    Vector default One { One = 0; V2 = 1 "v2"; V4 = 2 "v4"; V8 = 3 "v8"; }
    /// What `atom` does.
    AtomOp {
        Add = 0 "add"; And = 1 "and"; Or = 2 "or"; Xor = 3 "xor"; Min = 4 "min"; Max = 5 "max";
        Inc = 6 "inc"; Dec = 7 "dec"; Exch = 8 "exch"; Cas = 9 "cas";
    }
    /// What `red` does.
    RedOp {
        Add = 0 "add"; And = 1 "and"; Or = 2 "or"; Xor = 3 "xor"; Min = 4 "min"; Max = 5 "max";
        Inc = 6 "inc"; Dec = 7 "dec";
    }
    /// Cache operator of a load.
    LoadCache { Ca = 0 "ca"; Cg = 1 "cg"; Cs = 2 "cs"; Lu = 3 "lu"; Cv = 4 "cv"; }
    /// Cache operator of a store.
    StoreCache { Wb = 0 "wb"; Cg = 1 "cg"; Cs = 2 "cs"; Wt = 3 "wt"; }
    /// Priority in the first level.
    L1 {
        Normal = 0 "L1::evict_normal" @ (74, Any); Unchanged = 1 "L1::evict_unchanged" @ (74, Any);
        First = 2 "L1::evict_first" @ (74, Any); Last = 3 "L1::evict_last" @ (74, Any);
        NoAllocate = 4 "L1::no_allocate" @ (74, Any);
    }
    /// Priority in the second level.
    L2 {
        Normal = 0 "L2::evict_normal" @ (88, Sm(100)); First = 1 "L2::evict_first" @ (88, Sm(100));
        Last = 2 "L2::evict_last" @ (88, Sm(100));
    }
    /// Size of a prefetch.
    Prefetch {
        L1b32 = 0 "L1::32B" @ (74, Any); B64 = 1 "L2::64B" @ (74, Any); B128 = 2 "L2::128B" @ (74, Any);
        B256 = 3 "L2::256B" @ (74, Any);
    }
}

flags! {
    Mmio = "mmio";
    CacheHint = "L2::cache_hint" @ (74, Any);
    Noftz = "noftz";
    WeakWord = "weak";
    Nc = "nc";
}

impl Ty {
    /// What registers fit; wider ones too, if the instruction extends or truncates.
    #[must_use]
    pub fn fit(self, wider: bool) -> Width {
        if self.half() {
            return Width::Half(self.bits());
        }
        Width::Of { bits: self.bits(), float: self.float(), untyped: self.untyped(), wider }
    }
    /// Bits of a value.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            Ty::B8 | Ty::U8 | Ty::S8 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F32 | Ty::F16x2 | Ty::Bf16x2 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 64,
            Ty::B128 => 128,
        }
    }
    /// Floating point of a whole register.
    #[must_use]
    pub fn float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }
    /// Bits without a meaning.
    #[must_use]
    pub fn untyped(self) -> bool {
        matches!(self, Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128)
    }
    /// Halves and pairs of halves.
    #[must_use]
    pub fn half(self) -> bool {
        matches!(self, Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2)
    }
    /// Whether two halves are packed.
    #[must_use]
    pub fn packed(self) -> bool {
        matches!(self, Ty::F16x2 | Ty::Bf16x2)
    }
}

impl Vector {
    /// How many elements.
    #[must_use]
    pub fn count(self) -> usize {
        1 << Lattice::tag(self)
    }
}

impl Space {
    /// Whether an access with this qualifier may name a variable of that space.
    #[must_use]
    pub fn reaches(self, home: Space) -> bool {
        self == home
            || (self == Space::Generic && !matches!(home, Space::Param | Space::Const))
            || (self == Space::SharedCluster && home == Space::SharedCta)
    }
    /// Whether it is shared memory.
    #[must_use]
    pub fn shared(self) -> bool {
        matches!(self, Space::SharedCta | Space::SharedCluster)
    }
    /// Global memory or the generic window.
    #[must_use]
    pub fn wide(self) -> bool {
        matches!(self, Space::Generic | Space::Global)
    }
}
/// Each kind of spaces is a part of [`Space`], with the same names.
macro_rules! spaces {
    ($($kind:ident: $($space:ident)+;)+) => { $(
        impl From<$kind> for Space {
            fn from(space: $kind) -> Space {
                match space { $($kind::$space => Space::$space,)+ }
            }
        }
    )+ };
}

spaces! {
    BarrierSpace: Generic SharedCta SharedCluster;
    BulkSpace: Global SharedCta SharedCluster;
    CtaSpace: Generic SharedCta;
    SharedSpace: Generic SharedCta;
    ClusterSpace: Generic SharedCluster;
    PrefetchSpace: Generic Global Local Const Param;
    GlobalSpace: Generic Global;
    MapSpace: Generic Global SharedCta;
    WmmaSpace: Generic Global SharedCta;
    AsyncSpace: Generic Global SharedCta SharedCluster;
}

/// Which types an operation of `atom`, `red` takes.
#[must_use]
pub fn takes(op: AtomOp, ty: Ty) -> bool {
    use Ty::*;
    match op {
        AtomOp::Add => matches!(ty, U32 | S32 | U64 | F32 | F64) || ty.half(),
        AtomOp::Min | AtomOp::Max => matches!(ty, U32 | S32 | U64 | S64) || ty.half(),
        AtomOp::And | AtomOp::Or | AtomOp::Xor => matches!(ty, B32 | B64),
        AtomOp::Inc | AtomOp::Dec => ty == U32,
        AtomOp::Exch => matches!(ty, B32 | B64 | B128),
        AtomOp::Cas => matches!(ty, B16 | B32 | B64 | B128),
    }
}
impl From<RedOp> for AtomOp {
    fn from(op: RedOp) -> AtomOp {
        match op {
            RedOp::Add => AtomOp::Add,
            RedOp::And => AtomOp::And,
            RedOp::Or => AtomOp::Or,
            RedOp::Xor => AtomOp::Xor,
            RedOp::Min => AtomOp::Min,
            RedOp::Max => AtomOp::Max,
            RedOp::Inc => AtomOp::Inc,
            RedOp::Dec => AtomOp::Dec,
        }
    }
}
