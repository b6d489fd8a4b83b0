//! Instructions that the book tells alone: the events that they yield, and what they leave in registers.

use super::access;
use super::event::labels::store_labels;
use super::machine::Machine;
use super::trace::{RegState, TraceEnd, View};
use moire_execution::leaf::arithmetic;
use moire_program::ir::*;

/// The type of a piece of a range.
const PIECE: Ty = Ty::B(64);

/// Executes one that touches registers only.
pub(crate) fn compute<V: View>(m: &mut Machine<'_, V>, book: &Book) {
    match book.told() {
        Told::Ternary(_) => {
            let Some((ty, dst, [a, b, c])) = book.product() else { return };
            let (a, b, c) = (m.operand(a), m.operand(b), m.operand(c));
            let factors = a.value.zip(b.value).map(|(a, b)| arithmetic(AluOp::Mul, ty, a, b));
            let value = factors.zip(c.value).map(|(ab, c)| arithmetic(AluOp::Add, ty, ab, c));
            m.regs[dst.index()] = RegState { value, deps: a.deps.with(b.deps).with(c.deps) };
        }
        Told::StBulk(_) | Told::MbarrierPending(_) => {}
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
        Told::Ternary(_) | Told::MbarrierPending(_) => Err(m.wrong(instr, book.name())),
    }
}
