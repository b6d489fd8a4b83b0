//! NVIDIA's compiler of Tile IR, `tileiras`.
//!
//! [`Tileiras`] compiles a file of bytecode and keeps the PTX; [`batch`] does so with many kernels at once.

pub mod batch;
mod bay;
mod tileiras;

pub use tileiras::{Compiled, Stage, Tileiras};
