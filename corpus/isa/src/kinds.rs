//! The kinds of qualifiers, each once, with what is weaker.

mod address;
mod cache;
mod copy;
mod memory;
mod multimem;
mod order;
mod sync;
mod tensor;
mod warp;

pub use address::*;
pub use cache::*;
pub use copy::*;
pub use memory::*;
pub use multimem::*;
pub use order::*;
pub use sync::*;
pub use tensor::*;
pub use warp::*;
