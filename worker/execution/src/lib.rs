//! Executions in the words that both witnesses share: leaves and their keys, columns of tensor memory, and what neither
//! engine models.
//!
//! The explorer and the naive enumerator share a program, the text of a model, and this crate. They share nothing else.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod columns;
pub mod leaf;
mod unmodelled;

pub use unmodelled::unmodelled;
