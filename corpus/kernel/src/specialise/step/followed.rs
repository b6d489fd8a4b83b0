//! Arithmetic on values that only the exploration knows: it stays in the residual program.
//!
//! Ordered and atomic accesses, and words of shared memory that decide something, hand registers of the residual program to
//! the kernel. What a kernel computes from them decides its branches: the difference of two tickets, the flipped bit of a
//! grid barrier. Evaluated here are integer instructions whose operands are such registers or numbers on which the lanes
//! agree. Everything else has an unknown result.

use super::{Step, Then};
use crate::Refusal;
use crate::ptx::{Plain, type_of};
use crate::specialise::known::value::{Base, Lanes, Val};
use moire_program::ir::{AluOp, CmpOp, Op, Operand, Reg, Ty};
use std::collections::BTreeSet;

/// Number of the register of a statement that its result is in.
const RESULT: usize = 0;
/// Numbers of the registers of a statement for operands that a constant has been added to.
const SUMS: [usize; 2] = [3_000, 3_001];

/// The value as an operand of an item: a number on which the lanes agree, or a register of the exploration. If a constant
/// has been added to the register, the addition is left behind. None if the lanes differ or the value is unknown.
pub(super) fn operand_left(
    step: &mut Step<'_, '_>,
    value: &Val,
    ty: Ty,
    slot: usize,
) -> Result<Option<Operand>, Refusal> {
    if let Some(found) = step.operand_of(value) {
        return Ok(Some(found));
    }
    let Val::Based(Base::Register(r), by) = value else { return Ok(None) };
    let Some(by) = by.one(step.mask) else { return Ok(None) };
    let dst = step.slot(slot)?;
    let (a, b) = (Operand::Reg(Reg(*r)), Operand::Imm(i128::from(by.cast_signed())));
    step.leave_op(Op::Alu { op: AluOp::Add, ty, dst, a, b })?;
    Ok(Some(Operand::Reg(dst)))
}

/// Whether an operand is a register of the exploration.
fn held(value: &Val) -> bool {
    matches!(value, Val::Based(Base::Register(_), _))
}

/// Runs an instruction on registers of the exploration. None if it is no such instruction, or not followed.
pub(super) fn followed(
    step: &mut Step<'_, '_>,
    words: &[&str],
    plain: &Plain,
    written: &[Reg],
) -> Result<Option<Then>, Refusal> {
    let Some(ty) = words.last().and_then(|w| type_of(w)) else { return Ok(None) };
    let args: Vec<Val> = plain.args.iter().skip(1).map(|a| step.arg(a)).collect();
    if !args.iter().any(held) || !matches!(ty, Ty::U(_) | Ty::S(_) | Ty::B(_)) {
        return Ok(None);
    }
    match (words[0], args.as_slice(), written) {
        ("setp", [a, b], [dst]) => compared(step, words, ty, (a, b), *dst),
        (name, [a], [dst]) => match name {
            "neg" => computed(step, AluOp::Sub, ty, (&Val::same(0), a), *dst),
            "not" => computed(step, AluOp::Xor, ty, (a, &Val::same(u64::MAX)), *dst),
            _ => Ok(None),
        },
        (name, [a, b], [dst]) => {
            let op = match name {
                "add" if words.len() == 2 => AluOp::Add,
                "sub" if words.len() == 2 => AluOp::Sub,
                "mul" if words.get(1) == Some(&"lo") => AluOp::Mul,
                "and" => AluOp::And,
                "or" => AluOp::Or,
                "xor" => AluOp::Xor,
                "shl" => AluOp::Shl,
                "shr" => AluOp::Shr,
                "min" if words.len() == 2 => AluOp::Min,
                "max" if words.len() == 2 => AluOp::Max,
                _ => return Ok(None),
            };
            computed(step, op, ty, (a, b), *dst)
        }
        _ => Ok(None),
    }
}

/// Leaves an instruction with two operands, whose result the kernel goes on with.
fn computed(
    step: &mut Step<'_, '_>,
    op: AluOp,
    ty: Ty,
    (a, b): (&Val, &Val),
    dst: Reg,
) -> Result<Option<Then>, Refusal> {
    let Some(a) = operand_left(step, a, ty, SUMS[0])? else { return Ok(None) };
    let Some(b) = operand_left(step, b, ty, SUMS[1])? else { return Ok(None) };
    let result = step.slot(RESULT)?;
    step.leave_op(Op::Alu { op, ty, dst: result, a, b })?;
    step.set(dst, Val::Based(Base::Register(result.0), Lanes::Same(0)));
    Ok(Some(Then::Next))
}

/// Splits the run at a comparison: both answers are possible.
fn compared(
    step: &mut Step<'_, '_>,
    words: &[&str],
    ty: Ty,
    (a, b): (&Val, &Val),
    dst: Reg,
) -> Result<Option<Then>, Refusal> {
    let signed = match ty {
        Ty::S(_) => true,
        Ty::U(_) => false,
        _ => matches!(words.get(1), Some(&"eq" | &"ne")),
    };
    let compare = match words.get(1) {
        Some(&"eq") => CmpOp::Eq,
        Some(&"ne") => CmpOp::Ne,
        Some(&"lt") => CmpOp::Lt,
        Some(&"le") => CmpOp::Le,
        Some(&"gt") => CmpOp::Gt,
        Some(&"ge") => CmpOp::Ge,
        // `lo`, `ls`, `hi`, `hs` compare without signs.
        Some(&"lo") if !signed => CmpOp::Lt,
        Some(&"ls") if !signed => CmpOp::Le,
        Some(&"hi") if !signed => CmpOp::Gt,
        Some(&"hs") if !signed => CmpOp::Ge,
        _ => return Ok(None),
    };
    let answers = answers(step, compare, ty, (a, b));
    if let Some((register, [no, yes])) = &answers
        && (no.is_empty() || yes.is_empty())
    {
        let all = if no.is_empty() { yes } else { no };
        step.state.numbers.insert(*register, all.clone());
        step.set(dst, Val::same(u64::from(no.is_empty())));
        return Ok(Some(Then::Next));
    }
    let Some(a) = operand_left(step, a, ty, SUMS[0])? else { return Ok(None) };
    let Some(b) = operand_left(step, b, ty, SUMS[1])? else { return Ok(None) };
    let q = step.slot(RESULT)?;
    step.leave_op(Op::Setp { op: compare, ty, dst: q, a, b })?;
    let mut then = step.both(q, &[dst]);
    if let (Then::Ways(ways), Some((register, [no, yes]))) = (&mut then, answers) {
        for ((_, state), numbers) in ways.iter_mut().zip([yes, no]) {
            state.numbers.insert(register, numbers);
        }
    }
    Ok(Some(then))
}

/// The register of a comparison with a number, and the numbers that it may hold, by the answer that they give.
fn answers(
    step: &Step<'_, '_>,
    compare: CmpOp,
    ty: Ty,
    (a, b): (&Val, &Val),
) -> Option<(u16, [BTreeSet<u64>; 2])> {
    let register = |v: &Val| match v {
        Val::Based(Base::Register(r), by) if by.one(step.mask) == Some(0) => Some(*r),
        _ => None,
    };
    let number = |v: &Val| v.known().and_then(|l| l.one(step.mask));
    let (r, truth): (u16, Box<dyn Fn(u64) -> bool>) = match (register(a), register(b)) {
        (Some(r), None) => (r, number(b).map(|b| Box::new(move |n| holds(compare, ty, n, b)) as _)?),
        (None, Some(r)) => (r, number(a).map(|a| Box::new(move |n| holds(compare, ty, a, n)) as _)?),
        _ => return None,
    };
    let (yes, no) = step.state.numbers.get(&r)?.iter().partition(|n| truth(**n));
    Some((r, [no, yes]))
}

/// Whether a comparison of two numbers of this type holds.
fn holds(compare: CmpOp, ty: Ty, a: u64, b: u64) -> bool {
    let free = 64_u32.saturating_sub(8 * ty.bytes());
    let value = |n: u64| match ty {
        Ty::S(_) => i128::from((n << free).cast_signed() >> free),
        _ => i128::from(n << free >> free),
    };
    let (a, b) = (value(a), value(b));
    match compare {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}
