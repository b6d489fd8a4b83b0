//! Kernels on the command line: PTX modules and Tile IR, launched.

mod launch;
mod launched;
mod lowered;
mod metadata;
mod ptx;
mod tile;

use anyhow::Result;
use moire_console::input::File;

pub(crate) use launch::LaunchArgs;
pub(crate) use launched::Launched;
pub(crate) use lowered::{Candidate, Kernel};
pub(crate) use tile::{has_blocks, is_text, text};

/// Whether a file is a module of kernels by its name: PTX or Tile IR.
pub(crate) fn is_module(file: &File) -> bool {
    is_compiled(file) || is_text(&file.path)
}

/// Whether a file is a module as compilers of PTX print it, by its name.
pub(crate) fn is_compiled(file: &File) -> bool {
    file.path.extension().is_some_and(|e| e == "ptx")
}

/// The kernels of a PTX module. None for any other file, and for one that is no module.
pub(crate) fn entries(file: &File) -> Vec<String> {
    if is_compiled(file) { ptx::entries(file) } else { Vec::new() }
}

/// Lowers the kernel of a module for the launch asked for, or for those that are assumed.
pub(crate) fn read(file: &File, args: &LaunchArgs) -> Result<Kernel> {
    if is_text(&file.path) { tile::read(file, args) } else { ptx::read(file, args) }
}
