//! Runs `for` and `loop` of a tile block, and what starts their next iteration or ends them.
//!
//! - A `for` is unrolled. Its bounds are known, so it orders nothing: what follows a `continue` under a condition runs under
//!   the mask of the iterations that do not skip it, and the values of the next iteration are chosen by that mask.
//! - A `loop` stays a loop, and each `break` and `continue` of it is a branch.

use super::control::End;
use super::value::{Held, Lane, register_type};
use super::{Block, Done, Skip, Turn};
use crate::{Block as Body, Elem, Instr, Scalar, Sign, Tile, Type, Value};
use moire_program::ir::{Address, AluOp, Op as Code, Operand, TileOp, TileToken};

/// Most iterations of a `for`.
const ITERATIONS: u32 = 4_096;

/// Runs a `for`.
pub(super) fn counted(
    b: &mut Block<'_, '_>,
    instr: &Instr,
    (unsigned, bounds): (bool, &[Value; 3]),
    inits: &[Value],
    body: &Body,
) -> Done<()> {
    let bits = b.scalar(bounds[0])?.bits().clamp(1, 64);
    let mut known = [0i128; 3];
    for (out, bound) in known.iter_mut().zip(bounds) {
        let Some(value) = b.lanes(*bound)?.first().and_then(|l| l.bits()) else {
            return b.refuse("a for whose bounds come from memory");
        };
        let value = i128::try_from(value).expect("an element has at most 64 bits");
        let negative = !unsigned && value >> (bits - 1) & 1 == 1;
        *out = if negative { value - (1 << bits) } else { value };
    }
    let ([mut at, end, step], mut carried) = (known, b.all(inits)?);
    let mut turns = 0;
    while at < end {
        turns += 1;
        if step <= 0 || turns > ITERATIONS {
            return b.refuse("a for with so many iterations");
        }
        let pattern = u128::try_from(at.rem_euclid(1 << bits)).expect("a remainder is not negative");
        let counter = std::iter::once(Held::number(pattern));
        b.define_all(&body.params, counter.chain(carried.iter().cloned()).collect());
        carried = iteration(b, body)?;
        at += step;
    }
    b.define_all(&instr.results, carried);
    Ok(())
}

/// Runs one iteration of a `for`, with masks behind each `continue`. Returns the values that the next one starts with.
fn iteration(b: &mut Block<'_, '_>, body: &Body) -> Done<Vec<Held>> {
    let outer = (b.mask, b.masked_since);
    b.loops.push(Turn::Masked(Vec::new()));
    let end = b.run_block(body)?;
    let turn = b.loops.pop();
    (b.mask, b.masked_since) = outer;
    let mut next = if let End::Falls(held) = end { Some(held) } else { None };
    let Some(Turn::Masked(skips)) = turn else { return b.refuse("a loop that another one ends") };
    // Backwards: what an earlier one leaves out holds all later ones.
    for Skip { since, mask, values } in skips.into_iter().rev() {
        next = Some(match (next, mask) {
            (None, _) | (_, None) => values,
            (Some(rest), Some(mask)) => {
                let names = body.params.get(1..).unwrap_or_default();
                b.merged(names, (mask, since), values, rest)?
            }
        });
    }
    next.map_or_else(|| b.refuse("a for that is left early"), Ok)
}

/// Allocates registers for the elements or the token of a value.
fn place_for(b: &mut Block<'_, '_>, value: Value) -> Done<Held> {
    if matches!(b.shared.function.ty(value), Some(Type::Token)) {
        return Ok(Held::Token(b.fresh("t")?));
    }
    let Tile { elem, .. } = b.type_of(value)?;
    let count = b.type_of(value)?.elements();
    let lane = |block: &mut Block<'_, '_>| {
        let base = Operand::Reg(block.fresh("v")?);
        Ok(match elem {
            Elem::Scalar(_) => Lane::Number(base),
            Elem::Pointer { .. } => Lane::Pointer(Address { base, offset: 0 }),
        })
    };
    Ok(Held::Tile((0..count).map(|_| lane(b)).collect::<Done<Vec<Lane>>>()?))
}

pub(super) fn places_for(b: &mut Block<'_, '_>, values: &[Value]) -> Done<Vec<Held>> {
    values.iter().map(|v| place_for(b, *v)).collect()
}

fn assign(b: &mut Block<'_, '_>, to: &Held, from: &Held) -> Done<()> {
    match (to, from) {
        (Held::Token(dst), Held::Token(from)) => {
            let join = TileToken::Join { dst: *dst, from: vec![*from] };
            b.push(Code::Tile(TileOp::Token(join)))?;
        }
        (Held::Tile(to), Held::Tile(from)) => {
            let ty = register_type(Scalar::I64, Sign::Unsigned);
            for pair in to.iter().zip(from) {
                match pair {
                    (Lane::Number(Operand::Reg(dst)), Lane::Number(src)) => {
                        b.push(Code::Mov { ty, dst: *dst, src: *src })?;
                    }
                    (Lane::Pointer(Address { base: Operand::Reg(dst), .. }), Lane::Pointer(from)) => {
                        let (a, more) = (from.base, Operand::Imm(i128::from(from.offset)));
                        b.push(Code::Alu { op: AluOp::Add, ty, dst: *dst, a, b: more })?;
                    }
                    _ => return b.refuse("this loop-carried value"),
                }
            }
        }
        _ => return b.refuse("this loop-carried value"),
    }
    Ok(())
}

pub(super) fn assign_each(b: &mut Block<'_, '_>, to: &[Held], from: &[Held]) -> Done<()> {
    to.iter().zip(from).try_for_each(|(to, from)| assign(b, to, from))
}

/// Assigns all values at once, through copies.
fn assign_all(b: &mut Block<'_, '_>, names: &[Value], to: &[Held], from: &[Held]) -> Done<()> {
    let mut copies = Vec::new();
    for (name, from) in names.iter().zip(from) {
        let copy = place_for(b, *name)?;
        assign(b, &copy, from)?;
        copies.push(copy);
    }
    assign_each(b, to, &copies)
}

/// Runs a `loop`. Under a mask it is skipped by a branch: whether it ends decides what exists behind it.
pub(super) fn repeated(b: &mut Block<'_, '_>, instr: &Instr, inits: &[Value], body: &Body) -> Done<()> {
    let results = places_for(b, &instr.results)?;
    let Some(mask) = b.mask.take() else { return turns(b, instr, results, inits, body) };
    for token in &results {
        if let Held::Token(dst) = *token {
            b.push(Code::Tile(TileOp::Token(TileToken::Join { dst, from: Vec::new() })))?;
        }
    }
    let over = b.jump_unless(mask, true)?;
    turns(b, instr, results, inits, body)?;
    b.land(&[over]);
    b.mask = Some(mask);
    Ok(())
}

fn turns(b: &mut Block<'_, '_>, instr: &Instr, results: Vec<Held>, inits: &[Value], body: &Body) -> Done<()> {
    let carried = places_for(b, &body.params)?;
    let start = b.all(inits)?;
    assign_each(b, &carried, &start)?;
    b.define_all(&body.params, carried.clone());
    let head = b.label();
    b.loops.push(Turn::Jumps { head, carried, results: results.clone(), breaks: Vec::new() });
    if let End::Falls(held) = b.run_block(body)? {
        around(b, &body.params, &held)?;
    }
    if let Some(Turn::Jumps { breaks, .. }) = b.loops.pop() {
        b.land(&breaks);
    }
    b.define_all(&instr.results, results);
    Ok(())
}

/// Branches to the head of the innermost loop.
fn around(b: &mut Block<'_, '_>, names: &[Value], held: &[Held]) -> Done<()> {
    let Some(Turn::Jumps { head, carried, .. }) = b.loops.last() else {
        return b.refuse("continue outside a loop");
    };
    let (target, carried) = (*head, carried.clone());
    assign_all(b, names, &carried, held)?;
    b.push(Code::Bra { target })?;
    Ok(())
}

/// Runs a `continue`.
pub(super) fn next_turn(b: &mut Block<'_, '_>, values: &[Value]) -> Done<End> {
    let held = b.all(values)?;
    let (mask, since) = (b.mask, b.masked_since);
    match b.loops.last_mut() {
        Some(Turn::Masked(skips)) => skips.push(Skip { since, mask, values: held }),
        Some(Turn::Jumps { .. }) if mask.is_some() => return b.refuse("continue under a mask"),
        Some(Turn::Jumps { .. }) | None => around(b, values, &held)?,
    }
    Ok(End::Gone)
}

/// Runs a `break`.
pub(super) fn leave(b: &mut Block<'_, '_>, values: &[Value]) -> Done<End> {
    let held = b.all(values)?;
    let Some(Turn::Jumps { results, .. }) = b.loops.last() else {
        return b.refuse("break outside a loop");
    };
    if b.mask.is_some() {
        return b.refuse("break under a mask");
    }
    let results = results.clone();
    assign_each(b, &results, &held)?;
    let at = b.push(Code::Bra { target: 0 })?;
    if let Some(Turn::Jumps { breaks, .. }) = b.loops.last_mut() {
        breaks.push(at);
    }
    Ok(End::Gone)
}
