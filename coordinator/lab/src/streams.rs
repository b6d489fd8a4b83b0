//! `moire bench streams`: what the streams draw. How often each form of the book that engines model is drawn, how many programs
//! repeat an earlier one, and how many synchronise nothing.
//!
//! Contract: forms are those near the census of ptxas, or near what is drawn, that a litmus text may have and that no engine
//! abstains from under `ptx` or `tile-ir`: an entry of the book, and each word that may stand in it. A form that is never drawn is a gap (exit 10).
//! The tables depend on the arguments alone.

mod forms;

use anyhow::Result;
use forms::{Forms, modelled};
use moire_console::exit;
use moire_generate::{Profile, Stream, synchronises};
use moire_program::canon::canonical;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, clap::Args)]
pub(crate) struct Streams {
    /// Programs drawn, as many of each stream
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    programs: u64,
    /// Seed of the streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What a stream, or a family of one, draws.
#[derive(Default)]
struct Drawn {
    programs: u64,
    repeated: u64,
    idle: u64,
    instructions: u64,
}

pub(crate) fn run(args: &Streams) -> Result<u8> {
    let all: Vec<Profile> = Profile::ALL.into_iter().filter(|p| *p != Profile::Mixed).collect();
    let each = args.programs.div_ceil(all.len() as u64);
    let mut forms = Forms::default();
    println!(
        "| stream | programs | repeat an earlier one | synchronise nothing | instructions |\n|---|---|---|---|---|"
    );
    for profile in all {
        for (name, drawn) in drawn(args.seed, profile, each, &mut forms) {
            let percent = |n: u64| 100.0 * n as f64 / drawn.programs.max(1) as f64;
            println!(
                "| {name} | {} | {} ({:.1} %) | {} ({:.1} %) | {:.1} |",
                drawn.programs,
                drawn.repeated,
                percent(drawn.repeated),
                drawn.idle,
                percent(drawn.idle),
                drawn.instructions as f64 / drawn.programs.max(1) as f64
            );
        }
    }
    let missing = told(&forms)?;
    Ok(if missing == 0 { exit::CLEAN } else { exit::FINDING })
}

/// Draws a stream: its sums, and those of its families.
fn drawn(seed: u64, profile: Profile, count: u64, forms: &mut Forms) -> Vec<(String, Drawn)> {
    let stream = Stream::new(seed, profile);
    let (mut whole, mut parts, mut known) = (Drawn::default(), BTreeMap::new(), BTreeSet::new());
    for index in 0..count {
        let (family, program) = stream.drawn(index);
        let repeated = u64::from(!known.insert(canonical(&program).id));
        let idle = u64::from(!synchronises(&program));
        let instructions: u64 = program.threads.iter().map(|t| t.body.len() as u64).sum();
        for sum in [&mut whole, parts.entry(family).or_insert_with(Drawn::default)] {
            sum.programs += 1;
            sum.repeated += repeated;
            sum.idle += idle;
            sum.instructions += instructions;
        }
        forms.add(&program);
    }
    let mut out = vec![(profile.name().to_owned(), whole)];
    let parts = parts.into_iter().filter(|(family, _)| *family != profile.name());
    out.extend(parts.map(|(family, sums)| (format!("{profile}: {family}"), sums)));
    out
}

/// Prints how many programs have each form, and returns how many forms none has.
fn told(forms: &Forms) -> Result<usize> {
    let wanted = modelled(forms)?;
    let mut missing = Vec::new();
    println!("\n| instruction | programs | with each word |\n|---|---|---|");
    for (name, words) in &wanted {
        let of = |word: &str| forms.count(name, word);
        let each: Vec<String> =
            words.iter().filter(|w| !w.is_empty()).map(|word| format!("{word} {}", of(word))).collect();
        println!("| `{name}` | {} | {} |", of(""), each.join(", "));
        let never = words.iter().filter(|word| of(word) == 0);
        missing
            .extend(never.map(|word| if word.is_empty() { name.clone() } else { format!("{name} .{word}") }));
    }
    let sum: usize = wanted.values().map(BTreeSet::len).sum();
    println!("\n{sum} forms, {} never drawn: {}", missing.len(), missing.join(", "));
    Ok(missing.len())
}
