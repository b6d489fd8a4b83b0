//! Instructions that the book tells alone.

use super::{memory, registers};
use crate::engine::{At, Engine, operand};
use crate::finding::Stop;
use crate::record::AccessKind;
use crate::state::State;
use crate::value::{Val, compute as arithmetic};
use moire_program::ir::{AluOp, Book, Operand, RANGE_PIECE, Reg, Told, Ty};

/// Executes one.
pub(super) fn execute(e: &mut Engine<'_>, s: &mut State, at: At<'_>, book: &Book) -> Result<(), Stop> {
    match book.told() {
        Told::StBulk(_) => {
            let (space, addr, bytes) = book.range().ok_or_else(|| at.abstain("st.bulk of unknown size"))?;
            let zeros = vec![Operand::Imm(0); (bytes / RANGE_PIECE) as usize];
            memory::store(e, s, at, (space, Ty::B(64), &addr), (&zeros, AccessKind::Plain))
        }
        Told::Ternary(_) => {
            registers::compute(e, s, at);
            Ok(())
        }
        Told::MbarrierPending(_) => Err(at.abstain(book.name())),
    }
}

/// What one that touches registers only leaves, and where.
pub(super) fn result(e: &Engine<'_>, s: &State, at: At<'_>, book: &Book) -> Option<(Reg, Val)> {
    match book.told() {
        Told::Ternary(_) => {
            let (ty, dst, operands) = book.product()?;
            let value = match operands.map(|o| operand(e, s, at.thread, o)) {
                [Val::Known(a), Val::Known(b), Val::Known(c)] => {
                    Val::Known(arithmetic(AluOp::Add, ty, arithmetic(AluOp::Mul, ty, a, b), c))
                }
                _ => Val::Unknown,
            };
            Some((dst, value))
        }
        Told::StBulk(_) | Told::MbarrierPending(_) => None,
    }
}
