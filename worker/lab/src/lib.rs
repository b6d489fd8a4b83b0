//! Checks of the engines: the explorer is compared with the enumerator, and with families of programs whose number of
//! executions has a closed form.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod differential;
pub mod families;
pub mod mutants;
pub mod operational;
