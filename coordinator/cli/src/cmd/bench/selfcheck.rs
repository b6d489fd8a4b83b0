//! `moire bench selfcheck`: explorer against naive enumerator on many distinct programs, under every shipped model.
//!
//! Contract: what is compared and what the report says depends on the words of the command alone, not on the number of
//! threads. A difference is told at once, with the command that finds it again, and at the end printed, shrunk, with its
//! replayable text (exit 10); too few programs of a demanded kind are no proof (exit 11).

use crate::exit;
use crate::input::load_model;
use anyhow::{Result, bail};
use clap::ValueEnum;
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
    /// Compare under these models (repeatable) [default: all shipped; of tcgen05 `ptx`, of tile-ir `tile-ir`]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Compare each program also under one of N random settings of the switches of `ptx`, or of `tile-ir` with tile blocks
    #[arg(long, default_value_t = 0, value_name = "N")]
    settings: usize,
    /// The seed these settings are drawn from [default: the first seed]
    #[arg(long, value_name = "SEED")]
    settings_from: Option<u64>,
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
    /// The model whose switches are drawn.
    fn switched(self) -> &'static str {
        if self == Drawn::TileIr { "tile-ir" } else { "ptx" }
    }

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
    let switched = args.draw.switched();
    let plain = load_model(switched, &Variants::new())?;
    let from = args.settings_from.unwrap_or(args.seed);
    let settings: Vec<Model> = random_settings(&plain, from, args.settings)
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
    // At once: a run that is stopped keeps what it found.
    let found = |seed: u64, model: &str, kind: &str| {
        eprintln!("seed {seed}, {model}: {kind}; again: {}", again(args, from, seed));
    };
    let campaign = Campaign { found: &found, ..campaign };
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

/// The command that compares the program of a seed again.
fn again(args: &SelfCheck, from: u64, seed: u64) -> String {
    let draw = args.draw.to_possible_value().map_or(String::new(), |v| format!(" --draw {}", v.get_name()));
    let models: String = args.models.iter().map(|m| format!(" --model {m}")).collect();
    let settings = match args.settings {
        0 => String::new(),
        n => format!(" --settings {n} --settings-from {from}"),
    };
    format!("moire bench selfcheck{draw}{models}{settings} --seed {seed} --programs 1")
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
        println!("each also under one of {} random settings of {}", args.settings, args.draw.switched());
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SelfCheck,
    }

    #[test]
    fn a_difference_is_found_again_by_its_line() {
        let line = "moire --draw tcgen05 --model ptx --settings 48 --seed 7 --programs 9";
        let args = Line::parse_from(line.split(' ')).args;
        let told = again(&args, 7, 1_120_979);
        let words = told.strip_prefix("moire bench selfcheck ").expect("the command");
        let args = Line::parse_from(["moire"].into_iter().chain(words.split(' '))).args;
        assert_eq!((args.draw, args.models, args.settings), (Drawn::Tcgen05, vec!["ptx".to_owned()], 48));
        assert_eq!((args.settings_from, args.seed, args.programs), (Some(7), 1_120_979, 1));
    }
}
