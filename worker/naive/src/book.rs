//! Instructions that the book tells alone.

use super::arith::alu;
use super::event::Refusal;
use super::state::{Runner, State};
use moire_program::ir::{AluOp, Book, Instr, Op, Operand, Proxy, RANGE_PIECE, StoreOrder, Told, Ty};

/// Zeros are stored eight bytes at a time.
const EIGHT: Ty = Ty::U(64);

/// One that touches registers only.
pub(super) fn registers(run: &Runner<'_>, s: &mut State, book: &Book) {
    match book.told() {
        Told::Ternary(_) => {
            let Some((ty, dst, operands)) = book.product() else { return };
            let [(a, da), (b, db), (c, dc)] = operands.map(|o| run.operand(s, o));
            s.regs[dst.index()] = (alu(AluOp::Add, ty, alu(AluOp::Mul, ty, a, b), c), da | db | dc);
        }
        Told::StBulk(_) | Told::MbarrierPending(_) => {}
    }
}

/// One that stores.
pub(super) fn effect(run: &Runner<'_>, s: &mut State, book: &Book) -> Result<(), Refusal> {
    match store(book) {
        Some(op) => run.effect(s, &Instr::new(op)),
        None => Err(Refusal::Unsupported(book.name().to_owned())),
    }
}

/// The plain store that does the same.
fn store(book: &Book) -> Option<Op> {
    match book.told() {
        Told::StBulk(_) => {
            let (space, addr, bytes) = book.range()?;
            let src = vec![Operand::Imm(0); (bytes / RANGE_PIECE) as usize];
            let (order, proxy) = (StoreOrder::Weak, Proxy::Generic);
            Some(Op::Store { order, proxy, space, ty: EIGHT, addr, src })
        }
        Told::Ternary(_) | Told::MbarrierPending(_) => None,
    }
}
