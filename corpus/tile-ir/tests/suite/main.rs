//! Tile IR texts and the verifier, on kernels and on hostile input.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod hostile;
mod texts;
