//! Kernels on the command line: PTX modules and Tile IR, launched.

mod launch;
mod lowered;
mod ptx;
mod tile;

use anyhow::Result;
use moire_console::input::File;

pub(crate) use launch::LaunchArgs;
pub(crate) use lowered::Kernel;
pub(crate) use tile::{has_blocks, is_text, text};

/// Whether a file is a module of kernels by its name: PTX or Tile IR.
pub(crate) fn is_module(file: &File) -> bool {
    file.path.extension().is_some_and(|e| e == "ptx") || is_text(&file.path)
}

/// Lowers the kernel of a module for one launch.
pub(crate) fn read(file: &File, args: &LaunchArgs) -> Result<Kernel> {
    if is_text(&file.path) { tile::read(file, args) } else { ptx::read(file, args) }
}
