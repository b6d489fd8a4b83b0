//! The generic form, for loads and stores through views only. NVIDIA's tests use it because it checks nothing.
//!
//! `"cuda_tile.load_view_tko"(%v, %i) <{memory_ordering_semantics = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}>
//! : (T, U) -> (V, token)`

use super::reader::{Read, Reader, because};
use crate::{Access, Hints, Op, Order, Place, Reason, Scope, Value};
use moire_program::text::ParseError;
use moire_program::text::scan::Parsed;

/// The attributes in `<{..}>`.
#[derive(Default)]
struct Attributes {
    order: Option<Order>,
    scope: Option<Scope>,
    segments: Vec<usize>,
}

/// Reads an operation in generic form.
pub(super) fn generic(r: &mut Reader<'_>) -> Parsed<Read> {
    let at = r.scan.at;
    r.scan.expect("\"")?;
    let name = r.scan.word("an operation", ".")?;
    let store = match name {
        "cuda_tile.load_view_tko" => false,
        "cuda_tile.store_view_tko" => true,
        _ => {
            let message = format!("`{name}` is not read in generic form");
            return Err(because(Reason::Operation, r.scan.error_at(at, message, None)));
        }
    };
    r.scan.expect("\"")?;
    r.scan.expect("(")?;
    let operands = if r.scan.peek(")") { Vec::new() } else { r.values()? };
    r.scan.expect(")")?;
    let attributes = attributes(r)?;
    r.scan.expect(":")?;
    let here = r.scan.at;
    r.scan.expect("(")?;
    let stated = if r.scan.peek(")") { Vec::new() } else { r.types()? };
    r.scan.expect(")")?;
    if stated.len() != operands.len() {
        let message = format!("{} operands have {} types", operands.len(), stated.len());
        return Err(because(Reason::ValueType, r.scan.error_at(here, message, None)));
    }
    r.agree(here, &operands, &stated)?;
    r.scan.expect("->")?;
    let types = r.type_list()?;
    let op = assemble(store, &operands, &attributes);
    let op = op.ok_or_else(|| segments_wrong(r, at))?;
    Ok((op, types))
}

fn segments_wrong(r: &Reader<'_>, at: usize) -> ParseError {
    let message = "`operandSegmentSizes` does not fit the operation and its operands".to_owned();
    because(Reason::Syntax, r.scan.error_at(at, message, None))
}

fn attributes(r: &mut Reader<'_>) -> Parsed<Attributes> {
    r.scan.expect("<")?;
    r.scan.expect("{")?;
    let mut out = Attributes::default();
    let mut first = true;
    while !r.scan.take("}") {
        if !first {
            r.scan.expect(",")?;
        }
        first = false;
        let at = r.scan.at;
        let name = r.scan.word("an attribute", "")?;
        r.scan.expect("=")?;
        match name {
            "memory_ordering_semantics" => out.order = code(r)?.and_then(Order::from_code),
            "memory_scope" => out.scope = code(r)?.and_then(Scope::from_code),
            "operandSegmentSizes" => out.segments = segments(r)?,
            _ => {
                let message = format!("the attribute `{name}` is not known here");
                return Err(because(Reason::Syntax, r.scan.error_at(at, message, None)));
            }
        }
    }
    r.scan.expect(">")?;
    Ok(out)
}

/// `1 : i32`; `None` for a number of more than eight bits.
fn code(r: &mut Reader<'_>) -> Parsed<Option<u8>> {
    let number = r.digits()?;
    r.scan.expect(":")?;
    r.keyword("i32")?;
    Ok(u8::try_from(number).ok())
}

/// `array<i32: 1, 2, 0>`
fn segments(r: &mut Reader<'_>) -> Parsed<Vec<usize>> {
    r.keyword("array")?;
    r.scan.expect("<")?;
    r.keyword("i32")?;
    r.scan.expect(":")?;
    let mut out = vec![r.count()?];
    while r.scan.take(",") {
        out.push(r.count()?);
    }
    r.scan.expect(">")?;
    Ok(out)
}

/// Builds the operation. The attribute `operandSegmentSizes` splits the operands.
fn assemble(store: bool, operands: &[Value], attributes: &Attributes) -> Option<Op> {
    let access = Access { order: attributes.order?, scope: attributes.scope };
    let mut rest = operands;
    let mut parts: Vec<&[Value]> = Vec::new();
    for size in &attributes.segments {
        let (part, after) = rest.split_at_checked(*size)?;
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        return None;
    }
    let place = |view: Value, index: &[Value]| Place {
        view,
        index: index.to_vec(),
        inbounds: vec![false; index.len()],
    };
    let (value, view, index, token) = match (store, parts.as_slice()) {
        (false, [[view], index, token]) => (None, *view, *index, *token),
        (true, [[value], [view], index, token]) => (Some(*value), *view, *index, *token),
        _ => return None,
    };
    let token = match token {
        [] => None,
        [one] => Some(*one),
        _ => return None,
    };
    let (place, hints) = (place(view, index), Hints::new());
    Some(match value {
        Some(value) => Op::StoreView { place, value, access, hints, token },
        None => Op::LoadView { place, access, hints, token },
    })
}
