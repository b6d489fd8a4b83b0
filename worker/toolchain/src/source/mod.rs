//! Compilers of source programs: LLVM's `llc`, of any release from 15 on, NVIDIA's `nvcc` and libNVVM, and Triton.
//!
//! [`Compiler`] compiles one text to PTX, [`batch`] many programs as one text. [`Table`] remembers what it refuses. Several releases stand side by side. Each
//! run has a deadline, a limit on the memory of each of its processes, and its own folder.
//!
//! `llc` is looked for in the files that `MOIRE_LLC` names, on `PATH` as `llc` and `llc-15` to `llc-30`, and beside the
//! libraries of `rustup` toolchains that have the component `llvm-tools`. `nvcc` is looked for as all tools of NVIDIA are.
//! libNVVM is a library in the same places; [`library`] calls it in a process of its own, because it may die.
//! Triton is called by `kernels.py`, which the interpreter of an environment with Triton runs.

pub mod batch;
mod compiler;
pub mod library;
mod table;

pub use compiler::{Compiler, Kind, Options};
pub use table::{Table, folder};
