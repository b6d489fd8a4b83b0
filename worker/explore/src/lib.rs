//! Executions: how a program runs, which of its execution graphs a model admits, and what is true of all of them.
//!
//! Two engines answer the same question. The explorer ([`explore`]) builds each admitted graph once; the naive
//! enumerator shares the program text and the model text with it, and nothing else.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod alike;
mod allocator;
mod barriers;
pub mod columns;
mod commute;
mod copies;
pub mod differential;
mod event;
mod exclusive;
pub mod explorer;
pub mod families;
mod flow;
mod future;
mod gate;
mod hang;
mod held;
mod interp;
mod interp_memory;
pub mod judge;
mod lanes;
mod launch;
pub mod leaf;
mod loose;
mod mbarrier;
mod mbarrier_leaf;
mod memory;
pub mod missing;
pub mod naive;
pub mod planted;
mod proxies;
pub mod reduce;
mod relate;
mod rmw;
mod runs;
pub mod share;
mod state;
mod tensor;
mod tested;
mod tile;
mod universe;
mod unknown;
mod unmodelled;
mod unseen;
mod view;
mod visit;
mod warpgroup;
mod width;

pub use explorer::{Abstain, Bound, Limits, Summary, Visitor, explore};
pub use leaf::{EventRef, LeafFacts, LeafKey, LeafKind, Outcome};
