//! `moire bench mutants`: is each mistake in the synchronisation of a right program found?
//!
//! Contract: the right programs are the litmus texts of a folder that are clean, and drawn tensor-core protocols. Every
//! mutant of them that is still clean is confirmed by the enumerator, or listed by reason. The table depends on the words of
//! the command and the files alone. A difference between the engines is printed (exit 10).

use anyhow::{Context, Result, bail};
use moire_cat::Model;
use moire_console::exit;
use moire_console::input::{load_model, parse_program};
use moire_explore::Limits;
use moire_generate::tensor::Plan;
use moire_lab::differential::draw::Draw;
use moire_lab::mutants::{Fate, fate, is_clean};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::mutate::{Mistake, Mutant, mutants};
use moire_program::text::print;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one protocol is drawn from.
const ENTROPY: usize = 64;

#[derive(Debug, clap::Args)]
pub(crate) struct Mutants {
    /// Folder of litmus texts; those that are not clean are left out
    #[arg(long, default_value = "corpus/litmus", value_name = "DIR")]
    from: PathBuf,
    /// Mutants tried
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    mutants: usize,
    /// Drawn protocols beside the texts
    #[arg(long, default_value_t = 200, value_name = "N")]
    protocols: u64,
    /// What protocols and mutants are drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The model
    #[arg(long, default_value = "ptx", value_name = "MODEL")]
    model: String,
    /// List every clean mutant that is not confirmed
    #[arg(long)]
    list: bool,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// A mutant and the program it was made of.
struct Tried {
    of: String,
    mutant: Mutant,
}

/// Counts of one kind of mistake.
#[derive(Clone, Debug, Default)]
struct Counts {
    illegal: u64,
    caught: u64,
    confirmed: u64,
    unconfirmed: u64,
    undecided: u64,
    different: u64,
}

pub(crate) fn run(args: &Mutants) -> Result<u8> {
    let model = load_model(&args.model, &moire_cat::Variants::new())?;
    let limits = Limits { leaves: 100_000, checks: 2_000_000, steps: 20_000_000, ..Limits::default() };
    let right = right_programs(args, &model, &limits)?;
    let all: Vec<Tried> = right
        .iter()
        .flat_map(|(of, program)| mutants(program).into_iter().map(|mutant| Tried { of: of.clone(), mutant }))
        .collect();
    let (programs, total) = (right.len(), all.len());
    let tried = sample(all, args.mutants, args.seed);
    eprintln!("{programs} right programs, {total} mutants, {} tried", tried.len());
    let fates = judged(args, &tried, &model, &limits);
    let mut table: BTreeMap<Mistake, Counts> = BTreeMap::new();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for (tried, fate) in tried.iter().zip(&fates) {
        count(table.entry(tried.mutant.mistake).or_default(), fate);
        let place = || format!("{} of {}", tried.mutant.mistake.name(), place(tried));
        match fate {
            Fate::Unconfirmed(reason) | Fate::Undecided(reason) => {
                *reasons.entry(reason.clone()).or_default() += 1;
                if args.list {
                    println!("not confirmed: {}: {reason}", place());
                }
            }
            Fate::Different(difference) => {
                println!("{}: {}\n{}", place(), difference.kind(), print(&tried.mutant.program));
            }
            _ => {}
        }
    }
    tell(&table);
    for (reason, count) in reasons {
        println!("{count:6} not confirmed: {reason}");
    }
    let different = table.values().any(|c| c.different > 0);
    Ok(if different { exit::FINDING } else { exit::CLEAN })
}

/// Where the mistake is, for people.
fn place(tried: &Tried) -> String {
    let Mutant { thread, at, .. } = tried.mutant;
    format!("instruction {at} of thread {thread} in {}", tried.of)
}

/// The clean litmus texts below a folder, and drawn protocols, by name.
fn right_programs(args: &Mutants, model: &Model, limits: &Limits) -> Result<Vec<(String, Program)>> {
    let mut paths = Vec::new();
    litmus_texts(&args.from, &mut paths)?;
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let bytes = moire_console::bounded::read(&path).with_context(|| format!("cannot read {name}"))?;
        let program = parse_program(&name, &bytes)?.program;
        if is_clean(&program, model, limits) {
            out.push((name, program));
        }
    }
    if out.is_empty() {
        bail!("{} has no litmus text that is clean under {}", args.from.display(), model.name());
    }
    for number in 0..args.protocols {
        let mut draw = Draw::new(args.seed.wrapping_add(number));
        let bytes: Vec<u8> = (0..ENTROPY / 8).flat_map(|_| draw.bits().to_le_bytes()).collect();
        let plan = Plan::draw(&mut arbitrary::Unstructured::new(&bytes));
        if let Some(program) = plan.ok().and_then(|plan| plan.protocol().program())
            && is_clean(&program, model, limits)
        {
            out.push((format!("protocol {number}"), program));
        }
    }
    Ok(out)
}

fn litmus_texts(dir: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            litmus_texts(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "litmus") {
            out.push(path);
        }
    }
    Ok(())
}

/// Draws `count` of them, in their order.
fn sample(all: Vec<Tried>, count: usize, seed: u64) -> Vec<Tried> {
    let mut draw = Draw::new(seed);
    let mut left = count.min(all.len());
    let total = all.len();
    let taken = all.into_iter().enumerate().filter(|(at, _)| {
        let take = draw.below(total - at) < left;
        left -= usize::from(take);
        take
    });
    taken.map(|(_, tried)| tried).collect()
}

/// The fate of each, on all workers.
fn judged(args: &Mutants, tried: &[Tried], model: &Model, limits: &Limits) -> Vec<Fate> {
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<usize, Fate>> = Mutex::default();
    let work = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(tried) = tried.get(at)
        {
            let fate = fate(&tried.mutant, model, limits, &NaiveLimits::default());
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            found.insert(at, fate);
            if found.len().is_multiple_of(500) {
                eprintln!("{} of {}", found.len(), args.mutants);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..workers.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_values().collect()
}

fn count(counts: &mut Counts, fate: &Fate) {
    *match fate {
        Fate::Illegal => &mut counts.illegal,
        Fate::Caught(_) => &mut counts.caught,
        Fate::Confirmed(_) => &mut counts.confirmed,
        Fate::Unconfirmed(_) => &mut counts.unconfirmed,
        Fate::Undecided(_) => &mut counts.undecided,
        Fate::Different(_) => &mut counts.different,
    } += 1;
}

fn tell(table: &BTreeMap<Mistake, Counts>) {
    println!(
        "{:8} {:>8} {:>8} {:>8} {:>10} {:>12} {:>10} {:>10}",
        "mistake", "mutants", "illegal", "caught", "confirmed", "unconfirmed", "undecided", "different"
    );
    for (mistake, c) in table {
        let all = c.illegal + c.caught + c.confirmed + c.unconfirmed + c.undecided + c.different;
        println!(
            "{:8} {all:8} {:8} {:8} {:10} {:12} {:10} {:10}",
            mistake.name(),
            c.illegal,
            c.caught,
            c.confirmed,
            c.unconfirmed,
            c.undecided,
            c.different
        );
    }
}
