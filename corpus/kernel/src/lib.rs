//! PTX kernels: reads modules as compilers print them, and turns a kernel into a program for one launch.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod emit;
pub mod meeting;
pub mod ptx;
pub mod simt;
pub mod specialise;

pub use moire_program::Refusal;

/// The result type of this crate.
pub(crate) type Done<T> = Result<T, Refusal>;
