//! `moire models diff A B`: the least program on which two models allow different outcomes.
//!
//! Contract: the search is that of [`moire_worker::difference`]; two readings of Tile IR are compared on kernels. If no
//! difference is found, the bound is the answer, and the exit code says that it is incomplete.

use anyhow::{Result, bail};
use clap::Args;
use moire_cat::Model;
use moire_console::exit;
use moire_console::input::ModelSpec;
use moire_coordinator::many;
use moire_execution::leaf::Outcome;
use moire_generate::exhaustive::Size;
use moire_worker::difference::{Difference, Reach, least, shown, tile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// First model: NAME or FILE.cat, with :SWITCH=VALUE,.. after it to set switches
    pub(crate) a: String,
    /// Second model
    pub(crate) b: String,
    /// All programs of up to N memory events, N+2 instructions and 2 threads, of every alphabet [default: each alphabet
    /// as far as the table of differences goes]
    #[arg(long, value_name = "N")]
    pub(crate) size: Option<usize>,
    /// Threads of the largest program; overrides --size
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Memory events of the largest program; overrides --size
    #[arg(long)]
    pub(crate) events: Option<usize>,
    /// Instructions of the largest program; overrides --size
    #[arg(long)]
    pub(crate) instructions: Option<usize>,
    /// Most programs tried
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) limit: u64,
}

/// Largest `--threads`, `--events` (and `--size`) and `--instructions`: beyond it not even the thread bodies can be
/// listed.
const MOST: Size = (4, 8, 10);
/// The same for kernels of Tile IR, in tile blocks.
const MOST_TILE: Size = (3, 5, 4);

/// The model of a specification.
fn model(spec: &str) -> Result<Arc<Model>> {
    Ok(Arc::new(spec.parse::<ModelSpec>()?.load()?))
}

/// A size in words.
fn words((t, e, i): Size) -> String {
    format!("{}, {}, {}", many(t, "thread"), many(e, "memory event"), many(i, "instruction"))
}

/// The bound the arguments ask for.
fn reach(args: &DiffArgs) -> Result<Reach> {
    Ok(match bound(args, MOST, 2)? {
        Some(most) => Reach::up_to(most, args.limit),
        None => Reach { programs: args.limit, ..Reach::shipped() },
    })
}

/// Threads, memory events and instructions, if the arguments say any; without a number so many more instructions.
fn bound(args: &DiffArgs, largest: Size, more: usize) -> Result<Option<Size>> {
    if args.size.or(args.threads).or(args.events).or(args.instructions).is_none() {
        return Ok(None);
    }
    let size = args.size.unwrap_or(4);
    let most = (
        args.threads.unwrap_or(2),
        args.events.unwrap_or(size),
        args.instructions.unwrap_or_else(|| size.saturating_add(more)),
    );
    if most.0 > largest.0 || most.1 > largest.1 || most.2 > largest.2 {
        bail!("all programs can be tried up to {}", words(largest));
    }
    Ok(Some(most))
}

fn print_bound(reach: &Reach) {
    println!(
        "\nall programs over these alphabets, up to so many threads, memory events, instructions, locations:"
    );
    for a in &reach.alphabets {
        println!("  {:16} {}, {}, {}, {}: {}", a.name, a.most.0, a.most.1, a.most.2, a.locations, a.about);
    }
}

fn print_difference(args: &DiffArgs, d: &Difference) {
    print!("{}", d.text);
    let list = |head: &str, outcomes: &BTreeSet<Outcome>| {
        println!("{head}: {}", outcomes.len());
        outcomes.iter().for_each(|o| println!("  {}", shown(&d.program, o)));
    };
    println!();
    list("outcomes both allow", &d.both);
    list(&format!("outcomes {} alone allows", args.a), &d.first);
    list(&format!("outcomes {} alone allows", args.b), &d.second);
}

fn print_gaps(cut: Option<Size>, unanswered: &BTreeMap<String, u64>, args: &DiffArgs) {
    if let Some(size) = cut {
        println!("cut by --limit {} among the programs of {}", args.limit, words(size));
    }
    for (reason, programs) in unanswered {
        println!("{programs} more programs were not answered: {reason}");
    }
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8> {
    let models = [model(&args.a)?, model(&args.b)?];
    if models.iter().all(|m| m.name() == tile::MODEL) {
        return kernels(args, &models);
    }
    let reach = reach(args)?;
    let Some(finding) = least(&models, &[(0, 1)], &reach).pop() else { return Ok(exit::INCOMPLETE) };
    let Some(d) = &finding.least else {
        println!("{} and {} allow the same outcomes of {} programs", args.a, args.b, finding.tried);
        print_gaps(finding.cut, &finding.unanswered, args);
        print_bound(&reach);
        return Ok(exit::INCOMPLETE);
    };
    println!(
        "least difference of {} and {}, of {} programs: {}",
        args.a,
        args.b,
        finding.tried,
        words(d.size)
    );
    print_gaps(finding.cut, &finding.unanswered, args);
    println!();
    print_difference(args, d);
    print_bound(&reach);
    Ok(exit::FINDING)
}

fn print_kernel(args: &DiffArgs, d: &tile::Difference) {
    print!("{}", d.text);
    for (who, said, other) in [(&args.a, &d.first, &d.second), (&args.b, &d.second, &d.first)] {
        let alone: Vec<&String> = said.outcomes.difference(&other.outcomes).collect();
        println!("\n{who}: {}", if said.undefined { "undefined" } else { "defined" });
        println!("executions it alone has end in: {}", alone.len());
        alone.iter().for_each(|o| println!("  {o}"));
    }
}

/// Two readings of the memory model of Tile IR.
fn kernels(args: &DiffArgs, models: &[Arc<Model>]) -> Result<u8> {
    let reach = match bound(args, MOST_TILE, 0)? {
        Some(most) => tile::Reach::up_to(most, args.limit),
        None => tile::Reach { programs: args.limit, ..tile::Reach::shipped() },
    };
    let Some(finding) = tile::least(models, &[(0, 1)], &reach).pop() else { return Ok(exit::INCOMPLETE) };
    let code = if finding.least.is_some() { exit::FINDING } else { exit::INCOMPLETE };
    match (&finding.least, &finding.beside) {
        (Some(d), _) => {
            println!(
                "least difference of {} and {}, of {} kernels: {}",
                args.a,
                args.b,
                finding.tried,
                words(d.size)
            );
        }
        (None, beside) => {
            println!("{} and {} answer {} kernels alike", args.a, args.b, finding.tried);
            if let Some(d) = beside {
                println!("a race leaves this one undefined, and it has other executions: {}", words(d.size));
            }
        }
    }
    print_gaps(finding.cut, &finding.unanswered, args);
    if let Some(d) = finding.least.as_ref().or(finding.beside.as_ref()) {
        println!();
        print_kernel(args, d);
    }
    println!("\nall kernels over these alphabets, up to so many tile blocks, memory events, instructions:");
    for a in &reach.alphabets {
        println!("  {:16} {}, {}, {}: {}", a.name, a.most.0, a.most.1, a.most.2, a.about);
    }
    Ok(code)
}
