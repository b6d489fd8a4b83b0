//! `moire bench selfcheck`: explorer against naive enumerator on many distinct programs, under every shipped model.
//!
//! Contract: what is compared and printed depends on seed, count and models alone, not on the number of threads. A
//! difference is shrunk and printed with its replayable text (exit 10); too few programs of a demanded kind are no
//! proof (exit 11).

use crate::exit;
use crate::input::load_model;
use anyhow::{Result, bail};
use moire_cat::{Model, Variants, builtin};
use moire_explore::differential::campaign::{Campaign, Totals};
use moire_program::text::print;
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(crate) struct SelfCheck {
    /// Distinct programs compared under each model
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    programs: u64,
    /// First seed; a run ends by saying where the next one starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare under these models (repeatable) [default: all shipped]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Threads that work [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

pub(crate) fn run(args: &SelfCheck) -> Result<u8> {
    if args.programs == 0 {
        bail!("--programs 0 compares nothing");
    }
    let names: Vec<&str> = if args.models.is_empty() {
        builtin::names().collect()
    } else {
        args.models.iter().map(String::as_str).collect()
    };
    let models: Vec<Model> =
        names.iter().map(|n| load_model(n, &Variants::new())).collect::<Result<Vec<_>>>()?;
    let (strong, weak) = (load_model("sc", &Variants::new())?, load_model("ptx", &Variants::new())?);
    let campaign = Campaign {
        models: &models,
        yardstick: Some((&strong, &weak)),
        first_seed: args.seed,
        count: args.programs,
        workers: args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        ..Campaign::default()
    };
    let begin = Instant::now();
    let progress = |t: &Totals| {
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!(
            "{} of {} programs, {seconds:.0} s, {} differences",
            t.programs,
            args.programs,
            t.failures.len()
        );
    };
    let totals = campaign.run(&progress);
    eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
    println!(
        "{} distinct programs under each of {}: {} comparisons, {} executions, {} candidates",
        totals.programs,
        names.join(", "),
        totals.comparisons,
        totals.leaves,
        totals.candidates
    );
    print!("{}", totals.histogram());
    let skipped: u64 = totals.skipped.values().sum();
    println!("{} drawn again, {skipped} not compared, next seed {}", totals.repeated, totals.next_seed);
    for (reason, n) in &totals.skipped {
        println!("  {n:8} {reason}");
    }
    for failure in &totals.failures {
        println!("\nseed {}, {}: {}", failure.seed, failure.model, failure.difference.kind());
        println!("{:#?}\n{}", failure.difference, print(&failure.program));
    }
    println!("{} differences", totals.failures.len());
    let few = totals.shares().into_iter().any(|(_, have, least)| 100 * have < least * totals.programs);
    Ok(match (totals.failures.is_empty(), few) {
        (false, _) => exit::FINDING,
        (true, true) => exit::INCOMPLETE,
        (true, false) => exit::CLEAN,
    })
}
