//! NVIDIA's own tools, run as they are found: the assembler `ptxas`, the disassembler `nvdisasm`, and the compiler of
//! Tile IR, `tileiras`, with the bytecode that it reads.
//!
//! Nothing here is needed to build, test or use the rest. Where a tool is not found the capability is absent, which is
//! no failure; [`find`] says where it was looked for. Every run has a deadline, a cap on what it may print and a
//! folder of its own, and ends with its whole process group.

pub mod find;
pub mod machine;
mod ptxas;
pub mod run;
mod sass;
pub mod tile;
mod version;

pub use ptxas::{Answer, Ptxas};
pub use sass::{ListError, Nvdisasm, listed};
pub use version::Version;
