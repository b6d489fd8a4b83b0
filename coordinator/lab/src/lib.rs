//! `moire bench`: measurements, and trials too long for the test suite. Each has its own file.
//!
//! Contract: this crate tests the product and is not part of it. The binary offers it as one subcommand; no other crate
//! depends on it.

#![allow(clippy::disallowed_methods, reason = "it plays processes, hosts and their clocks")]

#[macro_use(eprintln, print, println)]
extern crate moire_console;

mod attacks;
mod campaign;
mod census;
mod chaos;
mod cluster;
mod compiler;
mod contract;
mod cost;
mod families;
mod fleet;
mod genmc;
mod kept;
mod litmus;
mod minimise;
mod mutants;
mod operate;
mod process;
mod reductions;
mod rivals;
mod scale;
mod selfcheck;
mod spread;
mod streams;
mod tell;

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
    /// Attack a coordinator with hostile workers and clients, which must not harm the honest ones
    Attacks(attacks::Attacks),
    /// Measure how many programs a campaign of each stream judges in a second of processor time
    Campaign(campaign::Campaign),
    /// Compare the book of instructions with a census of ptxas, form by form, or with an installed ptxas
    Census(census::Census),
    /// Kill campaigns at random moments: nothing acknowledged may be lost, the digest may not change
    Chaos(chaos::Chaos),
    /// Run simulated clusters with random faults and check their histories against the lease protocol
    Cluster(cluster::Cluster),
    /// Judge the code that NVIDIA's Tile IR compiler makes of many drawn kernels
    Compiler(compiler::Compiler),
    /// Compare explorer and enumerator under models that lack checks: the explorer may rely only on licences
    Contract(contract::Contract),
    /// Explore programs whose number of executions is known: executions, checks, dead ends, seconds
    Families(families::Families),
    /// Run the README's fleet with workers that are killed again and again: the digest may not change
    Fleet(fleet::Fleet),
    /// Explore the families beside a built GenMC, in turns: seconds of processor time, executions
    Genmc(genmc::Genmc),
    /// Run suites of litmus tests with published answers again and again: tests a second on one core
    Litmus(litmus::Litmus),
    /// Make findings of forty instructions smaller: a fleet, one worker, ddmin
    Minimise(minimise::Minimise),
    /// Make one mistake each in the synchronisation of right programs: what is found, what is confirmed to be harmless
    Mutants(mutants::Mutants),
    /// Compare the operational engine with the explorer on drawn tensor-core protocols and mutants of them
    Operate(operate::Operate),
    /// Compare the explorer with and without reductions on many drawn programs
    Reductions(reductions::Reduced),
    /// Judge kernels by installed rivals, too: verdicts, whether they are right, seconds
    Rivals(rivals::Rivals),
    /// Measure one coordinator with ten thousand simulated workers and a million findings: rates, times, memory
    Scale(scale::Scale),
    /// Compare explorer and naive enumerator on many distinct programs
    Selfcheck(selfcheck::SelfCheck),
    /// Count what the streams draw: forms of the book, repeats, programs that synchronise nothing
    Streams(streams::Streams),
    /// Share one exploration among workers over gRPC: compare the totals with one thread, measure the balance
    Spread(spread::Spread),
    /// Count the drawn programs that tell a lost order, and the programs until each planted weakening is found
    Tell(tell::Tell),
}

/// Runs a measurement or a trial, and returns its exit code.
///
/// # Errors
/// The arguments make no sense, or something it needs is missing.
pub fn run(bench: &Bench) -> Result<u8> {
    match &bench.trial {
        Trial::Attacks(args) => attacks::run(args),
        Trial::Campaign(args) => campaign::run(args),
        Trial::Census(args) => census::run(args),
        Trial::Chaos(args) => chaos::run(args),
        Trial::Cluster(args) => cluster::run(args),
        Trial::Compiler(args) => compiler::run(args),
        Trial::Contract(args) => contract::run(args),
        Trial::Families(args) => families::run(args),
        Trial::Fleet(args) => fleet::run(args),
        Trial::Genmc(args) => genmc::run(args),
        Trial::Litmus(args) => litmus::run(args),
        Trial::Minimise(args) => minimise::run(args),
        Trial::Mutants(args) => mutants::run(args),
        Trial::Operate(args) => operate::run(args),
        Trial::Reductions(args) => reductions::run(args),
        Trial::Rivals(args) => rivals::run(args),
        Trial::Scale(args) => scale::run(args),
        Trial::Selfcheck(args) => selfcheck::run(args),
        Trial::Spread(args) => spread::run(args),
        Trial::Streams(args) => streams::run(args),
        Trial::Tell(args) => tell::run(args),
    }
}
