//! `moire bench selfcheck`: compares explorer and naive enumerator on many distinct programs of a stream, under every shipped
//! model.
//!
//! Contract: comparisons and report depend only on the arguments of the command, not on the number of threads. A
//! difference is printed at once, with the command that finds it again, and at the end once more, with its shrunk
//! program (exit 10). If there are too few programs of a demanded kind, the run proves nothing (exit 11).

mod keep;

use anyhow::{Result, bail};
use keep::Keep;
use moire_cat::{Model, Variants};
use moire_console::exit;
use moire_console::input::load_model;
use moire_console::streams::StreamName;
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::{Campaign, Totals, random_settings};
use moire_lab::differential::grow::grow;
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::text::print;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most candidates of a program that the pruned enumerator judges; about a second.
const JUDGED: u64 = 15_000;
/// Most executions of a program that the pruned enumerator keeps.
const LEAVES: u64 = 4_000;
/// Time between two lines of progress, and between two notes in the file.
const TELL: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct SelfCheck {
    /// Distinct programs compared under each model
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    programs: u64,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Position of the first program; each run prints that of the next one
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// What is drawn [default: all streams in turn, each program under one shipped model or setting]
    #[arg(long, value_parser = StreamName)]
    stream: Option<Profile>,
    /// Compare under these models (repeatable), with switches behind commas: `ptx,EX=B,profile=practice` [default: those of
    /// the stream]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Compare each program also under one of N random settings of the switches of `ptx`, or of `tile-ir` for tile
    /// blocks
    #[arg(long, default_value_t = 0, value_name = "N")]
    settings: usize,
    /// Seed of these settings [default: the seed of the stream]
    #[arg(long, value_name = "SEED")]
    settings_from: Option<u64>,
    /// Most candidates of a program
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    candidates: u64,
    /// Fewest candidates of a program, not counting orders of writes: programs are drawn larger, and smaller ones do
    /// not count
    #[arg(long, value_name = "N", default_value_t = 0)]
    least: u64,
    /// Compare with the pruned enumerator, which skips candidates with an impossible part; for programs of many
    /// candidates
    #[arg(long)]
    pruned: bool,
    /// Note progress in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// Streams that take turns where none is named: all that no other one contains.
fn turns() -> Vec<Profile> {
    Profile::ALL.into_iter().filter(|p| *p != Profile::Mixed).collect()
}

/// The models under which the programs of a stream are compared, unless others are named.
fn models(profile: Profile) -> Vec<&'static str> {
    // All engines say the same under each model, where the program has a meaning.
    let all = || moire_models::names().filter(|name| *name != "tile-ir").collect();
    if profile == Profile::Core {
        all()
    } else {
        profile.about().models.last().copied().into_iter().collect()
    }
}

/// The model whose switches are drawn.
fn switched(profile: Profile) -> &'static str {
    profile.about().models.last().copied().unwrap_or("ptx")
}

impl SelfCheck {
    /// The stream of a position, and the position there.
    fn place(&self, at: u64) -> (Profile, u64) {
        let all = turns();
        let count = all.len() as u64;
        let turn = all[usize::try_from(at % count).unwrap_or(0)];
        self.stream.map_or((turn, at / count), |profile| (profile, at))
    }

    /// The program at a position.
    fn program(&self, at: u64) -> Program {
        let (profile, index) = self.place(at);
        let program = Stream::new(self.seed, profile).item(index);
        if self.least > 0 { grow(program, at) } else { program }
    }

    /// The stream that is named, for what one stream alone has.
    fn is(&self, profile: Profile) -> bool {
        self.stream == Some(profile)
    }
}

/// The model of each program where no stream is named: a shipped model of the program's language or a random setting.
/// Holds, for each stream, the shipped models and the settings.
struct Turns(Vec<(Profile, Vec<Model>, Vec<Model>)>);

impl Turns {
    fn new(from: u64, settings: usize) -> Result<Turns> {
        let one = |profile: Profile| -> Result<_> {
            let plain = load_model(switched(profile), &Variants::new())?;
            let random = random_settings(&plain, from, settings);
            let load = |n: &str, v: &Variants| load_model(n, v);
            let shipped = models(profile).iter().map(|n| load(n, &Variants::new())).collect::<Result<_>>()?;
            let random = random.iter().map(|v| load(switched(profile), v)).collect::<Result<_>>()?;
            Ok((profile, shipped, random))
        };
        turns().into_iter().map(one).collect::<Result<_>>().map(Turns)
    }

    fn of(&self, profile: Profile, at: u64) -> &Model {
        // The position is hashed first, because the streams take turns by it too.
        let turn = usize::try_from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).unwrap_or(0);
        let known = self.0.iter().find(|t| t.0 == profile).unwrap_or(&self.0[0]);
        let models = if turn % 2 == 0 || known.2.is_empty() { &known.1 } else { &known.2 };
        &models[turn / 2 % models.len()]
    }
}

pub(crate) fn run(args: &SelfCheck) -> Result<u8> {
    refuse(args)?;
    let named: Vec<&str> = args.models.iter().map(String::as_str).collect();
    let names = match args.stream {
        _ if !named.is_empty() => named,
        Some(profile) => models(profile),
        None => moire_models::names().collect(),
    };
    let shipped: Vec<Model> = names.iter().map(|n| read(n)).collect::<Result<_>>()?;
    let (strong, weak) = (read("sc")?, read("ptx")?);
    let switched = args.stream.map_or("ptx", switched);
    let plain = read(switched)?;
    let from = args.settings_from.unwrap_or(args.seed);
    let random = random_settings(&plain, from, args.settings);
    let settings: Vec<Model> = random.iter().map(|v| load_model(switched, v)).collect::<Result<_>>()?;
    let turns = if args.stream.is_none() { Some(Turns::new(from, args.settings)?) } else { None };
    let of = |at: u64| turns.as_ref().map_or(&plain, |t| t.of(args.place(at).0, at));
    let (keep, done) = match &args.keep {
        Some(path) => Keep::open(path, args).map(|(keep, done)| (Some(keep), done))?,
        None => (None, None),
    };
    // Printed at once, so that a stopped run does not lose it.
    let found = |at: u64, model: &str, kind: &str| {
        eprintln!("program {at}, {model}: {kind}; again: {}", again(args, from, at));
    };
    let campaign = Campaign {
        models: &shipped,
        settings: &settings,
        turns: if args.stream.is_none() { Some(&of) } else { None },
        turned: true,
        operated: !args.is(Profile::TileIr) && !args.is(Profile::Blocks),
        source: &|at| Some(args.program(at)),
        yardstick: args.is(Profile::Core).then_some((&strong, &weak)),
        first_seed: args.first,
        done,
        count: args.programs,
        limits: limits(args),
        least: args.least,
        workers: args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        found: &found,
        ..Campaign::default()
    };
    let (totals, unwritten) = watched(&campaign, keep.as_ref());
    tell(args, &names, &totals);
    let earlier = keep.as_ref().map_or(&[][..], |k| &k.earlier);
    earlier.iter().for_each(|line| println!("earlier: {line}"));
    if let Some(error) = unwritten {
        return Err(error.context("the progress is not noted"));
    }
    let short = |(_, have, least): (_, u64, u64)| 100 * have < least * totals.programs;
    let few = args.is(Profile::Core) && totals.shares().into_iter().any(short);
    Ok(match (totals.failures.is_empty() && earlier.is_empty(), few) {
        (false, _) => exit::FINDING,
        (true, true) => exit::INCOMPLETE,
        (true, false) => exit::CLEAN,
    })
}

/// Loads a model, with the switches behind its name.
fn read(words: &str) -> Result<Model> {
    let mut words = words.split(',');
    let name = words.next().unwrap_or_default();
    let switch = |word: &str| match word.split_once('=') {
        Some((switch, value)) => Ok((switch.to_owned(), value.to_owned())),
        None => bail!("`{word}` is no switch with a value, such as `EX=B`"),
    };
    load_model(name, &words.map(switch).collect::<Result<_>>()?)
}

fn refuse(args: &SelfCheck) -> Result<()> {
    if args.programs == 0 {
        bail!("--programs 0 compares nothing");
    }
    if args.least > args.candidates {
        bail!("--least {} is more than --candidates {}: nothing would count", args.least, args.candidates);
    }
    if args.stream.is_none() && !args.models.is_empty() {
        bail!(
            "--model goes with --stream: without one, each program is compared under a model of its language"
        );
    }
    Ok(())
}

/// Runs a campaign, prints its progress and notes it in `keep`. Returns the error of the last note, if it failed.
fn watched(campaign: &Campaign<'_>, keep: Option<&Keep>) -> (Totals, Option<anyhow::Error>) {
    let begin = Instant::now();
    let before = campaign.done.as_ref().map_or(0, |d| d.programs);
    if before > 0 {
        eprintln!("{before} programs are done; drawing them again to know them");
    }
    let note = |t: &Totals| {
        let failed = keep.and_then(|k| k.note(t).err());
        failed.inspect(|error| eprintln!("not noted: {error:#}"))
    };
    let told = Mutex::new(begin);
    let progress = |t: &Totals| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() < TELL {
            return;
        }
        *told = Instant::now();
        let (seconds, new) = (begin.elapsed().as_secs_f64(), t.programs - before);
        eprintln!(
            "{} of {} programs ({} drawn), {seconds:.0} s, {:.1} a second, {} differences",
            t.programs,
            campaign.count,
            t.next_seed.wrapping_sub(campaign.first_seed),
            new as f64 / seconds,
            t.failures.len()
        );
        note(t);
    };
    let totals = campaign.run(&progress);
    eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
    let unwritten = note(&totals);
    (totals, unwritten)
}

/// Chooses the enumerator's limits. More candidates need more paths, except in the pruned enumerator, which would spend
/// most of its time on paths.
fn limits(args: &SelfCheck) -> NaiveLimits {
    let plain = Campaign::default().limits;
    let (candidates, pruned) = (args.candidates, args.pruned);
    match (candidates > plain.candidates, pruned) {
        (false, _) => NaiveLimits { candidates, pruned, ..plain },
        (true, false) => NaiveLimits { candidates, ..NaiveLimits::default() },
        (true, true) => NaiveLimits { candidates, pruned, judged: JUDGED, leaves: LEAVES, ..plain },
    }
}

/// Writes the command that compares the program at a position again.
fn again(args: &SelfCheck, from: u64, at: u64) -> String {
    let (seed, stream) =
        (args.seed, args.stream.map_or(String::new(), |profile| format!(" --stream {profile}")));
    let models: String = args.models.iter().map(|m| format!(" --model {m}")).collect();
    let settings = match args.settings {
        0 => String::new(),
        n => format!(" --settings {n} --settings-from {from}"),
    };
    let candidates = format!(" --candidates {}", args.candidates);
    let least = if args.least > 0 { format!(" --least {}", args.least) } else { String::new() };
    let pruned = if args.pruned { " --pruned" } else { "" };
    format!(
        "moire bench selfcheck{stream}{models}{settings}{candidates}{least}{pruned} --seed {seed} --first {at} --programs 1"
    )
}

fn tell(args: &SelfCheck, names: &[&str], totals: &Totals) {
    let each = if args.stream.is_none() { "one" } else { "each" };
    println!(
        "{} distinct programs under {each} of {}: {} comparisons, {} executions, {} candidates",
        totals.programs,
        names.join(", "),
        totals.comparisons,
        totals.leaves,
        totals.candidates
    );
    if args.settings > 0 && args.stream.is_none() {
        println!("or one of {} random settings of ptx or tile-ir", args.settings);
    } else if args.settings > 0 {
        println!(
            "each also under one of {} random settings of {}",
            args.settings,
            args.stream.map_or("ptx", switched)
        );
    }
    if args.is(Profile::Core) {
        print!("{}", totals.histogram());
    }
    let skipped: u64 = totals.skipped.values().sum();
    println!("{} comparisons with the operational engine", totals.operated);
    println!("{} drawn again, {skipped} not compared, next {}", totals.repeated, totals.next_seed);
    for (reason, n) in &totals.skipped {
        println!("  {n:8} {reason}");
    }
    for failure in &totals.failures {
        println!("\nprogram {}, {}: {}", failure.seed, failure.model, failure.difference.kind());
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
    fn a_model_has_the_switches_behind_its_name() {
        let model = read("ptx,EX=B,WL=B").expect("the model loads");
        assert_eq!(
            (model.variant("EX"), model.variant("WL"), model.variant("RV")),
            (Some("B"), Some("B"), Some("A"))
        );
        assert!(read("ptx,EX").is_err());
    }

    #[test]
    fn a_difference_is_found_again_by_its_line() {
        let line = "moire --stream tensor --model ptx --settings 48 --seed 7 --programs 9";
        let args = Line::parse_from(line.split(' ')).args;
        let told = again(&args, 7, 1_120_979);
        let words = told.strip_prefix("moire bench selfcheck ").expect("the command");
        let args = Line::parse_from(["moire"].into_iter().chain(words.split(' '))).args;
        assert_eq!(
            (args.stream, args.models, args.settings),
            (Some(Profile::Tensor), vec!["ptx".to_owned()], 48)
        );
        assert_eq!((args.candidates, args.pruned), (4_000, false));
        assert_eq!((args.settings_from, args.seed, args.first, args.programs), (Some(7), 7, 1_120_979, 1));
    }
}
