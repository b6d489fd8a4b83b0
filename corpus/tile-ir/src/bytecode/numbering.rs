//! The tables of a file: types, constants and names, each numbered.
//!
//! The format leaves the numbers free, so a caller can give a [`Numbering`]; reading returns the numbering of the file. The
//! usual numbering has the types of nearly every kernel first, then those of indices, then the other types in the order of
//! their use, each after its parts.

use super::Bytecode;
use crate::{Block, Elem, Module, Op, Scalar, Tile, Type};
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
fn indices(block: &Block, each: &mut dyn FnMut(crate::Value)) {
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

/// The tables that are numbered while functions are written.
pub(super) struct Tables {
    pub(super) version: Bytecode,
    pub(super) types: Table<Item>,
    pub(super) constants: Table<Vec<u8>>,
    pub(super) strings: Table<String>,
}

/// The parts of an item, in the order of its encoding.
pub(super) fn parts(item: &Item) -> Vec<Item> {
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
