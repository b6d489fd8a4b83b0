//! Numbers registers stand for, by the type of the instruction that reads them.

use moire_execution::leaf::{sign_extend, truncate};
use moire_program::ir::{Ty, Value};

/// The number a register stands for in an instruction of a type.
pub(crate) fn number(ty: Ty, value: Value) -> i128 {
    match ty {
        Ty::S(_) => sign_extend(value, ty.bytes() * 8),
        _ => i128::try_from(truncate(value, ty.bytes() * 8)).unwrap_or(i128::MAX),
    }
}

/// What a register holds after a load of a type.
pub(crate) fn extended(ty: Ty, value: Value) -> Value {
    match ty {
        #[expect(clippy::cast_sign_loss, reason = "a bit pattern is stored")]
        Ty::S(_) => truncate(sign_extend(value, ty.bytes() * 8) as Value, 64),
        _ => value,
    }
}
