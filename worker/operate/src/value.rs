//! Values of registers: arithmetic on known bits.

use moire_program::ir::{AluOp, CmpOp, Ty};
use std::hash::{Hash, Hasher};

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Val {
    /// The same bits in every lane.
    Known(u128),
    /// The number of the lane.
    Lane,
    /// One in these lanes of the warp and zero in the others: some of them, and not all. As a predicate it is true in them.
    Lanes(u32),
    /// These bits, shifted right by the number of the lane.
    Shifted(u32),
    /// Data that no instruction here computes with, or that differs among lanes.
    Unknown,
}

/// Most values that a state holds are small: they take few bytes.
impl Hash for Val {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Val::Known(bits) => match u64::try_from(*bits) {
                Ok(0) => state.write_u8(0),
                Ok(low) => (1u8, low).hash(state),
                Err(_) => (2u8, bits).hash(state),
            },
            Val::Lane => state.write_u8(3),
            Val::Lanes(lanes) => (4u8, lanes).hash(state),
            Val::Shifted(bits) => (5u8, bits).hash(state),
            Val::Unknown => state.write_u8(6),
        }
    }
}

impl Val {
    pub(crate) fn known(self) -> Option<u128> {
        match self {
            Val::Known(bits) => Some(bits),
            Val::Lane | Val::Lanes(_) | Val::Shifted(_) | Val::Unknown => None,
        }
    }
}

impl Val {
    /// The value in a lane.
    pub(crate) fn in_lane(self, lane: u32) -> Option<u128> {
        match self {
            Val::Known(bits) => Some(bits),
            Val::Lane => Some(lane.into()),
            Val::Lanes(some) => Some(u128::from(some >> lane & 1)),
            Val::Shifted(bits) => Some(u128::from(bits >> lane)),
            Val::Unknown => None,
        }
    }
}

/// What is computed of two values, lane by lane.
pub(crate) fn by_lane(lanes: u32, (a, b): (Val, Val), of: impl Fn(u128, u128) -> u128) -> Val {
    if let (Val::Known(a), Val::Known(b)) = (a, b) {
        return Val::Known(of(a, b));
    }
    each_lane(lanes, |lane| Some(of(a.in_lane(lane)?, b.in_lane(lane)?)))
}

/// The values of lanes as one, if they are equal, or one and zero.
pub(crate) fn each_lane(lanes: u32, value: impl Fn(u32) -> Option<u128>) -> Val {
    let of_thread = (0..32).filter(|lane| lanes >> lane & 1 == 1);
    let Some(values) = of_thread.map(|lane| Some((lane, value(lane)?))).collect::<Option<Vec<_>>>() else {
        return Val::Unknown;
    };
    match values.first() {
        Some((_, first)) if values.iter().all(|(_, value)| value == first) => Val::Known(*first),
        Some(_) if values.iter().all(|(_, value)| *value <= 1) => {
            let ones = values.iter().filter(|(_, value)| *value == 1);
            of_lanes(ones.fold(0, |some, (lane, _)| some | 1 << lane), lanes)
        }
        _ => Val::Unknown,
    }
}

/// What is one in some of the lanes of a thread.
pub(crate) fn of_lanes(some: u32, lanes: u32) -> Val {
    match some & lanes {
        0 => Val::Known(0),
        some if some == lanes => Val::Known(1),
        some => Val::Lanes(some),
    }
}

/// The lowest `width` bits.
pub(crate) fn low(value: u128, width: u32) -> u128 {
    if width >= 128 { value } else { value & ((1 << width) - 1) }
}

fn signed(value: u128, width: u32) -> i128 {
    let unused = 128 - width.clamp(1, 128);
    (value << unused).cast_signed() >> unused
}

fn width(ty: Ty) -> u32 {
    8 * ty.bytes()
}

/// `op` at the width and signedness of `ty`.
pub(crate) fn compute(op: AluOp, ty: Ty, a: u128, b: u128) -> u128 {
    let bits = width(ty);
    let with_sign = matches!(ty, Ty::S(_));
    let (x, y) = (low(a, bits), low(b, bits));
    let (s, t) = (signed(a, bits), signed(b, bits));
    let far = u32::try_from(y).unwrap_or(u32::MAX);
    let result = match op {
        AluOp::Add => x.wrapping_add(y),
        AluOp::Sub => x.wrapping_sub(y),
        AluOp::Mul => x.wrapping_mul(y),
        AluOp::Div if with_sign => s.checked_div(t).unwrap_or(0).cast_unsigned(),
        AluOp::Div => x.checked_div(y).unwrap_or(0),
        AluOp::Rem if with_sign => s.checked_rem(t).unwrap_or(0).cast_unsigned(),
        AluOp::Rem => x.checked_rem(y).unwrap_or(0),
        AluOp::And => x & y,
        AluOp::Or => x | y,
        AluOp::Xor => x ^ y,
        AluOp::Shl => x.checked_shl(far).unwrap_or(0),
        AluOp::Shr if with_sign => (s >> far.min(127)).cast_unsigned(),
        AluOp::Shr => x.checked_shr(far).unwrap_or(0),
        AluOp::Min if with_sign => s.min(t).cast_unsigned(),
        AluOp::Max if with_sign => s.max(t).cast_unsigned(),
        AluOp::Min => x.min(y),
        AluOp::Max => x.max(y),
    };
    low(result, bits)
}

/// A comparison at the width and signedness of `ty`.
pub(crate) fn compare(op: CmpOp, ty: Ty, a: u128, b: u128) -> bool {
    let bits = width(ty);
    let order = if matches!(ty, Ty::S(_)) {
        signed(a, bits).cmp(&signed(b, bits))
    } else {
        low(a, bits).cmp(&low(b, bits))
    };
    match op {
        CmpOp::Eq => order.is_eq(),
        CmpOp::Ne => order.is_ne(),
        CmpOp::Lt => order.is_lt(),
        CmpOp::Le => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::Ge => order.is_ge(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_has_the_width_and_sign_of_the_type() {
        assert_eq!(compute(AluOp::Add, Ty::U(8), 250, 10), 4);
        assert_eq!(compute(AluOp::Shr, Ty::S(32), 0xffff_fff0, 2), 0xffff_fffc);
        assert_eq!(compute(AluOp::Rem, Ty::U(32), 7, 0), 0);
        assert!(compare(CmpOp::Lt, Ty::S(32), 0xffff_ffff, 0));
        assert!(!compare(CmpOp::Lt, Ty::U(32), 0xffff_ffff, 0));
    }
}
