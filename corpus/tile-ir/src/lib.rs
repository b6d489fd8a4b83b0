//! Tile IR programs: values, operations, types, and what is statically wrong with them.
//!
//! A module is a list of functions in single assignment form, with nested blocks instead of branches. Values are
//! numbered in the order in which a text defines them: parameters of a block before its operations, results of an
//! operation after its blocks. A number is never used again, so two modules are equal if their texts differ only in
//! names. [`crate::text`] reads and prints, [`verify`] checks. Nothing here has a memory model.
//! Source: the Tile IR specification, chapters on types and operations.

#[macro_use]
mod sorts;
#[macro_use]
mod book;

pub mod bytecode;
mod edit;
mod field;
pub mod lowering;
mod ops;
pub mod reduce;
pub mod run;
pub mod text;
mod types;
mod verify;
mod words;

pub use book::Op;
pub(crate) use edit::continues;
pub use ops::{Access, Assumption, Constant, IntegerOp, Place};
pub(crate) use types::extents;
pub use types::{Elem, Scalar, TensorView, Tile, TileView, Type};
pub use verify::{Fault, Reason, verify};
pub use words::{
    AtomicMode, Convert, FloatOp, Order, Overflow, Padding, Predicate, Reduction, Rounding, Scope, Sign,
};

/// Most operations of one function.
pub const OPS: usize = 16_384;
/// Most values of one function.
pub const VALUES: usize = 65_536;
/// Most functions of one module.
pub const FUNCTIONS: usize = 4_096;
/// Deepest nesting of blocks.
pub const NESTING: usize = 48;
/// Most dimensions of a tile or a view.
pub const RANK: usize = 8;
/// Most elements written out in one constant.
pub const CONSTANT_ELEMENTS: usize = 1 << 16;

/// A value of a function: an index into [`Function::types`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl Value {
    /// The value at a position of [`Function::types`].
    ///
    /// # Panics
    /// The position is beyond 32 bits: a function has at most [`VALUES`] values.
    pub fn at(position: usize) -> Self {
        Value(u32::try_from(position).expect("a function has less than 2^32 values"))
    }

    /// The index of this value in the types of its function.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An optimization hint for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A count.
    Number(u32),
    /// Whether something is allowed.
    Flag(bool),
}

/// Optimization hints: for each architecture a list of names and values.
pub type Hints = Vec<(String, Vec<(String, Hint)>)>;

/// A file of Tile IR.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Module {
    /// The name after `cuda_tile.module @`, empty if the text has no such frame. The bytecode does not store it.
    pub name: String,
    /// The functions in the order of the text.
    pub functions: Vec<Function>,
}

/// A kernel, or a `testing$func` as NVIDIA's tests use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name without `@`.
    pub name: String,
    /// Whether it can be launched.
    pub entry: bool,
    /// Types of the returned values; empty for a kernel.
    pub results: Vec<Type>,
    /// `optimization_hints`
    pub hints: Hints,
    /// The body; its parameters are those of the function.
    pub body: Block,
    /// The type of each value.
    pub types: Vec<Type>,
}

/// Operations in order; the last is a terminator.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// The parameters.
    pub params: Vec<Value>,
    /// The operations.
    pub ops: Vec<Instr>,
}

/// An operation with its results and the place it was read from.
#[derive(Clone, Debug)]
pub struct Instr {
    /// The operation.
    pub op: Op,
    /// The values it defines.
    pub results: Vec<Value>,
    /// Line of the source text, 1-based; 0 when generated. Not part of equality.
    pub line: u32,
    /// Column in that line, 1-based, in bytes. Not part of equality.
    pub column: u32,
}

impl PartialEq for Instr {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op && self.results == other.results
    }
}
impl Eq for Instr {}

impl Function {
    /// A kernel with these parameters and no operations.
    pub fn entry(name: &str, params: Vec<Type>) -> Function {
        Function {
            name: name.to_owned(),
            entry: true,
            results: Vec::new(),
            hints: Hints::new(),
            body: Block { params: (0..params.len()).map(Value::at).collect(), ops: Vec::new() },
            types: params,
        }
    }

    /// The type of a value, or `None` if this function has no such value.
    pub fn ty(&self, value: Value) -> Option<&Type> {
        self.types.get(value.index())
    }

    /// The type of a value that is a tile.
    pub fn tile(&self, value: Value) -> Option<&Tile> {
        self.ty(value).and_then(Type::tile)
    }

    /// Makes a new value of this type.
    pub fn fresh(&mut self, ty: Type) -> Value {
        let value = Value::at(self.types.len());
        self.types.push(ty);
        value
    }

    /// Appends an operation without blocks to `block`, with results of these types.
    pub fn push(&mut self, block: &mut Block, op: Op, results: Vec<Type>) -> Vec<Value> {
        let results: Vec<Value> = results.into_iter().map(|ty| self.fresh(ty)).collect();
        block.ops.push(Instr { op, results: results.clone(), line: 0, column: 0 });
        results
    }
}
