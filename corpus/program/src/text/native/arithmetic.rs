//! Moves, arithmetic, comparison, selection and branches.

use super::qualifiers::{PLAIN, Takes};
use super::reader::Reader;
use crate::ir::*;
use crate::text::print::CMP_OPS;
use crate::text::scan::Parsed;

pub(super) fn arithmetic(r: &mut Reader<'_, '_>, op: AluOp, words: &[&str]) -> Parsed<()> {
    let q = r.qualifiers(words, Takes { lo: op == AluOp::Mul, ..PLAIN })?;
    if op == AluOp::Mul && !q.lo {
        return r.fail("only the low half of a product is modelled".into(), Some("write `mul.lo`".into()));
    }
    let ty = r.ty(&q)?;
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let a = r.operand()?;
    r.scan.expect(",")?;
    let b = r.operand()?;
    r.push(Op::Alu { op, ty, dst, a, b })
}

pub(super) fn setp(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let op = words.first().and_then(|w| CMP_OPS.iter().find(|(name, _)| name == w));
    let Some((_, op)) = op else {
        return r.fail("setp needs a comparison".into(), Some("one of eq, ne, lt, le, gt, ge".into()));
    };
    let ty = r.only_type(&words[1..])?;
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let a = r.operand()?;
    r.scan.expect(",")?;
    let b = r.operand()?;
    r.push(Op::Setp { op: *op, ty, dst, a, b })
}

pub(super) fn selp(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let ty = r.only_type(words)?;
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let a = r.operand()?;
    r.scan.expect(",")?;
    let b = r.operand()?;
    r.scan.expect(",")?;
    let p = r.reg()?;
    r.push(Op::Selp { ty, dst, a, b, p })
}

pub(super) fn mov(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let ty = r.only_type(words)?;
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let src = r.operand()?;
    r.push(Op::Mov { ty, dst, src })
}

pub(super) fn branch(r: &mut Reader<'_, '_>) -> Parsed<()> {
    r.scan.rest();
    let at = r.scan.at;
    let label = r.scan.word("a label", "")?.to_owned();
    r.thread.jumps.push((r.thread.thread.body.len(), label, at));
    r.push(Op::Bra { target: 0 })
}
