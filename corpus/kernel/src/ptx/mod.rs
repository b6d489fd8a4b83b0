//! Reads PTX modules as compilers print them: directives, declarations, and the bodies of kernels.
//!
//! Contract: the book of instructions reads every statement. An instruction that litmus texts have too becomes their operation,
//! any other stays as the book reads it. Nothing is interpreted here: [`crate::specialise`] does that for one launch. Calls of functions of the module are inlined. Source: PTX ISA 9.2, chapters 4, 5, 9 and 11.

mod body;
mod book;
mod declare;
mod function;
mod inline;
mod module;
mod rules;
mod sort;
mod special;
mod variable;

pub use module::{KERNELS, Kernel, Module, NESTING, Param, Statement, Variable, What};
pub(crate) use sort::{Sort, Sum, Updated, sort};
pub use special::Special;

use moire_isa::{Instr, Role, Value};
pub(crate) use moire_program::bridge::parts::{element as reg, float, numeric, scope, space, ty};
use moire_program::limits::{MANGLED_BYTES, TEXT_BYTES};
use moire_program::text::ParseError;
use moire_program::text::scan::{Comments, Scan};

/// Reads a module.
pub fn parse(source: &str) -> Result<Module, ParseError> {
    if source.len() > TEXT_BYTES {
        let message = format!("a program text may have at most {TEXT_BYTES} bytes");
        return Err(ParseError::at(source, 0, message, None));
    }
    let mut scan = Scan::new(source, Comments::C);
    scan.longest = MANGLED_BYTES;
    declare::module(&mut scan)
}

/// The name of an instruction with its qualifiers.
pub(crate) fn mnemonic(instr: &Instr) -> String {
    let words = instr.words();
    std::iter::once(instr.name()).chain(words.iter().map(|word| word.0)).collect::<Vec<_>>().join(".")
}

/// What an instruction reads, in the order of the text. The table of `lop3` is no operand of its bits.
pub(crate) fn sources(instr: &Instr) -> Vec<Value> {
    let mut out = Vec::new();
    instr.each(&mut |seen| {
        out.extend((seen.role != Role::Write).then_some(*seen.value));
    });
    if matches!(instr, Instr::Lop3(_)) {
        out.truncate(3);
    }
    out
}
