//! The encoding of types.

use super::Bytecode;
use super::bytes::{Cursor, Taken, count, varint};
use super::codes::{DYNAMIC, MULTICAST, ty};
use super::error::WriteError;
use super::numbering::{Item, Table, parts};
use crate::{Elem, Padding, RANK, Scalar, TensorView, Tile, TileView, Type};

fn wide(out: &mut Vec<u8>, list: &[Option<u64>]) -> Result<(), WriteError> {
    count(out, list.len());
    for extent in list {
        let n = match *extent {
            None => DYNAMIC,
            Some(extent) => i64::try_from(extent).map_err(|_| WriteError::Extent(extent))?,
        };
        out.extend(n.to_le_bytes());
    }
    Ok(())
}

fn narrow(out: &mut Vec<u8>, list: &[u32]) {
    count(out, list.len());
    list.iter().for_each(|n| out.extend(n.to_le_bytes()));
}

/// Encodes an item whose parts have numbers.
pub(super) fn encode(item: &Item, version: Bytecode, table: &Table<Item>) -> Result<Vec<u8>, WriteError> {
    let numbers: Vec<u64> = parts(item)
        .iter()
        .map(|p| table.get(p).expect("the parts of an item are numbered before it"))
        .collect();
    let first = numbers.first().copied().unwrap_or_default();
    let mut out = Vec::new();
    let needs = |what: &'static str, least: Bytecode| {
        if version >= least { Ok(()) } else { Err(WriteError::Version { what, least, version }) }
    };
    let multicast = |out: &mut Vec<u8>, multicast: bool| {
        if multicast {
            needs("multicast memory", Bytecode::V13_5)?;
        }
        if version >= Bytecode::V13_4 {
            varint(out, u64::from(multicast));
        }
        Ok::<(), WriteError>(())
    };
    match item {
        Item::Elem(Elem::Scalar(scalar)) | Item::Type(Type::Bare(scalar)) => {
            match scalar {
                Scalar::F8E8M0FNU => needs("the type `f8E8M0FNU`", Bytecode::V13_2)?,
                Scalar::F4E2M1FN | Scalar::I4 => needs("types of 4 bits", Bytecode::V13_3)?,
                _ => {}
            }
            out.push(scalar.code());
        }
        Item::Elem(Elem::Pointer { multicast: all, .. }) => {
            out.push(ty::POINTER);
            multicast(&mut out, *all)?;
            varint(&mut out, first);
            out.extend(all.then_some(MULTICAST));
        }
        Item::Type(Type::Token) => out.push(ty::TOKEN),
        Item::Type(Type::Tile(tile)) => {
            out.push(ty::TILE);
            varint(&mut out, first);
            wide(&mut out, &tile.shape.iter().map(|d| Some(u64::from(*d))).collect::<Vec<_>>())?;
        }
        Item::Type(Type::Tensor(tensor)) => {
            out.push(ty::TENSOR);
            multicast(&mut out, tensor.multicast)?;
            varint(&mut out, first);
            wide(&mut out, &tensor.shape)?;
            wide(&mut out, &tensor.strides)?;
            out.extend(tensor.multicast.then_some(MULTICAST));
        }
        Item::Type(Type::View(view)) => {
            if view.steps.is_some() {
                needs("`strided_view`", Bytecode::V13_3)?;
            }
            if view.sparse.is_some() {
                needs("`gather_scatter_view`", Bytecode::V13_3)?;
            }
            tile_view(&mut out, view, version, first);
        }
        Item::Function(params, _) => {
            out.push(ty::FUNCTION);
            let (params, results) = numbers.split_at(params.len().min(numbers.len()));
            for list in [params, results] {
                count(&mut out, list.len());
                list.iter().for_each(|n| varint(&mut out, *n));
            }
        }
    }
    Ok(out)
}

fn tile_view(out: &mut Vec<u8>, view: &TileView, version: Bytecode, tensor: u64) {
    out.push(match (&view.steps, view.sparse) {
        (Some(_), _) => ty::STRIDED,
        (None, Some(_)) => ty::GATHER,
        (None, None) => ty::PARTITION,
    });
    if version >= Bytecode::V13_3 {
        varint(out, u64::from(view.padding.is_some()));
    }
    narrow(out, &view.tile);
    if let Some(steps) = &view.steps {
        narrow(out, steps);
    }
    varint(out, tensor);
    match view.sparse {
        Some(sparse) => varint(out, u64::from(sparse)),
        None => narrow(out, &view.dim_map),
    }
    if version < Bytecode::V13_3 {
        out.push(u8::from(view.padding.is_some()));
    }
    out.extend(view.padding.map(Padding::code));
}

fn unsigned(cursor: &Cursor<'_>, list: Vec<i64>) -> Taken<Vec<u32>> {
    list.into_iter()
        .map(|n| u32::try_from(n).or_else(|_| cursor.error(format!("{n} is no extent, step or dimension"))))
        .collect()
}

fn open(cursor: &Cursor<'_>, list: Vec<i64>) -> Taken<Vec<Option<u64>>> {
    let each = |n| match n {
        DYNAMIC => Ok(None),
        n => u64::try_from(n).map(Some).or_else(|_| cursor.error(format!("{n} is no extent or stride"))),
    };
    list.into_iter().map(each).collect()
}

/// Decodes an item; `known` are the items before it.
pub(super) fn decode(mut c: Cursor<'_>, version: Bytecode, known: &[Item]) -> Taken<Item> {
    let tag = c.byte()?;
    let flagged = version >= Bytecode::V13_4;
    let item = match tag {
        ty::POINTER => {
            let multicast = flags(&mut c, flagged)?;
            let to = scalar(&mut c, known)?;
            kind(&mut c, multicast)?;
            Item::Elem(Elem::Pointer { to, multicast })
        }
        ty::TILE => {
            let elem = elem(&mut c, known)?;
            let list = c.list(8, RANK)?;
            Item::Type(Type::Tile(Tile { elem, shape: unsigned(&c, list)? }))
        }
        ty::TENSOR => {
            let multicast = flags(&mut c, flagged)?;
            let elem = scalar(&mut c, known)?;
            let (shape, strides) = (c.list(8, RANK)?, c.list(8, RANK)?);
            let (shape, strides) = (open(&c, shape)?, open(&c, strides)?);
            kind(&mut c, multicast)?;
            Item::Type(Type::Tensor(TensorView { elem, shape, strides, multicast }))
        }
        ty::PARTITION | ty::STRIDED | ty::GATHER => view(&mut c, version, known, tag)?,
        ty::FUNCTION => {
            let mut lists = [Vec::new(), Vec::new()];
            for list in &mut lists {
                for _ in 0..c.count()? {
                    list.push(value_type(&mut c, known)?);
                }
            }
            let [params, results] = lists;
            Item::Function(params, results)
        }
        ty::TOKEN => Item::Type(Type::Token),
        other => match Scalar::from_code(other) {
            Some(scalar) => Item::Elem(Elem::Scalar(scalar)),
            None => return c.error(format!("the type with tag {other} is not known here")),
        },
    };
    if c.left() > 0 {
        return c.error("bytes are left after a type");
    }
    Ok(item)
}

/// Whether the only optional field is there.
fn flags(c: &mut Cursor<'_>, present: bool) -> Taken<bool> {
    match if present { c.varint()? } else { 0 } {
        0 => Ok(false),
        1 => Ok(true),
        other => c.error(format!("flags {other} of a type are not known here")),
    }
}

/// Of a pointer, where it is said.
fn kind(c: &mut Cursor<'_>, said: bool) -> Taken<()> {
    match if said { c.byte()? } else { MULTICAST } {
        MULTICAST => Ok(()),
        other => c.error(format!("pointers of kind {other} are not known here")),
    }
}

fn view(c: &mut Cursor<'_>, version: Bytecode, known: &[Item], tag: u8) -> Taken<Item> {
    let mut padded = flags(c, version >= Bytecode::V13_3)?;
    let list = c.list(4, RANK)?;
    let tile = unsigned(c, list)?;
    let steps = if tag == ty::STRIDED {
        let list = c.list(4, RANK)?;
        Some(unsigned(c, list)?)
    } else {
        None
    };
    let tensor = match lookup(c, known)? {
        Item::Type(Type::Tensor(tensor)) => tensor.clone(),
        _ => return c.error("a view in tiles is made of a tensor"),
    };
    let (mut dim_map, mut sparse) = ((0..).take(tile.len()).collect(), None);
    if tag == ty::GATHER {
        let dimension = c.varint()?;
        sparse = Some(u32::try_from(dimension).or_else(|_| c.error(format!("{dimension} is no dimension")))?);
    } else {
        let list = c.list(4, RANK)?;
        dim_map = unsigned(c, list)?;
    }
    if version < Bytecode::V13_3 {
        padded = c.byte()? != 0;
    }
    let padding = if padded {
        let code = c.byte()?;
        Some(
            Padding::from_code(code)
                .map_or_else(|| c.error(format!("padding {code} is not known here")), Ok)?,
        )
    } else {
        None
    };
    Ok(Item::Type(Type::View(TileView { steps, tile, tensor, dim_map, sparse, padding })))
}

fn lookup<'k>(c: &mut Cursor<'_>, known: &'k [Item]) -> Taken<&'k Item> {
    let start = *c;
    let id = c.varint()?;
    let found = usize::try_from(id).ok().and_then(|i| known.get(i));
    found.map_or_else(|| start.error(format!("type {id} is not there yet")), Ok)
}

fn elem(c: &mut Cursor<'_>, known: &[Item]) -> Taken<Elem> {
    let start = *c;
    match lookup(c, known)? {
        Item::Elem(elem) => Ok(*elem),
        other => start.error(format!("elements cannot have the type {other:?}")),
    }
}

fn scalar(c: &mut Cursor<'_>, known: &[Item]) -> Taken<Scalar> {
    let start = *c;
    match elem(c, known)? {
        Elem::Scalar(scalar) => Ok(scalar),
        other @ Elem::Pointer { .. } => start.error(format!("`{other}` is no number")),
    }
}

/// A type that a value can have.
pub(super) fn value_type(c: &mut Cursor<'_>, known: &[Item]) -> Taken<Type> {
    let start = *c;
    match lookup(c, known)? {
        Item::Type(ty) => Ok(ty.clone()),
        Item::Elem(Elem::Scalar(scalar)) => Ok(Type::Bare(*scalar)),
        other => start.error(format!("a value cannot have the type {other:?}")),
    }
}
