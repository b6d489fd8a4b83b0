//! The model language: what is read, what is refused, and what the evaluator says.

mod contract;
mod herd;
mod hostile;
mod operators;
mod shipped;
mod solve;
