//! What is known of a register in the lanes of a part, at one place of the body, whatever the execution.

use crate::ir::{AluOp, CmpOp, SymbolId, Ty, Value};
use std::rc::Rc;

/// A register in the lanes of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Val {
    /// A constant in each lane, in the order of the lanes.
    Known(Rc<[Known]>),
    /// One value in all lanes, if the program has no race.
    Same,
    /// A value in each lane, which the joined thread keeps in a register of that lane.
    Each,
    /// The result of a strong read: the joined thread has one value, and single lanes might have different ones.
    Open,
}

/// A constant: a number, or an address in the shared memory of this CTA or of the CTA of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Known {
    /// The object the address is in.
    pub(super) base: Option<(SymbolId, Option<Value>)>,
    /// The number, or the offset from there.
    pub(super) number: Value,
}

impl Known {
    pub(super) fn number(number: Value) -> Self {
        Known { base: None, number }
    }

    pub(super) fn address(symbol: SymbolId) -> Self {
        Known { base: Some((symbol, None)), number: 0 }
    }
}

impl Val {
    /// The same constant in all lanes.
    pub(super) fn constant(known: Known, lanes: usize) -> Self {
        Val::Known(vec![known; lanes].into())
    }

    /// The constant of all lanes, if they have one.
    pub(super) fn one(&self) -> Option<Known> {
        let Val::Known(all) = self else { return None };
        all.iter().all(|k| *k == all[0]).then(|| all[0])
    }

    /// Whether all lanes have one value.
    pub(super) fn uniform(&self) -> bool {
        *self == Val::Same || self.one().is_some()
    }

    /// Whether lanes have values of their own, which the joined thread keeps.
    pub(super) fn differs(&self) -> bool {
        *self == Val::Each || (matches!(self, Val::Known(_)) && self.one().is_none())
    }

    /// What is known where two ways meet: the lanes of a part come the same way.
    pub(super) fn join(&self, other: &Val) -> Val {
        if self == other { self.clone() } else { Self::mixed(&[self, other]) }
    }

    /// What is known of something computed from these, if it is no constant.
    pub(super) fn mixed(parts: &[&Val]) -> Val {
        if parts.iter().any(|v| **v == Val::Open) {
            Val::Open
        } else if parts.iter().all(|v| v.uniform()) {
            Val::Same
        } else {
            Val::Each
        }
    }

    /// A constant computed lane by lane; something mixed where a lane has none.
    pub(super) fn computed<const N: usize>(
        parts: [&Val; N],
        by: impl Fn([Known; N]) -> Option<Known>,
    ) -> Val {
        let known = |v: &&Val| if let Val::Known(all) = v { Some(Rc::clone(all)) } else { None };
        let columns: Option<Vec<Rc<[Known]>>> = parts.iter().map(known).collect();
        let lanes = |c: Vec<Rc<[Known]>>| -> Option<Rc<[Known]>> {
            let count = c.first()?.len();
            (0..count).map(|l| by(std::array::from_fn(|n| c[n][l]))).collect()
        };
        columns.and_then(lanes).map_or_else(|| Val::mixed(&parts), Val::Known)
    }
}

/// The low bits of a number that a type holds.
pub(super) fn low(value: Value, ty: Ty) -> Value {
    let bits = ty.bytes() * 8;
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

fn signed(value: Value, ty: Ty) -> i128 {
    let bits = ty.bytes() * 8;
    let shift = if matches!(ty, Ty::S(_)) { 128 - bits } else { 0 };
    #[expect(clippy::cast_possible_wrap, reason = "the bits are reinterpreted")]
    let value = (low(value, ty) << shift) as i128;
    value >> shift
}

/// Arithmetic on constants, where it is plain: unsigned, or the same for signed numbers.
pub(super) fn arithmetic(op: AluOp, ty: Ty, a: Known, b: Known) -> Option<Known> {
    if a.base.is_some() || b.base.is_some() {
        return moved(op, ty, a, b);
    }
    let (a, b) = (low(a.number, ty), low(b.number, ty));
    let unsigned = !matches!(ty, Ty::S(_));
    let shift = u32::try_from(b).ok().filter(|s| *s < ty.bytes() * 8);
    let result = match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::And => a & b,
        AluOp::Or => a | b,
        AluOp::Xor => a ^ b,
        AluOp::Shl => a << shift?,
        AluOp::Shr if unsigned => a >> shift?,
        AluOp::Min if unsigned => a.min(b),
        AluOp::Max if unsigned => a.max(b),
        AluOp::Div if unsigned => a.checked_div(b)?,
        AluOp::Rem if unsigned => a.checked_rem(b)?,
        _ => return None,
    };
    Some(Known::number(low(result, ty)))
}

/// An address and a number.
fn moved(op: AluOp, ty: Ty, a: Known, b: Known) -> Option<Known> {
    let wide = ty.bytes() == 8;
    let (base, number) = match (op, a.base, b.base) {
        (AluOp::Add, Some(base), None) | (AluOp::Add, None, Some(base)) => {
            (base, a.number.wrapping_add(b.number))
        }
        (AluOp::Sub, Some(base), None) => (base, a.number.wrapping_sub(b.number)),
        _ => return None,
    };
    wide.then(|| Known { base: Some(base), number: low(number, ty) })
}

/// A comparison of numbers.
pub(super) fn compare(op: CmpOp, ty: Ty, a: Known, b: Known) -> Option<Known> {
    if a.base.is_some() || b.base.is_some() {
        return None;
    }
    let (a, b) = (signed(a.number, ty), signed(b.number, ty));
    let holds = match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    };
    Some(Known::number(holds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(v: Value) -> Known {
        Known::number(v)
    }

    #[test]
    fn constants_are_computed_at_their_width() {
        let add = |ty, a, b| arithmetic(AluOp::Add, ty, n(a), n(b));
        assert_eq!(add(Ty::U(32), u32::MAX.into(), 1), Some(n(0)));
        assert_eq!(add(Ty::U(64), u32::MAX.into(), 1), Some(n(1 << 32)));
        assert_eq!(arithmetic(AluOp::Shl, Ty::B(32), n(1), n(32)), None);
        assert_eq!(arithmetic(AluOp::Shr, Ty::S(32), n(8), n(1)), None);
        assert_eq!(compare(CmpOp::Lt, Ty::S(32), n(0xffff_ffff), n(0)), Some(n(1)));
        assert_eq!(compare(CmpOp::Lt, Ty::U(32), n(0xffff_ffff), n(0)), Some(n(0)));
    }

    #[test]
    fn an_address_moves_by_a_number() {
        let x = Known::address(SymbolId(0));
        let four = arithmetic(AluOp::Add, Ty::U(64), x, n(4)).expect("an address");
        assert_eq!(arithmetic(AluOp::Sub, Ty::U(64), four, n(4)), Some(x));
        assert_eq!(arithmetic(AluOp::Add, Ty::U(32), x, n(4)), None);
        assert_eq!(arithmetic(AluOp::Sub, Ty::U(64), n(4), x), None);
    }

    #[test]
    fn what_lanes_hold_meets() {
        let lanes = |a, b| Val::Known(vec![n(a), n(b)].into());
        assert_eq!(lanes(1, 1).join(&lanes(2, 2)), Val::Same);
        assert_eq!(lanes(0, 1).join(&lanes(2, 2)), Val::Each);
        assert_eq!(lanes(0, 1).join(&Val::Open), Val::Open);
        assert!(lanes(0, 1).differs() && !lanes(1, 1).differs());
    }
}
