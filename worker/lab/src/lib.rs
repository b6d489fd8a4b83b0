//! What proves the engines: the explorer held to the enumerator, and families of programs whose executions have a closed form.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod differential;
pub mod families;
