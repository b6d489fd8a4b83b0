//! What operations of Tile IR consist of, and what follows from the fields of one.
//!
//! Source: operations chapter of the Tile IR specification.

use super::field::{Field, FieldMut};
use super::words::{Order, Overflow, Scope, Sign};
use super::{Block, Op, Value};

/// Elements of a constant, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constant {
    /// Either one value that all elements share, or all values in row-major order.
    pub bits: Vec<u64>,
}

/// Arithmetic on integers, with the overflow promise or the signedness of its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntegerOp {
    /// `addi`
    Add(Overflow),
    /// `subi`
    Sub(Overflow),
    /// `muli`
    Mul(Overflow),
    /// `andi`
    #[default]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The memory order.
    pub order: Order,
    /// The scope; weak accesses have none.
    pub scope: Option<Scope>,
}

/// One tile of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The view.
    pub view: Value,
    /// The position of the tile, one index for each dimension.
    pub index: Vec<Value>,
    /// For each dimension, whether the program promises that the tile lies inside the tensor.
    pub inbounds: Vec<bool>,
}

impl IntegerOp {
    /// The word in texts.
    pub(crate) fn word(self) -> &'static str {
        Op::Integer { op: self, a: Value::default(), b: Value::default() }.form().word
    }
}

impl Default for Assumption {
    fn default() -> Self {
        Assumption::Bounded { low: None, high: None }
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
        self.fields().into_iter().flat_map(|named| named.field.values()).copied().collect()
    }

    /// The same operands in the same order, mutable.
    pub fn operands_mut(&mut self) -> Vec<&mut Value> {
        self.fields_mut().into_iter().flat_map(|named| named.field.values()).collect()
    }

    /// Whether it accesses memory.
    pub fn memory(&self) -> bool {
        matches!(self, access_op!())
    }

    /// Whether it is an access that is never weak.
    pub fn atomic(&self) -> bool {
        self.memory() && !self.fields().iter().any(|named| matches!(named.field, Field::Scope(_)))
    }

    /// Whether it has no effect besides its results.
    pub fn pure(&self) -> bool {
        let waits = matches!(self, Op::AliasFence { .. } | Op::GdcWait { .. } | Op::GdcLaunch { .. });
        !(waits || self.memory() || self.ends_block() || !self.blocks().is_empty())
    }

    /// The token that a memory operation, an alias fence or a `gdc` operation waits for.
    pub fn token(&self) -> Option<Value> {
        let token = self.fields().into_iter().find(|named| named.name == "token")?;
        token.field.values().first().copied()
    }

    /// The pointers or the view that a memory operation accesses.
    pub fn target(&self) -> Option<Value> {
        let fields = self.fields();
        let target = fields.iter().find(|named| matches!(named.name, "pointers" | "place.view"))?;
        target.field.values().first().copied()
    }

    /// Order and scope of a memory operation.
    pub fn access(&self) -> Option<Access> {
        let (mut order, mut scope) = (None, None);
        for named in self.fields() {
            match (named.name, named.field) {
                ("access" | "order", Field::Word(word)) => order = Order::from_code(word.number()),
                ("scope", Field::Word(word)) => scope = Scope::from_code(word.number()),
                (_, Field::Scope(given)) => scope = *given,
                _ => {}
            }
        }
        order.map(|order| Access { order, scope })
    }

    /// Gives a memory operation this order and, where it has one, this scope. Other operations stay as they are.
    pub fn set_access(&mut self, access: Access) {
        for named in self.fields_mut() {
            match (named.name, named.field, access.scope) {
                ("access" | "order", FieldMut::Word(word), _) => {
                    word.become_number(access.order.code());
                }
                ("scope", FieldMut::Word(word), Some(scope)) => {
                    word.become_number(scope.code());
                }
                (_, FieldMut::Scope(given), scope) => *given = scope,
                _ => {}
            }
        }
    }

    /// Leaves out the optional operands of these names. Returns whether there was one.
    fn leave_out(&mut self, names: &[&str]) -> bool {
        let mut there = false;
        for named in self.fields_mut().into_iter().filter(|named| names.contains(&named.name)) {
            if let FieldMut::Optional(value) = named.field {
                there |= value.take().is_some();
            }
        }
        there
    }

    /// Takes away the token that a memory operation waits for. Returns whether there was one.
    pub fn untoken(&mut self) -> bool {
        self.memory() && self.leave_out(&["token"])
    }

    /// Takes away the mask, and the padding that needs it. Returns whether there was one.
    pub fn unmask(&mut self) -> bool {
        self.leave_out(&["mask", "padding"])
    }

    /// Whether a mask selects elements.
    pub fn masked(&self) -> bool {
        self.fields().iter().any(|named| named.name == "mask" && !named.field.values().is_empty())
    }
}
