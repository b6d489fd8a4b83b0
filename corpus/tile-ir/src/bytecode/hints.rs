//! Hints of functions and operations: by architecture, each a name with a number or a flag.

use super::bytes::{Cursor, Taken, count, varint};
use super::codes::attribute;
use super::numbering::{Item, Numbering, Tables};
use super::types::value_type;
use crate::{Elem, Hint, Hints, Scalar, Type};

/// Writes hints: a dictionary of dictionaries, after its tag.
pub(super) fn write_hints(tables: &mut Tables, out: &mut Vec<u8>, hints: &Hints) {
    count(out, hints.len());
    for (arch, all) in hints {
        varint(out, tables.strings.id(arch.clone()));
        out.push(attribute::DICTIONARY);
        count(out, all.len());
        for (name, hint) in all {
            varint(out, tables.strings.id(name.clone()));
            match hint {
                Hint::Number(n) => {
                    out.push(attribute::INTEGER);
                    varint(out, tables.types.number(Item::Elem(Elem::Scalar(Scalar::I32))));
                    varint(out, u64::from(*n));
                }
                Hint::Flag(flag) => out.extend([attribute::BOOL, u8::from(*flag)]),
            }
        }
    }
}

/// Reads the attribute that must be here.
pub(super) fn tag(c: &mut Cursor<'_>, want: u8) -> Taken<()> {
    let start = *c;
    match c.byte()? {
        tag if tag == want => Ok(()),
        tag => start.error(format!("an attribute with tag {want} must stand here, not {tag}")),
    }
}

/// Reads a name by its number.
pub(super) fn string(c: &mut Cursor<'_>, tables: &Numbering) -> Taken<String> {
    let start = *c;
    let id = c.varint()?;
    let found = usize::try_from(id).ok().and_then(|i| tables.strings.get(i));
    found.cloned().map_or_else(|| start.error(format!("name {id} is not there")), Ok)
}

/// Reads hints: a dictionary of dictionaries, after its tag.
pub(super) fn read_hints(c: &mut Cursor<'_>, tables: &Numbering) -> Taken<Hints> {
    let mut out = Hints::new();
    for _ in 0..c.count()? {
        let arch = string(c, tables)?;
        tag(c, attribute::DICTIONARY)?;
        let mut all = Vec::new();
        for _ in 0..c.count()? {
            let name = string(c, tables)?;
            let start = *c;
            let hint = match c.byte()? {
                attribute::BOOL => Hint::Flag(c.byte()? != 0),
                attribute::INTEGER => match value_type(c, &tables.types)? {
                    Type::Bare(Scalar::I32) => Hint::Number(c.small()?),
                    other => return start.error(format!("hints of type `{other}` are not known here")),
                },
                other => return start.error(format!("a hint with tag {other} is not known here")),
            };
            all.push((name, hint));
        }
        out.push((arch, all));
    }
    Ok(out)
}
