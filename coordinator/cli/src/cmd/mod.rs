//! One file a command.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod models;
pub(crate) mod test;

use anyhow::Result;
use clap::CommandFactory;

/// `moire completions SHELL`
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8> {
    clap_complete::generate(shell, &mut crate::args::Cli::command(), "moire", &mut std::io::stdout());
    Ok(crate::exit::CLEAN)
}
