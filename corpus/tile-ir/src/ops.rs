//! Operations of Tile IR: the operands of each, and the blocks inside it.
//!
//! Each variant is one operation and has only the fields that this operation can have. Results are in [`super::Instr`].
//! Source: operations chapter of the Tile IR specification. The bytecode writer handles opcodes and versions.

use super::words::{
    AtomicMode, Convert, FloatOp, Order, Overflow, Predicate, Reduction, Rounding, Scope, Sign,
};
use super::{Block, Hints, Value};

/// Elements of a constant, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Either one value that all elements share, or all values in row-major order.
    pub bits: Vec<u64>,
}

/// Arithmetic on integers, with the overflow promise or the signedness of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerOp {
    /// `addi`
    Add(Overflow),
    /// `subi`
    Sub(Overflow),
    /// `muli`
    Mul(Overflow),
    /// `andi`
    And,
    /// `ori`
    Or,
    /// `xori`
    Xor,
    /// `maxi`
    Max(Sign),
    /// `mini`
    Min(Sign),
    /// `shli`
    Shl(Overflow),
    /// `shri`
    Shr(Sign),
    /// `remi`
    Rem(Sign),
}

/// The promise of an `assume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Every element is divisible. With `every`, only the first element of each run is, and the others count up from it.
    DivBy {
        /// The divisor.
        divisor: u64,
        /// The length of a run and the dimension it lies along.
        every: Option<(i64, i64)>,
    },
    /// Every element lies in an interval.
    Bounded {
        /// The least value.
        low: Option<i64>,
        /// The greatest value.
        high: Option<i64>,
    },
}

/// Order and scope of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The memory order.
    pub order: Order,
    /// The scope; weak accesses have none.
    pub scope: Option<Scope>,
}

/// One tile of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The view.
    pub view: Value,
    /// The position of the tile, one index for each dimension.
    pub index: Vec<Value>,
    /// For each dimension, whether the program promises that the tile lies inside the tensor.
    pub inbounds: Vec<bool>,
}

/// An operation. `token` is the token it waits for, `mask` selects the elements it accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are the operands, in the words of the specification")]
pub enum Op {
    Constant(Constant),
    /// The numbers 0, 1, 2, ..
    Iota,
    Convert {
        to: Convert,
        value: Value,
    },
    /// `exti`
    Extend {
        sign: Sign,
        value: Value,
    },
    /// `trunci`
    Truncate {
        overflow: Overflow,
        value: Value,
    },
    /// Moves pointers by a number of elements.
    Offset {
        pointer: Value,
        offset: Value,
    },
    Integer {
        op: IntegerOp,
        a: Value,
        b: Value,
    },
    Float {
        op: FloatOp,
        rounding: Rounding,
        flush: bool,
        a: Value,
        b: Value,
    },
    Compare {
        predicate: Predicate,
        sign: Sign,
        a: Value,
        b: Value,
    },
    Select {
        condition: Value,
        a: Value,
        b: Value,
    },
    Assume {
        that: Assumption,
        value: Value,
    },
    TileBlockId,
    NumTileBlocks,
    /// Makes a tensor view; `shape` and `strides` hold only the values that the result type leaves open.
    TensorView {
        base: Value,
        shape: Vec<Value>,
        strides: Vec<Value>,
    },
    /// `make_partition_view` or `make_strided_view`; the result type says which.
    MakeView {
        tensor: Value,
    },
    MakeToken,
    JoinTokens(Vec<Value>),
    LoadPtr {
        pointers: Value,
        access: Access,
        hints: Hints,
        mask: Option<Value>,
        padding: Option<Value>,
        token: Option<Value>,
    },
    StorePtr {
        pointers: Value,
        value: Value,
        access: Access,
        hints: Hints,
        mask: Option<Value>,
        token: Option<Value>,
    },
    LoadView {
        place: Place,
        access: Access,
        hints: Hints,
        token: Option<Value>,
    },
    StoreView {
        place: Place,
        value: Value,
        access: Access,
        hints: Hints,
        token: Option<Value>,
    },
    AtomicRmw {
        pointers: Value,
        mode: AtomicMode,
        value: Value,
        order: Order,
        scope: Scope,
        mask: Option<Value>,
        token: Option<Value>,
    },
    AtomicCas {
        pointers: Value,
        compare: Value,
        value: Value,
        order: Order,
        scope: Scope,
        mask: Option<Value>,
        token: Option<Value>,
    },
    AtomicRedView {
        place: Place,
        mode: AtomicMode,
        value: Value,
        order: Order,
        scope: Scope,
        token: Option<Value>,
    },
    MultimemLoadReduce {
        place: Place,
        reduction: Reduction,
        access: Access,
        token: Option<Value>,
    },
    MultimemReduce {
        place: Place,
        reduction: Reduction,
        value: Value,
        order: Order,
        scope: Scope,
        token: Option<Value>,
    },
    MultimemStore {
        place: Place,
        value: Value,
        access: Access,
        token: Option<Value>,
    },
    /// `memory_fence_alias_tko`
    AliasFence {
        token: Value,
    },
    GdcWait {
        token: Option<Value>,
    },
    GdcLaunch {
        token: Option<Value>,
    },
    If {
        condition: Value,
        then: Block,
        otherwise: Option<Block>,
    },
    /// Parameters of the body are the counter, then the loop-carried values.
    For {
        unsigned: bool,
        bounds: [Value; 3],
        inits: Vec<Value>,
        body: Block,
    },
    Loop {
        inits: Vec<Value>,
        body: Block,
    },
    Yield(Vec<Value>),
    Continue(Vec<Value>),
    Break(Vec<Value>),
    Return(Vec<Value>),
}

impl IntegerOp {
    /// The word in texts.
    pub fn word(self) -> &'static str {
        match self {
            IntegerOp::Add(_) => "addi",
            IntegerOp::Sub(_) => "subi",
            IntegerOp::Mul(_) => "muli",
            IntegerOp::And => "andi",
            IntegerOp::Or => "ori",
            IntegerOp::Xor => "xori",
            IntegerOp::Max(_) => "maxi",
            IntegerOp::Min(_) => "mini",
            IntegerOp::Shl(_) => "shli",
            IntegerOp::Shr(_) => "shri",
            IntegerOp::Rem(_) => "remi",
        }
    }
}

impl Op {
    /// Whether it ends a block.
    pub fn ends_block(&self) -> bool {
        matches!(self, end_op!())
    }

    /// The blocks inside, in order.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Op::If { then, otherwise, .. } => std::iter::once(then).chain(otherwise).collect(),
            Op::For { body, .. } | Op::Loop { body, .. } => vec![body],
            plain_op!() | token_op!() | access_op!() | end_op!() => Vec::new(),
        }
    }

    /// The blocks inside, mutable.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Op::If { then, otherwise, .. } => std::iter::once(then).chain(otherwise).collect(),
            Op::For { body, .. } | Op::Loop { body, .. } => vec![body],
            plain_op!() | token_op!() | access_op!() | end_op!() => Vec::new(),
        }
    }

    /// The operands, without those of operations inside its blocks.
    pub fn operands(&self) -> Vec<Value> {
        let place = |p: &Place| std::iter::once(p.view).chain(p.index.iter().copied()).collect::<Vec<_>>();
        let several = |first: &[Value], rest: [&Option<Value>; 3]| {
            first.iter().copied().chain(rest.into_iter().filter_map(|v| *v)).collect::<Vec<_>>()
        };
        let none = &None;
        match self {
            Op::Constant(_) | Op::Iota | Op::TileBlockId | Op::NumTileBlocks | Op::MakeToken => Vec::new(),
            Op::Convert { value, .. }
            | Op::Extend { value, .. }
            | Op::Truncate { value, .. }
            | Op::Assume { value, .. } => vec![*value],
            Op::MakeView { tensor } => vec![*tensor],
            Op::AliasFence { token } => vec![*token],
            Op::If { condition, .. } => vec![*condition],
            Op::Offset { pointer, offset } => vec![*pointer, *offset],
            Op::Integer { a, b, .. } | Op::Float { a, b, .. } | Op::Compare { a, b, .. } => vec![*a, *b],
            Op::Select { condition, a, b } => vec![*condition, *a, *b],
            Op::TensorView { base, shape, strides } => {
                std::iter::once(base).chain(shape).chain(strides).copied().collect()
            }
            Op::LoadPtr { pointers, mask, padding, token, .. } => {
                several(&[*pointers], [mask, padding, token])
            }
            Op::StorePtr { pointers, value, mask, token, .. }
            | Op::AtomicRmw { pointers, value, mask, token, .. } => {
                several(&[*pointers, *value], [mask, token, none])
            }
            Op::AtomicCas { pointers, compare, value, mask, token, .. } => {
                several(&[*pointers, *compare, *value], [mask, token, none])
            }
            Op::LoadView { place: p, token, .. } | Op::MultimemLoadReduce { place: p, token, .. } => {
                several(&place(p), [token, none, none])
            }
            Op::StoreView { place: p, value, token, .. }
            | Op::AtomicRedView { place: p, value, token, .. }
            | Op::MultimemReduce { place: p, value, token, .. }
            | Op::MultimemStore { place: p, value, token, .. } => {
                several(&place(p), [&Some(*value), token, none])
            }
            Op::GdcWait { token } | Op::GdcLaunch { token } => several(&[], [token, none, none]),
            Op::For { bounds, inits, .. } => bounds.iter().chain(inits).copied().collect(),
            Op::Loop { inits: list, .. }
            | Op::JoinTokens(list)
            | Op::Yield(list)
            | Op::Continue(list)
            | Op::Break(list)
            | Op::Return(list) => list.clone(),
        }
    }

    /// The same operands in the same order, mutable.
    pub fn operands_mut(&mut self) -> Vec<&mut Value> {
        fn place(p: &mut Place) -> Vec<&mut Value> {
            std::iter::once(&mut p.view).chain(&mut p.index).collect()
        }
        match self {
            Op::Constant(_) | Op::Iota | Op::TileBlockId | Op::NumTileBlocks | Op::MakeToken => Vec::new(),
            Op::Convert { value, .. }
            | Op::Extend { value, .. }
            | Op::Truncate { value, .. }
            | Op::Assume { value, .. } => vec![value],
            Op::MakeView { tensor } => vec![tensor],
            Op::AliasFence { token } => vec![token],
            Op::If { condition, .. } => vec![condition],
            Op::Offset { pointer, offset } => vec![pointer, offset],
            Op::Integer { a, b, .. } | Op::Float { a, b, .. } | Op::Compare { a, b, .. } => vec![a, b],
            Op::Select { condition, a, b } => vec![condition, a, b],
            Op::TensorView { base, shape, strides } => {
                std::iter::once(base).chain(shape).chain(strides).collect()
            }
            Op::LoadPtr { pointers, mask, padding, token, .. } => {
                std::iter::once(pointers).chain(mask).chain(padding).chain(token).collect()
            }
            Op::StorePtr { pointers, value, mask, token, .. }
            | Op::AtomicRmw { pointers, value, mask, token, .. } => {
                [pointers, value].into_iter().chain(mask).chain(token).collect()
            }
            Op::AtomicCas { pointers, compare, value, mask, token, .. } => {
                [pointers, compare, value].into_iter().chain(mask).chain(token).collect()
            }
            Op::LoadView { place: p, token, .. } | Op::MultimemLoadReduce { place: p, token, .. } => {
                place(p).into_iter().chain(token).collect()
            }
            Op::StoreView { place: p, value, token, .. }
            | Op::AtomicRedView { place: p, value, token, .. }
            | Op::MultimemReduce { place: p, value, token, .. }
            | Op::MultimemStore { place: p, value, token, .. } => {
                place(p).into_iter().chain([value]).chain(token).collect()
            }
            Op::GdcWait { token } | Op::GdcLaunch { token } => token.iter_mut().collect(),
            Op::For { bounds, inits, .. } => bounds.iter_mut().chain(inits).collect(),
            Op::Loop { inits: list, .. }
            | Op::JoinTokens(list)
            | Op::Yield(list)
            | Op::Continue(list)
            | Op::Break(list)
            | Op::Return(list) => list.iter_mut().collect(),
        }
    }

    /// Whether it accesses memory.
    pub fn memory(&self) -> bool {
        matches!(self, access_op!())
    }

    /// Whether it has no effect besides its results.
    pub fn pure(&self) -> bool {
        let waits = matches!(self, Op::AliasFence { .. } | Op::GdcWait { .. } | Op::GdcLaunch { .. });
        !(waits || self.memory() || self.ends_block() || !self.blocks().is_empty())
    }

    /// The token that a memory operation, an alias fence or a `gdc` operation waits for.
    pub fn token(&self) -> Option<Value> {
        match self {
            Op::LoadPtr { token, .. }
            | Op::StorePtr { token, .. }
            | Op::LoadView { token, .. }
            | Op::StoreView { token, .. }
            | Op::AtomicRmw { token, .. }
            | Op::AtomicCas { token, .. }
            | Op::AtomicRedView { token, .. }
            | Op::MultimemLoadReduce { token, .. }
            | Op::MultimemReduce { token, .. }
            | Op::MultimemStore { token, .. }
            | Op::GdcWait { token }
            | Op::GdcLaunch { token } => *token,
            Op::AliasFence { token } => Some(*token),
            Op::MakeToken | Op::JoinTokens(_) | plain_op!() | block_op!() | end_op!() => None,
        }
    }
}
