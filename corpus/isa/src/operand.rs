//! Operands: values, what fits where, and what each kind of operand is made of.
//!
//! One vocabulary serves litmus texts and modules: registers, variables and labels are indices into the tables of the
//! reader ([`crate::text::Env`]). A kind of operand tells its pieces once; printing, canonical bytes, registers and renaming follow.

mod address;
mod list;
mod option;
mod pair;
mod special;
mod value;

pub use address::{Address, Factor, Sampled, Tensor, TensorAddress, Unified};
pub use list::{Args, Braces, List, Packed};
pub(crate) use list::{May, Must, Never, Whole};
pub use option::{Early, Maybe, OrSink};
pub use pair::{Answer, Pred, SizeOrPred};
pub use special::Special;
pub use value::{Callee, Label, Number, Register, Source, Value};

use crate::kinds::Space;
use crate::text::{Cursor, Names, Refusal};

/// What an instruction does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Must know it to take place: address, count, mask.
    Known,
    /// Passes it on.
    Data,
    /// Passes on those elements that are no sink.
    Loose,
    /// Hands it to a unit whose values nobody keeps.
    Opaque,
    /// Only for speed: not part of what the instruction is.
    Hint,
    /// Writes it.
    Write,
    /// Reads and writes it.
    Update,
}

/// The words of the language of entries for roles.
#[allow(non_upper_case_globals, reason = "they are words of the language of entries")]
pub(crate) mod role {
    use super::Role;
    pub(crate) const known: Role = Role::Known;
    pub(crate) const data: Role = Role::Data;
    pub(crate) const loose: Role = Role::Loose;
    pub(crate) const opaque: Role = Role::Opaque;
    pub(crate) const hint: Role = Role::Hint;
    pub(crate) const write: Role = Role::Write;
    pub(crate) const update: Role = Role::Update;
}

/// How a register is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    /// Width in bits; a predicate has 1, and 0 says that nothing is declared and everything fits.
    pub bits: u16,
    /// Whether it holds floating point: `.f32`, `.f64`.
    pub float: bool,
    /// Whether it is an integer with or without a sign: `.u32`, `.s32`; neither with `.b32`.
    pub integer: bool,
}

/// A register: an index into the table of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg {
    /// Position in that table.
    pub index: u32,
    /// How it is declared.
    pub class: Class,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// A register.
    Reg(Reg),
    /// A variable or parameter, and where it lives, if that is known.
    Symbol(u32, Option<Space>),
    /// A constant.
    Number(i64),
    /// A vector that was declared as one, `.reg .v4 .b32 abcd`: its first element and how many; their indices follow each
    /// other.
    Vector(Reg, u8),
}

/// What registers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// All.
    Any,
    /// With so many bits; a predicate has 1.
    Bits(u16),
    /// With so many bits, and no floating point.
    Int(u16),
    /// With one of these numbers of bits, and no floating point.
    Either(u16, u16),
    /// With so many bits, for halves: no number stands for one.
    Half(u16),
    /// With at least so many bits.
    Least(u16),
    /// With 8 to 64 bits, and no floating point: the base of an address.
    Base,
    /// Any, or a variable in global memory: a tensor map.
    Map,
    /// Of a type: so many bits, of floating point, without a sign and a number; wider ones too.
    Of {
        /// Bits of the type.
        bits: u16,
        /// Whether the type is `.f32` or `.f64`.
        float: bool,
        /// Whether the type is `.b8` to `.b128`.
        untyped: bool,
        /// Whether wider registers fit.
        wider: bool,
    },
}

impl Width {
    /// Whether a register of that class fits.
    #[must_use]
    pub fn fits(self, class: Class) -> bool {
        let bits = class.bits;
        bits == 0
            || match self {
                Width::Any | Width::Map => true,
                Width::Bits(n) => bits == n,
                Width::Int(n) | Width::Half(n) => bits == n && !class.float,
                Width::Either(a, b) => (bits == a || bits == b) && !class.float,
                Width::Least(n) => bits >= n,
                Width::Base => (8..=64).contains(&bits) && !class.float,
                Width::Of { bits: n, float, .. } if class.float && float => bits == n,
                Width::Of { bits: n, float, untyped, wider } => {
                    (bits == n || (wider && bits > n && bits != 1))
                        && (untyped || !class.float)
                        && !(float && class.integer)
                }
            }
    }

    /// Whether a value fits: numbers with a point stand for floating point, others for integers and bits.
    #[must_use]
    pub fn takes(self, value: Value) -> bool {
        let float = matches!(self, Width::Of { float: true, .. });
        let bits = |n: u16| match self {
            Width::Bits(bits) => bits == n,
            Width::Of { bits, untyped: true, .. } => bits == n,
            _ => float || self == Width::Any,
        };
        match value {
            Value::Reg(reg) => self.fits(reg.class),
            Value::Imm(_) => !float && !matches!(self, Width::Half(_) | Width::Map),
            Value::Single(_) => bits(32),
            Value::Double(_) => bits(64) || float,
            Value::Symbol(..) => matches!(self, Width::Any | Width::Base | Width::Map),
            Value::Special(_) | Value::Sink => true,
        }
    }
}

/// What the elements of a vector are together: floating point only if all of them are. ptxas takes predicates in any
/// vector: `ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%p6, %r22}, [%r1]`.
pub(crate) fn together(items: &[Value]) -> Option<Class> {
    let classes = || items.iter().filter_map(Value::reg).map(|reg| reg.class).filter(|class| class.bits != 1);
    let first = classes().next()?;
    let all = |what: fn(Class) -> bool| classes().all(what);
    Some(Class { float: all(|class| class.float), integer: all(|class| class.integer), ..first })
}

/// A piece of an operand as it stands in the text.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Punctuation and fixed words.
    Mark(&'static str),
    /// A value.
    Value(&'a Value),
    /// A label, a function, a table or a prototype.
    Label(u32),
}

/// An operand as its pieces.
pub trait Shown {
    /// Calls `see` with each piece in the order of the text. An operand that is not there has none.
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>));
    /// Calls `change` with each value: how registers are renamed and constants replaced.
    fn values(&mut self, change: &mut dyn FnMut(&mut Value));
}

/// A kind of operand.
pub trait Part: Shown + Sized {
    /// What the qualifiers say of it.
    type Spec;

    /// Reads it in its turn.
    ///
    /// # Errors
    /// The text is not such an operand.
    fn read(at: &mut Cursor<'_, '_>, spec: Self::Spec) -> Result<Self, Refusal>;

    /// Whether it is what the qualifiers ask for; asked when a qualifier was changed.
    fn fits(&self, _: Self::Spec) -> bool {
        true
    }
}

/// Appends an operand's text. Says whether there is any.
pub(crate) fn print(part: &dyn Shown, names: &dyn Names, separator: &str, out: &mut String) -> bool {
    let mut first = true;
    part.pieces(&mut |piece| {
        if std::mem::take(&mut first) {
            out.push_str(separator);
        }
        match piece {
            Piece::Mark(text) => out.push_str(text),
            Piece::Value(value) => value.print(names, out),
            Piece::Label(index) => out.push_str(&names.label(index)),
        }
    });
    !first
}

/// Appends an operand's canonical bytes.
pub(crate) fn canon(part: &dyn Shown, out: &mut Vec<u8>) {
    part.pieces(&mut |piece| match piece {
        Piece::Mark(text) => out.extend(text.as_bytes()),
        Piece::Value(value) => value.canon(out),
        Piece::Label(index) => {
            out.push(value::LABEL);
            out.extend(index.to_be_bytes());
        }
    });
    out.push(b',');
}
