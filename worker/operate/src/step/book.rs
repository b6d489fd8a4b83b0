//! Instructions that the book tells alone.

use super::memory;
use crate::engine::{At, Engine};
use crate::finding::Stop;
use crate::state::State;
use crate::value::Val;
use moire_program::ir::{Book, Operand, RANGE_PIECE, Reg, Told, Ty};

/// Executes one.
pub(super) fn execute(e: &mut Engine<'_>, s: &mut State, at: At<'_>, book: &Book) -> Result<(), Stop> {
    match book.told() {
        Told::StBulk(_) => {
            let (space, addr, bytes) = book.range().ok_or_else(|| at.abstain("st.bulk of unknown size"))?;
            let zeros = vec![Operand::Imm(0); (bytes / RANGE_PIECE) as usize];
            memory::store(e, s, at, (space, Ty::B(64), &addr), &zeros)
        }
    }
}

/// What one that touches registers only leaves, and where.
pub(super) fn result(_: &Engine<'_>, _: &State, _: At<'_>, book: &Book) -> Option<(Reg, Val)> {
    match book.told() {
        Told::StBulk(_) => None,
    }
}
