//! Tile IR texts, the bytecode and the verifier, on kernels and on hostile input.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod bytecode;
mod hostile;
mod texts;
