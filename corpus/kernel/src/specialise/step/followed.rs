//! Arithmetic on values that only the exploration knows: it stays in the residual program.
//!
//! Ordered and atomic accesses, and words of shared memory that decide something, hand registers of the residual program to
//! the kernel. What a kernel computes from them decides its branches: the difference of two tickets, the flipped bit of a
//! grid barrier. Evaluated here are integer instructions whose operands are such registers or numbers on which the lanes
//! agree. Everything else has an unknown result.

use super::{Executing, Then};
use crate::Refusal;
use crate::ptx::{self, Sum};
use crate::specialise::known::value::{Base, Lanes, Val, lanes};
use moire_isa::kinds::{BinaryForm, Cmp, Half, Num, UnaryForm};
use moire_isa::{Binary, Value};
use moire_program::ir::{AluOp, CmpOp, Op, Operand, Reg, Ty};
use std::collections::BTreeSet;

/// Number of the register of a statement that its result is in.
const RESULT: usize = 0;
/// Numbers of the registers of a statement for operands that a constant has been added to.
const SUMS: [usize; 2] = [3_000, 3_001];

/// The value as an operand of an item: a number on which the lanes agree, or a register of the exploration. If a constant
/// has been added to the register, the addition is left behind. None if the lanes differ or the value is unknown.
pub(super) fn operand_left(
    step: &mut Executing<'_, '_>,
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
    step: &mut Executing<'_, '_>,
    sum: Sum<'_>,
    written: &[Reg],
) -> Result<Option<Then>, Refusal> {
    let [dst] = *written else { return Ok(None) };
    match sum {
        Sum::Setp(i) if i.join.is_none() => {
            let Some((ty, [a, b])) = held_of(step, i.ty, [&i.a, &i.b]) else { return Ok(None) };
            compared(step, i.cmp, ty, (&a, &b), dst)
        }
        Sum::Unary(i) if matches!(i.form, UnaryForm::Neg | UnaryForm::Not) => {
            let Some((ty, [a])) = held_of(step, i.ty, [&i.a]) else { return Ok(None) };
            match i.form {
                UnaryForm::Neg => computed(step, AluOp::Sub, ty, (&Val::same(0), &a), dst),
                _ => computed(step, AluOp::Xor, ty, (&a, &Val::same(u64::MAX)), dst),
            }
        }
        Sum::Binary(i) => {
            if let Some(lane) = lane_of(step, i) {
                step.set(dst, Val::Known(lane));
                return Ok(Some(Then::Next));
            }
            let (Some(op), Some((ty, [a, b]))) = (alu(i), held_of(step, i.ty.first, [&i.a, &i.b])) else {
                return Ok(None);
            };
            computed(step, op, ty, (&a, &b), dst)
        }
        _ => Ok(None),
    }
}

/// The operands of an instruction on integers, if one of them is a register of the exploration.
fn held_of<const N: usize>(step: &Executing<'_, '_>, ty: Num, args: [&Value; N]) -> Option<(Ty, [Val; N])> {
    let ty = ptx::numeric(ty).filter(|ty| matches!(ty, Ty::U(_) | Ty::S(_) | Ty::B(_)))?;
    let args = args.map(|value| step.read(value));
    args.iter().any(held).then_some((ty, args))
}

/// Bits of a column in an address of tensor memory; the lane stands above them.
const COLUMN_BITS: u64 = 16;
/// Columns of tensor memory.
const COLUMNS: u64 = 512;

/// How far behind an allocation of tensor memory an address is, in each lane.
fn behind(step: &Executing<'_, '_>, value: &Val) -> Option<Lanes> {
    let Val::Based(Base::Register(r), by) = value else { return None };
    let start = (*step.warp.allocated.get(r)?)?;
    Some(by.map(|v| v.wrapping_add(start) & 0xffff_ffff))
}

/// What is left of an address in tensor memory that is shifted to its lane, or beyond: an allocation starts in lane 0 (PTX ISA
/// 9.2, 9.7.16.1).
fn lane_of(step: &Executing<'_, '_>, i: &Binary) -> Option<Lanes> {
    let shift = step.read(&i.b).known()?.one(step.mask)?;
    let by = behind(step, &step.read(&i.a)).filter(|_| i.form == BinaryForm::Shr)?;
    let low = |v: u64| v & ((1 << COLUMN_BITS) - 1);
    let fits = |lane: usize| low(by.get(lane)) + COLUMNS <= 1 << COLUMN_BITS && by.get(lane) >> 31 == 0;
    let all = (COLUMN_BITS..32).contains(&shift) && lanes(step.mask).all(fits);
    all.then(|| by.map(|v| v >> shift))
}

/// How far behind an allocation a sum is.
fn moved(step: &Executing<'_, '_>, op: AluOp, (a, b): (&Val, &Val)) -> Option<u64> {
    let number = |v: &Val| v.known()?.one(step.mask);
    let sum = |a, b| Some(behind(step, a)?.one(step.mask)?.wrapping_add(number(b)?));
    sum(a, b).or_else(|| sum(b, a)).filter(|_| op == AluOp::Add)
}

/// The operation of litmus texts, if there is one.
fn alu(i: &Binary) -> Option<AluOp> {
    let bare = !(i.sat.is() || i.relu.is() || i.carry.is());
    Some(match i.form {
        BinaryForm::Add if bare => AluOp::Add,
        BinaryForm::Sub if bare => AluOp::Sub,
        BinaryForm::Mul if i.half == Some(Half::Lo) => AluOp::Mul,
        BinaryForm::And => AluOp::And,
        BinaryForm::Or => AluOp::Or,
        BinaryForm::Xor => AluOp::Xor,
        BinaryForm::Shl => AluOp::Shl,
        BinaryForm::Shr => AluOp::Shr,
        BinaryForm::Min if bare => AluOp::Min,
        BinaryForm::Max if bare => AluOp::Max,
        _ => return None,
    })
}

/// Leaves an instruction with two operands, whose result the kernel goes on with.
fn computed(
    step: &mut Executing<'_, '_>,
    op: AluOp,
    ty: Ty,
    (a, b): (&Val, &Val),
    dst: Reg,
) -> Result<Option<Then>, Refusal> {
    let moved = moved(step, op, (a, b));
    let Some(a) = operand_left(step, a, ty, SUMS[0])? else { return Ok(None) };
    let Some(b) = operand_left(step, b, ty, SUMS[1])? else { return Ok(None) };
    let result = step.slot(RESULT)?;
    step.warp.allocates(result, moved);
    step.leave_op(Op::Alu { op, ty, dst: result, a, b })?;
    step.set(dst, Val::Based(Base::Register(result.0), Lanes::Same(0)));
    Ok(Some(Then::Next))
}

/// Splits the run at a comparison: both answers are possible.
fn compared(
    step: &mut Executing<'_, '_>,
    cmp: Cmp,
    ty: Ty,
    (a, b): (&Val, &Val),
    dst: Reg,
) -> Result<Option<Then>, Refusal> {
    let signed = match ty {
        Ty::S(_) => true,
        Ty::U(_) => false,
        _ => matches!(cmp, Cmp::Eq | Cmp::Ne),
    };
    let compare = match cmp {
        Cmp::Eq => CmpOp::Eq,
        Cmp::Ne => CmpOp::Ne,
        Cmp::Lt => CmpOp::Lt,
        Cmp::Le => CmpOp::Le,
        Cmp::Gt => CmpOp::Gt,
        Cmp::Ge => CmpOp::Ge,
        // `lo`, `ls`, `hi`, `hs` compare without signs.
        Cmp::Lo if !signed => CmpOp::Lt,
        Cmp::Ls if !signed => CmpOp::Le,
        Cmp::Hi if !signed => CmpOp::Gt,
        Cmp::Hs if !signed => CmpOp::Ge,
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
    step: &Executing<'_, '_>,
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
