//! Reads a file of bytecode as a module. Any bytes are read to their end, or refused at a position.
//!
//! The module is not yet verified. Debug information and the producer's name are skipped. Globals and operations that
//! [`crate::Op`] lacks are refused. Sizes are bounded by the number of bytes and by the limits of
//! [`moire_tile_ir`].

use super::Bytecode;
use super::bytes::{Cursor, Taken};
use super::codes::{FLAG_ENTRY, FLAG_HINTS, MAGIC, attribute, section};
use super::error::ReadError;
use super::hints::{read_hints, string, tag};
use super::numbering::{Item, Numbering};
use super::read_ops::Body;
use super::types::decode;
use crate::{FUNCTIONS, Function, Module};

/// Most bytes of a file.
const FILE_BYTES: usize = 1 << 20;
/// Most entries of a table.
const ENTRIES: usize = 1 << 20;

/// The module of a file, with its version and the order of its tables.
///
/// # Errors
/// The first fault.
pub fn read(bytes: &[u8]) -> Result<(Module, Bytecode, Numbering), ReadError> {
    let mut file = Cursor::new(bytes, 0);
    if bytes.len() > FILE_BYTES {
        return file.error(format!("a file may have at most {FILE_BYTES} bytes"));
    }
    if file.take(MAGIC.len()).ok() != Some(MAGIC.as_slice()) {
        return Cursor::new(bytes, 0).error("this is no Tile IR bytecode");
    }
    let start = file;
    let (major, minor, _tag) = (file.byte()?, file.byte()?, file.take(2)?);
    let Some(version) = Bytecode::of(major, minor) else {
        return start.error(format!("version {major}.{minor} is not known here"));
    };
    let parts = sections(&mut file)?;
    let tables = tables(&parts, version)?;
    let mut module = Module::default();
    if let Some(mut functions) = parts[usize::from(section::FUNC)] {
        let n = functions.count()?;
        if n > FUNCTIONS {
            return functions.error(format!("a module may have at most {FUNCTIONS} functions"));
        }
        for _ in 0..n {
            let debug = parts[usize::from(section::DEBUG)].is_some();
            module.functions.push(function(&mut functions, version, &tables, debug)?);
        }
        if functions.left() > 0 {
            return functions.error("what follows the last function is not read here");
        }
    }
    Ok((module, version, tables))
}

/// The data of each section, by its number.
fn sections<'a>(file: &mut Cursor<'a>) -> Taken<[Option<Cursor<'a>>; 8]> {
    let mut parts = [None; 8];
    loop {
        let start = *file;
        let id = file.byte()?;
        if id == 0 && file.left() > 0 {
            return start.error("bytes are left after the last section");
        }
        if id == 0 {
            return Ok(parts);
        }
        let length = file.varint()?;
        if id & 0x80 != 0 {
            let to = file.varint()?;
            match usize::try_from(to) {
                Ok(to) if to.is_power_of_two() && to <= 64 => file.align(to)?,
                _ => return start.error(format!("an alignment of {to}")),
            }
        }
        let Ok(length) = usize::try_from(length) else {
            return start.error("a section is longer than the file");
        };
        let data = file.part(length)?;
        let id = id & 0x7f;
        match parts.get_mut(usize::from(id)) {
            Some(slot @ None) => *slot = Some(data),
            Some(Some(_)) => return start.error(format!("section {id} is there twice")),
            None => return start.error(format!("section {id} is not known here")),
        }
        if id == section::GLOBAL && data.left() > 0 {
            return data.error("globals are not read here");
        }
    }
}

fn items<'a>(part: Option<Cursor<'a>>, width: usize) -> Taken<Vec<Cursor<'a>>> {
    let Some(part) = part else { return Ok(Vec::new()) };
    let all = part.table(width)?;
    if all.len() > ENTRIES {
        return part.error(format!("a table may have at most {ENTRIES} entries"));
    }
    Ok(all)
}

fn tables(parts: &[Option<Cursor<'_>>; 8], version: Bytecode) -> Taken<Numbering> {
    let mut out = Numbering::default();
    for item in items(parts[usize::from(section::STRING)], 4)? {
        match std::str::from_utf8(item.rest()) {
            Ok(text) => out.strings.push(text.to_owned()),
            Err(_) => return item.error("a name is not UTF-8"),
        }
    }
    for item in items(parts[usize::from(section::TYPE)], 4)? {
        let decoded = decode(item, version, &out.types)?;
        out.types.push(decoded);
    }
    for mut item in items(parts[usize::from(section::CONSTANT)], 8)? {
        let n = item.count()?;
        if n != item.left() {
            return item.error("a constant has another length than it says");
        }
        out.constants.push(item.rest().to_vec());
    }
    Ok(out)
}

/// `debug`: whether the file has debug information for locations.
fn function(c: &mut Cursor<'_>, version: Bytecode, tables: &Numbering, debug: bool) -> Taken<Function> {
    let name = string(c, tables)?;
    let start = *c;
    let id = c.varint()?;
    let Some(Item::Function(params, results)) = usize::try_from(id).ok().and_then(|i| tables.types.get(i))
    else {
        return start.error(format!("type {id} is no type of a function"));
    };
    let start = *c;
    let flags = c.byte()?;
    let hinted = if version < Bytecode::V13_5 { FLAG_HINTS } else { 0 };
    if flags & !(FLAG_ENTRY | hinted) != 0 {
        return start.error(format!("flags {flags} of a function are not known here"));
    }
    let entry = flags & FLAG_ENTRY != 0;
    let start = *c;
    if c.varint()? != 0 && !debug {
        return start.error("a function has a location and the file has none");
    }
    let mut function = Function::entry(&name, params.clone());
    (function.entry, function.results) = (entry, results.clone());
    if flags & FLAG_HINTS != 0 || entry && version >= Bytecode::V13_5 {
        tag(c, attribute::HINTS)?;
        function.hints = read_hints(c, tables)?;
    }
    if version >= Bytecode::V13_5 && (c.byte()?, c.varint()?) != (attribute::ARRAY, 0) {
        return c.error("attributes of parameters are not read here");
    }
    let length = c.count()?;
    let body = c.part(length)?;
    Body::new(function, body, version, tables).read()
}
