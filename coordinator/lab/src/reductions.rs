//! `moire bench reductions`: compares the explorer with and without reductions on many drawn programs.
//!
//! Contract: the programs depend only on the arguments of the command, not on the number of threads or on stops of the
//! run. A difference is printed at once, with the program and the command that finds it again (exit 10).

mod drawn;
mod tally;

use anyhow::{Result, bail};
use drawn::{Asked, Drawn};
use moire_cat::Model;
use moire_console::exit;
use moire_explore::reduce::Reductions;
use moire_lab::differential::reduced::{Saved, compare_reduced};
use moire_program::text::print;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tally::{Totals, Words};

/// Differences after which a run stops.
const FAILURES: usize = 5;
/// Programs between two notes of the progress.
const BLOCK: u64 = 512;

#[derive(Debug, clap::Args)]
pub(crate) struct Reduced {
    /// Number of programs drawn; each is compared under every shipped model of its language
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    programs: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kind of programs drawn
    #[arg(long, value_enum, default_value_t = Drawn::All)]
    draw: Drawn,
    /// Compare under these models (repeatable) [default: those of the language]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Compare each program also under one of N random settings of the switches of `ptx` or `tile-ir`
    #[arg(long, default_value_t = 0, value_name = "N")]
    settings: usize,
    /// Seed of these settings [default: the first seed]
    #[arg(long, value_name = "SEED")]
    settings_from: Option<u64>,
    /// Note progress in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

pub(crate) fn run(args: &Reduced) -> Result<u8> {
    if args.programs == 0 {
        bail!("--programs 0 compares nothing");
    }
    let from = args.settings_from.unwrap_or(args.seed);
    let asked = Asked::new(&args.models, args.settings, from)?;
    let words = Words {
        draw: args.draw.name(),
        models: args.models.clone(),
        settings: args.settings,
        settings_from: from,
        seed: args.seed,
    };
    let _held = args.keep.as_deref().map(super::kept::hold).transpose()?;
    let mut totals = match &args.keep {
        Some(path) => Totals::read(path, &words)?,
        None => Totals::default(),
    };
    let (begin, before) = (Instant::now(), totals.comparisons());
    while totals.done < args.programs && totals.differences.len() < FAILURES {
        let block = BLOCK.min(args.programs - totals.done);
        totals.add(compared(args, &asked, args.seed.wrapping_add(totals.done), block));
        totals.done += block;
        if let Some(path) = &args.keep {
            totals.write(path, &words)?;
        }
        let (seconds, all) = (begin.elapsed().as_secs_f64(), totals.comparisons());
        eprintln!(
            "{} of {} programs, {all} comparisons, {seconds:.0} s, {:.0} a second, {} differences",
            totals.done,
            args.programs,
            (all - before) as f64 / seconds,
            totals.differences.len()
        );
    }
    totals.tell();
    Ok(if totals.differences.is_empty() { exit::CLEAN } else { exit::FINDING })
}

/// Compares the programs of some seeds, on all workers.
fn compared(args: &Reduced, asked: &Asked, first: u64, count: u64) -> Totals {
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let next = AtomicU64::new(0);
    let work = || {
        let mut totals = Totals::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return totals;
            }
            one(args, asked, first.wrapping_add(number), &mut totals);
        }
    };
    let mut all: Vec<Totals> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    let mut out = all.pop().unwrap_or_default();
    all.into_iter().for_each(|t| out.add(t));
    out.differences.sort();
    out
}

/// Compares the program of a seed.
fn one(args: &Reduced, asked: &Asked, seed: u64, totals: &mut Totals) {
    let Some((drawn, program)) = args.draw.program(seed) else {
        *totals.skipped.entry("the drawn text is refused".to_owned()).or_default() += 1;
        return;
    };
    let settings = Reductions::settings();
    totals.of(drawn).programs += 1;
    for model in asked.of(drawn, seed) {
        match compare_reduced(&program, model, &settings, None) {
            Err(reason) => *totals.skipped.entry(reason).or_default() += 1,
            Ok(Saved { changed: Some((on, both)), .. }) => {
                let line = format!("seed {seed}, {}: {on} gives another answer; again: ", told(model));
                totals.differences.push(line.clone() + &again(args, seed));
                eprintln!("{line}{}", again(args, seed));
                println!("{both:#?}\n{}", print(&program));
            }
            Ok(Saved { all, left, changed: None }) => {
                let sums = totals.of(drawn);
                sums.comparisons += 1;
                sums.less += u64::from(left.iter().any(|n| *n < all));
                let counts = std::iter::once(all).chain(left);
                sums.executions.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
            }
        }
    }
}

/// Names a model and its settings.
fn told(model: &Model) -> String {
    let settings: String = model.variants().iter().map(|(k, v)| format!(" {k}={v}")).collect();
    format!("{}{settings}", model.name())
}

/// Writes the command that compares the program of a seed again.
fn again(args: &Reduced, seed: u64) -> String {
    let models: String = args.models.iter().map(|m| format!(" --model {m}")).collect();
    let settings = match args.settings {
        0 => String::new(),
        n => format!(" --settings {n} --settings-from {}", args.settings_from.unwrap_or(args.seed)),
    };
    format!("moire bench reductions --draw {}{models}{settings} --seed {seed} --programs 1", args.draw.name())
}
