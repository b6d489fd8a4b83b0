//! The kinds of qualifiers, each once, with what is weaker.

mod address;
mod cache;
mod control;
mod copy;
mod fabric;
mod matrix;
mod memory;
mod multimem;
mod number;
mod order;
mod surface;
mod sync;
mod tensor;
mod warp;

pub use address::*;
pub use cache::*;
pub use control::*;
pub use copy::*;
pub use fabric::*;
pub use matrix::*;
pub use memory::*;
pub use multimem::*;
pub use number::*;
pub use order::*;
pub use surface::*;
pub use sync::*;
pub use tensor::*;
pub use warp::*;
