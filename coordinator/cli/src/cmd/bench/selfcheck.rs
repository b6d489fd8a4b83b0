//! `moire bench selfcheck`: explorer against naive enumerator on many distinct programs, under every shipped model.
//!
//! Contract: what is compared and printed depends on the words of the command alone, not on the number of threads. A
//! difference is shrunk and printed with its replayable text (exit 10); too few programs of a demanded kind are no
//! proof (exit 11).

use crate::exit;
use crate::input::load_model;
use anyhow::{Result, bail};
use moire_cat::{Model, Variants, builtin};
use moire_explore::differential::campaign::{Campaign, Totals, mixed, random_settings, tcgen05};
use moire_explore::differential::draw_tile::tile_program;
use moire_program::ir::Program;
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
    /// What is drawn
    #[arg(long, value_enum, default_value_t = Drawn::Mixed)]
    draw: Drawn,
    /// Compare under these models (repeatable) [default: all shipped; of tcgen05 `ptx`]
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
    /// Threads that communicate through memory and barriers
    Mixed,
    /// Tensor memory, allocation, asynchronous copies, mbarriers, lanes of a warp
    Tcgen05,
    /// Tile blocks: elements, tokens, masks
    TileIr,
}

impl Drawn {
    /// The program of a seed.
    fn program(self, seed: u64) -> Option<Program> {
        match self {
            Drawn::Mixed => Some(mixed(seed)),
            Drawn::Tcgen05 => tcgen05(seed),
            Drawn::TileIr => tile_program(seed),
        }
    }
}

pub(crate) fn run(args: &SelfCheck) -> Result<u8> {
    if args.programs == 0 {
        bail!("--programs 0 compares nothing");
    }
    let names: Vec<&str> = match (args.models.is_empty(), args.draw) {
        (false, _) => args.models.iter().map(String::as_str).collect(),
        // No program drawn here has tile blocks.
        (true, Drawn::Mixed) => builtin::names().filter(|name| *name != "tile-ir").collect(),
        (true, Drawn::Tcgen05) => vec!["ptx"],
        (true, Drawn::TileIr) => vec!["tile-ir"],
    };
    let models: Vec<Model> =
        names.iter().map(|n| load_model(n, &Variants::new())).collect::<Result<Vec<_>>>()?;
    let (strong, weak) = (load_model("sc", &Variants::new())?, load_model("ptx", &Variants::new())?);
    let switched = if args.draw == Drawn::TileIr { "tile-ir" } else { "ptx" };
    let plain = load_model(switched, &Variants::new())?;
    let settings: Vec<Model> = random_settings(&plain, args.seed, args.settings)
        .iter()
        .map(|v| load_model(switched, v))
        .collect::<Result<Vec<_>>>()?;
    let campaign = Campaign {
        models: &models,
        settings: &settings,
        turned: true,
        source: &|seed| args.draw.program(seed),
        yardstick: (args.draw == Drawn::Mixed).then_some((&strong, &weak)),
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
    tell(args, &names, &totals);
    let mixed = args.draw == Drawn::Mixed;
    let few =
        mixed && totals.shares().into_iter().any(|(_, have, least)| 100 * have < least * totals.programs);
    Ok(match (totals.failures.is_empty(), few) {
        (false, _) => exit::FINDING,
        (true, true) => exit::INCOMPLETE,
        (true, false) => exit::CLEAN,
    })
}

fn tell(args: &SelfCheck, names: &[&str], totals: &Totals) {
    println!(
        "{} distinct programs under each of {}: {} comparisons, {} executions, {} candidates",
        totals.programs,
        names.join(", "),
        totals.comparisons,
        totals.leaves,
        totals.candidates
    );
    if args.settings > 0 {
        println!("each also under one of {} random settings of ptx", args.settings);
    }
    if args.draw == Drawn::Mixed {
        print!("{}", totals.histogram());
    }
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
}
