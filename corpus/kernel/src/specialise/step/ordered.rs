//! Runs ordered and atomic accesses. They stay in the residual program, and the exploration knows their values.

use super::access::{loose, moved};
use super::drawn::drawn;
use super::followed::operand_left;
use super::place::Place;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::item::{Content, Manner};
use crate::specialise::known::value::{Base, Lanes, Val, Why};
use crate::specialise::touch::{Kind, Mem, Touch};
use crate::specialise::warp::Ticket;
use moire_program::ir::*;
use std::collections::BTreeSet;

/// Numbers of the registers of a statement for the values it stores.
const STORED: usize = 4_000;

pub(super) fn strong_load(
    step: &mut Executing<'_, '_>,
    op: &Op,
    dst: &[Reg],
    address: &Val,
) -> Result<Then, Refusal> {
    let Op::Load { order, space, ty, .. } = op else { return Ok(Then::Next) };
    let bytes = step.vector_bytes(*ty, dst.len())?;
    if let Some(scope) = relaxed_scope(*order)
        && let Some((mem, at)) = apart(step, *space, address)?
    {
        moved(step, (false, Manner::Relaxed(scope)), mem, &at, bytes)?;
        let line = step.line();
        dst.iter().for_each(|r| step.set(*r, Val::Unknown(Why::Loaded(line))));
        return Ok(Then::Next);
    }
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
    step: &mut Executing<'_, '_>,
    op: &Op,
    values: &[Val],
    address: &Val,
) -> Result<Then, Refusal> {
    let Op::Store { order, space, ty, .. } = op else { return Ok(Then::Next) };
    let bytes = step.vector_bytes(*ty, values.len())?;
    let scope = match order {
        StoreOrder::Relaxed(scope) => Some(*scope),
        StoreOrder::Volatile => Some(Scope::Sys),
        _ => None,
    };
    if let Some(scope) = scope
        && let Some((mem, at)) = apart(step, *space, address)?
    {
        moved(step, (true, Manner::Relaxed(scope)), mem, &at, bytes)?;
        return Ok(Then::Next);
    }
    let touch = word(step, *space, address, bytes)?;
    let mut src = Vec::new();
    for (n, value) in values.iter().enumerate() {
        let known = operand_left(step, value, *ty, STORED + n)?;
        holds(step, &touch, n, ty.bytes(), known)?;
        src.push(known.unwrap_or(Operand::Imm(0)));
    }
    let mut made = Made::default();
    let addr = made.touch(touch);
    step.leave(Op::Store { order: *order, proxy: Proxy::Generic, space: *space, ty: *ty, addr, src }, made)
}

pub(super) fn update(step: &mut Executing<'_, '_>, op: &Op) -> Result<Then, Refusal> {
    let Op::Rmw { red, order, scope, space, op: how, ty, dst, addr, a, b, .. } = op else {
        return Ok(Then::Next);
    };
    let address = step.address(addr);
    let pc = step.state.pc;
    step.state.tickets.remove(&pc);
    if *order == RmwOrder::Relaxed && loose(step, true, Some(*scope), &address)? {
        if let Some(dst) = dst {
            let line = step.line();
            step.set(*dst, Val::Unknown(Why::Loaded(line)));
        }
        return Ok(Then::Next);
    }
    if *order == RmwOrder::Relaxed
        && let Some((mem, at)) = apart(step, *space, &address)?
    {
        // Its value is not followed. As an access it is a relaxed write.
        moved(step, (true, Manner::Relaxed(*scope)), mem, &at, ty.bytes())?;
        if let Some(dst) = dst {
            let line = step.line();
            step.set(*dst, Val::Unknown(Why::Loaded(line)));
        }
        return Ok(Then::Next);
    }
    if drawn(step, op)? {
        return Ok(Then::Next);
    }
    let hands = step.regions().handing.contains(&step.state.pc);
    if hands && *order == RmwOrder::Relaxed && step.mask.count_ones() > 1 {
        return tickets(step, op, &address);
    }
    let touch = word(step, *space, &address, ty.bytes())?;
    let (mut known, mut given) = (true, Vec::new());
    for (n, operand) in [Some(*a), *b].into_iter().flatten().enumerate() {
        let value = step.value(operand);
        let found = operand_left(step, &value, *ty, STORED + n)?;
        if found.is_none() && *how == AtomOp::Cas {
            return step.abstain(format!("a compare-and-swap with {}", step.warp.reason(&value)));
        }
        known &= found.is_some();
        given.push(found.unwrap_or(Operand::Imm(0)));
    }
    let (a, b) = (given[0], given.get(1).copied());
    let slot = dst.map(|_| step.slot(0)).transpose()?;
    // The sum of a number and the word is no number that is known here.
    let read = slot.unwrap_or(Reg(0));
    holds(step, &touch, 0, ty.bytes(), known.then_some(Operand::Reg(read)))?;
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
        let mut value = held(step, &word, 0, ty.bytes(), slot)?;
        if hands {
            if matches!(value, Val::Unknown(_)) {
                value = Val::Unknown(Why::Ticket { update: step.state.pc, shared: false });
            }
            let known = if let Operand::Imm(n) = a { u64::try_from(n).ok() } else { None };
            hand_out(step, &word, Some(slot.0), known);
        }
        step.set(*dst, value);
    }
    Ok(Then::Next)
}

/// Runs an operation by which each of several lanes gets numbers of its own. Its value is not followed.
fn tickets(step: &mut Executing<'_, '_>, op: &Op, address: &Val) -> Result<Then, Refusal> {
    let Op::Rmw { scope, space, ty, dst, .. } = op else { return Ok(Then::Next) };
    let touch = word(step, *space, address, ty.bytes())?;
    let Some((at, _)) = touch.ranges.first().copied() else { return Ok(Then::Next) };
    holds(step, &touch, 0, ty.bytes(), None)?;
    moved(step, (true, Manner::Relaxed(*scope)), touch.mem, &Lanes::Same(at), ty.bytes())?;
    hand_out(step, &touch, None, None);
    if let Some(dst) = dst {
        step.set(*dst, Val::Unknown(Why::Ticket { update: step.state.pc, shared: false }));
    }
    Ok(Then::Next)
}

/// Remembers who has asked for numbers, and how many.
fn hand_out(step: &mut Executing<'_, '_>, word: &Touch, slot: Option<u16>, count: Option<u64>) {
    let at = word.ranges.first().map_or(0, |range| range.0);
    let ticket = Ticket { counter: (word.mem, at), slot, lanes: step.mask, count, spent: BTreeSet::new() };
    step.state.tickets.insert(step.state.pc, ticket);
}

/// The scope of a load that orders nothing.
fn relaxed_scope(order: LoadOrder) -> Option<Scope> {
    match order {
        LoadOrder::Relaxed(scope) => Some(scope),
        LoadOrder::Volatile => Some(Scope::Sys),
        _ => None,
    }
}

/// The places of the lanes, if they differ.
fn apart(step: &Executing<'_, '_>, space: Space, address: &Val) -> Result<Option<(Mem, Lanes)>, Refusal> {
    match step.place(space, address)? {
        Place::In(mem, at) if at.one(step.mask).is_none() => Ok(Some((mem, at))),
        _ => Ok(None),
    }
}

/// The word at an address on which all lanes agree. From the next round on, stores there keep their values.
pub(super) fn word(
    step: &mut Executing<'_, '_>,
    space: Space,
    address: &Val,
    bytes: u32,
) -> Result<Touch, Refusal> {
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
fn held(step: &mut Executing<'_, '_>, word: &Touch, n: usize, bytes: u32, slot: Reg) -> Result<Val, Refusal> {
    let at = word.ranges.first().map_or(0, |r| r.0) + u64::from(bytes) * n as u64;
    let data = match word.mem {
        Mem::Shared(cta) => {
            let found = step.round().heap.contents(cta, step.shared_offset(at)?, bytes);
            found.contains(&Content::Opaque)
        }
        mem => step.round().heap.opaque(mem, at, at.saturating_add(u64::from(bytes))),
    };
    if data {
        return Ok(Val::Unknown(Why::Loaded(step.line())));
    }
    step.state.numbers.remove(&slot.0);
    if step.round().counting
        && let Some(numbers) = step.round().heap.numbers(word.mem, at, at.saturating_add(u64::from(bytes)))
    {
        step.state.numbers.insert(slot.0, numbers);
    }
    Ok(Val::Based(Base::Register(slot.0), Lanes::Same(0)))
}

/// Tells other warps the value that element `n` gets, if the exploration knows it.
pub(super) fn holds(
    step: &mut Executing<'_, '_>,
    word: &Touch,
    n: usize,
    bytes: u32,
    known: Option<Operand>,
) -> Result<(), Refusal> {
    let Some((start, _)) = word.ranges.first() else { return Ok(()) };
    let at = start + u64::from(bytes) * n as u64;
    match word.mem {
        Mem::Shared(cta) => {
            let content = if known.is_some() { Content::Held } else { Content::Opaque };
            step.stored(cta, at, u64::from(bytes), content)
        }
        mem => {
            let place = (mem, at, at.saturating_add(u64::from(bytes)));
            match known {
                None => drop(step.warp.out.opaque.insert(place)),
                Some(operand) => drop(step.warp.out.numbers.insert((place, number(operand, bytes)))),
            }
            Ok(())
        }
    }
}

/// The number in these low bytes of an operand.
pub(super) fn number(operand: Operand, bytes: u32) -> Option<u64> {
    let Operand::Imm(n) = operand else { return None };
    let low = n & i128::from(u64::MAX.checked_shr(64_u32.checked_sub(8 * bytes)?)?);
    u64::try_from(low).ok()
}
