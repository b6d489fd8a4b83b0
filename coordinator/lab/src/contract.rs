//! `moire bench contract`: tests that the explorer relies only on properties that a model licenses.
//!
//! Contract: explorer and enumerator are compared under each shipped model, with each check removed, with each switch
//! flipped, and with drawn sets of checks removed. The table depends only on the arguments of the command. A difference
//! is shrunk and printed (exit 10). With `--keep`, a stopped run resumes after the last part that it noted.

use anyhow::{Context, Result, bail};
use moire_cat::{Model, Variants};
use moire_console::exit;
use moire_console::input::load_model;
use moire_lab::differential::contract::{Change, Counts, Found, Mutant, mutants, parts, try_parts};
use moire_program::text::print;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(crate) struct Contract {
    /// Programs under each shipped model
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    shipped: u64,
    /// Programs for each check removed and each switch flipped
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    single: u64,
    /// Drawn sets of checks
    #[arg(long, default_value_t = 200, value_name = "N")]
    sets: u64,
    /// Programs for each drawn set
    #[arg(long, default_value_t = 500, value_name = "N")]
    drawn: u64,
    /// Seed of the programs and sets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Try these models (repeatable) [default: all shipped]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Note progress in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// The sums of one line of the table.
#[derive(Clone, Copy, Default)]
struct Sums {
    programs: u64,
    executions: u64,
    skipped: u64,
    differences: u64,
}

pub(crate) fn run(args: &Contract) -> Result<u8> {
    let named = args.models.clone();
    let names = if named.is_empty() { moire_models::names().map(str::to_owned).collect() } else { named };
    let plain = |n: &String| load_model(n, &Variants::new());
    let shipped: Vec<Model> = names.iter().map(plain).collect::<Result<_>>()?;
    let counts = Counts { shipped: args.shipped, single: args.single, sets: args.sets, drawn: args.drawn };
    let flip = |model: &Model, switch: &str, value: &str| {
        let set = Variants::from([(switch.to_owned(), value.to_owned())]);
        let flipped = load_model(model.name(), &set).expect("the model loaded, and has that value");
        flipped.called(format!("{} {switch}={value}", model.name()))
    };
    let mutants = mutants(&shipped, counts, args.seed, &flip);
    let parts = parts(&mutants, args.seed);
    let words = format!("{counts:?} seed {} of {}", args.seed, names.join(" "));
    let (mut kept, earlier) = match &args.keep {
        Some(path) => open(path, &words).map(|(file, earlier)| (Some(file), earlier))?,
        None => (None, Vec::new()),
    };
    let mut table: BTreeMap<(usize, Change), Sums> = BTreeMap::new();
    let row = |m: &Mutant| (names.iter().position(|n| *n == m.of).unwrap_or(0), m.change);
    for (part, sums) in parts.iter().zip(&earlier) {
        add(table.entry(row(&mutants[part.mutant])).or_default(), sums);
    }
    let (begin, mut told) = (Instant::now(), 0);
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    try_parts(&mutants, &parts, earlier.len(), workers, &mut |at, found| {
        let mutant = &mutants[parts[at].mutant];
        let sums = told_sums(&found);
        add(table.entry(row(mutant)).or_default(), &sums);
        if let Some(file) = &mut kept {
            let noted =
                writeln!(file, "{} {} {} {}", sums.programs, sums.executions, sums.skipped, sums.differences);
            noted.unwrap_or_else(|e| eprintln!("not noted: {e}"));
        }
        for failure in &found.failures {
            println!("\nseed {}, {}: {}", failure.seed, mutant.model.name(), failure.difference.kind());
            println!("{:#?}\n{}", failure.difference, print(&failure.program));
        }
        let seconds = begin.elapsed().as_secs();
        if seconds / 10 > told {
            told = seconds / 10;
            eprintln!("{} of {} parts, {seconds} s: {}", at + 1, parts.len(), mutant.model.name());
        }
    });
    eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
    tell(&names, &mutants, &table);
    let differences = table.values().any(|s| s.differences > 0);
    Ok(if differences { exit::FINDING } else { exit::CLEAN })
}

fn told_sums(found: &Found) -> Sums {
    let differences = found.failures.len() as u64;
    let Found { programs, executions, skipped, .. } = *found;
    Sums { programs, executions, skipped, differences }
}

fn add(all: &mut Sums, one: &Sums) {
    all.programs += one.programs;
    all.executions += one.executions;
    all.skipped += one.skipped;
    all.differences += one.differences;
}

/// Opens the notes of an earlier run with the same arguments, and reads the sums of its parts, one per line.
fn open(path: &Path, words: &str) -> Result<(File, Vec<Sums>)> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines();
    if lines.next().is_some_and(|first| first != words) {
        bail!("{} is about another run", path.display());
    }
    let sums = |line: &str| {
        let numbers: Option<Vec<u64>> = line.split(' ').map(|n| n.parse().ok()).collect();
        let [programs, executions, skipped, differences] = numbers?[..] else { return None };
        Some(Sums { programs, executions, skipped, differences })
    };
    let earlier: Option<Vec<Sums>> = lines.map(sums).collect();
    let earlier = earlier.with_context(|| format!("{} is damaged", path.display()))?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    if whole.is_empty() {
        writeln!(file, "{words}")?;
    } else if whole.len() + 1 < text.len() {
        // The last line was cut short.
        file.set_len(whole.len() as u64 + 1)?;
    }
    Ok((file, earlier))
}

fn tell(names: &[String], mutants: &[Mutant], table: &BTreeMap<(usize, Change), Sums>) {
    println!(
        "{:8} {:25} {:>6} {:>9} {:>11} {:>12} {:>11}",
        "model", "", "models", "programs", "executions", "not compared", "differences"
    );
    for ((model, change), sums) in table {
        let count = mutants.iter().filter(|m| m.of == names[*model] && m.change == *change).count();
        println!(
            "{:8} {:25} {count:6} {:9} {:11} {:12} {:11}",
            names[*model],
            change.word(),
            sums.programs,
            sums.executions,
            sums.skipped,
            sums.differences
        );
    }
    let all = table.values().fold(Sums::default(), |mut all, one| {
        add(&mut all, one);
        all
    });
    println!("{} comparisons, {} executions, {} differences", all.programs, all.executions, all.differences);
}
