//! Evaluates instructions that only compute: moves, comparisons, conversions, integer arithmetic.

use super::Step;
use super::lanes::{shuffled, voted};
use crate::ptx::{Arg, Plain};
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::integer;
use crate::specialise::known::map::SHARED_WINDOW;
use crate::specialise::known::value::{Base, Lanes, Val, Why};
use moire_program::ir::{Reg, Ty};

/// The value of each destination.
pub(super) fn results(step: &Step<'_, '_>, words: &[&str], plain: &Plain, count: usize) -> Vec<Val> {
    // A result that cannot be evaluated depends on the first unknown operand.
    let why = plain.args.iter().skip(1).flat_map(elements).find_map(|a| match step.arg(a) {
        Val::Unknown(why @ (Why::Param(..) | Why::Loaded(_) | Why::Computed(1..))) => Some(why),
        // A number of 64 bits, which was taken for a pointer.
        Val::Based(Base::Param(n), _) => Some(Why::Param(n, 0)),
        _ => None,
    });
    let unknown = Val::Unknown(why.unwrap_or(Why::Computed(step.line())));
    let found = match words[0] {
        "mov" => moved(step, words, plain),
        "setp" => compared(step, words, plain),
        "shfl" => shuffled(step, words, plain),
        "vote" | "activemask" | "match" | "redux" => voted(step, words, plain),
        _ => computed(step, words, plain).map(|v| vec![v]),
    };
    let mut found = found.unwrap_or_default();
    found.resize(count, unknown);
    found
}

/// The elements of a vector, or the one operand that it is.
fn elements(arg: &Arg) -> &[Arg] {
    if let Arg::Vector(all) = arg { all } else { std::slice::from_ref(arg) }
}

/// Cuts a known value to the declared width of its register.
pub(super) fn cut(step: &Step<'_, '_>, reg: Reg, value: Val) -> Val {
    let width = step.round().kernel.types.get(reg.index()).map_or(8, |t| t.bytes());
    match value {
        Val::Known(l) if width < 8 => {
            let bits = (1u64 << (8 * width)) - 1;
            Val::Known(l.map(|v| v & bits))
        }
        other => other,
    }
}

/// Evaluates `mov`, with packing and unpacking of vectors.
fn moved(step: &Step<'_, '_>, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
    let bits = 8 * words.last().and_then(|w| crate::ptx::type_of(w))?.bytes();
    match (plain.args.first()?, plain.args.get(1)?) {
        (Arg::Vector(parts), source) => {
            let width = bits / u32::try_from(parts.len()).ok()?;
            let Val::Known(all) = step.arg(source) else { return None };
            let shift = |i: usize| width.saturating_mul(u32::try_from(i).unwrap_or(64)).min(63);
            let cut = Int { bits: width.clamp(1, 64), signed: false };
            let part = |(i, a): (usize, &Arg)| {
                matches!(a, Arg::Reg(_)).then(|| Val::Known(all.map(|v| cut.cut(v >> shift(i)))))
            };
            Some(parts.iter().enumerate().filter_map(part).collect())
        }
        (_, Arg::Vector(parts)) => {
            let width = bits / u32::try_from(parts.len()).ok()?;
            let cut = Int { bits: width.clamp(1, 64), signed: false };
            let mut total = Lanes::Same(0);
            for (i, part) in parts.iter().enumerate() {
                let Val::Known(one) = step.arg(part) else { return None };
                let shift = width.checked_mul(u32::try_from(i).ok()?).filter(|s| *s < 64)?;
                total = total.zip(&one, |t, v| t | cut.cut(v) << shift);
            }
            Some(vec![Val::Known(total)])
        }
        (_, source) => match step.arg(source) {
            Val::Known(l) if bits == 1 || words.last() == Some(&"pred") => {
                Some(vec![Val::Known(l.map(|v| u64::from(v != 0)))])
            }
            other => Some(vec![other]),
        },
    }
}

/// `setp.cmp{.bool}.type p{|q}, a, b{, c}`
fn compared(step: &Step<'_, '_>, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
    let t = Int::of(crate::ptx::type_of(words.last()?)?)?;
    let (a, b) = (step.arg(plain.args.get(1)?), step.arg(plain.args.get(2)?));
    let name = words.get(1)?;
    let found = match (&a, &b) {
        (Val::Known(a), Val::Known(b)) => {
            alu::compare(name, t, 0, 0)?;
            a.zip(b, |a, b| u64::from(alu::compare(name, t, a, b).unwrap_or(false)))
        }
        (Val::Based(p, a), Val::Based(q, b)) if p == q && matches!(*name, "eq" | "ne") => {
            a.zip(b, |a, b| u64::from((a == b) == (*name == "eq")))
        }
        // An address is never null.
        (Val::Based(Base::Param(_) | Base::Variable(_), _), Val::Known(z))
            if *z == Lanes::Same(0) && matches!(*name, "eq" | "ne") =>
        {
            Lanes::Same(u64::from(*name == "ne"))
        }
        _ => return None,
    };
    let not = found.map(|v| u64::from(v == 0));
    let both = match (words.get(2), plain.args.get(3)) {
        (Some(op @ (&"and" | &"or" | &"xor")), Some(c)) => {
            let Val::Known(c) = step.arg(c) else { return None };
            let with =
                |v: &Lanes| v.zip(&c, |a, b| alu::two(op, Int { bits: 1, signed: false }, a, b).unwrap_or(0));
            [with(&found), with(&not)]
        }
        (Some(&"and" | &"or" | &"xor"), None) => return None,
        _ => [found, not],
    };
    let [first, second] = both.map(Val::Known);
    Some(match plain.args.first()? {
        Arg::Pair(None, Some(_)) => vec![second],
        _ => vec![first, second],
    })
}

/// Evaluates an instruction with one destination.
fn computed(step: &Step<'_, '_>, words: &[&str], plain: &Plain) -> Option<Val> {
    let args: Vec<Val> = plain.args.iter().skip(1).map(|a| step.arg(a)).collect();
    let name = words[0];
    if name == "cvta" {
        return converted_address(words, args.first()?);
    }
    if name == "mapa" || name == "getctarank" {
        return None;
    }
    let ty = words.last().and_then(|w| crate::ptx::type_of(w))?;
    if name == "selp" {
        let Val::Known(p) = args.get(2)? else { return None };
        let (a, b) = (args.first()?.clone(), args.get(1)?);
        let truth = p.truth(u32::MAX);
        return Some(match truth {
            u32::MAX => a,
            0 => b.clone(),
            some => a.over(some, b),
        });
    }
    if name == "isspacep" {
        return None;
    }
    if let Some(v) = integer::shifted_base(name, words, &args) {
        return Some(v);
    }
    let known: Option<Vec<&Lanes>> = args.iter().map(Val::known).collect();
    let known = match known {
        Some(known) => known,
        None => return simplified(name, ty, &args),
    };
    integer::integer(name, words, ty, &known).map(Val::Known)
}

/// A result that one operand decides, such as `and` with zero, or that repeats an operand.
fn simplified(name: &str, ty: Ty, args: &[Val]) -> Option<Val> {
    Int::of(ty)?;
    let zero = |v: &Val| v.known() == Some(&Lanes::Same(0));
    match (name, args) {
        ("and", [a, b]) if zero(a) || zero(b) => Some(Val::same(0)),
        ("and" | "or", [a, b]) if a == b => Some(a.clone()),
        ("or" | "xor" | "add" | "shl" | "shr", [a, b]) if zero(b) => Some(a.clone()),
        ("or" | "xor" | "add", [a, b]) if zero(a) => Some(b.clone()),
        _ => match args.iter().find(|a| matches!(a, Val::Unknown(_))) {
            Some(Val::Unknown(why)) => Some(Val::Unknown(*why)),
            _ => None,
        },
    }
}

/// Evaluates `cvta` to and from the window of shared memory.
fn converted_address(words: &[&str], value: &Val) -> Option<Val> {
    let to = words.contains(&"to");
    let shared = words.iter().any(|w| w.starts_with("shared"));
    match value {
        Val::Known(l) if shared && to => Some(Val::Known(l.map(|v| v.wrapping_sub(SHARED_WINDOW)))),
        Val::Known(l) if shared => Some(Val::Known(l.map(|v| v.wrapping_add(SHARED_WINDOW)))),
        other => Some(other.clone()),
    }
}
