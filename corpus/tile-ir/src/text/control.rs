//! Reads operations with blocks.

use super::block::inner;
use super::reader::{Read, Reader, because};
use crate::{Op, Reason, Type, Value};
use moire_program::text::scan::Parsed;

/// `%c -> (T, U) { .. } else { .. }`
pub(super) fn branch(r: &mut Reader<'_>) -> Parsed<Read> {
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
pub(super) fn counted(r: &mut Reader<'_>) -> Parsed<Read> {
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
pub(super) fn endless(r: &mut Reader<'_>) -> Parsed<Read> {
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
