//! Instructions that the book reads: it resolves their names in the thread and in the memory declared before it.

use super::reader::Reader;
use crate::ir::{Book, Op, Space};
use crate::text::ParseError;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::scan::{Parsed, Scan};
use moire_isa::kinds::Space as Home;
use moire_isa::operand::{Class, Known, Reg};
use moire_isa::{Env, Instr};

/// Reads an instruction from its name on.
pub(super) fn book(r: &mut Reader<'_, '_>) -> Parsed<()> {
    let source = r.scan.source;
    let mut names = Thread { scan: r.scan, builder: r.builder, thread: r.thread, refused: None };
    let read = Instr::read(&source[r.at..], &mut names);
    if let Some(refused) = names.refused {
        return Err(refused);
    }
    let instr = read.map_err(|no| r.scan.error_at(r.at + no.at, no.message, no.hint))?;
    while !r.scan.done() && !r.scan.peek(";") {
        r.scan.at += r.scan.rest().chars().next().map_or(0, char::len_utf8);
    }
    match Book::new(instr) {
        Some(book) => r.push(Op::Book(book)),
        None => r.fail("this instruction is not told by the book alone".into(), None),
    }
}

/// The names of a thread. Registers need no declaration here.
struct Thread<'r, 's> {
    scan: &'r mut Scan<'s>,
    builder: &'r Builder,
    thread: &'r mut ThreadBuilder,
    refused: Option<ParseError>,
}

impl Env for Thread<'_, '_> {
    fn resolve(&mut self, name: &str) -> Option<Known> {
        let index = |n: usize| u32::try_from(n).expect("tables of a program have less than 2^16 entries");
        if let Some(symbol) = self.builder.symbol(name) {
            let object = self.builder.program.symbols[symbol.index()].object;
            let home = match self.builder.program.objects[object.index()].space {
                Space::Global => Some(Home::Global),
                Space::SharedCta => Some(Home::SharedCta),
                Space::Generic | Space::SharedCluster | Space::Tensor => None,
            };
            return Some(Known::Symbol(index(symbol.index()), home));
        }
        match self.thread.reg(self.scan, name) {
            Ok(reg) => Some(Known::Reg(Reg { index: index(reg.index()), class: Class::default() })),
            Err(refused) => {
                self.refused = Some(refused);
                None
            }
        }
    }

    fn label(&mut self, _: &str) -> u32 {
        u32::MAX
    }
}
