//! Executions: how a program runs, which of its execution graphs a model admits, and what is true of all of them.
//!
//! Two engines answer the same question. The explorer ([`explore`]) builds each admitted graph once; the naive
//! enumerator shares the program text and the model text with it, and nothing else.
//!
//! Folders, each of which uses only those before it: `thread` (what a thread does), `graph` (what an execution graph holds),
//! `prune` (which graphs can still become an execution), `finish` (a finished graph), `reduce` (which executions need not be
//! visited), `search` (decisions, and the walk through them), `judge` (what is true of all executions).
//!
//! Pure: no I/O, no clock, no async, no global state.

mod finish;
mod graph;
pub mod judge;
pub mod planted;
mod prune;
pub mod reduce;
pub mod search;
mod spelt;
mod thread;
mod visit;

pub use search::{Abstain, Bound, Limits, Summary, TOO_WIDE, Visitor, explore};
