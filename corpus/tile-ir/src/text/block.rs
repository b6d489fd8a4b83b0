//! Reads functions, blocks, and the names of the results of an operation.

use super::operation::operation;
use super::reader::{Reader, because};
use crate::{Block, Function, Instr, NESTING, OPS, Op, Reason, Type, Value};
use moire_program::text::scan::Parsed;
use std::collections::HashMap;

/// `entry @name(%0: T) { .. }`
pub(super) fn function(r: &mut Reader<'_>) -> Parsed<Function> {
    let entry = r.word("entry");
    if !entry && !r.word("testing$func") {
        return Err(r.scan.expected("`entry @name(..)`"));
    }
    let name = r.symbol()?;
    r.function = Function::entry(name, Vec::new());
    r.function.entry = entry;
    (r.names, r.ops) = (HashMap::new(), 0);
    r.defined.clear();
    r.scan.expect("(")?;
    let mut params = Vec::new();
    while !r.scan.take(")") {
        if !params.is_empty() {
            r.scan.expect(",")?;
        }
        let name = r.value_name()?;
        r.scan.expect(":")?;
        let ty = r.ty()?;
        let value = r.fresh(ty)?;
        r.define(name, vec![value])?;
        params.push(value);
    }
    if r.scan.take("->") {
        r.function.results = r.type_list()?;
    }
    if r.scan.keyword("optimization_hints") {
        r.scan.expect("=")?;
        r.function.hints = r.hints()?;
    }
    r.function.body = block(r, params, Op::Return)?;
    Ok(std::mem::replace(&mut r.function, Function::entry("", Vec::new())))
}

/// `{ .. }`. A block without a terminator gets `last` without values.
fn block(r: &mut Reader<'_>, params: Vec<Value>, last: fn(Vec<Value>) -> Op) -> Parsed<Block> {
    r.scan.expect("{")?;
    r.depth += 1;
    if r.depth > NESTING {
        return Err(r.fault(Reason::Limit, format!("blocks may be nested at most {NESTING} deep")));
    }
    let mut block = Block { params, ops: Vec::new() };
    while !r.scan.take("}") {
        if block.ops.last().is_some_and(|i| i.op.ends_block()) {
            return Err(r.scan.expected("`}`: the operation before ends the block"));
        }
        r.ops += 1;
        if r.ops > OPS {
            return Err(r.fault(Reason::Limit, format!("a function may have at most {OPS} operations")));
        }
        let instr = instr(r)?;
        block.ops.push(instr);
    }
    if !block.ops.last().is_some_and(|i| i.op.ends_block()) {
        block.ops.push(Instr { op: last(Vec::new()), results: Vec::new(), line: 0, column: 0 });
    }
    r.depth -= 1;
    Ok(block)
}

/// Reads a block inside an operation. Names defined in it, and those of `params`, are forgotten at its end.
pub(super) fn inner<'a>(
    r: &mut Reader<'a>,
    params: Vec<(&'a str, Type)>,
    last: fn(Vec<Value>) -> Op,
) -> Parsed<Block> {
    let before = r.defined.len();
    let mut values = Vec::new();
    for (name, ty) in params {
        let value = r.fresh(ty)?;
        r.define(name, vec![value])?;
        values.push(value);
    }
    let block = block(r, values, last)?;
    for name in r.defined.split_off(before) {
        r.names.remove(name);
    }
    Ok(block)
}

/// `%0, %1:2 = operation`
fn instr(r: &mut Reader<'_>) -> Parsed<Instr> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    if r.scan.peek("%") {
        loop {
            let name = r.value_name()?;
            let many = if r.scan.source[r.scan.at..].starts_with(':') {
                r.scan.expect(":")?;
                r.count()?
            } else {
                1
            };
            groups.push((name, many));
            if !r.scan.take(",") {
                break;
            }
        }
        r.scan.expect("=")?;
    }
    let spot = r.scan.spot();
    let at = r.scan.at;
    let (op, types) = operation(r)?;
    let mut results = Vec::new();
    for ty in types {
        results.push(r.fresh(ty)?);
    }
    let named = groups.iter().fold(0usize, |n, (_, many)| n.saturating_add(*many));
    if named != results.len() && named != 0 {
        let message = format!("{named} results are named, the operation has {}", results.len());
        return Err(because(Reason::Results, r.scan.error_at(at, message, None)));
    }
    let mut rest = results.iter().copied();
    for (name, many) in groups {
        r.define(name, rest.by_ref().take(many).collect())?;
    }
    Ok(Instr { op, results, line: spot.line, column: spot.column })
}
