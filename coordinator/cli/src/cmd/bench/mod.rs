//! `moire bench`: measurements, and trials too long for the test suite. One file a trial.

mod chaos;
mod cluster;
mod compiler;
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
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Kill campaigns at random moments: nothing acknowledged may be lost, the digest may not change
    Chaos(chaos::Chaos),
    /// Run simulated clusters with random faults and hold their histories to the lease protocol
    Cluster(cluster::Cluster),
    /// Judge what NVIDIA's compiler of Tile IR makes of many drawn kernels
    Compiler(compiler::Compiler),
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

pub(crate) fn run(bench: &Bench) -> Result<u8> {
    match bench {
        Bench::Chaos(args) => chaos::run(args),
        Bench::Cluster(args) => cluster::run(args),
        Bench::Compiler(args) => compiler::run(args),
        Bench::Families(args) => families::run(args),
        Bench::Fleet(args) => fleet::run(args),
        Bench::Litmus(args) => litmus::run(args),
        Bench::Minimise(args) => minimise::run(args),
        Bench::Reductions(args) => reductions::run(args),
        Bench::Scale(args) => scale::run(args),
        Bench::Selfcheck(args) => selfcheck::run(args),
        Bench::Spread(args) => spread::run(args),
    }
}
