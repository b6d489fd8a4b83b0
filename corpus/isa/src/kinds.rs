//! The kinds of qualifiers, each once, with what is weaker.

mod copy;
mod memory;
mod order;
mod sync;
mod tensor;

pub use copy::*;
pub use memory::*;
pub use order::*;
pub use sync::*;
pub use tensor::*;
