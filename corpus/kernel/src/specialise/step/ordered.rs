//! Runs ordered and atomic accesses. They stay in the residual program, and the exploration knows their values.

use super::place::Place;
use super::{Made, Step, Then};
use crate::Refusal;
use crate::specialise::item::Content;
use crate::specialise::known::value::{Base, Lanes, Val, Why};
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;

pub(super) fn strong_load(
    step: &mut Step<'_, '_>,
    op: &Op,
    dst: &[Reg],
    address: &Val,
) -> Result<Then, Refusal> {
    let Op::Load { order, space, ty, .. } = op else { return Ok(Then::Next) };
    let bytes = step.vector_bytes(*ty, dst.len())?;
    let touch = word(step, *space, address, bytes)?;
    let regs: Vec<Reg> = (0..dst.len()).map(|i| step.slot(i)).collect::<Result<_, _>>()?;
    let mut made = Made::default();
    let word = touch.clone();
    let addr = made.touch(touch);
    let new =
        Op::Load { order: *order, proxy: Proxy::Generic, space: *space, ty: *ty, dst: regs.clone(), addr };
    step.leave(new, made)?;
    for (n, (r, slot)) in dst.iter().zip(regs).enumerate() {
        let value = held(step, &word, n, ty.bytes(), slot)?;
        step.set(*r, value);
    }
    Ok(Then::Next)
}

pub(super) fn strong_store(
    step: &mut Step<'_, '_>,
    op: &Op,
    values: &[Val],
    address: &Val,
) -> Result<Then, Refusal> {
    let Op::Store { order, space, ty, .. } = op else { return Ok(Then::Next) };
    let bytes = step.vector_bytes(*ty, values.len())?;
    let touch = word(step, *space, address, bytes)?;
    holds(step, &touch, ty.bytes())?;
    let mut src = Vec::new();
    for value in values {
        match step.operand_of(value) {
            Some(o) => src.push(o),
            None => return step.abstain(format!("an ordered store of {}", step.warp.reason(value))),
        }
    }
    let mut made = Made::default();
    let addr = made.touch(touch);
    step.leave(Op::Store { order: *order, proxy: Proxy::Generic, space: *space, ty: *ty, addr, src }, made)
}

pub(super) fn update(step: &mut Step<'_, '_>, op: &Op) -> Result<Then, Refusal> {
    let Op::Rmw { red, order, scope, space, op: how, ty, dst, addr, a, b, .. } = op else {
        return Ok(Then::Next);
    };
    let address = step.address(addr);
    let touch = word(step, *space, &address, ty.bytes())?;
    let mut given = |o: Operand| {
        let value = step.value(o);
        step.operand_of(&value).map_or_else(
            || step.abstain(format!("an atomic operation with {}", step.warp.reason(&value))),
            Ok,
        )
    };
    let a = given(*a)?;
    let b = b.map(&mut given).transpose()?;
    let slot = dst.map(|_| step.slot(0)).transpose()?;
    holds(step, &touch, ty.bytes())?;
    let mut made = Made::default();
    let word = touch.clone();
    let addr = made.touch(touch);
    let new = Op::Rmw {
        red: *red,
        order: *order,
        scope: *scope,
        proxy: Proxy::Generic,
        space: *space,
        op: *how,
        ty: *ty,
        dst: slot,
        addr,
        a,
        b,
    };
    step.leave(new, made)?;
    if let (Some(dst), Some(slot)) = (dst, slot) {
        let value = held(step, &word, 0, ty.bytes(), slot)?;
        step.set(*dst, value);
    }
    Ok(Then::Next)
}

/// The word at an address on which all lanes agree. From the next round on, stores there keep their values.
fn word(step: &mut Step<'_, '_>, space: Space, address: &Val, bytes: u32) -> Result<Touch, Refusal> {
    match step.place(space, address)? {
        Place::In(mem, at) => match at.one(step.mask) {
            Some(at) => {
                let end = at.saturating_add(u64::from(bytes));
                if let Mem::Shared(cta) = mem {
                    let range = (cta, step.shared_offset(at)?, step.shared_offset(end)?);
                    step.warp.out.wanted.insert(range);
                } else {
                    step.warp.out.asked.insert((mem, at, end));
                }
                Ok(Touch::one(mem, at, bytes, Kind::Word))
            }
            None => step.abstain("an ordered access whose address differs from lane to lane"),
        },
        Place::Private => step.abstain("an ordered access of private memory"),
    }
}

/// The value read from element `n`: a register of the exploration, or unknown if some warp stores data there.
fn held(step: &Step<'_, '_>, word: &Touch, n: usize, bytes: u32, slot: Reg) -> Result<Val, Refusal> {
    let at = word.ranges.first().map_or(0, |r| r.0) + u64::from(bytes) * n as u64;
    let data = match word.mem {
        Mem::Shared(cta) => {
            let found = step.round().heap.contents(cta, step.shared_offset(at)?, bytes);
            found.contains(&Content::Opaque)
        }
        _ => false,
    };
    if data {
        return Ok(Val::Unknown(Why::Loaded(step.line())));
    }
    Ok(Val::Based(Base::Register(slot.0), Lanes::Same(0)))
}

/// Tells other warps that the exploration knows the values of these elements.
fn holds(step: &mut Step<'_, '_>, word: &Touch, bytes: u32) -> Result<(), Refusal> {
    let (Mem::Shared(cta), Some((start, end))) = (word.mem, word.ranges.first()) else { return Ok(()) };
    for at in (*start..*end).step_by(bytes.max(1) as usize) {
        step.stored(cta, at, u64::from(bytes), Content::Held)?;
    }
    Ok(())
}
