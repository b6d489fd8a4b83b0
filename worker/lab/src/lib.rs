//! Checks of the engines: the explorer is compared with the enumerator and the operational engine, on programs drawn for it.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod differential;
pub mod mutants;
