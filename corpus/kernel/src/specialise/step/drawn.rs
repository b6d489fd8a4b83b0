//! Draws the number of a CTA from a counter ([`crate::specialise::drawn`]).

use super::ordered::{holds, word};
use super::place::Place;
use super::{Executing, Made};
use crate::Refusal;
use crate::specialise::item::Item;
use crate::specialise::known::value::Val;
use crate::specialise::touch::Mem;
use moire_program::ir::*;

/// Runs an addition by which one lane draws the number of its CTA. Whether it is one.
pub(super) fn drawn(step: &mut Executing<'_, '_>, op: &Op) -> Result<bool, Refusal> {
    let Op::Rmw { order, scope, space, op: AtomOp::Add, ty, dst: Some(dst), addr, a, .. } = op else {
        return Ok(false);
    };
    let one = step.value(*a).known().and_then(|l| l.one(step.mask)) == Some(1);
    let alone = step.mask.count_ones() == 1 && step.mask == step.warp.together;
    if !step.round().drawing || !alone || !one || *scope == Scope::Cta {
        return Ok(false);
    }
    let address = step.address(addr);
    if !matches!(step.place(*space, &address)?, Place::In(Mem::Param(_) | Mem::Variable(_), _)) {
        return Ok(false);
    }
    let number = step.warp.here.in_grid();
    let (before, after) = (Operand::Imm(number.into()), Operand::Imm(i128::from(number) + 1));
    let touch = word(step, *space, &address, ty.bytes())?;
    holds(step, &touch, 0, ty.bytes(), Some(after))?;
    let line = step.line();
    step.warp.out.drawn.extend(touch.ranges.iter().map(|r| (touch.mem, r.0, r.1, line)));
    let (read, other, again) = (step.slot(0)?, step.slot(1)?, step.warp.fresh());
    step.emit(Item::Label(again))?;
    let mut made = Made::default();
    let addr = made.touch(touch);
    let (ty, order, scope, space) = (step.untyped(*ty)?, *order, *scope, *space);
    step.leave(
        Op::Rmw {
            red: false,
            order,
            scope,
            proxy: Proxy::Generic,
            space,
            op: AtomOp::Cas,
            ty,
            dst: Some(read),
            addr,
            a: before,
            b: Some(after),
        },
        made,
    )?;
    step.leave_op(Op::Setp { op: CmpOp::Ne, ty, dst: other, a: Operand::Reg(read), b: before })?;
    step.emit(Item::Branch { reg: other, to: again })?;
    step.set(*dst, Val::same(number.into()));
    step.note(format!("line {line} draws a number: CTAs are named in the order in which they draw"));
    Ok(true)
}
