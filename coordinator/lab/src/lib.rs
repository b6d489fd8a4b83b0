//! `moire bench`: measurements, and trials too long for the test suite. One file a trial.
//!
//! Contract: what stands here proves the product and is no part of it. The binary offers it as one subcommand; the crates
//! of the product depend on nothing of it.

#[macro_use(print, println)]
extern crate moire_console;

mod chaos;
mod cluster;
mod compiler;
mod contract;
mod cost;
mod families;
mod fleet;
mod kept;
mod litmus;
mod minimise;
mod process;
mod reductions;
mod scale;
mod selfcheck;
mod spread;

use anyhow::Result;
use clap::{Args, Subcommand};

/// The arguments of `moire bench`.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    trial: Trial,
}

#[derive(Debug, Subcommand)]
enum Trial {
    /// Kill campaigns at random moments: nothing acknowledged may be lost, the digest may not change
    Chaos(chaos::Chaos),
    /// Run simulated clusters with random faults and hold their histories to the lease protocol
    Cluster(cluster::Cluster),
    /// Judge what NVIDIA's compiler of Tile IR makes of many drawn kernels
    Compiler(compiler::Compiler),
    /// Compare explorer and enumerator under models that lack checks: the explorer relies on what they license alone
    Contract(contract::Contract),
    /// Explore programs whose number of executions is known: executions, checks, dead ends, seconds
    Families(families::Families),
    /// Run the README's fleet with workers that are killed again and again: the digest may not change
    Fleet(fleet::Fleet),
    /// Run suites of litmus tests with published answers again and again: tests a second on one core
    Litmus(litmus::Litmus),
    /// Make findings of forty instructions smaller: a fleet, one worker, ddmin
    Minimise(minimise::Minimise),
    /// Compare the explorer with reductions and without on many drawn programs
    Reductions(reductions::Reduced),
    /// One coordinator under ten thousand simulated workers, and over a million findings: rates, times, memory
    Scale(scale::Scale),
    /// Compare explorer and naive enumerator on many distinct programs
    Selfcheck(selfcheck::SelfCheck),
    /// One exploration shared by workers over gRPC: the totals of one thread, and how evenly the work falls
    Spread(spread::Spread),
}

/// Runs a measurement or a trial; its exit code.
///
/// # Errors
/// The arguments make no sense, or something it needs is missing.
pub fn run(bench: &Bench) -> Result<u8> {
    match &bench.trial {
        Trial::Chaos(args) => chaos::run(args),
        Trial::Cluster(args) => cluster::run(args),
        Trial::Compiler(args) => compiler::run(args),
        Trial::Contract(args) => contract::run(args),
        Trial::Families(args) => families::run(args),
        Trial::Fleet(args) => fleet::run(args),
        Trial::Litmus(args) => litmus::run(args),
        Trial::Minimise(args) => minimise::run(args),
        Trial::Reductions(args) => reductions::run(args),
        Trial::Scale(args) => scale::run(args),
        Trial::Selfcheck(args) => selfcheck::run(args),
        Trial::Spread(args) => spread::run(args),
    }
}
