//! Evaluates instructions with one destination on all lanes: offsets of addresses, and integers.

use super::alu::{self, Int};
use super::value::{Base, Lanes, Val};
use moire_program::ir::Ty;

/// Evaluates offsets and conversions of an address.
pub(crate) fn shifted_base(name: &str, words: &[&str], args: &[Val]) -> Option<Val> {
    match (name, args) {
        ("add", [b @ Val::Based(..), Val::Known(k)] | [Val::Known(k), b @ Val::Based(..)]) => Some(b.add(k)),
        ("sub", [b @ Val::Based(..), Val::Known(k)]) => Some(b.add(&k.map(u64::wrapping_neg))),
        ("sub", [Val::Based(p, a), Val::Based(q, b)]) if p == q => {
            Some(Val::Known(a.zip(b, u64::wrapping_sub)))
        }
        // The base of an allocation has lane 0, so `or` adds the lane bits too.
        (
            "or",
            [b @ Val::Based(Base::Register(_), Lanes::Same(o)), Val::Known(k)]
            | [Val::Known(k), b @ Val::Based(Base::Register(_), Lanes::Same(o))],
        ) if *o <= 0xffff && k.map(|v| v & 0xffff) == Lanes::Same(0) => Some(b.add(k)),
        ("cvt", [b @ Val::Based(..)]) if !words.iter().any(|w| w.starts_with('f')) => Some(b.clone()),
        ("mad", [Val::Known(a), Val::Known(b), base @ Val::Based(..)]) => {
            let ty = words.last().and_then(|w| crate::ptx::type_of(w))?;
            let t = Int::of(ty)?;
            let part = words.get(1)?;
            alu::product(part, t, 0, 0)?;
            Some(base.add(&a.zip(b, |a, b| alu::product(part, t, a, b).unwrap_or(0))))
        }
        _ => None,
    }
}

/// Evaluates an integer instruction on known operands.
pub(crate) fn integer(name: &str, words: &[&str], ty: Ty, args: &[&Lanes]) -> Option<Lanes> {
    let t = Int::of(ty)?;
    // Saturation, clamping and shift amounts give other values.
    if words.iter().any(|w| matches!(*w, "sat" | "relu" | "shiftamt")) {
        return None;
    }
    let part = words.get(1).copied().unwrap_or_default();
    let three = |f: &dyn Fn(u64, u64, u64) -> Option<u64>| -> Option<Lanes> {
        let [a, b, c] = args else { return None };
        let all: Option<Vec<u64>> =
            (0..super::value::LANES).map(|l| f(a.get(l), b.get(l), c.get(l))).collect();
        let all = all?;
        Some(Lanes::from_fn(|l| all[l]))
    };
    let pair = |f: &dyn Fn(u64, u64) -> Option<u64>| -> Option<Lanes> {
        let [a, b] = args else { return None };
        if let (Lanes::Same(a), Lanes::Same(b)) = (a, b) {
            return f(*a, *b).map(Lanes::Same);
        }
        let all: Option<Vec<u64>> = (0..super::value::LANES).map(|l| f(a.get(l), b.get(l))).collect();
        let all = all?;
        Some(Lanes::from_fn(|l| all[l]))
    };
    match name {
        "cvt" => {
            if words.contains(&"pack") {
                return None;
            }
            let to = words.iter().rev().nth(1).and_then(|w| crate::ptx::type_of(w)).and_then(Int::of)?;
            let [a] = args else { return None };
            Some(a.map(|v| to.pattern(t.number(v))))
        }
        "mul" => pair(&|a, b| alu::product(part, t, a, b)),
        "mad" => three(&|a, b, c| {
            let wide = Int { bits: if part == "wide" { (t.bits * 2).min(64) } else { t.bits }, ..t };
            Some(wide.pattern(wide.number(alu::product(part, t, a, b)?) + wide.number(c)))
        }),
        "bfe" => three(&|a, b, c| Some(alu::extract(t, a, b, c))),
        "bfi" => {
            let [a, b, c, d] = args else { return None };
            Some(Lanes::from_fn(|l| alu::insert(t, a.get(l), b.get(l), c.get(l), d.get(l))))
        }
        "lop3" => {
            let [a, b, c, d, ..] = args else { return None };
            (words.len() == 2).then(|| Lanes::from_fn(|l| alu::table(a.get(l), b.get(l), c.get(l), d.get(l))))
        }
        "prmt" if words.len() == 2 => three(&|a, b, c| Some(alu::permute(a, b, c))),
        "shf" => three(&|a, b, c| Some(alu::funnel(part == "l", words.contains(&"wrap"), a, b, c))),
        "slct" => None,
        _ if args.len() == 1 => {
            let [a] = args else { return None };
            alu::one(name, t, 0)?;
            Some(a.map(|v| alu::one(name, t, v).unwrap_or(0)))
        }
        _ => pair(&|a, b| alu::two(name, t, a, b)),
    }
}
