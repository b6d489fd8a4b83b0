//! Reads PTX modules as compilers print them: directives, declarations, and the bodies of kernels.
//!
//! Contract: the reader of litmus texts reads the instructions that they have too. Any other instruction is kept as its
//! dotted words and operands, and must start with a mnemonic of PTX. Nothing is interpreted here: [`crate::specialise`]
//! does that for one launch. Calls of functions of the module are inlined. Source: PTX ISA 9.2, chapters 4, 5, 9 and 11.

mod body;
mod book;
mod bridge;
mod declare;
mod function;
mod inline;
mod module;
mod plain;
mod rules;
mod variable;
mod words;

pub use module::{Arg, KERNELS, Kernel, Module, NESTING, Param, Plain, Special, Statement, Variable, What};
pub(crate) use words::type_of;

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
