//! The kinds of qualifiers, each once, with what is weaker.

mod memory;
mod order;

pub use memory::*;
pub use order::*;
