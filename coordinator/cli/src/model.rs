//! The model on the command line.

use crate::kernel::has_blocks;
use clap::Args;
use moire_console::input::File;

/// Which model, with which switches.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// A shipped model, or a file that ends in .cat [default: ptx, and tile-ir for Tile IR kernels]
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Set a switch of the model, for example Q6=B (repeatable)
    #[arg(long = "variant", value_name = "NAME=VALUE")]
    pub(crate) variants: Vec<String>,
}

impl ModelArgs {
    /// The name of the model for a file: the one that was asked for, or that of the file's kind.
    pub(crate) fn name(&self, file: &File) -> &str {
        if has_blocks(file) { self.model.as_deref().unwrap_or("tile-ir") } else { self.without_file() }
    }

    /// The name of the model where no file is asked about.
    pub(crate) fn without_file(&self) -> &str {
        self.model.as_deref().unwrap_or("ptx")
    }
}
