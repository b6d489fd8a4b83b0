//! Arithmetic, logic, comparison and conversion.

use crate::entry::{refuse, since};
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;
use crate::slot::{Then, Types};

instructions! {
    #[doc = "Copies a value, takes the address of a variable, packs or unpacks registers."]
    Mov = "mov", section "mov", since (70, Any);
    slots { keep ty: Num; }
    operands { write dst: Packed = ty.fit(false); data a: Packed = ty.fit(false); }
    rules {
        dst.0.braced && a.0.braced => refuse("one side is one register");
        !dst.0.braced && dst.0.items[0].reg().is_none() => refuse("the destination is a register");
        ty == Num::B128 => since(83, Any);
        ty != Num::Pred && (!plain(ty) || ty.bits() < 16 || ty == Num::F16) => refuse("mov has no such type");
        (ty == Num::Pred || ty.float()) && matches!(a.one(), Some(Value::Symbol(..)))
            => refuse("an address goes into a register of integers");
    }

    #[doc = "Computes with two sources."]
    Binary = form: BinaryForm, section "integer-arithmetic-instructions", since (70, Any);
    slots {
        keep half: Option<Half>;
        keep over: Option<Over>;
        keep round: Option<Round>;
        keep exact: Option<Exact>;
        keep ftz: Ftz;
        keep nan: NaN;
        keep xorsign: Xorsign;
        keep abs: Abs;
        keep relu: Relu;
        keep sat: Sat;
        keep carry: Carry;
        keep ty: Then<Num, Mixed>;
    }
    operands {
        write dst: Register = if half == Some(Half::Wide) { Width::Bits(ty.first.bits() * 2) } else { ty.first.fit(false) };
        data a: Value = second(ty);
        data b: Value = if matches!(form, BinaryForm::Shl
            | BinaryForm::Shr) { Width::Int(32) } else { ty.first.fit(false) };
        data c: Maybe<Value> = (if matches!(form, BinaryForm::Min
            | BinaryForm::Max) { 0 } else { usize::MAX }, ty.first.fit(false));
    }
    rules {
        !two(form, ty.first) => refuse("the operation does not take this type");
        half.is_some() != (matches!(form, BinaryForm::Mul) && integer(ty.first) || form == BinaryForm::Mul24)
            => refuse("`.lo`, `.hi` and `.wide` go with products of integers");
        half == Some(Half::Wide) && (form == BinaryForm::Mul24 || ty.first.bits() > 32)
            => refuse("`.wide` is of 16 and 32 bits");
        over.is_some() != matches!(form, BinaryForm::Bmsk | BinaryForm::Szext)
            => refuse("`.wrap` and `.clamp` go with bmsk and szext");
        (round.is_some() || exact.is_some() || ftz.is() || nan.is() || xorsign.is() || abs.is())
            && !ty.first.float()
            => refuse("rounding is of floating point");
        form == BinaryForm::Div && ty.first.float() && round.is_none() && exact.is_none()
            => refuse("a quotient is rounded: .rn, or .approx or .full of .f32");
        form == BinaryForm::Div && ty.first == Num::F64 && exact.is_some() => refuse("div.f64 is exact: .rn");
        relu.is() && !matches!(form, BinaryForm::Min | BinaryForm::Max) || sat.is()
            && !matches!(form, BinaryForm::Add | BinaryForm::Sub | BinaryForm::Mul)
            => refuse("the operation has no such word");
        xorsign.is() != abs.is() => refuse("it is `.xorsign.abs`");
        ty.second != Mixed::Same && !(ty.first == Num::F32 && matches!(form, BinaryForm::Add
            | BinaryForm::Sub))
            => refuse("a second type goes with sums of .f32");
        ty.second != Mixed::Same => since(86, Sm(100));
        c.0.is_some() && ty.first != Num::F32 => refuse("three sources are of .f32");
        c.0.is_some() => since(88, Sm(100));
        carry.is() && !matches!(form, BinaryForm::Add | BinaryForm::Sub | BinaryForm::Addc | BinaryForm::Subc)
            => refuse("`.cc` goes with sums");
        ty.first == Num::Bf16 || ty.first == Num::Bf16x2 => since(70, Any);
    }

    #[doc = "Computes with one source."]
    Unary = form: UnaryForm, section "integer-arithmetic-instructions", since (70, Any);
    slots {
        keep round: Option<Round>;
        keep exact: Option<Exact>;
        keep shiftamt: Shiftamt;
        keep ftz: Ftz;
        keep ty: Num;
    }
    operands {
        write dst: Register = if matches!(form, UnaryForm::Popc | UnaryForm::Clz
            | UnaryForm::Bfind) { Width::Int(32) } else { ty.fit(false) };
        data a: Value = ty.fit(false);
    }
    rules {
        !one(form, ty) => refuse("the operation does not take this type");
        shiftamt.is() && form != UnaryForm::Bfind => refuse("`.shiftamt` goes with bfind");
        (round.is_some() || exact.is_some() || ftz.is()) && !ty.float()
            => refuse("rounding is of floating point");
    }

    #[doc = "Multiplies and adds, adds a difference, or takes a field of bits."]
    Ternary = form: TernaryForm, section "integer-arithmetic-instructions", since (70, Any);
    slots {
        keep half: Option<Half>;
        keep round: Option<Round>;
        keep ftz: Ftz;
        keep sat: Sat;
        keep relu: Relu;
        keep oob: Oob;
        keep carry: Carry;
        keep ty: Then<Num, Mixed>;
    }
    operands {
        write dst: Register = if half == Some(Half::Wide) { Width::Bits(ty.first.bits() * 2) } else { ty.first.fit(false) };
        data a: Value = second(ty);
        data b: Value = if form == TernaryForm::Bfe { Width::Bits(32) } else { second(ty) };
        data c: Value = if form == TernaryForm::Bfe { Width::Bits(32) } else if half == Some(Half::Wide) { Width::Bits(ty.first.bits() * 2) } else { ty.first.fit(false) };
    }
    rules {
        !three(form, ty.first) => refuse("the operation does not take this type");
        half.is_some() != (matches!(form, TernaryForm::Mad | TernaryForm::Madc | TernaryForm::Mad24)
            && ty.first.integer())
            => refuse("`.lo`, `.hi` and `.wide` go with products of integers");
        half == Some(Half::Wide) && (form != TernaryForm::Mad || ty.first.bits() > 32)
            => refuse("`.wide` is of 16 and 32 bits");
        (round.is_some() || ftz.is() || relu.is()) && !ty.first.float()
            => refuse("rounding is of floating point");
        ty.second != Mixed::Same && !(ty.first == Num::F32 && form == TernaryForm::Fma)
            => refuse("a second type goes with fma.f32");
        ty.second != Mixed::Same => since(86, Sm(100));
    }

    #[doc = "Puts bits into a field."]
    Bfi = "bfi", section "bfi", since (70, Any);
    slots { keep ty: Num; }
    operands {
        write dst: Register = ty.fit(false);
        data a: Value = ty.fit(false);
        data b: Value = ty.fit(false);
        data from: Value = Width::Bits(32);
        data count: Value = Width::Bits(32);
    }
    rules { !matches!(ty, Num::B32 | Num::B64) => refuse("it is .b32 or .b64"); }

    #[doc = "Shifts two registers as one."]
    Shf = "shf", section "shf", since (70, Any);
    ends ["b32"]
    slots { keep way: Way; keep over: Over; }
    operands {
        write dst: Register = Width::Bits(32);
        data a: Value = Width::Bits(32);
        data b: Value = Width::Bits(32);
        data c: Value = Width::Bits(32);
    }
    rules {}

    #[doc = "Chooses bytes of two registers."]
    Prmt = "prmt", section "prmt", since (70, Any);
    begins ["b32"]
    slots { keep mode: Option<Bytewise>; }
    operands {
        write dst: Register = Width::Bits(32);
        data a: Value = Width::Bits(32);
        data b: Value = Width::Bits(32);
        data c: Value = Width::Bits(32);
    }
    rules {}

    #[doc = "Computes any function of three bits, bit by bit."]
    Lop3 = "lop3", section "lop3", since (70, Any);
    ends ["b32"]
    slots { keep join: Option<Join>; }
    operands {
        write dst: Answer = (Width::Bits(32), join.map(|_| Width::Bits(1)));
        data a: Value = Width::Bits(32);
        data b: Value = Width::Bits(32);
        data c: Value = Width::Bits(32);
        known table: Number = ();
        data q: Option<Pred> = (join.is_some(), ());
    }
    rules {
        !(0..256).contains(&table.0) => refuse("a table has 8 bits");
        join == Some(Join::Xor) => refuse("it is .and or .or");
        join.is_some() => since(82, Any);
    }

    #[doc = "Multiplies packed numbers, and adds."]
    Dot = form: DotForm, section "dp4a", since (70, Any);
    slots { keep half: Option<Half>; keep ty: Types<2, 2>; }
    operands {
        write dst: Register = Width::Bits(32);
        data a: Value = Width::Bits(32);
        data b: Value = Width::Bits(32);
        data c: Value = Width::Bits(32);
    }
    rules {
        half.is_some() != (form == DotForm::Two) || half == Some(Half::Wide)
            => refuse("dp2a takes .lo or .hi");
        !(0..2).all(|i| matches!(ty.at(i), Num::U32 | Num::S32)) => refuse("types are .u32 and .s32");
    }

    #[doc = "Finds the n-th bit that is set."]
    Fns = "fns", section "fns", since (70, Any);
    ends ["b32"]
    slots {}
    operands {
        write dst: Register = Width::Bits(32);
        data mask: Value = Width::Bits(32);
        data base: Value = Width::Bits(32);
        data offset: Value = Width::Bits(32);
    }
    rules {}

    #[doc = "Compares two values, and may join a predicate."]
    Setp = "setp", section "setp", since (70, Any);
    slots { keep cmp: Cmp; keep join: Option<Join>; keep ftz: Ftz; keep ty: Num; }
    operands {
        write dst: Answer = (Width::Bits(1), Some(Width::Bits(1)));
        data a: Value = ty.fit(false);
        data b: Value = ty.fit(false);
        data c: Option<Pred> = (join.is_some(), ());
    }
    rules {
        !compared(ty) => refuse("setp does not take this type");
        !compares(cmp, ty) => refuse("the comparison does not take this type");
        ftz.is() && !ty.float() => refuse("`.ftz` is for floating point");
    }

    #[doc = "Compares two values, and writes a number."]
    Set = "set", section "set", since (70, Any);
    slots { keep cmp: Cmp; keep join: Option<Join>; keep ftz: Ftz; keep ty: Types<2, 2>; }
    operands {
        write dst: Register = ty.at(0).fit(false);
        data a: Value = ty.at(1).fit(false);
        data b: Value = ty.at(1).fit(false);
        data c: Option<Pred> = (join.is_some(), ());
    }
    rules {
        !compared(ty.at(1)) => refuse("set does not take this type");
        !compares(cmp, ty.at(1)) => refuse("the comparison does not take this type");
        ftz.is() && !ty.at(1).float() => refuse("`.ftz` is for floating point");
    }

    #[doc = "Chooses by a predicate."]
    Selp = "selp", section "selp", since (70, Any);
    slots { keep ty: Num; }
    operands {
        write dst: Register = ty.fit(false);
        data a: Value = ty.fit(false);
        data b: Value = ty.fit(false);
        data c: Pred = ();
    }
    rules {
        !plain(ty) || matches!(ty.bits(), 8 | 128) || ty == Num::F16 => refuse("selp does not take this type");
        c.negated => refuse("the predicate stands without `!`");
    }

    #[doc = "Chooses by a sign."]
    Slct = "slct", section "slct", since (70, Any);
    slots { keep ftz: Ftz; keep ty: Types<2, 2>; }
    operands {
        write dst: Register = ty.at(0).fit(false);
        data a: Value = ty.at(0).fit(false);
        data b: Value = ty.at(0).fit(false);
        data c: Value = ty.at(1).fit(false);
    }
    rules { !matches!(ty.at(1), Num::S32 | Num::F32) => refuse("the sign is of .s32 or .f32"); }

    #[doc = "Asks for the class of a number."]
    Testp = "testp", section "testp", since (70, Any);
    slots { keep class: NumberClass; keep ty: Num; }
    operands { write dst: Register = Width::Bits(1); data a: Value = ty.fit(false); }
    rules { !matches!(ty, Num::F32 | Num::F64) => refuse("it is .f32 or .f64"); }

    #[doc = "Converts between types."]
    Cvt = form: CvtForm, section "cvt", since (70, Any);
    slots {
        keep round: Option<Round>;
        keep ftz: Ftz;
        keep sat: Sat;
        keep relu: Relu;
        keep satfinite: Satfinite;
        keep scaled: Scaled;
        keep ty: Types<2, 3>;
    }
    operands {
        write dst: Register = ty.at(0).fit(true);
        data a: Packed = ty.at(1).fit(true);
        data b: Maybe<Value> = (0, Width::Any);
        data c: Maybe<Value> = (0, Width::Any);
    }
    rules {
        (ty.count() == 3) != (form == CvtForm::Pack) => refuse("cvt has two types, cvt.pack three");
        ty.at(0) == Num::Pred || ty.at(1) == Num::Pred => refuse("predicates are not converted");
        form == CvtForm::Cvt && (ty.at(0).untyped() || ty.at(1).untyped())
            => refuse("bits are not converted");
        form == CvtForm::Cvt && ty.at(0).integer() && ty.at(1).integer() && (round.is_some() || ftz.is()
            || b.0.is_some())
            => refuse("integers are not rounded");
        form == CvtForm::Cvt && round.is_none() && ty.at(0).float() != ty.at(1).float()
            => refuse("a rounding is needed");
    }

    #[doc = "Computes with bytes and halves of registers."]
    Video = form: VideoForm, section "video-instructions", since (70, Any);
    slots {
        keep over: Option<Over>;
        keep cmp: Option<Cmp>;
        keep sat: Sat;
        keep po: Po;
        keep ty: Types<2, 3>;
        keep then: Option<BinaryWord>;
    }
    operands {
        write dst: Register = Width::Bits(32);
        data a: Value = Width::Bits(32);
        data b: Value = Width::Bits(32);
        data c: Maybe<Value> = (0, Width::Int(32));
    }
    rules { !(0..3).all(|i| matches!(ty.at(i), Num::U32 | Num::S32)) => refuse("types are .u32 and .s32"); }
}

words! {
    /// What is done with the third source of a video instruction.
    BinaryWord { Add = 0 "add"; Min = 1 "min"; Max = 2 "max"; }
}

/// What a register of the second source fits, where it has a type of its own.
fn second(ty: Then<Num, Mixed>) -> Width {
    if ty.second == Mixed::Same { ty.first.fit(false) } else { Width::Bits(16) }
}

/// Integers, and bits of which products are taken as integers.
fn integer(ty: Num) -> bool {
    ty.integer()
}

/// Types of 1 to 64 bits that copies and choices have.
fn plain(ty: Num) -> bool {
    use Num::*;
    matches!(ty, B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | F32 | F64)
}

fn two(form: BinaryForm, ty: Num) -> bool {
    use Num::*;
    let words = matches!(ty, U16 | U32 | U64 | S16 | S32 | S64);
    let halves = matches!(ty, F16 | F16x2 | Bf16 | Bf16x2);
    let floats = halves || matches!(ty, F32 | F64);
    match form {
        BinaryForm::Add | BinaryForm::Sub => words || floats || matches!(ty, U16x2 | S16x2 | F32x2),
        BinaryForm::Mul => words || floats || ty == F32x2,
        BinaryForm::Min | BinaryForm::Max => words || floats || matches!(ty, U16x2 | S16x2),
        BinaryForm::Div => words || matches!(ty, F32 | F64),
        BinaryForm::Rem => words,
        BinaryForm::And | BinaryForm::Or | BinaryForm::Xor => matches!(ty, Pred | B16 | B32 | B64),
        BinaryForm::Shl => matches!(ty, B16 | B32 | B64),
        BinaryForm::Shr => words || matches!(ty, B16 | B32 | B64),
        BinaryForm::Mul24 => matches!(ty, U32 | S32),
        BinaryForm::Addc | BinaryForm::Subc => matches!(ty, U32 | S32 | U64 | S64),
        BinaryForm::Copysign => matches!(ty, F32 | F64),
        BinaryForm::Bmsk => ty == B32,
        BinaryForm::Szext => matches!(ty, U32 | S32),
    }
}

fn one(form: UnaryForm, ty: Num) -> bool {
    use Num::*;
    let floats = matches!(ty, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F64);
    match form {
        UnaryForm::Abs | UnaryForm::Neg => matches!(ty, S16 | S32 | S64) || floats,
        UnaryForm::Not => matches!(ty, Pred | B16 | B32 | B64),
        UnaryForm::Cnot => matches!(ty, B16 | B32 | B64),
        UnaryForm::Popc | UnaryForm::Clz | UnaryForm::Brev => matches!(ty, B32 | B64),
        UnaryForm::Bfind => matches!(ty, U32 | U64 | S32 | S64),
        UnaryForm::Sqrt | UnaryForm::Rsqrt | UnaryForm::Rcp => matches!(ty, F32 | F64),
        UnaryForm::Sin | UnaryForm::Cos | UnaryForm::Lg2 => ty == F32,
        UnaryForm::Ex2 | UnaryForm::Tanh => floats && ty != F64,
    }
}

fn three(form: TernaryForm, ty: Num) -> bool {
    use Num::*;
    let words = matches!(ty, U16 | U32 | U64 | S16 | S32 | S64);
    match form {
        TernaryForm::Mad => words || matches!(ty, F32 | F64),
        TernaryForm::Mad24 => matches!(ty, U32 | S32),
        TernaryForm::Madc => matches!(ty, U32 | S32 | U64 | S64),
        TernaryForm::Fma => matches!(ty, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F64 | F32x2),
        TernaryForm::Sad => words,
        TernaryForm::Bfe => matches!(ty, U32 | U64 | S32 | S64),
    }
}

fn compared(ty: Num) -> bool {
    use Num::*;
    matches!(
        ty,
        B16 | B32 | B64 | U16 | U32 | U64 | S16 | S32 | S64 | F16 | F16x2 | Bf16 | Bf16x2 | F32 | F64
    )
}

fn compares(cmp: Cmp, ty: Num) -> bool {
    match cmp {
        Cmp::Eq | Cmp::Ne => true,
        Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge => !ty.untyped(),
        Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs => ty.integer() && !ty.signed(),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => ty.float(),
    }
}
