//! Writes a module as a file of bytecode: header, functions, constants, types, names.
//!
//! The same module, version and numbering give the same bytes. No debug information is written.

use super::Bytecode;
use super::bytes::{align, count, table, varint};
use super::codes::{FLAG_ENTRY, FLAG_HINTS, MAGIC, attribute, section};
use super::error::WriteError;
use super::hints::write_hints;
use super::numbering::{Item, Numbering, Table, Tables};
use super::types::encode;
use super::write_ops::Ops;
use crate::{Function, Module};

/// The file of a module with the usual numbering.
///
/// # Errors
/// See [`WriteError`]. A module without faults can be written for the newest version.
pub fn write(module: &Module, version: Bytecode) -> Result<Vec<u8>, WriteError> {
    write_numbered(module, version, Numbering::usual(module))
}

/// The file of a module. Items that `numbering` lacks are numbered after its own.
///
/// # Errors
/// As [`write()`].
pub fn write_numbered(
    module: &Module,
    version: Bytecode,
    numbering: Numbering,
) -> Result<Vec<u8>, WriteError> {
    let mut tables = Tables {
        version,
        types: Table::new(Vec::new()),
        constants: Table::new(numbering.constants),
        strings: Table::new(numbering.strings),
    };
    for item in numbering.types {
        tables.types.number(item);
    }
    let mut bodies = Vec::new();
    for function in &module.functions {
        bodies.push(Ops::new(function, &mut tables).body()?);
    }
    let mut functions = Vec::new();
    count(&mut functions, module.functions.len());
    for (function, body) in module.functions.iter().zip(bodies) {
        head(&mut functions, function, &mut tables)?;
        count(&mut functions, body.len());
        functions.extend(body);
    }
    file(&tables, &functions)
}

/// Writes a function up to the length of its body.
fn head(out: &mut Vec<u8>, function: &Function, tables: &mut Tables) -> Result<(), WriteError> {
    varint(out, tables.strings.id(function.name.clone()));
    let params = function.body.params.iter().map(|p| function.ty(*p).cloned());
    let Some(params) = params.collect::<Option<Vec<_>>>() else {
        return Err(WriteError::Malformed(function.name.clone(), "a parameter has no type"));
    };
    varint(out, tables.types.number(Item::Function(params, function.results.clone())));
    let hinted = !function.hints.is_empty() && tables.version < Bytecode::V13_5;
    let entry = if function.entry { FLAG_ENTRY } else { 0 };
    out.push(entry | if hinted { FLAG_HINTS } else { 0 });
    // No location.
    varint(out, 0);
    if hinted || tables.version >= Bytecode::V13_5 && function.entry {
        out.push(attribute::HINTS);
        write_hints(tables, out, &function.hints);
    }
    if tables.version >= Bytecode::V13_5 {
        out.push(attribute::ARRAY);
        varint(out, 0);
    }
    Ok(())
}

/// The file of these functions, with the tables that they use.
fn file(tables: &Tables, functions: &[u8]) -> Result<Vec<u8>, WriteError> {
    let mut out = MAGIC.to_vec();
    out.extend([13, tables.version.minor(), 0, 0]);
    part(&mut out, section::FUNC, 8, functions);
    if !tables.constants.items.is_empty() {
        let sized = |bytes: &Vec<u8>| {
            let mut item = Vec::new();
            count(&mut item, bytes.len());
            item.extend(bytes);
            item
        };
        let items: Vec<Vec<u8>> = tables.constants.items.iter().map(sized).collect();
        part(&mut out, section::CONSTANT, 8, &table(&items, 8));
    }
    let types = tables.types.items.iter().map(|item| encode(item, tables.version, &tables.types));
    part(&mut out, section::TYPE, 4, &table(&types.collect::<Result<Vec<_>, _>>()?, 4));
    part(&mut out, section::STRING, 4, &table(&tables.strings.items, 4));
    out.push(0);
    Ok(out)
}

fn part(out: &mut Vec<u8>, id: u8, alignment: usize, data: &[u8]) {
    out.push(id | 0x80);
    count(out, data.len());
    count(out, alignment);
    align(out, alignment);
    out.extend(data);
}
