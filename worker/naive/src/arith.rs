//! Integer arithmetic on bit patterns, at the width and sign of a PTX type (PTX ISA 9.2, sections 9.7.1 and 9.7.13).

use moire_program::ir::{AluOp, AtomOp, CmpOp, Ty};

/// Width of a type in bits; a predicate has one.
pub(super) fn bits(ty: Ty) -> u32 {
    if ty == Ty::Pred { 1 } else { ty.bytes() * 8 }
}

/// The low bits of a value.
pub(super) fn low(value: u128, bits: u32) -> u128 {
    match bits {
        0 => 0,
        1..128 => value & ((1u128 << bits) - 1),
        _ => value,
    }
}

/// The number a pattern stands for, wide enough for every type but unsigned 128-bit ones.
fn number(ty: Ty, pattern: u128) -> i128 {
    let width = bits(ty);
    let pattern = low(pattern, width);
    let negative = matches!(ty, Ty::S(_)) && pattern >> (width - 1) & 1 == 1;
    let extended = if negative && width < 128 { pattern | (u128::MAX << width) } else { pattern };
    i128::from_ne_bytes(extended.to_ne_bytes())
}

fn pattern(ty: Ty, number: i128) -> u128 {
    low(u128::from_ne_bytes(number.to_ne_bytes()), bits(ty))
}

/// Register arithmetic. Division and remainder by zero give zero; shifts past the width give zero or the sign.
pub(super) fn alu(op: AluOp, ty: Ty, a: u128, b: u128) -> u128 {
    let (x, y) = (number(ty, a), number(ty, b));
    let far = low(b, bits(ty)) >= u128::from(bits(ty));
    let result = match op {
        AluOp::Add => x.wrapping_add(y),
        AluOp::Sub => x.wrapping_sub(y),
        AluOp::Mul => x.wrapping_mul(y),
        AluOp::Div | AluOp::Rem if y == 0 => 0,
        AluOp::Div => x.wrapping_div(y),
        AluOp::Rem => x.wrapping_rem(y),
        AluOp::And => x & y,
        AluOp::Or => x | y,
        AluOp::Xor => x ^ y,
        AluOp::Shl if far => 0,
        AluOp::Shl => x << y,
        AluOp::Shr if far => {
            if x < 0 {
                -1
            } else {
                0
            }
        }
        AluOp::Shr => x >> y,
        AluOp::Min => x.min(y),
        AluOp::Max => x.max(y),
    };
    pattern(ty, result)
}

/// Comparison.
pub(super) fn compare(op: CmpOp, ty: Ty, a: u128, b: u128) -> bool {
    let (x, y) = (number(ty, a), number(ty, b));
    match op {
        CmpOp::Eq => x == y,
        CmpOp::Ne => x != y,
        CmpOp::Lt => x < y,
        CmpOp::Le => x <= y,
        CmpOp::Gt => x > y,
        CmpOp::Ge => x >= y,
    }
}

/// What an atomic stores for the old value `old`; `None` for `cas`, which stores or not by comparison.
pub(super) fn atomic(op: AtomOp, ty: Ty, old: u128, b: u128) -> Option<u128> {
    let (x, y) = (low(old, bits(ty)), low(b, bits(ty)));
    Some(match op {
        AtomOp::Add => alu(AluOp::Add, ty, x, y),
        AtomOp::Sub => alu(AluOp::Sub, ty, x, y),
        AtomOp::And => x & y,
        AtomOp::Or => x | y,
        AtomOp::Xor => x ^ y,
        AtomOp::Min => alu(AluOp::Min, ty, x, y),
        AtomOp::Max => alu(AluOp::Max, ty, x, y),
        AtomOp::Inc => {
            if x >= y {
                0
            } else {
                x + 1
            }
        }
        AtomOp::Dec => {
            if x == 0 || x > y {
                y
            } else {
                x - 1
            }
        }
        AtomOp::Exch => y,
        AtomOp::Cas => return None,
    })
}
