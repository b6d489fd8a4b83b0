//! Kernels in PTX: modules as compilers print them, and the programs they become for one launch.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod emit;
pub mod ptx;
pub mod simt;
pub mod specialise;

pub use moire_program::Refusal;

/// Results of this crate.
pub(crate) type Done<T> = Result<T, Refusal>;
