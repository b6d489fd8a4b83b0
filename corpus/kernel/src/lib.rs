//! Kernels in PTX: modules as compilers print them, and the programs they become for one launch.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod emit;
pub mod ptx;
mod refusal;
pub mod simt;
pub mod specialise;

pub use refusal::Refusal;
