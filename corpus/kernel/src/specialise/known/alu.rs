//! Integer arithmetic of PTX on known values (PTX ISA 9.2, 9.7.1 to 9.7.8). Floating-point values stay unknown.

use moire_isa::kinds::{BinaryForm, Cmp, Half, Num, UnaryForm};

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Int {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Int {
    /// The integer type of a PTX type of at most 64 bits; `None` for floating point and for several in one register.
    pub(crate) fn of(ty: Num) -> Option<Self> {
        let bits = u32::from(ty.bits());
        match ty {
            Num::B128 | Num::B1 | Num::U4 | Num::S4 | Num::U16x2 | Num::S16x2 | Num::U8x4 | Num::S8x4 => None,
            ty if ty.untyped() || ty.integer() => Some(Int { bits, signed: ty.signed() }),
            _ => None,
        }
    }

    /// The low bits that fit the type.
    pub(crate) fn cut(self, v: u64) -> u64 {
        if self.bits >= 64 { v } else { v & ((1 << self.bits) - 1) }
    }

    /// The number of a bit pattern.
    pub(crate) fn number(self, v: u64) -> i128 {
        let v = self.cut(v);
        if self.signed && self.bits < 64 && v >> (self.bits - 1) & 1 == 1 {
            i128::from(v) - (1i128 << self.bits)
        } else if self.signed {
            i128::from(v.cast_signed())
        } else {
            i128::from(v)
        }
    }

    /// The bit pattern of a number.
    pub(crate) fn pattern(self, n: i128) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the low bits are wanted"
        )]
        self.cut(n as u64)
    }
}

/// Evaluates an operation on two operands of one type.
pub(crate) fn two(form: BinaryForm, t: Int, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (t.number(a), t.number(b));
    let shift = u32::try_from(b & 0xffff_ffff).unwrap_or(u32::MAX);
    Some(match form {
        BinaryForm::Add => t.pattern(x + y),
        BinaryForm::Sub => t.pattern(x - y),
        BinaryForm::And => t.cut(a & b),
        BinaryForm::Or => t.cut(a | b),
        BinaryForm::Xor => t.cut(a ^ b),
        BinaryForm::Min => t.pattern(x.min(y)),
        BinaryForm::Max => t.pattern(x.max(y)),
        BinaryForm::Div => t.pattern(x.checked_div(y)?),
        BinaryForm::Rem => t.pattern(x.checked_rem(y)?),
        BinaryForm::Shl => {
            if shift >= t.bits {
                0
            } else {
                t.cut(a << shift)
            }
        }
        BinaryForm::Shr => t.pattern(x >> shift.min(t.bits - 1).min(127) >> u32::from(shift >= t.bits)),
        BinaryForm::Mul | BinaryForm::Mul24 | BinaryForm::Addc | BinaryForm::Subc => return None,
        BinaryForm::Copysign | BinaryForm::Bmsk | BinaryForm::Szext => return None,
    })
}

/// Evaluates an operation on one operand.
pub(crate) fn one(form: UnaryForm, t: Int, a: u64) -> Option<u64> {
    let v = t.cut(a);
    Some(match form {
        UnaryForm::Not => t.cut(!a),
        UnaryForm::Neg => t.pattern(-t.number(a)),
        UnaryForm::Abs => t.pattern(t.number(a).abs()),
        UnaryForm::Cnot => u64::from(v == 0),
        UnaryForm::Popc => u64::from(v.count_ones()),
        UnaryForm::Clz => u64::from(v.leading_zeros() + t.bits - 64),
        UnaryForm::Brev => v.reverse_bits() >> (64 - t.bits),
        UnaryForm::Bfind => {
            let n = if t.signed && t.number(a) < 0 { t.cut(!v) } else { v };
            if n == 0 { 0xffff_ffff } else { u64::from(63 - n.leading_zeros()) }
        }
        UnaryForm::Sqrt | UnaryForm::Rsqrt | UnaryForm::Rcp | UnaryForm::Sin | UnaryForm::Cos => return None,
        UnaryForm::Lg2 | UnaryForm::Ex2 | UnaryForm::Tanh => return None,
    })
}

/// The product of `mul` and `mad`: its low half, its high half, or all of it.
pub(crate) fn product(half: Half, t: Int, a: u64, b: u64) -> Option<u64> {
    let full = t.number(a).checked_mul(t.number(b))?;
    let wide = Int { bits: (t.bits * 2).min(64), ..t };
    Some(match half {
        Half::Lo => t.pattern(full),
        Half::Hi => t.pattern(full >> t.bits),
        Half::Wide => wide.pattern(full),
    })
}

/// Evaluates a comparison of integers.
pub(crate) fn compare(cmp: Cmp, t: Int, a: u64, b: u64) -> Option<bool> {
    let (x, y) = (t.number(a), t.number(b));
    Some(match cmp {
        Cmp::Eq => x == y,
        Cmp::Ne => x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
        Cmp::Gt => x > y,
        Cmp::Ge => x >= y,
        Cmp::Lo => t.cut(a) < t.cut(b),
        Cmp::Ls => t.cut(a) <= t.cut(b),
        Cmp::Hi => t.cut(a) > t.cut(b),
        Cmp::Hs => t.cut(a) >= t.cut(b),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => return None,
    })
}

/// Evaluates `bfe`.
pub(crate) fn extract(t: Int, a: u64, from: u64, count: u64) -> u64 {
    let (from, count) = (from & 0xff, count & 0xff);
    let top = u64::from(t.bits) - 1;
    let bit = |n: u64| if n > top { 0 } else { t.cut(a) >> n & 1 };
    let sign = if !t.signed || count == 0 { 0 } else { t.cut(a) >> (from + count - 1).min(top) & 1 };
    (0..u64::from(t.bits)).fold(0, |out, i| {
        let one = if i < count && from + i <= top { bit(from + i) } else { sign };
        out | one << i
    })
}

/// Evaluates `bfi`, which inserts `a` into `b`.
pub(crate) fn insert(t: Int, a: u64, b: u64, from: u64, count: u64) -> u64 {
    let (from, count) = (from & 0xff, count & 0xff);
    (0..count).filter(|i| from + i < u64::from(t.bits)).fold(t.cut(b), |out, i| {
        let at = from + i;
        out & !(1 << at) | (a >> i & 1) << at
    })
}

/// Evaluates `lop3`: three bits select a bit of the table.
pub(crate) fn table(a: u64, b: u64, c: u64, lut: u64) -> u64 {
    (0..32).fold(0, |out, i| {
        let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
        out | (lut >> index & 1) << i
    })
}

/// Evaluates `prmt` in its default mode.
pub(crate) fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (a & 0xffff_ffff) | b << 32;
    (0..4).fold(0, |out, i| {
        let pick = selector >> (4 * i) & 0xf;
        let byte = bytes >> (8 * (pick & 7)) & 0xff;
        let byte = if pick & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        out | byte << (8 * i)
    })
}

/// Evaluates `shf`, a funnel shift of `b:a`.
pub(crate) fn funnel(left: bool, wrap: bool, a: u64, b: u64, by: u64) -> u64 {
    let by = if wrap { by & 31 } else { by.min(32) };
    let both = (b & 0xffff_ffff) << 32 | a & 0xffff_ffff;
    let shifted = if left { both >> (32 - by) } else { both >> by };
    shifted & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const S32: Int = Int { bits: 32, signed: true };
    const U32: Int = Int { bits: 32, signed: false };

    #[test]
    fn shifts_and_halves() {
        assert_eq!(two(BinaryForm::Shr, S32, 0x8000_0000, 31), Some(0xffff_ffff));
        assert_eq!(two(BinaryForm::Shr, S32, 0x8000_0000, 40), Some(0xffff_ffff));
        assert_eq!(two(BinaryForm::Shr, U32, 0x8000_0000, 32), Some(0));
        assert_eq!(two(BinaryForm::Shl, U32, 1, 32), Some(0));
        assert_eq!(two(BinaryForm::Rem, S32, 7, 0), None);
        assert_eq!(two(BinaryForm::Div, S32, 0xffff_fff9, 2), Some(0xffff_fffd));
        // Division by three with a multiplication, as compilers write it.
        assert_eq!(
            (0..9).map(|n| product(Half::Hi, S32, n, 1_431_655_766)).collect::<Option<Vec<_>>>(),
            Some(vec![0, 0, 0, 1, 1, 1, 2, 2, 2])
        );
        assert_eq!(product(Half::Wide, U32, 0xffff_ffff, 2), Some(0x1_ffff_fffe));
    }

    #[test]
    fn bits() {
        assert_eq!(extract(U32, 0xabcd, 4, 8), 0xbc);
        assert_eq!(extract(S32, 0xf0, 4, 4), 0xffff_ffff);
        assert_eq!(insert(U32, 0x5, 0xff00, 4, 4), 0xff50);
        assert_eq!(table(0b1100, 0b1010, 0, 0xc0), 0b1000);
        assert_eq!(permute(0x4433_2211, 0x8877_6655, 0x7531), 0x8866_4422);
        assert_eq!(funnel(true, true, 0x8000_0000, 1, 1), 3);
        assert_eq!(funnel(false, true, 2, 1, 1), 0x8000_0001);
        assert_eq!(one(UnaryForm::Clz, U32, 1), Some(31));
        assert_eq!(one(UnaryForm::Bfind, S32, 0xffff_ff00), Some(7));
    }
}
