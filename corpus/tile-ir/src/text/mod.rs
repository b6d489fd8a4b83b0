//! Tile IR text: the form that NVIDIA's disassembler prints and its tests are written in.
//!
//! Contract: the reader takes whole modules, `cuda_tile.module @m { .. }`, functions without that frame, and the generic
//! form of view accesses. Every value has the type of its definition, and types stated by an operation must agree. A
//! refusal has a position, a [`Reason`] and, where possible, a hint. [`print()`] writes the same form with its own names;
//! reading its output gives the same module. Source: syntax chapter of the Tile IR specification (which calls the text
//! unstable) and the output of the published disassembler.

mod block;
mod control;
mod generic;
mod literal;
mod operation;
mod own;
mod print;
mod reader;
mod types;

pub use print::{print, print_function};

use crate::{FUNCTIONS, Module, Reason};
use block::function;
use moire_program::limits::{MANGLED_BYTES, TEXT_BYTES};
use moire_program::text::ParseError;
use moire_program::text::scan::{Comments, Parsed, Scan};
use reader::{Reader, because};

/// Reads a module.
///
/// # Errors
/// The first thing that cannot be read; its `rule` is the name of a [`Reason`].
pub fn parse(source: &str) -> Result<Module, ParseError> {
    if source.len() > TEXT_BYTES {
        let message = format!("a module may have at most {TEXT_BYTES} bytes");
        return Err(because(Reason::Limit, ParseError::at(source, 0, message, None)));
    }
    let mut scan = Scan::new(source, Comments::Slashes);
    scan.longest = MANGLED_BYTES;
    module(&mut Reader::new(scan)).map_err(|e| match e.0.rule {
        Some(_) => e,
        None => because(Reason::Syntax, e),
    })
}

fn module(r: &mut Reader<'_>) -> Parsed<Module> {
    let mut module = Module::default();
    let framed = r.word("cuda_tile.module");
    if framed {
        module.name = r.symbol()?.to_owned();
        r.scan.expect("{")?;
    }
    while !(r.scan.done() || framed && r.scan.peek("}")) {
        if module.functions.len() == FUNCTIONS {
            return Err(r.fault(Reason::Limit, format!("a module may have at most {FUNCTIONS} functions")));
        }
        let function = function(r)?;
        if module.functions.iter().any(|f| f.name == function.name) {
            return Err(r.fault(Reason::Name, format!("`@{}` is defined twice", function.name)));
        }
        module.functions.push(function);
    }
    if framed {
        r.scan.expect("}")?;
    }
    if !r.scan.done() {
        return Err(r.scan.expected("the end of the text"));
    }
    Ok(module)
}
