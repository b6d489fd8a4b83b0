//! Reads operations with blocks, terminators, and the coordinates of a tile block.

use super::block::inner;
use super::reader::{Read, Reader, because};
use crate::{Op, Reason, Scalar, Type, Value};
use moire_program::text::scan::Parsed;

/// The operations that this file reads.
pub(super) const WORDS: &[&str] = &[
    "if",
    "for",
    "loop",
    "yield",
    "continue",
    "break",
    "return",
    "get_tile_block_id",
    "get_num_tile_blocks",
];

/// Reads the rest of the operation `word`; `None` if another file reads it.
pub(super) fn control(r: &mut Reader<'_>, word: &str) -> Parsed<Option<Read>> {
    Ok(Some(match word {
        "if" => branch(r)?,
        "for" => counted(r)?,
        "loop" => endless(r)?,
        "yield" => (Op::Yield(ends(r)?), Vec::new()),
        "continue" => (Op::Continue(ends(r)?), Vec::new()),
        "break" => (Op::Break(ends(r)?), Vec::new()),
        "return" => (Op::Return(ends(r)?), Vec::new()),
        "get_tile_block_id" => {
            let ty = coordinate(r)?;
            (Op::TileBlockId, vec![ty.clone(), ty.clone(), ty])
        }
        "get_num_tile_blocks" => {
            let ty = coordinate(r)?;
            (Op::NumTileBlocks, vec![ty.clone(), ty.clone(), ty])
        }
        _ => return Ok(None),
    }))
}

fn coordinate(r: &mut Reader<'_>) -> Parsed<Type> {
    r.scan.expect(":")?;
    let at = r.scan.at;
    let ty = r.ty()?;
    if ty == Type::scalar(Scalar::I32) {
        return Ok(ty);
    }
    let message = format!("a coordinate has type `tile<i32>`, not `{ty}`");
    Err(because(Reason::ValueType, r.scan.error_at(at, message, None)))
}

/// `%a, %b : T, U`, or nothing.
fn ends(r: &mut Reader<'_>) -> Parsed<Vec<Value>> {
    if !r.scan.peek("%") {
        return Ok(Vec::new());
    }
    let values = r.values()?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let types = r.types()?;
    if types.len() != values.len() {
        let message = format!("{} values have {} types", values.len(), types.len());
        return Err(because(Reason::ValueType, r.scan.error_at(at, message, None)));
    }
    r.agree(at, &values, &types)?;
    Ok(values)
}

/// `%c -> (T, U) { .. } else { .. }`
fn branch(r: &mut Reader<'_>) -> Parsed<Read> {
    let condition = r.value()?;
    let types = if r.scan.take("->") { r.type_list()? } else { Vec::new() };
    let then = inner(r, Vec::new(), Op::Yield)?;
    let otherwise = if r.scan.keyword("else") { Some(inner(r, Vec::new(), Op::Yield)?) } else { None };
    Ok((Op::If { condition, then, otherwise }, types))
}

/// `iter_values(%a = %x, ..)`
fn carried<'a>(r: &mut Reader<'a>) -> Parsed<(Vec<&'a str>, Vec<Value>)> {
    let (mut names, mut inits) = (Vec::new(), Vec::new());
    if r.scan.keyword("iter_values") {
        r.scan.expect("(")?;
        loop {
            names.push(r.value_name()?);
            r.scan.expect("=")?;
            inits.push(r.value()?);
            if !r.scan.take(",") {
                break;
            }
        }
        r.scan.expect(")")?;
    }
    Ok((names, inits))
}

/// Checks the types stated for the values that a loop carries.
fn carry(r: &mut Reader<'_>, at: usize, inits: &[Value], stated: &[Type]) -> Parsed<()> {
    if stated.len() != inits.len() {
        let message = format!("{} values are carried, {} types stated", inits.len(), stated.len());
        return Err(because(Reason::Results, r.scan.error_at(at, message, None)));
    }
    r.agree(at, inits, stated)
}

/// `%i in (%lo to %hi, step %st) : T iter_values(%a = %x) -> (U) { .. }`
fn counted(r: &mut Reader<'_>) -> Parsed<Read> {
    let unsigned = r.scan.keyword("unsigned");
    let counter = r.value_name()?;
    r.keyword("in")?;
    r.scan.expect("(")?;
    let low = r.value()?;
    r.keyword("to")?;
    let high = r.value()?;
    r.scan.expect(",")?;
    r.keyword("step")?;
    let step = r.value()?;
    r.scan.expect(")")?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let ty = r.ty()?;
    let bounds = [low, high, step];
    r.agree(at, &bounds, &[ty.clone(), ty.clone(), ty.clone()])?;
    let (names, inits) = carried(r)?;
    let at = r.scan.at;
    let types = if r.scan.take("->") { r.type_list()? } else { Vec::new() };
    carry(r, at, &inits, &types)?;
    let params = std::iter::once((counter, ty)).chain(names.into_iter().zip(types.iter().cloned())).collect();
    let body = inner(r, params, Op::Continue)?;
    Ok((Op::For { unsigned, bounds, inits, body }, types))
}

/// `iter_values(%a = %x) : T -> U { .. }`
fn endless(r: &mut Reader<'_>) -> Parsed<Read> {
    let (names, inits) = carried(r)?;
    let at = r.scan.at;
    let mut types = if r.scan.take(":") { r.types()? } else { Vec::new() };
    let mut carried = Vec::new();
    if !inits.is_empty() {
        carried = types;
        types = if r.scan.take("->") { r.types()? } else { Vec::new() };
    }
    carry(r, at, &inits, &carried)?;
    let body = inner(r, names.into_iter().zip(carried).collect(), Op::Continue)?;
    Ok((Op::Loop { inits, body }, types))
}
