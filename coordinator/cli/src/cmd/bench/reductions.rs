//! `moire bench reductions`: the explorer with reductions against itself without, on many drawn programs.
//!
//! Contract: what is compared depends on the words of the command alone, not on the number of threads. A difference is
//! told at once, with the command that finds it again and the program (exit 10).

use crate::exit;
use crate::input::load_model;
use anyhow::{Result, bail};
use clap::ValueEnum;
use moire_cat::{Model, Variants, builtin};
use moire_explore::differential::campaign::{mixed, random_settings};
use moire_explore::differential::draw_crowd::crowd;
use moire_explore::differential::reduced::{Saved, compare_reduced, questioned};
use moire_explore::reduce::Reductions;
use moire_program::ir::Program;
use moire_program::text::print;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Differences after which a run stops.
const FAILURES: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Reduced {
    /// Programs drawn; each is compared under every model
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    programs: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What is drawn
    #[arg(long, value_enum, default_value_t = Drawn::Crowd)]
    draw: Drawn,
    /// Compare under these models (repeatable) [default: all shipped but tile-ir, of which no thread is drawn]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Compare each program also under one of N random settings of the switches of `ptx`
    #[arg(long, default_value_t = 0, value_name = "N")]
    settings: usize,
    /// Threads that work [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Drawn {
    /// Threads with one body, atomics and loads without a use, stores nobody reads
    Crowd,
    /// What `moire bench selfcheck` draws
    Mixed,
}

impl Drawn {
    fn program(self, seed: u64) -> Option<Program> {
        match self {
            Drawn::Crowd => crowd(seed),
            Drawn::Mixed => Some(questioned(mixed(seed), seed)),
        }
    }
}

/// Sums over a run.
#[derive(Default)]
struct Totals {
    programs: u64,
    comparisons: u64,
    /// Executions without reductions, then with each setting.
    executions: Vec<u64>,
    skipped: BTreeMap<String, u64>,
    failures: usize,
}

pub(crate) fn run(args: &Reduced) -> Result<u8> {
    if args.programs == 0 {
        bail!("--programs 0 compares nothing");
    }
    let names: Vec<&str> = if args.models.is_empty() {
        builtin::names().filter(|name| *name != "tile-ir").collect()
    } else {
        args.models.iter().map(String::as_str).collect()
    };
    let models: Vec<Model> =
        names.iter().map(|n| load_model(n, &Variants::new())).collect::<Result<Vec<_>>>()?;
    let plain = load_model("ptx", &Variants::new())?;
    let others: Vec<Model> = random_settings(&plain, args.seed, args.settings)
        .iter()
        .map(|v| load_model("ptx", v))
        .collect::<Result<Vec<_>>>()?;
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let next = AtomicU64::new(0);
    let all: Vec<Totals> = std::thread::scope(|scope| {
        let run = || work(args, &models, &others, &next);
        let threads: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    Ok(tell(&names, &all))
}

fn work(args: &Reduced, models: &[Model], others: &[Model], next: &AtomicU64) -> Totals {
    let settings = Reductions::settings();
    let mut totals = Totals { executions: vec![0; 1 + settings.len()], ..Totals::default() };
    while totals.failures < FAILURES {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= args.programs {
            break;
        }
        let seed = args.seed.wrapping_add(number);
        let Some(program) = args.draw.program(seed) else { continue };
        totals.programs += 1;
        let other = usize::try_from(seed).ok().and_then(|s| others.get(s % others.len().max(1)));
        for model in models.iter().chain(other) {
            match compare_reduced(&program, model, &settings, None) {
                Err(reason) => *totals.skipped.entry(reason).or_default() += 1,
                Ok(Saved { changed: Some((on, both)), .. }) => {
                    totals.failures += 1;
                    let draw =
                        args.draw.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
                    let variants: String =
                        model.variants().iter().map(|(k, v)| format!(" {k}={v}")).collect();
                    eprintln!("seed {seed}, {}{variants}: {on} tells something else", model.name());
                    eprintln!("again: moire bench reductions --draw {draw} --seed {seed} --programs 1");
                    println!("{both:#?}\n{}", print(&program));
                }
                Ok(Saved { all, left, changed: None }) => {
                    totals.comparisons += 1;
                    let counts = std::iter::once(all).chain(left);
                    totals.executions.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
                }
            }
        }
    }
    totals
}

fn tell(names: &[&str], all: &[Totals]) -> u8 {
    let sum = |of: &dyn Fn(&Totals) -> u64| all.iter().map(of).sum::<u64>();
    let (programs, comparisons) = (sum(&|t| t.programs), sum(&|t| t.comparisons));
    println!("{programs} programs under each of {}: {comparisons} comparisons", names.join(", "));
    println!("{:>12} executions without reductions", sum(&|t| t.executions[0]));
    for (i, on) in Reductions::settings().iter().enumerate() {
        println!("{:>12} with {on}", sum(&|t| t.executions[i + 1]));
    }
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, n) in all.iter().flat_map(|t| &t.skipped) {
        *skipped.entry(reason).or_default() += n;
    }
    println!("{} not compared", skipped.values().sum::<u64>());
    skipped.iter().for_each(|(reason, n)| println!("  {n:8} {reason}"));
    let failures: usize = all.iter().map(|t| t.failures).sum();
    println!("{failures} differences");
    if failures > 0 { exit::FINDING } else { exit::CLEAN }
}
