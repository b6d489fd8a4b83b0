//! `moire bench cluster`: simulated clusters with random faults, each history held to the protocol.
//!
//! The simulated network brings a clock that tests can stop, which has no place in a binary that serves. So this is in builds
//! with the feature `cluster`, and in all builds of the tests.

#[cfg(any(test, feature = "cluster"))]
mod check;
#[cfg(any(test, feature = "cluster"))]
mod engine;
#[cfg(any(test, feature = "cluster"))]
mod faults;
#[cfg(any(test, feature = "cluster"))]
mod runs;
#[cfg(any(test, feature = "cluster"))]
mod wire;
#[cfg(any(test, feature = "cluster"))]
mod world;

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Cluster {
    /// Runs, each of its own seed
    #[arg(long, default_value_t = 100)]
    runs: u64,
    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at one time [default: one a core]
    #[arg(long)]
    threads: Option<usize>,
    /// Plant a bug, by name, or each in turn: all. Found within the runs: 0, missed: 10
    #[arg(long, value_name = "BUG")]
    planted: Option<String>,
    /// Print what happened in the first run
    #[arg(long)]
    history: bool,
    /// Folder for the stores of the runs [default: in memory where there is such a folder]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

#[cfg(any(test, feature = "cluster"))]
pub(crate) use runs::run;

/// There is nothing to run.
#[cfg(not(any(test, feature = "cluster")))]
pub(crate) fn run(_: &Cluster) -> anyhow::Result<u8> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    anyhow::bail!(
        "simulated clusters are not in this build; with them: cargo run --release --features cluster -- {}",
        typed.join(" ")
    )
}
