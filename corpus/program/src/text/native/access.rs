//! Loads, stores, atomics and multimem.

use super::qualifiers::{ACCESS, PLAIN, Qualifiers, Takes, UPDATE};
use super::reader::Reader;
use crate::ir::*;
use crate::text::scan::Parsed;

fn check_vector(r: &Reader<'_, '_>, q: &Qualifiers<'_>, count: usize) -> Parsed<()> {
    if q.vector.unwrap_or(1) != count {
        return r.fail(format!("{count} operands do not match the vector qualifier"), None);
    }
    Ok(())
}

pub(super) fn load(r: &mut Reader<'_, '_>, proxy: Proxy, words: &[&str]) -> Parsed<()> {
    let q = r.qualifiers(words, ACCESS)?;
    let (order, ty, space) = (r.load_order(&q)?, r.ty(&q)?, q.space.unwrap_or(Space::Generic));
    let dst = r.list(Reader::reg)?;
    check_vector(r, &q, dst.len())?;
    r.scan.expect(",")?;
    let addr = r.address()?;
    r.push(Op::Load { order, proxy, space, ty, dst, addr })
}

pub(super) fn store(r: &mut Reader<'_, '_>, proxy: Proxy, words: &[&str]) -> Parsed<()> {
    let q = r.qualifiers(words, ACCESS)?;
    let (order, ty, space) = (r.store_order(&q)?, r.ty(&q)?, q.space.unwrap_or(Space::Generic));
    let addr = r.address()?;
    r.scan.expect(",")?;
    let src = r.list(Reader::operand)?;
    check_vector(r, &q, src.len())?;
    r.push(Op::Store { order, proxy, space, ty, addr, src })
}

pub(super) fn update(r: &mut Reader<'_, '_>, proxy: Proxy, red: bool, words: &[&str]) -> Parsed<()> {
    let q = r.qualifiers(words, UPDATE)?;
    let (order, ty, space) = (
        r.rmw_order(&q, red && q.order != Some("acquire") && q.order != Some("acq_rel"))?,
        r.ty(&q)?,
        q.space.unwrap_or(Space::Generic),
    );
    let Some(op) = q.op else {
        return r.fail("this instruction needs an operation such as `.add`".into(), None);
    };
    let dst = if red {
        None
    } else {
        let dst = if r.scan.keyword("_") { None } else { Some(r.reg()?) };
        r.scan.expect(",")?;
        dst
    };
    let addr = r.address()?;
    r.scan.expect(",")?;
    let a = r.operand()?;
    let b = if op == AtomOp::Cas {
        r.scan.expect(",")?;
        Some(r.operand()?)
    } else {
        None
    };
    let scope = q.scope.unwrap_or(Scope::Gpu);
    r.push(Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b })
}

pub(super) fn multimem(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let (Some(kind), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
        return r.fail("expected multimem.ld_reduce, multimem.st or multimem.red".into(), None);
    };
    let takes = if *kind == "st" { Takes { access: true, ..PLAIN } } else { UPDATE };
    let q = r.qualifiers(rest, takes)?;
    let ty = r.ty(&q)?;
    match *kind {
        "ld_reduce" => {
            let order = r.load_order(&q)?;
            let Some(op) = q.op else {
                return r.fail("ld_reduce needs an operation such as `.add`".into(), None);
            };
            let dst = r.reg()?;
            r.scan.expect(",")?;
            let addr = r.address()?;
            r.push(Op::MultimemLoad { order, op, ty, dst, addr })
        }
        "st" => {
            let order = r.store_order(&q)?;
            let addr = r.address()?;
            r.scan.expect(",")?;
            let src = r.operand()?;
            r.push(Op::MultimemStore { order, ty, addr, src })
        }
        "red" => {
            let order = r.rmw_order(&q, true)?;
            let Some(op) = q.op else {
                return r.fail("red needs an operation such as `.add`".into(), None);
            };
            let scope = q.scope.unwrap_or(Scope::Gpu);
            let addr = r.address()?;
            r.scan.expect(",")?;
            let src = r.operand()?;
            r.push(Op::MultimemRed { order, scope, op, ty, addr, src })
        }
        other => r.fail(format!("`multimem.{other}` is not known"), None),
    }
}
