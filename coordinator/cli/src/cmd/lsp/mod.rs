//! `moire lsp`: what `moire check` says, in an editor.
//!
//! Contract: the Language Server Protocol (3.17) on stdin and stdout, texts synchronised as a whole. A text is judged as `moire check`
//! judges a file, with the options of the command line. Each problem is a diagnostic at the line of its first access, with the other
//! accesses or waits as related places. A mend is a code action, and edits the version that was judged only. Of a kernel
//! without a finding the launch and what is taken for granted are a note at the first line.

mod diagnostics;
mod mends;
mod server;

use super::check::Check;
use anyhow::{Result, bail};
use clap::{Args, Parser};
use lsp_server::Connection;
use moire_console::exit;
use moire_console::output::Format;

#[derive(Debug, Args)]
pub(crate) struct Lsp {
    /// Options of `moire check`, for every text
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

/// `moire check` with these options.
#[derive(Debug, Parser)]
#[command(name = "moire lsp", no_binary_name = true)]
struct Options {
    #[command(flatten)]
    check: Check,
}

pub(crate) fn run(args: &Lsp) -> Result<u8> {
    // A text comes from the editor; `check` asks for a file.
    let options = args.options.iter().map(String::as_str).chain(["-"]);
    let check = Options::try_parse_from(options)?.check;
    let prints = check.format != Format::Text || !check.report.is_empty() || check.witness.is_some();
    if prints || check.states || check.lowered || check.fix.is_some() || check.files.len() > 1 {
        bail!(
            "`moire lsp` takes the options of `moire check` that decide a verdict, no files and no formats"
        );
    }
    let (connection, threads) = Connection::stdio();
    server::serve(&connection, &check)?;
    drop(connection);
    threads.join()?;
    Ok(exit::CLEAN)
}
