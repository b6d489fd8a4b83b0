//! Types and words of arithmetic.

use crate::kind::On::{Any, From as Sm};
use crate::operand::Width;

words! {
    /// Type of a number, of several in one register, or of bits.
    Num {
        B32 = 0 "b32"; Pred = 1 "pred"; B1 = 2 "b1"; B8 = 3 "b8"; B16 = 4 "b16"; B64 = 5 "b64";
        B128 = 6 "b128";
        U4 = 7 "u4"; U8 = 8 "u8"; U16 = 9 "u16"; U32 = 10 "u32"; U64 = 11 "u64"; S4 = 12 "s4"; S8 = 13 "s8";
        S16 = 14 "s16";
        S32 = 15 "s32"; S64 = 16 "s64"; F16 = 17 "f16"; F16x2 = 18 "f16x2"; Bf16 = 19 "bf16";
        Bf16x2 = 20 "bf16x2";
        F32 = 21 "f32"; F64 = 22 "f64"; Tf32 = 23 "tf32"; F32x2 = 24 "f32x2" @ (86, Sm(100));
        E4m3 = 25 "e4m3"; E5m2 = 26 "e5m2"; E4m3x2 = 27 "e4m3x2"; E5m2x2 = 28 "e5m2x2"; E4m3x4 = 29 "e4m3x4";
        E5m2x4 = 30 "e5m2x4";
        E2m1 = 31 "e2m1"; E2m3 = 32 "e2m3"; E3m2 = 33 "e3m2"; E2m1x2 = 34 "e2m1x2"; E2m3x2 = 35 "e2m3x2";
        E3m2x2 = 36 "e3m2x2";
        E2m1x4 = 37 "e2m1x4"; E2m3x4 = 38 "e2m3x4"; E3m2x4 = 39 "e3m2x4"; Ue8m0x2 = 40 "ue8m0x2";
        S2f6x2 = 41 "s2f6x2";
        U16x2 = 42 "u16x2"; S16x2 = 43 "s16x2"; U8x4 = 44 "u8x4"; S8x4 = 45 "s8x4";
    }
    /// The type of the second source, where it differs.
    Mixed default Same { Same = 0; F16 = 1 "f16"; Bf16 = 2 "bf16"; }
    /// Which half of a product.
    Half { Lo = 0 "lo"; Hi = 1 "hi"; Wide = 2 "wide"; }
    /// Rounding.
    Round {
        Rn = 0 "rn"; Rz = 1 "rz"; Rm = 2 "rm"; Rp = 3 "rp"; Rna = 4 "rna"; Rs = 5 "rs" @ (86, Any);
        Rni = 6 "rni"; Rzi = 7 "rzi"; Rmi = 8 "rmi"; Rpi = 9 "rpi";
    }
    /// How exact a result is.
    Exact { Approx = 0 "approx"; Full = 1 "full"; }
    /// Direction of a shift of two registers.
    Way { L = 0 "l"; R = 1 "r"; }
    /// What happens to bits that go out.
    Over { Wrap = 0 "wrap"; Clamp = 1 "clamp"; }
    /// How bytes are chosen.
    Bytewise { F4e = 0 "f4e"; B4e = 1 "b4e"; Rc8 = 2 "rc8"; Ecl = 3 "ecl"; Ecr = 4 "ecr"; Rc16 = 5 "rc16"; }
    /// Comparison.
    Cmp {
        Eq = 0 "eq"; Ne = 1 "ne"; Lt = 2 "lt"; Le = 3 "le"; Gt = 4 "gt"; Ge = 5 "ge"; Lo = 6 "lo";
        Ls = 7 "ls"; Hi = 8 "hi"; Hs = 9 "hs";
        Equ = 10 "equ"; Neu = 11 "neu"; Ltu = 12 "ltu"; Leu = 13 "leu"; Gtu = 14 "gtu"; Geu = 15 "geu";
        Num = 16 "num"; Nan = 17 "nan";
    }
    /// How a comparison joins a predicate.
    Join { And = 0 "and"; Or = 1 "or"; Xor = 2 "xor"; }
    /// Class of a number.
    NumberClass {
        Finite = 0 "finite"; Infinite = 1 "infinite"; Number = 2 "number"; NotANumber = 3 "notanumber";
        Normal = 4 "normal"; Subnormal = 5 "subnormal";
    }

    /// An operation of two sources.
    BinaryForm {
        Add = 0 "add"; Sub = 1 "sub"; Mul = 2 "mul"; Div = 3 "div"; Rem = 4 "rem"; Min = 5 "min";
        Max = 6 "max"; And = 7 "and";
        Or = 8 "or"; Xor = 9 "xor"; Shl = 10 "shl"; Shr = 11 "shr"; Mul24 = 12 "mul24"; Addc = 13 "addc";
        Subc = 14 "subc";
        Copysign = 15 "copysign"; Bmsk = 16 "bmsk" @ (76, Any); Szext = 17 "szext" @ (76, Any);
    }
    /// An operation of one source.
    UnaryForm {
        Abs = 0 "abs"; Neg = 1 "neg"; Not = 2 "not"; Cnot = 3 "cnot"; Popc = 4 "popc"; Clz = 5 "clz";
        Brev = 6 "brev"; Bfind = 7 "bfind";
        Sqrt = 8 "sqrt"; Rsqrt = 9 "rsqrt"; Rcp = 10 "rcp"; Sin = 11 "sin"; Cos = 12 "cos"; Lg2 = 13 "lg2";
        Ex2 = 14 "ex2"; Tanh = 15 "tanh";
    }
    /// A product and a sum, or the like.
    TernaryForm {
        Mad = 0 "mad"; Mad24 = 1 "mad24"; Madc = 2 "madc"; Fma = 3 "fma"; Sad = 4 "sad"; Bfe = 5 "bfe";
    }
    /// Products of packed numbers and a sum.
    DotForm { Four = 0 "dp4a"; Two = 1 "dp2a"; }
    /// A conversion of one source, or of two to packed integers.
    CvtForm { Cvt = 0 "cvt"; Pack = 1 "cvt.pack"; }
    /// An operation of the video family.
    VideoForm {
        Vadd = 0 "vadd"; Vsub = 1 "vsub"; Vabsdiff = 2 "vabsdiff"; Vmin = 3 "vmin"; Vmax = 4 "vmax";
        Vshl = 5 "vshl"; Vshr = 6 "vshr";
        Vmad = 7 "vmad"; Vset = 8 "vset"; Vadd2 = 9 "vadd2"; Vsub2 = 10 "vsub2"; Vavrg2 = 11 "vavrg2";
        Vabsdiff2 = 12 "vabsdiff2";
        Vmin2 = 13 "vmin2"; Vmax2 = 14 "vmax2"; Vset2 = 15 "vset2"; Vadd4 = 16 "vadd4"; Vsub4 = 17 "vsub4";
        Vavrg4 = 18 "vavrg4";
        Vabsdiff4 = 19 "vabsdiff4"; Vmin4 = 20 "vmin4"; Vmax4 = 21 "vmax4"; Vset4 = 22 "vset4";
    }
}

flags! {
    Ftz = "ftz";
    Sat = "sat";
    Relu = "relu";
    Satfinite = "satfinite";
    Xorsign = "xorsign";
    Carry = "cc";
    Oob = "oob";
    Shiftamt = "shiftamt";
    Po = "po";
    Scaled = "scaled::n2::ue8m0" @ (90, Any);
}

impl Num {
    /// Bits of the register that holds it.
    #[must_use]
    pub fn bits(self) -> u16 {
        use Num::*;
        match self {
            Pred | B1 => 1,
            U4 | S4 | E2m1 | B8 | U8 | S8 | E4m3 | E5m2 | E2m3 | E3m2 | E2m1x2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E2m3x2 | E3m2x2 | Ue8m0x2 | S2f6x2 | E2m1x4 => {
                16
            }
            B32 | U32 | S32 | F32 | Tf32 | F16x2 | Bf16x2 | E4m3x4 | E5m2x4 | E2m3x4 | E3m2x4 => 32,
            U16x2 | S16x2 | U8x4 | S8x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
        }
    }
    /// Whether it is a number with a sign.
    #[must_use]
    pub fn signed(self) -> bool {
        matches!(self, Num::S4 | Num::S8 | Num::S16 | Num::S32 | Num::S64 | Num::S16x2 | Num::S8x4)
    }
    /// Whether it is an integer with or without a sign.
    #[must_use]
    pub fn integer(self) -> bool {
        self.signed()
            || matches!(self, Num::U4 | Num::U8 | Num::U16 | Num::U32 | Num::U64 | Num::U16x2 | Num::U8x4)
    }
    /// Whether it is bits without a meaning.
    #[must_use]
    pub fn untyped(self) -> bool {
        use Num::*;
        matches!(self, Pred | B1 | B8 | B16 | B32 | B64 | B128)
    }
    /// Whether it is floating point of any kind.
    #[must_use]
    pub fn float(self) -> bool {
        !self.integer() && !self.untyped()
    }
    /// What registers fit; wider ones too where `wider` says so.
    #[must_use]
    pub fn fit(self, wider: bool) -> Width {
        if self.float() && !matches!(self, Num::F32 | Num::F64 | Num::Tf32) {
            return if wider { Width::Least(self.bits()) } else { Width::Half(self.bits()) };
        }
        let float = matches!(self, Num::F32 | Num::F64 | Num::Tf32);
        Width::Of { bits: self.bits(), float, untyped: self.untyped(), wider }
    }
}
