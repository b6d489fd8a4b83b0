//! Kernels in PTX: modules as compilers print them, and what they are when they are launched.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod emit;
pub mod ptx;
mod refusal;
pub mod simt;
pub mod specialise;

pub use refusal::Refusal;
