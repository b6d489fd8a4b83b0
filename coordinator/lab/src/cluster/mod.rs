//! `moire bench cluster`: simulated clusters with random faults. Each history is checked against the protocol.
//!
//! The simulated network brings in a clock that tests can stop, which a serving binary must not have. So this code is
//! only in builds with the feature `cluster` and in test builds.

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
    /// Number of runs, each with its own seed
    #[arg(long, default_value_t = 100)]
    runs: u64,
    /// Seed of the first run; from 4294967296 on, workers come from elsewhere and one of them lies
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at one time [default: one per core]
    #[arg(long)]
    threads: Option<usize>,
    /// Plant this bug, or each in turn with `all`. Exit code 0: found within the runs; 10: missed
    #[arg(long, value_name = "BUG")]
    planted: Option<String>,
    /// Print the history of the first run
    #[arg(long)]
    history: bool,
    /// Folder for the stores of the runs [default: a folder in memory, if there is one]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

#[cfg(any(test, feature = "cluster"))]
pub(crate) use runs::run;

/// Refuses: simulated clusters are not in this build.
#[cfg(not(any(test, feature = "cluster")))]
pub(crate) fn run(_: &Cluster) -> anyhow::Result<u8> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    anyhow::bail!(
        "simulated clusters are not in this build; use: cargo run --release --features cluster -- {}",
        typed.join(" ")
    )
}
