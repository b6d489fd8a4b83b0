//! What both witnesses say about an execution: leaf keys, final states and conditions, columns of tensor memory, and
//! instructions that neither engine models.
//!
//! The explorer and the naive enumerator share the program, the loaded model, and this crate. They share no interpreter,
//! no evaluator and no search.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod columns;
pub mod leaf;
mod settled;
mod spelt;
mod unmodelled;

pub use settled::{plain, settled};
pub use unmodelled::unmodelled;
