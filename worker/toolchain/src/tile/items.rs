//! The tables of a file (types, constants, names, each numbered), and the encoding of types.
//!
//! The format leaves the numbers free, so a caller can give a [`Numbering`]; reading returns the numbering of the file. The
//! usual numbering has the types of nearly every kernel first, then those of indices, then the other types in the order of
//! their use, each after its parts.

use super::bytes::{Cursor, Taken, count, varint};
use super::codes::{DYNAMIC, MULTICAST, ty};
use super::write::WriteError;
use super::{Bytecode, read::ReadError};
use moire_tile_ir::{Block, Elem, Module, Op, Padding, RANK, Scalar, TensorView, Tile, TileView, Type};
use std::collections::HashMap;
use std::hash::Hash;

/// An entry of the table of types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// A type of elements: numbers or pointers.
    Elem(Elem),
    /// A type of a value.
    Type(Type),
    /// Parameters and results.
    Function(Vec<Type>, Vec<Type>),
}

impl Item {
    /// The item of a type. A number has the same item as an element and as a bare value.
    pub(super) fn of(ty: &Type) -> Item {
        match ty {
            Type::Bare(scalar) => Item::Elem(Elem::Scalar(*scalar)),
            other => Item::Type(other.clone()),
        }
    }
}

/// The tables of a file, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// Types.
    pub types: Vec<Item>,
    /// Constants: elements as in memory.
    pub constants: Vec<Vec<u8>>,
    /// Names.
    pub strings: Vec<String>,
}

impl Numbering {
    /// The usual numbering of a module's types, constants and names.
    pub fn usual(module: &Module) -> Numbering {
        let scalar = |s| Item::Elem(Elem::Scalar(s));
        let mut types = vec![
            scalar(Scalar::I1),
            scalar(Scalar::I32),
            Item::Type(Type::Token),
            Item::Type(Type::scalar(Scalar::I32)),
            Item::Elem(Elem::pointer(Scalar::I32)),
            Item::Type(Type::pointer(Scalar::I32)),
            Item::Type(Type::scalar(Scalar::I1)),
        ];
        for function in &module.functions {
            indices(&function.body, &mut |value| {
                if let Some(Type::Tile(Tile { elem: Elem::Scalar(Scalar::I32), shape })) = function.ty(value)
                {
                    let item = Item::Type(Type::Tile(Tile {
                        elem: Elem::Scalar(Scalar::I32),
                        shape: shape.clone(),
                    }));
                    if !types.contains(&item) {
                        types.push(item);
                    }
                }
            });
        }
        Numbering { types, constants: Vec::new(), strings: Vec::new() }
    }
}

/// Calls for every counted row; blocks are nested no deeper than a module may have them.
fn indices(block: &Block, each: &mut dyn FnMut(moire_tile_ir::Value)) {
    for instr in &block.ops {
        if instr.op == Op::Iota {
            instr.results.iter().for_each(|r| each(*r));
        }
        instr.op.blocks().into_iter().for_each(|b| indices(b, each));
    }
}

/// Numbered entries.
#[derive(Debug)]
pub(super) struct Table<T> {
    pub(super) items: Vec<T>,
    ids: HashMap<T, u64>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    pub(super) fn new(items: Vec<T>) -> Self {
        let mut table = Table { items: Vec::new(), ids: HashMap::new() };
        items.into_iter().for_each(|item| {
            table.push(item);
        });
        table
    }

    /// The number of an entry, the first if it has several; `None` if it has none.
    pub(super) fn get(&self, item: &T) -> Option<u64> {
        self.ids.get(item).copied()
    }

    /// Gives an entry a new number.
    pub(super) fn push(&mut self, item: T) -> u64 {
        let id = self.items.len() as u64;
        self.ids.entry(item.clone()).or_insert(id);
        self.items.push(item);
        id
    }

    /// The number of an entry; a new number if it had none.
    pub(super) fn id(&mut self, item: T) -> u64 {
        self.get(&item).unwrap_or_else(|| self.push(item))
    }
}

impl Table<Item> {
    /// The number of a type. Its parts are numbered before it.
    pub(super) fn number(&mut self, item: Item) -> u64 {
        if let Some(id) = self.get(&item) {
            return id;
        }
        for part in parts(&item) {
            self.number(part);
        }
        self.push(item)
    }
}

/// The parts of an item, in the order of its encoding.
fn parts(item: &Item) -> Vec<Item> {
    let elem = |e: Elem| Item::Elem(e);
    match item {
        Item::Elem(Elem::Pointer { to, .. }) => vec![elem(Elem::Scalar(*to))],
        Item::Type(Type::Tile(tile)) => vec![elem(tile.elem)],
        Item::Type(Type::Tensor(tensor)) => vec![elem(Elem::Scalar(tensor.elem))],
        Item::Type(Type::View(view)) => vec![Item::Type(Type::Tensor(view.tensor.clone()))],
        Item::Function(params, results) => params.iter().chain(results).map(Item::of).collect(),
        Item::Elem(_) | Item::Type(Type::Token | Type::Bare(_)) => Vec::new(),
    }
}

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
    out.push(if view.steps.is_some() { ty::STRIDED } else { ty::PARTITION });
    if version >= Bytecode::V13_3 {
        varint(out, u64::from(view.padding.is_some()));
    }
    narrow(out, &view.tile);
    if let Some(steps) = &view.steps {
        narrow(out, steps);
    }
    varint(out, tensor);
    narrow(out, &view.dim_map);
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
        ty::PARTITION | ty::STRIDED => view(&mut c, version, known, tag == ty::STRIDED)?,
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

fn view(c: &mut Cursor<'_>, version: Bytecode, known: &[Item], strided: bool) -> Taken<Item> {
    let mut padded = flags(c, version >= Bytecode::V13_3)?;
    let list = c.list(4, RANK)?;
    let tile = unsigned(c, list)?;
    let steps = if strided {
        let list = c.list(4, RANK)?;
        Some(unsigned(c, list)?)
    } else {
        None
    };
    let tensor = match lookup(c, known)? {
        Item::Type(Type::Tensor(tensor)) => tensor.clone(),
        _ => return c.error("a view in tiles is made of a tensor"),
    };
    let list = c.list(4, RANK)?;
    let dim_map = unsigned(c, list)?;
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
    Ok(Item::Type(Type::View(TileView { steps, tile, tensor, dim_map, padding })))
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
pub(super) fn value_type(c: &mut Cursor<'_>, known: &[Item]) -> Result<Type, ReadError> {
    let start = *c;
    match lookup(c, known)? {
        Item::Type(ty) => Ok(ty.clone()),
        Item::Elem(Elem::Scalar(scalar)) => Ok(Type::Bare(*scalar)),
        other => start.error(format!("a value cannot have the type {other:?}")),
    }
}
