//! `moire bench`: measurements, and trials too long for the test suite. One file a trial.

mod chaos;
mod process;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Kill campaigns at random moments: nothing acknowledged may be lost, the digest may not change
    Chaos(chaos::Chaos),
}

pub(crate) fn run(bench: &Bench) -> Result<u8> {
    match bench {
        Bench::Chaos(args) => chaos::run(args),
    }
}
