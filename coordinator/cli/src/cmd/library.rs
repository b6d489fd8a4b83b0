//! `moire library`: calls libNVVM in this process, for another one that compiles a source program.

use anyhow::Result;
use clap::Args;
use moire_console::exit;
use moire_toolchain::source::library::main;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Library {
    /// The library
    file: PathBuf,
    /// `--version`, or OPTION.. -o FILE FILE
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &Library) -> Result<u8> {
    match main(&args.file, &args.arguments) {
        Ok(said) => print!("{}", said.unwrap_or_default()),
        // As it is: who asked looks for the compiler's words.
        Err(why) => {
            eprintln!("{why}");
            return Ok(exit::USAGE);
        }
    }
    Ok(exit::CLEAN)
}
