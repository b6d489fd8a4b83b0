//! How the bytecode lays out an operation, given its fields.
//!
//! After the opcode come the types of the results, a bit for each part that may be missing, attributes, operands, and
//! blocks. Types are counted where operands or results are a list. With one group of operands of any length all operands
//! are counted together; with several, a list has its own count and an optional value its own bit.

use super::Bytecode;
use crate::field::{Field, Named};

/// What the fields of an operation say of its layout.
pub(super) struct Layout {
    /// Whether the number of results is written.
    pub(super) counted_results: bool,
    /// Whether all operands are counted together.
    pub(super) counted_operands: bool,
    /// How many blocks may follow.
    pub(super) blocks: usize,
}

impl Layout {
    pub(super) fn of(fields: &[Named<Field<'_>>]) -> Layout {
        let count = |is: fn(&Field<'_>) -> bool| fields.iter().filter(|n| is(&n.field)).count();
        let lists = count(|f| matches!(f, Field::Operands(_)));
        let optional = count(|f| matches!(f, Field::Optional(_)));
        let blocks = count(|f| matches!(f, Field::Block(_) | Field::OptionalBlock(_)));
        Layout { counted_results: lists + blocks > 0, counted_operands: lists + optional == 1, blocks }
    }

    /// The bit of a field that may be missing, as it is set; `None` for other fields.
    pub(super) fn bit(&self, named: &Named<Field<'_>>, version: Bytecode) -> Option<bool> {
        if named.since > version {
            return None;
        }
        match named.field {
            Field::Scope(scope) => Some(scope.is_some()),
            Field::Flag(flag) => Some(*flag),
            Field::Hints(hints) => Some(!hints.is_empty()),
            Field::Optional(value) if !self.counted_operands => Some(value.is_some()),
            Field::Optional(_) | Field::Word(_) | Field::Inbounds(_) | Field::Constant(_) => None,
            Field::Assumption(_) | Field::Operand(_) | Field::Operands(_) => None,
            Field::Block(_) | Field::OptionalBlock(_) => None,
        }
    }
}
