//! Tests of the coordinator from outside.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests"
)]

mod campaign;
mod fake;
mod hostile;
mod lease;
mod limits;
mod night;
mod repeated;
mod served;
