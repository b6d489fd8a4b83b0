//! The model language: cat files are parsed, typed, compiled once, and evaluated on bit matrices.
//!
//! The subset is the one herd (Alglave, Maranget, Tautschnig, TOPLAS 2014, and the herd manual) and Dat3M use for
//! axiomatic models: sets, relations, `let`, `let rec`, functions, `acyclic`/`irreflexive`/`empty`, `flag`,
//! `include` and conditionals on variants. A model says *what* a consistent execution is; nothing here knows how
//! executions are found.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod bits;
pub mod contract;
mod error;
pub mod eval;
mod include;
mod inputs;
mod lex;
pub mod licence;
mod load;
mod machine;
pub mod model;
mod node;
mod parse;
mod plan;
mod shrink;
pub mod syntax;
pub mod vocabulary;

pub use contract::{Feature, Settings};
pub use error::{LoadError, closest};
pub use eval::{Completion, Completions, Evaluator, Inputs, Mark, Solution, Stage};
pub use include::{Include, Source};
pub use licence::Licence;
pub use load::{LETTER, Library, PROFILE, Variants, load, load_from};
pub use model::{Model, Profile, Switch};
pub use node::{Check, CheckId, CheckKind, Class, Facts, Node, NodeId, Obligation, Type};
