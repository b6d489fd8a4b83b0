//! Fields of operations, by kind: what the readers fill and the writers write.
//!
//! Contract: the fields of an operation come in the order of the bytecode, the same for `Op::fields` and
//! `Op::fields_mut`. The bytecode follows from the kinds alone: a bit for each field that may be missing, then attributes,
//! operands and blocks in order. Source: binary format chapter of the Tile IR specification.

use super::words::{
    AtomicMode, Convert, FloatOp, Order, Overflow, Predicate, Reduction, Rounding, Scope, Sign, Word,
};
use super::{Access, Assumption, Block, Constant, Hints, IntegerOp, Value};
use crate::bytecode::Bytecode;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($($shared:tt)+) ($($exclusive:tt)+)),+ $(,)?) => {
        /// A field.
        #[derive(Clone, Copy)]
        pub(crate) enum Field<'a> { $($(#[$doc])* $kind($($shared)+)),+ }

        /// A field that can be changed.
        pub(crate) enum FieldMut<'a> { $($(#[$doc])* $kind($($exclusive)+)),+ }
    };
}
kinds!(
    /// A word of a vocabulary.
    Word(&'a dyn Word)(&'a mut dyn Word),
    /// A scope, which weak accesses lack.
    Scope(&'a Option<Scope>)(&'a mut Option<Scope>),
    /// Whether something is so.
    Flag(&'a bool)(&'a mut bool),
    /// Optimization hints; they may be missing.
    Hints(&'a Hints)(&'a mut Hints),
    /// For each index, whether it lies inside the tensor.
    Inbounds(&'a Vec<bool>)(&'a mut Vec<bool>),
    /// Elements.
    Constant(&'a Constant)(&'a mut Constant),
    /// A promise.
    Assumption(&'a Assumption)(&'a mut Assumption),
    /// A value.
    Operand(&'a Value)(&'a mut Value),
    /// A value, or none.
    Optional(&'a Option<Value>)(&'a mut Option<Value>),
    /// Any number of values.
    Operands(&'a Vec<Value>)(&'a mut Vec<Value>),
    /// A block.
    Block(&'a Block)(&'a mut Block),
    /// A block, or none.
    OptionalBlock(&'a Option<Block>)(&'a mut Option<Block>),
);

/// A field with its name in the book and the first version of the bytecode that has it.
pub(crate) struct Named<T> {
    pub(crate) name: &'static str,
    pub(crate) since: Bytecode,
    pub(crate) field: T,
}

/// A type of fields. Some types stand for several fields, or for none.
pub(crate) trait Kind {
    fn field<'a>(&'a self, add: &mut dyn FnMut(Field<'a>));
    fn field_mut<'a>(&'a mut self, add: &mut dyn FnMut(FieldMut<'a>));
}

macro_rules! one_field {
    ($($ty:ty: $kind:ident),+ $(,)?) => {
        $(impl Kind for $ty {
            fn field<'a>(&'a self, add: &mut dyn FnMut(Field<'a>)) {
                add(Field::$kind(self));
            }
            fn field_mut<'a>(&'a mut self, add: &mut dyn FnMut(FieldMut<'a>)) {
                add(FieldMut::$kind(self));
            }
        })+
    };
}
one_field!(
    Order: Word,
    Scope: Word,
    AtomicMode: Word,
    Reduction: Word,
    Predicate: Word,
    Overflow: Word,
    Rounding: Word,
    Sign: Word,
    Option<Scope>: Scope,
    bool: Flag,
    Hints: Hints,
    Vec<bool>: Inbounds,
    Constant: Constant,
    Assumption: Assumption,
    Value: Operand,
    Option<Value>: Optional,
    Vec<Value>: Operands,
    Block: Block,
    Option<Block>: OptionalBlock,
);

macro_rules! no_field {
    ($($ty:ty),+) => {
        // The word of the operation says it.
        $(impl Kind for $ty {
            fn field<'a>(&'a self, _: &mut dyn FnMut(Field<'a>)) {}
            fn field_mut<'a>(&'a mut self, _: &mut dyn FnMut(FieldMut<'a>)) {}
        })+
    };
}
no_field!(Convert, FloatOp);

impl Kind for Access {
    fn field<'a>(&'a self, add: &mut dyn FnMut(Field<'a>)) {
        self.order.field(add);
        self.scope.field(add);
    }

    fn field_mut<'a>(&'a mut self, add: &mut dyn FnMut(FieldMut<'a>)) {
        self.order.field_mut(add);
        self.scope.field_mut(add);
    }
}

impl Kind for [Value; 3] {
    fn field<'a>(&'a self, add: &mut dyn FnMut(Field<'a>)) {
        self.iter().for_each(|value| value.field(add));
    }

    fn field_mut<'a>(&'a mut self, add: &mut dyn FnMut(FieldMut<'a>)) {
        self.iter_mut().for_each(|value| value.field_mut(add));
    }
}

impl Kind for IntegerOp {
    fn field<'a>(&'a self, add: &mut dyn FnMut(Field<'a>)) {
        match self {
            IntegerOp::Add(o) | IntegerOp::Sub(o) | IntegerOp::Mul(o) | IntegerOp::Shl(o) => o.field(add),
            IntegerOp::Max(s) | IntegerOp::Min(s) | IntegerOp::Shr(s) | IntegerOp::Rem(s) => s.field(add),
            IntegerOp::And | IntegerOp::Or | IntegerOp::Xor => {}
        }
    }

    fn field_mut<'a>(&'a mut self, add: &mut dyn FnMut(FieldMut<'a>)) {
        match self {
            IntegerOp::Add(o) | IntegerOp::Sub(o) | IntegerOp::Mul(o) | IntegerOp::Shl(o) => o.field_mut(add),
            IntegerOp::Max(s) | IntegerOp::Min(s) | IntegerOp::Shr(s) | IntegerOp::Rem(s) => s.field_mut(add),
            IntegerOp::And | IntegerOp::Or | IntegerOp::Xor => {}
        }
    }
}

impl<'a> Field<'a> {
    /// The values among the operands.
    pub(crate) fn values(self) -> &'a [Value] {
        match self {
            Field::Operand(value) => std::slice::from_ref(value),
            Field::Optional(value) => value.as_slice(),
            Field::Operands(values) => values,
            Field::Word(_) | Field::Scope(_) | Field::Flag(_) | Field::Hints(_) | Field::Inbounds(_) => &[],
            Field::Constant(_) | Field::Assumption(_) | Field::Block(_) | Field::OptionalBlock(_) => &[],
        }
    }
}

impl<'a> FieldMut<'a> {
    /// The same values, mutable.
    pub(crate) fn values(self) -> &'a mut [Value] {
        match self {
            FieldMut::Operand(value) => std::slice::from_mut(value),
            FieldMut::Optional(value) => value.as_mut_slice(),
            FieldMut::Operands(values) => values,
            FieldMut::Word(_) | FieldMut::Scope(_) | FieldMut::Flag(_) | FieldMut::Hints(_) => &mut [],
            FieldMut::Inbounds(_) | FieldMut::Constant(_) | FieldMut::Assumption(_) => &mut [],
            FieldMut::Block(_) | FieldMut::OptionalBlock(_) => &mut [],
        }
    }
}
