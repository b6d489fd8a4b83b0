//! Evaluates instructions that only compute: moves, comparisons, conversions, integer arithmetic.

use super::Executing;
use super::lanes::{shuffled, voted};
use crate::ptx::{Sum, sources};
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::integer;
use crate::specialise::known::line::{Forms, grows, grows_in_part};
use crate::specialise::known::map::SHARED_WINDOW;
use crate::specialise::known::value::{Base, Lanes, Val, Why};
use moire_isa::kinds::{BinaryForm, Cmp, Join, Num, TernaryForm, To, WindowSpace};
use moire_isa::{Binary, Cvta, Instr, Mov, Selp, Setp, Ternary, Value};
use moire_program::ir::Reg;
use std::rc::Rc;

/// Most numbers of lanes by which what grows is multiplied.
const PARTS: usize = 16;

/// The value of each destination.
pub(super) fn results(step: &Executing<'_, '_>, instr: &Instr, sum: Sum<'_>, count: usize) -> Vec<Val> {
    let mut found = match sum {
        Sum::Mov(mov) => moved(step, mov),
        Sum::Setp(setp) => compared(step, setp),
        Sum::Shfl(shfl) => shuffled(step, shfl),
        Sum::Vote(_) | Sum::Activemask | Sum::Match(_) | Sum::Redux(_) => voted(step, sum),
        Sum::Selp(selp) => chosen(step, selp).map(|v| vec![v]),
        Sum::Cvta(cvta) => Some(vec![converted_address(cvta, &step.read(&cvta.a.0))]),
        sum => computed(step, instr, sum).map(|v| vec![v]),
    }
    .unwrap_or_default();
    found.resize(count, Val::Unknown(because(step, instr)));
    found
}

/// A result that cannot be evaluated depends on the first unknown operand.
fn because(step: &Executing<'_, '_>, instr: &Instr) -> Why {
    let why = sources(instr).iter().find_map(|value| match step.read(value) {
        Val::Unknown(why @ (Why::Param(..) | Why::Word(..) | Why::Loaded(_) | Why::Computed(1..))) => {
            Some(why)
        }
        // A number of 64 bits, which was taken for a pointer.
        Val::Based(Base::Param(n), _) => {
            let (index, at) = step.round().launch.pointer(n).0;
            Some(Why::Param(index, at))
        }
        _ => None,
    });
    why.unwrap_or(Why::Computed(step.line()))
}

/// Cuts a known value to the declared width of its register.
pub(super) fn cut(step: &Executing<'_, '_>, reg: Reg, value: Val) -> Val {
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
fn moved(step: &Executing<'_, '_>, mov: &Mov) -> Option<Vec<Val>> {
    let bits = if mov.ty == Num::Pred { 8 } else { u32::from(mov.ty.bits()) };
    let (to, from) = (&mov.dst.0, &mov.a.0);
    if to.braced {
        return unpacked(step, &to.items, bits, from.items.first()?);
    }
    if from.braced {
        return packed(step, &from.items, bits).map(|v| vec![v]);
    }
    match step.real(from.items.first()?, mov.ty.bits()) {
        Val::Known(l) if mov.ty == Num::Pred => Some(vec![Val::Known(l.map(|v| u64::from(v != 0)))]),
        other => Some(vec![other]),
    }
}

fn unpacked(step: &Executing<'_, '_>, parts: &[Value], bits: u32, source: &Value) -> Option<Vec<Val>> {
    let (count, source) = (u32::try_from(parts.len()).ok()?, step.read(source));
    let width = bits / count;
    if bits > 64 {
        return None;
    }
    if grows(&source) {
        let part =
            |(i, part): (u32, &Value)| part.reg().map(|_| unpacked_part(step, &source, width, (i, count)));
        return Some((0..).zip(parts).filter_map(part).collect());
    }
    let Val::Known(all) = source else { return None };
    let shift = |i: usize| width.saturating_mul(u32::try_from(i).unwrap_or(64)).min(63);
    let cut = Int { bits: width.clamp(1, 64), signed: false };
    let part =
        |(i, part): (usize, &Value)| part.reg().map(|_| Val::Known(all.map(|v| cut.cut(v >> shift(i)))));
    Some(parts.iter().enumerate().filter_map(part).collect())
}

fn unpacked_part(step: &Executing<'_, '_>, whole: &Val, width: u32, (n, count): (u32, u32)) -> Val {
    let part = step.forms().unpacked(whole, width, n, count);
    part.unwrap_or(Val::Unknown(Why::Computed(step.line())))
}

fn packed(step: &Executing<'_, '_>, parts: &[Value], bits: u32) -> Option<Val> {
    // Of 128 bits only the answer about another cluster is followed, which stands in the first part.
    if bits == 128 {
        let all = parts.iter().all(|part| matches!(step.read(part), Val::Known(_)));
        return all.then(|| step.read(&parts[0]));
    }
    let width = bits / u32::try_from(parts.len()).ok()?;
    let values: Vec<Val> = parts.iter().map(|part| step.read(part)).collect();
    if values.iter().any(grows) {
        return step.forms().packed(&values, width);
    }
    let cut = Int { bits: width.clamp(1, 64), signed: false };
    let mut total = Lanes::Same(0);
    for (i, part) in parts.iter().enumerate() {
        let Val::Known(one) = step.read(part) else { return None };
        let shift = width.checked_mul(u32::try_from(i).ok()?).filter(|s| *s < 64)?;
        total = total.zip(&one, |t, v| t | cut.cut(v) << shift);
    }
    Some(Val::Known(total))
}

/// `setp.cmp{.bool}.type p{|q}, a, b{, c}`
fn compared(step: &Executing<'_, '_>, setp: &Setp) -> Option<Vec<Val>> {
    let found = answer(step, setp)?;
    let not = found.map(|v| u64::from(v == 0));
    let both = match (setp.join, &setp.c) {
        (Some(join), Some(c)) => {
            let Val::Known(c) = step.predicate(c) else { return None };
            [joined(join, &found, &c), joined(join, &not, &c)]
        }
        (Some(_), None) => return None,
        (None, _) => [found, not],
    };
    let [first, second] = both.map(Val::Known);
    Some(match (setp.dst.first, setp.dst.second) {
        (None, Some(Some(_))) => vec![second],
        _ => vec![first, second],
    })
}

fn answer(step: &Executing<'_, '_>, setp: &Setp) -> Option<Lanes> {
    let t = Int::of(setp.ty)?;
    let (cmp, equality) = (setp.cmp, matches!(setp.cmp, Cmp::Eq | Cmp::Ne));
    match (&step.read(&setp.a), &step.read(&setp.b)) {
        (a, b) if grows(a) || grows(b) => step.forms().compared(cmp, t, a, b),
        (Val::Known(a), Val::Known(b)) => {
            alu::compare(cmp, t, 0, 0)?;
            Some(a.zip(b, |a, b| u64::from(alu::compare(cmp, t, a, b).unwrap_or(false))))
        }
        (Val::Based(p, a), Val::Based(q, b)) if p == q && equality => {
            Some(a.zip(b, |a, b| u64::from((a == b) == (cmp == Cmp::Eq))))
        }
        // An address is never null.
        (Val::Based(Base::Param(_) | Base::Variable(_), _), Val::Known(z))
            if *z == Lanes::Same(0) && equality =>
        {
            Some(Lanes::Same(u64::from(cmp == Cmp::Ne)))
        }
        _ => None,
    }
}

fn joined(join: Join, a: &Lanes, b: &Lanes) -> Lanes {
    a.zip(b, |a, b| match join {
        Join::And => a & b & 1,
        Join::Or => (a | b) & 1,
        Join::Xor => (a ^ b) & 1,
    })
}

/// Evaluates `selp`.
fn chosen(step: &Executing<'_, '_>, selp: &Selp) -> Option<Val> {
    let Val::Known(p) = step.predicate(&selp.c) else { return None };
    let bits = selp.ty.bits();
    let (a, b) = (step.real(&selp.a, bits), step.real(&selp.b, bits));
    Some(match p.truth(u32::MAX) {
        u32::MAX => a,
        0 => b,
        some => a.over(some, &b),
    })
}

/// Evaluates an instruction with one destination.
fn computed(step: &Executing<'_, '_>, instr: &Instr, sum: Sum<'_>) -> Option<Val> {
    integer::operands(sum)?;
    let args: Vec<Val> = sources(instr).iter().map(|value| step.read(value)).collect();
    let (parts, forms) = (apart(step, sum, &args), step.forms());
    if let [_] = parts[..] {
        return evaluated(step, &forms, sum, &args);
    }
    let part = |mask: u32| {
        let own: Vec<Val> = args.iter().map(|a| a.of(mask)).collect();
        evaluated(step, &Forms { mask, ..step.forms() }, sum, &own)
    };
    let (last, others) = parts.split_last()?;
    let over = |rest: Val, mask: &u32| Some(Val::Parted(*mask, Rc::new((part(*mask)?, rest))));
    others.iter().try_fold(part(*last)?, over)
}

/// The result for some lanes, whose operands grow alike.
fn evaluated(step: &Executing<'_, '_>, forms: &Forms<'_>, sum: Sum<'_>, args: &[Val]) -> Option<Val> {
    if args.iter().any(grows) {
        let unknown = Val::Unknown(Why::Computed(step.line()));
        return Some(forms.computed(sum, args).unwrap_or(unknown));
    }
    if let Some(v) = integer::shifted_base(sum, args) {
        return Some(v);
    }
    let known: Option<Vec<&Lanes>> = args.iter().map(Val::known).collect();
    match known {
        Some(known) => integer::integer(sum, &known).map(Val::Known),
        None => simplified(sum, args),
    }
}

/// The lanes whose operands grow alike: a mask for each growth, or one for all. A product of what grows by a number of each lane
/// grows by another number in each.
fn apart(step: &Executing<'_, '_>, sum: Sum<'_>, args: &[Val]) -> Vec<u32> {
    let parted = |v: &&Val| matches!(v, Val::Parted(..)) && grows_in_part(v);
    if let Some(parted) = args.iter().find(parted) {
        return parted.parts(step.mask);
    }
    let product = matches!(sum, Sum::Binary(Binary { form: BinaryForm::Mul, .. }))
        || matches!(sum, Sum::Ternary(Ternary { form: TernaryForm::Mad, .. }));
    let factors = args.get(..2).filter(|f| product && f.iter().any(grows)).unwrap_or_default();
    let own = factors.iter().find(|f| matches!(f, Val::Known(_))).map(|f| step.alike(f));
    own.filter(|all| all.len() <= PARTS).unwrap_or_else(|| vec![step.mask])
}

/// A result that one operand decides, such as `and` with zero, or that repeats an operand.
fn simplified(sum: Sum<'_>, args: &[Val]) -> Option<Val> {
    let zero = |v: &Val| v.known() == Some(&Lanes::Same(0));
    let form = if let Sum::Binary(i) = sum { Some(i.form) } else { None };
    use BinaryForm::{Add, And, Or, Shl, Shr, Xor};
    match (form, args) {
        (Some(And), [a, b]) if zero(a) || zero(b) => Some(Val::same(0)),
        (Some(And | Or), [a, b]) if a == b => Some(a.clone()),
        (Some(Or | Xor | Add | Shl | Shr), [a, b]) if zero(b) => Some(a.clone()),
        (Some(Or | Xor | Add), [a, b]) if zero(a) => Some(b.clone()),
        _ => match args.iter().find(|a| matches!(a, Val::Unknown(_))) {
            Some(Val::Unknown(why)) => Some(Val::Unknown(*why)),
            _ => None,
        },
    }
}

/// Evaluates `cvta` to and from the window of shared memory.
fn converted_address(cvta: &Cvta, value: &Val) -> Val {
    let shared = matches!(cvta.space, WindowSpace::SharedCta | WindowSpace::SharedCluster);
    match value {
        Val::Known(l) if shared && cvta.to == To::Yes => Val::Known(l.map(|v| v.wrapping_sub(SHARED_WINDOW))),
        Val::Known(l) if shared => Val::Known(l.map(|v| v.wrapping_add(SHARED_WINDOW))),
        other => other.clone(),
    }
}
