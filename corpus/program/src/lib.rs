//! Programs: the representation shared by everything, its texts, its canonical form, and how to make and shrink it.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod canon;
pub mod emit;
pub mod generate;
pub mod ir;
pub mod kernel;
pub mod limits;
pub mod lowering;
pub mod reduce;
pub mod simt;
pub mod tensor;
pub mod text;
pub mod tile;
pub mod tile_run;
pub mod validate;
