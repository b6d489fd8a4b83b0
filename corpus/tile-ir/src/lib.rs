//! Tile IR programs: values, operations, types, and what is statically wrong with them.
//!
//! A module is functions in single assignment form with nested blocks instead of branches. Values are numbered in the
//! order in which a text defines them (parameters of a block before what is in it, results of an operation after its
//! blocks), and a number is never used again, so two modules are equal when their texts differ in names only.
//! [`crate::text`] reads and prints, [`verify`] judges. Nothing here has a memory model.
//! Source: the Tile IR specification, chapters on types and operations.

mod edit;
pub mod lowering;
mod ops;
pub mod reduce;
pub mod run;
pub mod text;
mod types;
mod verify;
mod words;

pub(crate) use edit::continues;
pub use ops::{Access, Assumption, Constant, IntegerOp, Op, Place};
pub(crate) use types::extents;
pub use types::{Elem, Scalar, TensorView, Tile, TileView, Type};
pub use verify::{Fault, Reason, verify};
pub use words::{
    AtomicMode, Convert, FloatOp, Order, Overflow, Padding, Predicate, Reduction, Rounding, Scope, Sign,
};

/// Operations of one function.
pub const OPS: usize = 16_384;
/// Values of one function.
pub const VALUES: usize = 65_536;
/// Functions of one module.
pub const FUNCTIONS: usize = 4_096;
/// Blocks inside blocks.
pub const NESTING: usize = 48;
/// Dimensions of a tile or a view.
pub const RANK: usize = 8;
/// Elements of one constant that are written out.
pub const CONSTANT_ELEMENTS: usize = 1 << 16;

/// A value of a function: an index into [`Function::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl Value {
    /// The value at a position of [`Function::types`].
    ///
    /// # Panics
    /// The position is beyond 32 bits: a function has at most [`VALUES`] values.
    pub fn at(position: usize) -> Self {
        Value(u32::try_from(position).expect("a function has less than 2^32 values"))
    }

    /// Its index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a compiler is told for one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A count.
    Number(u32),
    /// Whether something is allowed.
    Flag(bool),
}

/// Hints by architecture, each a list of names and values.
pub type Hints = Vec<(String, Vec<(String, Hint)>)>;

/// A file of Tile IR.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Module {
    /// After `cuda_tile.module @`; empty where there is no such frame. The bytecode does not keep it.
    pub name: String,
    /// In the order of the text.
    pub functions: Vec<Function>,
}

/// A kernel, or a function as NVIDIA's tests have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Without `@`.
    pub name: String,
    /// Whether it can be launched.
    pub entry: bool,
    /// What it returns; nothing for a kernel.
    pub results: Vec<Type>,
    /// `optimization_hints`
    pub hints: Hints,
    /// Its parameters are the parameters of the function.
    pub body: Block,
    /// Of each value.
    pub types: Vec<Type>,
}

/// Operations in order; the last ends it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Block {
    /// Values it starts with.
    pub params: Vec<Value>,
    /// What is done.
    pub ops: Vec<Instr>,
}

/// An operation with its results and the place it was read from.
#[derive(Clone, Debug)]
pub struct Instr {
    /// What it does.
    pub op: Op,
    /// What it defines.
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
    /// A kernel of these parameters without operations.
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

    /// Type of a value; none where the number is no value of this function.
    pub fn ty(&self, value: Value) -> Option<&Type> {
        self.types.get(value.index())
    }

    /// Type of a value that is a tile.
    pub fn tile(&self, value: Value) -> Option<&Tile> {
        self.ty(value).and_then(Type::tile)
    }

    /// A new value of that type.
    pub fn fresh(&mut self, ty: Type) -> Value {
        let value = Value::at(self.types.len());
        self.types.push(ty);
        value
    }

    /// Puts an operation without blocks at the end of `block`; its results have these types.
    pub fn push(&mut self, block: &mut Block, op: Op, results: Vec<Type>) -> Vec<Value> {
        let results: Vec<Value> = results.into_iter().map(|ty| self.fresh(ty)).collect();
        block.ops.push(Instr { op, results: results.clone(), line: 0, column: 0 });
        results
    }
}
