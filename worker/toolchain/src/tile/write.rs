//! Writes a module as a file of bytecode: header, functions, constants, types, names.
//!
//! The same module, version and numbering give the same bytes. No debug information is written.

use super::Bytecode;
use super::bytes::{align, count, table, varint};
use super::codes::{FLAG_ENTRY, FLAG_HINTS, MAGIC, attribute, section};
use super::items::{Item, Numbering, Table, encode};
use super::write_ops::Ops;
use moire_tile_ir::{Elem, Function, Hint, Hints, Module, Scalar};

/// The reason that there is no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The module uses something newer than the version asked for.
    #[error("{what} needs bytecode {least}, this is {version}")]
    Version {
        /// The newer feature.
        what: &'static str,
        /// The first version that has it.
        least: Bytecode,
        /// The version asked for.
        version: Bytecode,
    },
    /// A tensor has more elements along a dimension than the format can say.
    #[error("a dimension of {0} elements cannot be written")]
    Extent(u64),
    /// The module has faults: [`moire_tile_ir::verify`] names them.
    #[error("`@{0}` is no function that could be written: {1}")]
    Malformed(String, &'static str),
}

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
    tables.file(&functions)
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
        tables.hints(out, &function.hints);
    }
    if tables.version >= Bytecode::V13_5 {
        out.push(attribute::ARRAY);
        varint(out, 0);
    }
    Ok(())
}

/// The tables that are numbered while functions are written.
pub(super) struct Tables {
    pub(super) version: Bytecode,
    pub(super) types: Table<Item>,
    pub(super) constants: Table<Vec<u8>>,
    pub(super) strings: Table<String>,
}

impl Tables {
    /// A dictionary of dictionaries.
    pub(super) fn hints(&mut self, out: &mut Vec<u8>, hints: &Hints) {
        count(out, hints.len());
        for (arch, all) in hints {
            varint(out, self.strings.id(arch.clone()));
            out.push(attribute::DICTIONARY);
            count(out, all.len());
            for (name, hint) in all {
                varint(out, self.strings.id(name.clone()));
                match hint {
                    Hint::Number(n) => {
                        out.push(attribute::INTEGER);
                        varint(out, self.types.number(Item::Elem(Elem::Scalar(Scalar::I32))));
                        varint(out, u64::from(*n));
                    }
                    Hint::Flag(flag) => out.extend([attribute::BOOL, u8::from(*flag)]),
                }
            }
        }
    }

    fn file(&self, functions: &[u8]) -> Result<Vec<u8>, WriteError> {
        let mut out = MAGIC.to_vec();
        out.extend([13, self.version.minor(), 0, 0]);
        part(&mut out, section::FUNC, 8, functions);
        if !self.constants.items.is_empty() {
            let sized = |bytes: &Vec<u8>| {
                let mut item = Vec::new();
                count(&mut item, bytes.len());
                item.extend(bytes);
                item
            };
            let items: Vec<Vec<u8>> = self.constants.items.iter().map(sized).collect();
            part(&mut out, section::CONSTANT, 8, &table(&items, 8));
        }
        let types = self.types.items.iter().map(|item| encode(item, self.version, &self.types));
        part(&mut out, section::TYPE, 4, &table(&types.collect::<Result<Vec<_>, _>>()?, 4));
        part(&mut out, section::STRING, 4, &table(&self.strings.items, 4));
        out.push(0);
        Ok(out)
    }
}

fn part(out: &mut Vec<u8>, id: u8, alignment: usize, data: &[u8]) {
    out.push(id | 0x80);
    count(out, data.len());
    count(out, alignment);
    align(out, alignment);
    out.extend(data);
}
