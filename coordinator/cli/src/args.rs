//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Finds where two descriptions of GPU concurrency that should agree do not.
#[derive(Debug, Parser)]
#[command(name = "moire", version, about, max_term_width = 100, after_help = "Exit codes: 0 clean, 2 usage or bad input, 10 finding, 11 incomplete, 70 internal.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge programs under a model: races, hangs, conditions
    Check(Check),
    /// Run every program of a folder that has an expectation
    Test(Test),
    /// Show and compare the models
    #[command(subcommand)]
    Models(Models),
    /// Say what is installed and what is missing
    Doctor,
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// One object a program, versioned
    Json,
}

/// Which model, with which switches.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// A shipped model, or a file that ends in .cat
    #[arg(long, default_value = "ptx")]
    pub(crate) model: String,
    /// Set a switch of the model, for example Q6=B (repeatable)
    #[arg(long = "variant", value_name = "NAME=VALUE")]
    pub(crate) variants: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Programs: native litmus, Dat3M PTX litmus, mixedproxy
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: OutputFormat,
    /// Write the deciding executions as Graphviz files into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) witness: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Bounds of an exploration; hitting one gives the verdict `bounded`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Executions visited at most
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) limit: u64,
    /// Iterations of a loop that changes state
    #[arg(long, default_value_t = 2)]
    pub(crate) loop_bound: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Folder with expected.csv, or with NAME.expected beside programs
    pub(crate) dir: PathBuf,
    /// Also run the rows of debated.csv; they never fail the run
    #[arg(long)]
    pub(crate) debated: bool,
    /// Judge the rows of the newest published version under this model too
    #[arg(long, value_name = "MODEL")]
    pub(crate) also: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// The shipped models
    List,
    /// Text, switches and checks of one model
    Show {
        #[command(flatten)]
        model: ModelArgs,
    },
}
