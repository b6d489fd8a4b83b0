//! Evaluates instructions with one destination on all lanes: offsets of addresses, and integers.

use super::alu::{self, Int};
use super::value::{Base, LANES, Lanes, Val};
use crate::ptx::Sum;
use moire_isa::kinds::{BinaryForm, CvtForm, Half, Num, Over, TernaryForm, UnaryForm, Way};
use moire_isa::{Binary, Cvt, Ternary};

/// The type of the operands of an integer instruction; none for floating point and for what is not evaluated.
pub(crate) fn operands(sum: Sum<'_>) -> Option<Int> {
    Int::of(match sum {
        Sum::Mov(i) => i.ty,
        Sum::Binary(i) => i.ty.first,
        Sum::Unary(i) => i.ty,
        Sum::Ternary(i) => i.ty.first,
        Sum::Bfi(i) => i.ty,
        Sum::Setp(i) => i.ty,
        Sum::Selp(i) => i.ty,
        Sum::Cvt(i) => i.ty.at(1),
        Sum::Shf(_) | Sum::Lop3(_) => Num::B32,
        Sum::Prmt(i) if i.mode.is_none() => Num::B32,
        Sum::Prmt(_) | Sum::Cvta(_) | Sum::Shfl(_) | Sum::Vote(_) | Sum::Match(_) | Sum::Redux(_) => {
            return None;
        }
        Sum::Activemask | Sum::Product | Sum::Other => return None,
    })
}

/// Evaluates offsets and conversions of an address.
pub(crate) fn shifted_base(sum: Sum<'_>, args: &[Val]) -> Option<Val> {
    match (sum, args) {
        (Sum::Binary(i), args) => moved_base(i.form, args),
        (Sum::Cvt(i), [b @ Val::Based(..)]) if !i.ty.at(0).float() && !i.ty.at(1).float() => Some(b.clone()),
        (Sum::Ternary(i), [Val::Known(a), Val::Known(b), base @ Val::Based(..)])
            if i.form == TernaryForm::Mad =>
        {
            let (t, half) = (Int::of(i.ty.first)?, i.half?);
            alu::product(half, t, 0, 0)?;
            Some(base.add(&a.zip(b, |a, b| alu::product(half, t, a, b).unwrap_or(0))))
        }
        _ => None,
    }
}

fn moved_base(form: BinaryForm, args: &[Val]) -> Option<Val> {
    match (form, args) {
        (BinaryForm::Add, [b @ Val::Based(..), Val::Known(k)] | [Val::Known(k), b @ Val::Based(..)]) => {
            Some(b.add(k))
        }
        (BinaryForm::Sub, [b @ Val::Based(..), Val::Known(k)]) => Some(b.add(&k.map(u64::wrapping_neg))),
        (BinaryForm::Sub, [Val::Based(p, a), Val::Based(q, b)]) if p == q => {
            Some(Val::Known(a.zip(b, u64::wrapping_sub)))
        }
        // The base of an allocation has lane 0, so `or` adds the lane bits too.
        (
            BinaryForm::Or,
            [b @ Val::Based(Base::Register(_), Lanes::Same(o)), Val::Known(k)]
            | [Val::Known(k), b @ Val::Based(Base::Register(_), Lanes::Same(o))],
        ) if *o <= 0xffff && k.map(|v| v & 0xffff) == Lanes::Same(0) => Some(b.add(k)),
        _ => None,
    }
}

/// Evaluates an integer instruction on known operands. Saturation and clamping give other values.
pub(crate) fn integer(sum: Sum<'_>, args: &[&Lanes]) -> Option<Lanes> {
    let t = operands(sum)?;
    match (sum, args) {
        (Sum::Binary(i), [a, b]) => binary(i, t, a, b),
        (Sum::Unary(i), [a]) => {
            alu::one(i.form, t, 0)?;
            let shift = |v: u64| match v {
                0xffff_ffff => v,
                _ if i.shiftamt.is() => u64::from(t.bits) - 1 - v,
                _ => v,
            };
            let bfind = i.form == UnaryForm::Bfind;
            let one = |v| alu::one(i.form, t, v).unwrap_or(0);
            Some(a.map(|v| if bfind { shift(one(v)) } else { one(v) }))
        }
        (Sum::Ternary(i), [a, b, c]) => ternary(i, t, [a, b, c]),
        (Sum::Bfi(_), [a, b, c, d]) => {
            Some(Lanes::from_fn(|l| alu::insert(t, a.get(l), b.get(l), c.get(l), d.get(l))))
        }
        (Sum::Lop3(i), [a, b, c]) if i.join.is_none() => {
            let table = i.table.0.cast_unsigned();
            Some(Lanes::from_fn(|l| alu::table(a.get(l), b.get(l), c.get(l), table)))
        }
        (Sum::Prmt(_), [a, b, c]) => three([a, b, c], &|a, b, c| Some(alu::permute(a, b, c))),
        (Sum::Shf(i), [a, b, c]) => {
            let (left, wrap) = (i.way == Way::L, i.over == Over::Wrap);
            three([a, b, c], &|a, b, c| Some(alu::funnel(left, wrap, a, b, c)))
        }
        (Sum::Cvt(i), [a]) => converted(i, t, a),
        _ => None,
    }
}

fn binary(i: &Binary, t: Int, a: &Lanes, b: &Lanes) -> Option<Lanes> {
    if i.sat.is() || i.relu.is() {
        return None;
    }
    let of = |a, b| match (i.form, i.half) {
        (BinaryForm::Mul, Some(half)) => alu::product(half, t, a, b),
        (form, _) => alu::two(form, t, a, b),
    };
    if let (Lanes::Same(a), Lanes::Same(b)) = (a, b) {
        return of(*a, *b).map(Lanes::Same);
    }
    let all: Vec<u64> = (0..LANES).map(|l| of(a.get(l), b.get(l))).collect::<Option<_>>()?;
    Some(Lanes::from_fn(|l| all[l]))
}

fn ternary(i: &Ternary, t: Int, args: [&Lanes; 3]) -> Option<Lanes> {
    match (i.form, i.half) {
        (TernaryForm::Bfe, _) => three(args, &|a, b, c| Some(alu::extract(t, a, b, c))),
        (TernaryForm::Mad, Some(half)) if !i.sat.is() && !i.relu.is() => {
            let bits = if half == Half::Wide { (t.bits * 2).min(64) } else { t.bits };
            let wide = Int { bits, ..t };
            three(args, &|a, b, c| {
                Some(wide.pattern(wide.number(alu::product(half, t, a, b)?) + wide.number(c)))
            })
        }
        _ => None,
    }
}

fn converted(i: &Cvt, from: Int, a: &Lanes) -> Option<Lanes> {
    if i.form != CvtForm::Cvt || i.sat.is() || i.relu.is() {
        return None;
    }
    let to = Int::of(i.ty.at(0))?;
    Some(a.map(|v| to.pattern(from.number(v))))
}

fn three([a, b, c]: [&Lanes; 3], f: &dyn Fn(u64, u64, u64) -> Option<u64>) -> Option<Lanes> {
    let all: Vec<u64> = (0..LANES).map(|l| f(a.get(l), b.get(l), c.get(l))).collect::<Option<_>>()?;
    Some(Lanes::from_fn(|l| all[l]))
}
