//! Instructions that are read and that the engines have no model of: they abstain by name before they start, whatever
//! the place of the instruction, so that nothing about it is guessed.

use moire_program::ir::{Control, Op, Program, Space};

/// The first such instruction or object, and its line.
pub(crate) fn unmodelled(program: &Program) -> Option<(String, u32)> {
    let instrs = program.threads.iter().flat_map(|t| &t.body);
    let named = |op: &Op| match op {
        Op::Control(Control::Ignored(_)) => None,
        op => op.extended(),
    };
    let first = instrs.into_iter().find_map(|i| named(&i.op).map(|name| (name.to_owned(), i.line)));
    let tensor = || program.objects.iter().find(|o| o.space == Space::Tensor);
    first.or_else(|| tensor().map(|o| (format!("tensor memory `{}`", o.name), 0)))
}
