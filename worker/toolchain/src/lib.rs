//! Outside tools, used where they are installed: NVIDIA's assembler `ptxas`, the disassembler `nvdisasm`, the compiler of
//! Tile IR, `tileiras`, with the bytecode that it reads, and compilers of source programs, `llc`, `nvcc`, libNVVM and Triton.
//!
//! Nothing here is needed to build, test or use the rest. A missing tool is a missing capability and no failure; [`find`]
//! says where tools are looked for. Every run has a deadline, a cap on its output and its own folder, and ends together with
//! its whole process group.

pub mod crash;
mod failure;
pub mod find;
pub mod machine;
pub mod order;
mod ptxas;
pub mod run;
mod sass;
pub mod source;
pub mod tile;
mod version;

pub use failure::Failure;
pub use ptxas::{Answer, Diagnostic, Ptxas};
pub use sass::{ListError, Nvdisasm, listed};
pub use version::Version;
