//! The command line: one subcommand a file of [`crate::cmd`], which has its arguments beside it.

use crate::cmd;
use crate::logs::Log;
use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use moire_console::output::Color;
use moire_console::{bounded, exit};
use std::path::{Path, PathBuf};

/// The commands by task, each group with an example.
const COMMANDS: &str = "\
Judge a program or kernel:                  moire check kernel.ptx
  check        Races, hangs, broken conditions of litmus texts and kernels
  record       The kernels that a program launches, for check
  test         Every program of a folder that has an expectation
  explain      What a verdict or a rule means, with an example
  lsp          The same in an editor, with mends as edits
  models       Show and compare the models
  gpu          Run litmus programs on a GPU, or on its stand-in

Find what disagrees:                        moire fuzz --for 10m
  fuzz         A campaign in this process
  nightly      Campaigns, every open and fixed finding again, a report
  generate     Print programs of the stream
  bench        Measurements and long trials

Work with findings:                         moire findings list
  findings     List, show, export and mark findings
  replay       Run a finding again, from a file, an id or a printed line
  minimize     Make a program or finding smaller while the same rule stays broken
  bisect       Which switch, version or release decides a finding
  certify      What compilers make of each atomic operation, and whether it is sound
  report       A report on the findings of a store or coordinator

Run a fleet:                                moire serve, then moire work
  serve        Keep campaigns and findings, and give work to workers
  work         Take work from a coordinator
  campaign     Create, control and list campaigns
  top          What a coordinator is doing, in this terminal
  certs        Certificates and tokens for coordinator, workers and clients
  store        Check, copy, repair and compact a store

Set up:                                     moire doctor
  doctor       The tools that are installed and those that are missing
  completions  A completion script for a shell
  man          Manual pages, one for each command";

/// Finds where two descriptions of GPU concurrency that should agree do not.
#[derive(Debug, Parser)]
#[command(
    name = "moire",
    version,
    about,
    max_term_width = 100,
    help_template = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}\nOptions:\n{options}{after-help}",
    before_help = COMMANDS,
    after_help = "--color always|never|auto: NO_COLOR and pipes have none. --log json: the log for machines; MOIRE_LOG sets its level.\n--max-input SIZE: the largest file that is read, 64M unless said otherwise.\n`moire COMMAND --help` has the options of a command.\n\
        Exit codes: 0 clean, 2 usage or bad input, 10 finding, 11 incomplete, 70 internal."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Format of the log on stderr; MOIRE_LOG sets its level
    // Shown once, with the commands: every command has it.
    #[arg(long, global = true, value_enum, default_value = "text", hide = true)]
    pub(crate) log: Log,
    /// Colour verdicts
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide = true)]
    pub(crate) color: Color,
    /// Largest file that is read as an input, such as 4096, 64M or 1G
    #[arg(long, global = true, value_name = "SIZE", default_value = "64M", value_parser = bounded::size, hide = true)]
    pub(crate) max_input: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge programs under a model: races, hangs, conditions
    Check(Box<cmd::check::Check>),
    /// Run a program and record the kernels that it launches, with parameters, tensor maps and aliasing, for `moire check`
    Record(cmd::record::Record),
    /// Say what a verdict or a rule means, what to do, and show a small program that has it
    Explain(cmd::explain::Explain),
    /// Serve an editor: what check says of a text while it is written, and the mends as edits
    Lsp(cmd::lsp::Lsp),
    /// Run every program of a folder that has an expectation
    Test(cmd::test::Test),
    /// Run a campaign in this process: make programs, ask every oracle, store what disagrees
    Fuzz(cmd::fuzz::Fuzz),
    /// Keep campaigns and findings, and give work to workers
    Serve(cmd::serve::Serve),
    /// Take work from a coordinator
    Work(cmd::serve::Work),
    /// Do the leases of a worker, which starts this process
    #[command(hide = true)]
    Lease(cmd::serve::Lease),
    /// Make certificates and tokens for coordinator, workers and clients
    #[command(subcommand)]
    Certs(cmd::certs::Certs),
    /// Show in this terminal what a running coordinator is doing; q quits
    Top(cmd::top::Top),
    /// Run a night: campaigns with a budget, every open and fixed finding again, a report against the last one
    ///
    /// Exit codes: 10: a finding is new or flaky, or planted bugs were missed; 11: a finding was not re-tested, or a campaign
    /// was cut short; 0: neither. Suppressed findings and differences between models never count.
    Nightly(cmd::nightly::Nightly),
    /// Write a report on the findings of a store, compared with the last one: a page, and files for tools
    Report(cmd::report::ReportArgs),
    /// Run a finding again, from a program, an id, a bundle or a printed line
    Replay(cmd::replay::Replay),
    /// Make a program or finding smaller while the same rule stays broken
    Minimize(cmd::replay::Minimize),
    /// Find which switch, version or release decides a finding, changing one setting at a time
    Bisect(cmd::bisect::Bisect),
    /// Judge what compilers make of each atomic operation: sound, or the program that shows what is lost
    Certify(cmd::certify::Certify),
    /// Print programs of the stream
    Generate(cmd::generate::Generate),
    /// List, show, export and mark findings
    #[command(subcommand)]
    Findings(cmd::findings::Findings),
    /// Create, control and list campaigns
    #[command(subcommand)]
    Campaign(cmd::campaign::Campaigns),
    /// Check, copy and compact a store
    #[command(subcommand)]
    Store(cmd::store::StoreCommand),
    /// Show and compare the models
    #[command(subcommand)]
    Models(cmd::models::Models),
    /// Run measurements and long trials
    Bench(moire_bench::Bench),
    /// Run litmus programs on a GPU many times, and compare the outcomes with those the model allows
    Gpu(cmd::gpu::Gpu),
    /// Call a library of NVIDIA, for a process that compiles
    #[command(hide = true)]
    Library(cmd::library::Library),
    /// List the tools that are installed and those that are missing
    Doctor,
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    Man {
        /// The folder
        dir: PathBuf,
    },
}

impl Command {
    /// Runs the command; its exit code.
    pub(crate) fn run(&self, log: Log) -> Result<u8> {
        match self {
            Self::Check(a) => cmd::check::run(a),
            Self::Record(a) => cmd::record::run(a),
            Self::Explain(a) => cmd::explain::run(a),
            Self::Lsp(a) => cmd::lsp::run(a),
            Self::Test(a) => cmd::test::run(a),
            Self::Fuzz(a) => cmd::fuzz::run(a),
            Self::Serve(a) => cmd::serve::serve(a, log),
            Self::Work(a) => cmd::serve::work(a),
            Self::Lease(a) => cmd::serve::lease(a),
            Self::Top(a) => cmd::top::run(a),
            Self::Nightly(a) => cmd::nightly::run(a),
            Self::Certs(a) => cmd::certs::run(a),
            Self::Report(a) => cmd::report::run(a),
            Self::Replay(a) => cmd::replay::replay(a),
            Self::Minimize(a) => cmd::replay::minimize(a),
            Self::Bisect(a) => cmd::bisect::run(a),
            Self::Certify(a) => cmd::certify::run(a),
            Self::Generate(a) => cmd::generate::run(a),
            Self::Findings(a) => cmd::findings::run(a),
            Self::Campaign(a) => cmd::campaign::run(a),
            Self::Store(a) => cmd::store::run(a),
            Self::Models(a) => cmd::models::run(a),
            Self::Bench(a) => moire_bench::run(a),
            Self::Gpu(a) => cmd::gpu::run(a),
            Self::Library(a) => cmd::library::run(a),
            Self::Doctor => cmd::doctor::run(),
            Self::Completions { shell } => completions(*shell),
            Self::Man { dir } => man(dir),
        }
    }
}

/// `moire completions SHELL`
fn completions(shell: clap_complete::Shell) -> Result<u8> {
    clap_complete::generate(shell, &mut Cli::command(), "moire", &mut std::io::stdout());
    Ok(exit::CLEAN)
}

/// `moire man DIR`
fn man(dir: &Path) -> Result<u8> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(Cli::command(), dir)
        .with_context(|| format!("cannot write to {}", dir.display()))?;
    println!("{}", dir.join("moire.1").display());
    Ok(exit::CLEAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_command_once() {
        let listed: Vec<&str> =
            COMMANDS.lines().filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next()).collect();
        let command = Cli::command();
        let mut known: Vec<&str> =
            command.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name).collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(sorted, known);
    }
}
