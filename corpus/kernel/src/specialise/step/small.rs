//! Runs `cp.async`: each lane copies a few bytes, and the copies of all lanes become one item.
//!
//! In PTX each lane has its own groups, in the residual program each warp. Both mean the same if every lane that copies
//! takes part in each later commit, wait and arrival. Other kernels are abstained from.
//! PTX ISA 9.2, 9.7.9.25.

use super::place::Place;
use super::told::copied;
use super::{Executing, Then};
use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::known::value::{Base, Lanes, Val, lanes};
use crate::specialise::touch::{Kind, Mem, Spread, Touch};
use moire_program::ir::*;
use std::collections::BTreeSet;

/// Checks a commit, a wait or an arrival: no lane that copied may be missing.
pub(super) fn grouped(step: &mut Executing<'_, '_>, op: &AsyncCopy) -> Result<(), Refusal> {
    let before = step.warp.copying.committed.unwrap_or(step.mask);
    if matches!(op, AsyncCopy::Commit) {
        step.warp.copying.committed = Some(before | step.mask);
    }
    let exact = matches!(op, AsyncCopy::Commit | AsyncCopy::Wait(1..)) && before != step.mask;
    if exact || step.warp.copying.copied & !step.mask != 0 {
        let what = format!("`{}` by other lanes of the warp than those that copied", op.name());
        return step.abstain(what);
    }
    Ok(())
}

/// The number of bytes that each lane reads.
fn read_by_lane(step: &Executing<'_, '_>, copy: &SmallCopy) -> Result<Lanes, Refusal> {
    let whole = u64::from(copy.bytes);
    let (operand, negated) = match copy.part {
        SmallPart::All => return Ok(Lanes::Same(whole)),
        SmallPart::Bytes(operand) => (operand, false),
        SmallPart::IgnoredWhen(guard) => (Operand::Reg(guard.reg), guard.negated),
    };
    let value = step.value(operand);
    let Val::Known(known) = &value else {
        let why = step.warp.reason(&value);
        return step.abstain(format!("`cp.async` of a part of its source that depends on {why}"));
    };
    // In PTX the declaration of the register tells a size from a predicate.
    let predicate = matches!(copy.part, SmallPart::IgnoredWhen(_))
        || matches!(operand, Operand::Reg(r) if step.round().kernel.types.get(r.index()) == Some(&Ty::Pred));
    if predicate {
        return Ok(known.map(|v| if (v != 0) != negated { 0 } else { whole }));
    }
    if lanes(step.mask).any(|l| known.get(l) & 0xffff_ffff > whole) {
        return step.abstain("`cp.async` that reads more than it writes");
    }
    Ok(known.map(|v| v & 0xffff_ffff))
}

pub(super) fn small(step: &mut Executing<'_, '_>, copy: &SmallCopy) -> Result<Then, Refusal> {
    if step.warp.copying.committed.is_some_and(|c| step.mask & !c != 0) {
        return step.abstain("`cp.async` by lanes that took no part in an earlier commit");
    }
    step.warp.copying.copied |= step.mask;
    let read = read_by_lane(step, copy)?;
    let (to, from) = (step.address(&copy.dst), step.address(&copy.src));
    let Place::In(mem, at) = step.place(Space::SharedCta, &to)? else {
        return step.abstain("`cp.async` to private memory");
    };
    let whole = Lanes::Same(u64::from(copy.bytes));
    let mut touches = vec![footprint(mem, &at, &whole, step.mask, true)];
    touches.extend(source(step, &from, &read)?);
    let words = words(step, (mem, &at), (&from, &read), copy.bytes.into());
    if words != step.mask {
        let others = footprint(mem, &at, &whole, step.mask & !words, true);
        step.overwritten(&others)?;
    }
    if joined(step, &mut touches) {
        return Ok(Then::Next);
    }
    let op = Op::AsyncCopy(AsyncCopy::Small(*copy));
    step.emit(Item::Op { op: Box::new(op), touches })?;
    Ok(Then::Next)
}

/// The lanes that copy a whole word of the launch which decides something.
fn words(
    step: &mut Executing<'_, '_>,
    (mem, at): (Mem, &Lanes),
    (from, read): (&Val, &Lanes),
    bytes: u32,
) -> u32 {
    let whole = lanes(step.mask).all(|l| read.get(l) == u64::from(bytes));
    match (mem, from) {
        (Mem::Shared(cta), Val::Based(Base::Param(n), source)) if whole => {
            copied(step, (cta, at), (Mem::Param(*n), source), bytes)
        }
        _ => 0,
    }
}

/// What the lanes read, given the number of bytes for each: any bytes of the memory, if data decides the address.
fn source(step: &mut Executing<'_, '_>, from: &Val, read: &Lanes) -> Result<Option<Touch>, Refusal> {
    let readers = read.truth(step.mask);
    if readers == 0 {
        return Ok(None);
    }
    if let Some((mem, start, end)) = step.somewhere(from).filter(|(mem, ..)| mem.cta().is_none()) {
        step.anywhere(from);
        let line = step.line();
        step.warp.out.copied.insert((line, mem));
        let kind = Kind::Small { writes: false };
        return Ok(Some(Touch { mem, ranges: vec![(start, end)], kind, by: Vec::new() }));
    }
    Ok(match step.only(readers).place(Space::Global, from)? {
        Place::In(mem, at) => Some(footprint(mem, &at, read, step.mask, false)),
        Place::Private => None,
    })
}

/// Joins the copy with the previous one, if the same lanes copy to other bytes.
fn joined(step: &mut Executing<'_, '_>, touches: &mut Vec<Touch>) -> bool {
    let Some(Placed { item: Item::Op { op, touches: before }, lanes: theirs, .. }) =
        step.warp.out.items.last_mut()
    else {
        return false;
    };
    let apart = |a: &Touch, b: &Touch| {
        a.mem == b.mem && a.ranges.iter().all(|x| b.ranges.iter().all(|y| x.1 <= y.0 || y.1 <= x.0))
    };
    let fits = matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_)))
        && *theirs == step.mask
        && apart(&before[0], &touches[0]);
    if !fits {
        return false;
    }
    for touch in touches.drain(..) {
        match before.iter_mut().find(|t| t.mem == touch.mem && t.kind == touch.kind) {
            Some(same) => {
                same.ranges.extend(touch.ranges);
                same.by.extend(touch.by);
                same.join();
            }
            None => before.push(touch),
        }
    }
    true
}

/// The bytes that the lanes of the mask touch, given the number for each lane.
fn footprint(mem: Mem, at: &Lanes, bytes: &Lanes, mask: u32, writes: bool) -> Touch {
    let sizes: BTreeSet<u64> = lanes(mask).map(|l| bytes.get(l)).filter(|n| *n > 0).collect();
    let by = sizes.into_iter().map(|size| {
        let same = lanes(mask).filter(|l| bytes.get(*l) == size).fold(0, |m, l| m | 1 << l);
        Spread { at: at.clone(), bytes: size, mask: same }
    });
    Touch::spread(mem, Kind::Small { writes }, by.collect())
}
