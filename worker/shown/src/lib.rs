//! Answers of [`moire_verdict`] for people: text, tables of executions, pictures and pages.
//!
//! Contract: an answer alone decides what is said; nothing is read, printed or timed here. The command line, the language server and the
//! playground say the same.

pub mod picture;
pub mod problems;
pub mod show;
pub mod states;
pub mod text;
