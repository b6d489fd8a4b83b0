//! Elements that are no bytes of memory: bits, which have a byte each, and half bytes, of which two share one.
//!
//! A byte of memory is false if it is zero and otherwise true; true is stored as one. Of two half bytes the first lies in the
//! low half. Source: Tile IR specification, element types and tensor views.

use super::value::{Lane, register_type};
use super::{Block, Done};
use crate::{Scalar, Sign};
use moire_program::ir::{AluOp, CmpOp, Op as Code, Operand};

/// Bits of half a byte.
const HALF: u32 = 4;
/// The low half of a byte.
const LOW: i128 = 0xf;

/// The element of a byte that was read.
pub(super) fn bit(b: &mut Block<'_, '_>, byte: Lane) -> Done<Lane> {
    match byte {
        Lane::Number(a @ Operand::Reg(_)) => {
            let dst = b.fresh("p")?;
            let ty = register_type(Scalar::I8, Sign::Unsigned);
            b.push(Code::Setp { op: CmpOp::Ne, ty, dst, a, b: Operand::Imm(0) })?;
            Ok(Lane::Number(Operand::Reg(dst)))
        }
        Lane::Number(_) | Lane::Pointer(_) | Lane::Nothing => Ok(byte),
    }
}

/// Bytes of pairs of half bytes.
pub(super) fn bytes(b: &mut Block<'_, '_>, elements: &[Lane], pairs: &[[usize; 2]]) -> Done<Vec<Lane>> {
    let mut out = Vec::new();
    for pair in pairs {
        let [Some(low), Some(high)] = pair.map(|at| elements.get(at).copied()) else {
            return b.refuse("a byte without both halves");
        };
        let (low, high) = (b.number(low)?, b.number(high)?);
        let high = shifted(b, AluOp::Shl, high)?;
        out.push(combined(b, AluOp::Or, low, high)?);
    }
    Ok(out)
}

/// Half bytes of bytes that were read.
pub(super) fn elements(b: &mut Block<'_, '_>, bytes: &[Lane], pairs: &[[usize; 2]]) -> Done<Vec<Lane>> {
    let mut out = vec![Lane::Nothing; 2 * pairs.len()];
    for (byte, pair) in bytes.iter().zip(pairs) {
        let Lane::Number(byte) = *byte else { continue };
        let high = shifted(b, AluOp::Shr, byte)?;
        let halves = [combined(b, AluOp::And, byte, Operand::Imm(LOW))?, Lane::Number(high)];
        for (at, half) in pair.iter().zip(halves) {
            if let Some(element) = out.get_mut(*at) {
                *element = half;
            }
        }
    }
    Ok(out)
}

fn shifted(b: &mut Block<'_, '_>, op: AluOp, value: Operand) -> Done<Operand> {
    if let Operand::Imm(known) = value {
        return Ok(Operand::Imm(if op == AluOp::Shl { known << HALF } else { known >> HALF }));
    }
    let (dst, ty) = (b.fresh("h")?, register_type(Scalar::I64, Sign::Unsigned));
    b.push(Code::Alu { op, ty, dst, a: value, b: Operand::Imm(i128::from(HALF)) })?;
    Ok(Operand::Reg(dst))
}

fn combined(b: &mut Block<'_, '_>, op: AluOp, x: Operand, y: Operand) -> Done<Lane> {
    if let (Operand::Imm(x), Operand::Imm(y)) = (x, y) {
        return Ok(Lane::Number(Operand::Imm(if op == AluOp::And { x & y } else { x | y })));
    }
    let (dst, ty) = (b.fresh("h")?, register_type(Scalar::I8, Sign::Unsigned));
    b.push(Code::Alu { op, ty, dst, a: x, b: y })?;
    Ok(Lane::Number(Operand::Reg(dst)))
}
