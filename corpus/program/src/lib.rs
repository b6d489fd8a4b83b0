//! Programs: the representation shared by everything, its texts, its canonical form, and how to make and shrink it.
//!
//! Pure: no I/O, no clock, no async, no global state.

#[macro_use]
mod sorts;

pub mod bridge;
pub mod canon;
pub mod clusters;
pub mod edit;
pub mod features;
pub mod ir;
pub mod lanes;
pub mod limits;
pub mod loops;
pub mod mutate;
pub mod reduce;
mod refusal;
pub mod registers;
pub mod tensor;
pub mod text;
pub mod validate;
pub mod words;

pub use refusal::Refusal;
