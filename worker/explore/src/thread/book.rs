//! Instructions that the book tells alone: the events that they yield, and what they leave in registers.

use super::access;
use super::event::labels::store_labels;
use super::machine::Machine;
use super::trace::{TraceEnd, View};
use moire_program::ir::*;

/// The type of a piece of a range.
const PIECE: Ty = Ty::B(64);

/// Executes one that touches registers only.
pub(crate) fn compute<V: View>(_: &mut Machine<'_, V>, book: &Book) {
    match book.told() {
        Told::StBulk(_) => {}
    }
}

/// Emits the events of one that does more.
pub(crate) fn emit<V: View>(
    m: &mut Machine<'_, V>,
    book: &Book,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    match book.told() {
        Told::StBulk(_) => {
            let Some((space, addr, bytes)) = book.range() else { return Err(m.wrong(instr, "st.bulk")) };
            let zeros = vec![Operand::Imm(0); (bytes / RANGE_PIECE) as usize];
            let labels = store_labels(StoreOrder::Weak, Proxy::Generic);
            access::store(m, instr, pc, labels, space, PIECE, &zeros, &addr)
        }
    }
}
