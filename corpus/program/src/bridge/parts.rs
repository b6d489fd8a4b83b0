//! Operands and words that many families share.

use crate::ir::{Address, AtomOp, Guard, Operand, Reg, Scope, Space, SymbolId, Ty};
use moire_isa::kinds::{self, Num, RedOp};
use moire_isa::operand::{Pred, Register};
use moire_isa::{OF_CALLS, Value, operand};

pub(crate) fn reg(reg: moire_isa::Reg) -> Option<Reg> {
    u16::try_from(reg.index).ok().map(Reg)
}

pub(crate) fn register(value: &Register) -> Option<Reg> {
    value.reg().and_then(reg)
}

/// A register of a vector: litmus texts have no sink there.
pub fn element(value: &Value) -> Option<Reg> {
    value.reg().and_then(reg)
}

pub(crate) fn symbol(index: u32) -> Option<SymbolId> {
    u16::try_from(index).ok().filter(|_| index < OF_CALLS).map(SymbolId)
}

/// A register, an integer, or the name of memory.
pub(crate) fn value(value: &Value) -> Option<Operand> {
    match value {
        Value::Reg(r) => reg(*r).map(Operand::Reg),
        Value::Imm(n) => Some(Operand::Imm(i128::from(*n))),
        Value::Symbol(index, 0) => symbol(*index).map(Operand::Address),
        Value::Symbol(..) | Value::Single(_) | Value::Double(_) | Value::Special(_) | Value::Sink => None,
    }
}

/// The value of an operand that may be missing. None if it stands and litmus texts cannot say it.
pub(crate) fn maybe(of: Option<&Value>) -> Option<Option<Operand>> {
    of.map_or(Some(None), |of| value(of).map(Some))
}

/// The register of a list of one.
pub(crate) fn register_of(list: &operand::List) -> Option<Reg> {
    list.items.first().and_then(element)
}

pub(crate) fn values(of: &[Value]) -> Option<Vec<Operand>> {
    of.iter().map(value).collect()
}

pub(crate) fn elements(of: &[Value]) -> Option<Vec<Reg>> {
    of.iter().map(element).collect()
}

pub(crate) fn address(of: &operand::Address) -> Option<Address> {
    Some(Address { base: value(&of.base)?, offset: i32::try_from(of.offset).ok()? })
}

pub(crate) fn guard(of: &Pred) -> Option<Guard> {
    Some(Guard { reg: element(&of.value)?, negated: of.negated })
}

pub(crate) fn number<N: TryFrom<i64>>(of: moire_isa::operand::Number) -> Option<N> {
    N::try_from(of.0).ok()
}

/// The scope.
pub fn scope(of: kinds::Scope) -> Scope {
    match of {
        kinds::Scope::Cta => Scope::Cta,
        kinds::Scope::Cluster => Scope::Cluster,
        kinds::Scope::Gpu => Scope::Gpu,
        kinds::Scope::Sys => Scope::Sys,
    }
}

/// Local memory, constants and parameters have no place in a litmus text.
pub fn space(of: kinds::Space) -> Option<Space> {
    match of {
        kinds::Space::Generic => Some(Space::Generic),
        kinds::Space::Global => Some(Space::Global),
        kinds::Space::SharedCta => Some(Space::SharedCta),
        kinds::Space::SharedCluster => Some(Space::SharedCluster),
        kinds::Space::Local | kinds::Space::Const | kinds::Space::Param => None,
    }
}

/// The type of an element. None for the halves `.bf16`, with which litmus texts do not compute.
pub fn ty(of: kinds::Ty) -> Option<Ty> {
    use kinds::Ty as T;
    Some(match of {
        T::B8 | T::B16 | T::B32 | T::B64 | T::B128 => Ty::B(u8::try_from(of.bits()).ok()?),
        T::U8 | T::U16 | T::U32 | T::U64 => Ty::U(u8::try_from(of.bits()).ok()?),
        T::S8 | T::S16 | T::S32 | T::S64 => Ty::S(u8::try_from(of.bits()).ok()?),
        T::F16 | T::F32 | T::F64 => Ty::F(u8::try_from(of.bits()).ok()?),
        T::F16x2 => Ty::F16x2,
        T::Bf16x2 => Ty::Bf16x2,
        T::Bf16 => return None,
    })
}

pub(crate) fn update(of: RedOp) -> AtomOp {
    match of {
        RedOp::Add => AtomOp::Add,
        RedOp::And => AtomOp::And,
        RedOp::Or => AtomOp::Or,
        RedOp::Xor => AtomOp::Xor,
        RedOp::Min => AtomOp::Min,
        RedOp::Max => AtomOp::Max,
        RedOp::Inc => AtomOp::Inc,
        RedOp::Dec => AtomOp::Dec,
    }
}

/// The type of a number in a register. None for the small types of products.
pub fn numeric(of: Num) -> Option<Ty> {
    let bits = u8::try_from(of.bits()).ok()?;
    Some(match of {
        Num::Pred => Ty::Pred,
        Num::B8 | Num::B16 | Num::B32 | Num::B64 | Num::B128 => Ty::B(bits),
        Num::U8 | Num::U16 | Num::U32 | Num::U64 => Ty::U(bits),
        Num::S8 | Num::S16 | Num::S32 | Num::S64 => Ty::S(bits),
        Num::F16 | Num::Bf16 | Num::F32 | Num::F64 | Num::Tf32 => Ty::F(bits),
        Num::F16x2 => Ty::F16x2,
        Num::Bf16x2 => Ty::Bf16x2,
        _ => return None,
    })
}

/// The bits of a number of floating point in a type of so many bits. The assembler rounds it to the type.
pub fn float(of: &Value, bits: u16) -> Option<u64> {
    match (of, bits) {
        (Value::Single(n), 64) => Some(f64::from(f32::from_bits(*n)).to_bits()),
        (Value::Single(n), _) => Some(u64::from(*n)),
        (Value::Double(n), 64) => Some(*n),
        #[expect(clippy::cast_possible_truncation, reason = "a number of single precision is wanted")]
        (Value::Double(n), 32) => Some(u64::from((f64::from_bits(*n) as f32).to_bits())),
        _ => None,
    }
}

/// The value of an element, which may be a number of floating point.
pub(crate) fn datum(of: &Value, bits: u16) -> Option<Operand> {
    float(of, bits).map(|n| Operand::Imm(i128::from(n))).or_else(|| value(of))
}
