//! Instructions that the book tells alone: type, reader, printer, registers and rules come from their entries.
//!
//! Contract: nothing outside an engine knows one of them by name. What an instruction is, its entry says. An
//! engine matches [`Told`](super::Told), which has no arm for the rest.

use super::{Address, Operand, Part, Parts, PartsMut, Reg, Role, SymbolId};
use moire_isa::operand::{Address as At, Piece, Reg as Register, Role as Does, Value};
use moire_isa::{Instr, Names};
use std::borrow::Cow;

/// An instruction of the book whose registers are those of its thread, and whose variables are symbols of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book(pub(super) Box<Instr>);

impl Book {
    /// The entry's instruction.
    #[must_use]
    pub fn instr(&self) -> &Instr {
        &self.0
    }

    /// The name, without its qualifiers.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Whether an operand is an address in brackets. An instruction without one touches registers only.
    #[must_use]
    pub fn has_address(&self) -> bool {
        let mut found = false;
        self.0.pieces(&mut |_, piece| found |= matches!(piece, Piece::Mark("[")));
        found
    }

    /// The width in bits with which each register fits, 64 where several do; 1 is a predicate.
    #[must_use]
    pub fn widths(&self) -> Vec<(Reg, u32)> {
        let mut regs = Vec::new();
        self.0.each(&mut |seen| regs.extend(seen.value.reg().map(book_register)));
        let declared = |of: Reg, bits: u16| {
            let mut instr = self.0.clone();
            instr.each_mut(&mut |_, value| {
                if let Value::Reg(reg) = value
                    && book_register(*reg) == of
                {
                    reg.class.bits = bits;
                }
            });
            instr.fits()
        };
        let width = |reg: Reg| [64, 32, 16, 128, 8, 1].into_iter().find(|bits| declared(reg, *bits));
        regs.into_iter().filter_map(|reg| Some((reg, u32::from(width(reg)?)))).collect()
    }

    /// The text, with names for the indices of registers and symbols.
    #[must_use]
    pub fn print(&self, register: &dyn Fn(Reg) -> String, symbol: &dyn Fn(SymbolId) -> String) -> String {
        self.0.print(&Named { register, symbol })
    }
}

struct Named<'n> {
    register: &'n dyn Fn(Reg) -> String,
    symbol: &'n dyn Fn(SymbolId) -> String,
}

impl Names for Named<'_> {
    fn register(&self, index: u32) -> Cow<'_, str> {
        (self.register)(Reg::at(index as usize)).into()
    }
    fn symbol(&self, index: u32) -> Cow<'_, str> {
        (self.symbol)(SymbolId::at(index as usize)).into()
    }
    fn label(&self, index: u32) -> Cow<'_, str> {
        unreachable!("a litmus text has no label {index} among operands")
    }
}

/// The register of an instruction of the book.
pub(super) fn book_register(reg: Register) -> Reg {
    Reg::at(reg.index as usize)
}

/// The operand that a value is; `None` for what litmus texts do not have.
pub(super) fn book_operand(value: &Value) -> Option<Operand> {
    match value {
        Value::Reg(reg) => Some(Operand::Reg(book_register(*reg))),
        Value::Imm(n) => Some(Operand::Imm((*n).into())),
        Value::Symbol(index, 0) => Some(Operand::Address(SymbolId::at(*index as usize))),
        Value::Symbol(..) | Value::Single(_) | Value::Double(_) | Value::Special(_) | Value::Sink => None,
    }
}

/// The address that a pair of brackets is; `None` for what litmus texts do not have.
pub(super) fn book_address(at: &At) -> Option<Address> {
    Some(Address { base: book_operand(&at.base)?, offset: i32::try_from(at.offset).ok()? })
}

/// What stands where an operand was.
#[expect(clippy::cast_possible_truncation, reason = "a number of the book has 64 bits")]
fn value(operand: Operand, class: moire_isa::operand::Class) -> Value {
    let index = |n: usize| u32::try_from(n).expect("tables of a program have less than 2^16 entries");
    match operand {
        Operand::Reg(reg) => Value::Reg(Register { index: index(reg.index()), class }),
        Operand::Imm(n) => Value::Imm(n as i64),
        Operand::Address(symbol) => Value::Symbol(index(symbol.index()), 0),
    }
}

/// What a source is for; `None`: the operand is written.
fn role(does: Does) -> Option<Role> {
    match does {
        Does::Known => Some(Role::Known),
        Does::Data | Does::Loose => Some(Role::Data),
        Does::Opaque | Does::Hint => Some(Role::Opaque),
        Does::Write | Does::Update => None,
    }
}

impl Parts for Book {
    fn each(&self, see: &mut impl FnMut(Part<&Operand, &Reg>)) {
        self.0.each(&mut |seen| match (book_operand(seen.value), role(seen.role)) {
            (Some(Operand::Reg(reg)), None) => see(Part::Write(&reg)),
            (Some(operand), Some(role)) => see(Part::Source(&operand, role)),
            (_, _) => {}
        });
    }
}

impl PartsMut for Book {
    fn each(&mut self, see: &mut impl FnMut(Part<&mut Operand, &mut Reg>)) {
        self.0.each_mut(&mut |does, at| {
            let class = at.reg().map(|reg| reg.class).unwrap_or_default();
            let Some(mut found) = book_operand(at) else { return };
            match (&mut found, role(does)) {
                (Operand::Reg(reg), None) => see(Part::Write(reg)),
                (found, Some(role)) => see(Part::Source(found, role)),
                (_, None) => {}
            }
            *at = value(found, class);
        });
    }
}
