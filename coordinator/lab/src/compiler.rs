//! `moire bench compiler`: judges drawn Tile IR kernels with the compiler oracle, without a store and without
//! reductions.
//!
//! Contract: kernels are taken from the stream of a seed until enough of them count. A kernel counts if it is free of
//! races under the weakest reading and a strong value goes from one tile block to another. Racy kernels, silent kernels
//! and abstentions are listed apart. The output depends only on the arguments and the compiler. A discrepancy is
//! printed at once, with the command that judges its kernel again (exit 10). With `--sass` the machine code of the same
//! kernels is then compared with their PTX; these observations do not change the exit code.

use anyhow::{Result, bail};
use moire_console::exit;
use moire_generate::Profile;
use moire_worker::direction::Direction;
use moire_worker::job::{Cancel, Claim, Engine, Item, ItemReport, Plan, Source};
use moire_worker::oracle::{COMPILER, Observations, Oracles, TILEIRAS, observe};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

/// Kernels that one thread takes at a time; they go to the compiler in one file.
const TOGETHER: u64 = 64;

/// Number of drawn kernels after which a run gives up if none of them counts.
const HOPELESS: u64 = 2_048;

#[derive(Debug, clap::Args)]
pub(crate) struct Compiler {
    /// Number of counting kernels to judge with each compiler
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    programs: u64,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Position in the stream to start at; each run prints where the next one should start
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    from: u64,
    /// A compiler, as `tileiras:level=3,target=sm_90,release=13.5` (repeatable) [default: the newest, -O3, sm_90]
    #[arg(long = "model", value_name = "COMPILER")]
    compilers: Vec<String>,
    /// Print the result for each kernel
    #[arg(long)]
    each: bool,
    /// Then compare the memory instructions of this many kernels in PTX and in machine code; needs nvdisasm
    #[arg(long, value_name = "N")]
    sass: Option<u64>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// Verdicts on the kernels of one compiler.
#[derive(Default)]
struct Totals {
    /// Kernels that are free of races and in which blocks communicate.
    counted: u64,
    drawn: u64,
    /// Number of kernels by verdict.
    words: BTreeMap<String, u64>,
    abstained: BTreeMap<String, u64>,
    /// Number of broken rules by direction and cause.
    claims: BTreeMap<String, u64>,
}

impl Totals {
    fn add(&mut self, report: &ItemReport) {
        self.drawn += 1;
        for row in &report.engines {
            *self.words.entry(row.verdict.clone()).or_default() += 1;
            self.counted += u64::from(!matches!(row.verdict.as_str(), "racy" | "clean, silent"));
        }
        for (reason, n) in &report.abstentions {
            *self.abstained.entry(reason.clone()).or_default() += n;
        }
        for claim in &report.claims {
            *self.claims.entry(name(claim)).or_default() += 1;
        }
    }
}

/// Names the direction of a claim and its cause, if known.
fn name(claim: &Claim) -> String {
    let causes: Vec<&str> = claim.axioms.iter().flatten().map(String::as_str).collect();
    let of = if claim.direction.is_bug() { causes.join(", ") } else { claim.verdict.clone() };
    if of.is_empty() { claim.direction.to_string() } else { format!("{}, {of}", claim.direction) }
}

pub(crate) fn run(args: &Compiler) -> Result<u8> {
    if args.programs == 0 {
        bail!("--programs 0 judges nothing");
    }
    let oracles = Oracles::new();
    if !oracles.capabilities().iter().any(|c| c == TILEIRAS.capability) {
        bail!("tileiras is not installed; `moire doctor` says how to get it");
    }
    let default = [TILEIRAS.capability.to_owned()];
    let specs = if args.compilers.is_empty() { &default[..] } else { &args.compilers };
    for spec in specs {
        if !spec.starts_with(TILEIRAS.capability) {
            bail!("`{spec}` is not a compiler; write for example tileiras:level=0,target=sm_100");
        }
        oracles.side_fingerprint(spec)?;
    }
    let (mut wrong, mut next) = (false, args.from);
    for spec in specs {
        let begin = Instant::now();
        let (totals, end) = campaign(args, spec, &oracles);
        eprintln!("{:.1} s", begin.elapsed().as_secs_f64());
        tell(spec, &totals);
        wrong |= totals.claims.keys().any(|name| !name.starts_with(Direction::Difference.word()));
        next = next.max(end);
        if totals.counted == 0 {
            bail!("no kernel was judged");
        }
        if let Some(count) = args.sass {
            let last = args.from.saturating_add(count.min(totals.drawn));
            let seen = observe(spec, args.seed, args.from..last)?;
            observed(&seen);
        }
    }
    println!("next --from {next}");
    Ok(if wrong { exit::FINDING } else { exit::CLEAN })
}

/// Judges kernels in the order of the stream until enough count. Kernels judged beyond that are not counted.
fn campaign(args: &Compiler, spec: &str, oracles: &Oracles) -> (Totals, u64) {
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let plan = Arc::new(Plan {
        oracles: vec![COMPILER.name.into()],
        models: vec![spec.to_owned()],
        ..Plan::default()
    });
    let (taken, done) = (AtomicU64::new(0), Cancel::new());
    let (send, receive) = mpsc::sync_channel::<(u64, Vec<ItemReport>)>(2 * workers.max(1));
    let send = Mutex::new(send);
    let mut totals = Totals::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let send = send.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (plan, taken, done) = (&plan, &taken, &done);
            scope.spawn(move || {
                while !done.is_cancelled() {
                    let part = taken.fetch_add(1, Ordering::Relaxed);
                    let first = args.from + part * TOGETHER;
                    let one = |index| {
                        let (seed, profile) = (args.seed, Profile::TileIr.name().to_owned());
                        let source = Source::Generated { seed, profile, index };
                        let begin = Instant::now();
                        let item = Item { plan: Arc::clone(plan), index, source };
                        let report = oracles.run(&item, &Cancel::new());
                        if args.each {
                            each(index, &report, begin);
                        }
                        report
                    };
                    let reports = (first..first + TOGETHER).take_while(|_| !done.is_cancelled()).map(one);
                    if send.send((part, reports.collect())).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let (mut waiting, mut part) = (BTreeMap::new(), 0);
        while let Ok((number, reports)) = receive.recv() {
            waiting.insert(number, reports);
            while let Some(reports) = waiting.remove(&part) {
                let first = args.from + part * TOGETHER;
                for (index, report) in (first..).zip(&reports) {
                    if totals.counted < args.programs {
                        totals.add(report);
                        report.claims.iter().for_each(|claim| announce(args, spec, index, claim));
                    }
                }
                part += 1;
            }
            progress(&totals, args.programs, begin);
            let hopeless = totals.counted == 0 && totals.drawn >= HOPELESS;
            if totals.counted >= args.programs || hopeless {
                done.cancel();
                break;
            }
        }
        drop(receive);
    });
    let end = args.from + totals.drawn;
    (totals, end)
}

fn each(index: u64, report: &ItemReport, begin: Instant) {
    let words = report.engines.iter().map(|e| format!("{}, {} executions", e.verdict, e.executions));
    let words: Vec<String> = words.chain(report.abstentions.keys().cloned()).collect();
    eprintln!("{index}: {}, {} ms", words.join(", "), begin.elapsed().as_millis());
}

fn announce(args: &Compiler, spec: &str, index: u64, claim: &Claim) {
    if claim.direction.is_bug() {
        let again =
            format!("moire bench compiler --model {spec} --seed {} --from {index} --programs 1", args.seed);
        eprintln!("{index}: {}; again: {again}", name(claim));
    }
}

fn progress(totals: &Totals, all: u64, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    let (counted, drawn) = (totals.counted, totals.drawn);
    let found: u64 = totals.claims.values().sum();
    let abstained: u64 = totals.abstained.values().sum();
    eprintln!(
        "{counted} of {all} kernels, {drawn} drawn, {seconds:.0} s, {found} broken rules, {abstained} abstained"
    );
}

/// Prints how the assembler translated memory instructions.
fn observed(seen: &Observations) {
    let abstained: u64 = seen.abstained.values().sum();
    println!(
        "machine code: {} kernels compared, {} unchanged, {abstained} abstained; observations, not findings",
        seen.compared, seen.unchanged
    );
    for (what, (n, index)) in &seen.changes {
        println!("  observed  {n:8} {what} (first in kernel {index})");
    }
    for (what, n) in &seen.abstained {
        println!("  abstained {n:8} {what}");
    }
}

fn tell(spec: &str, totals: &Totals) {
    let abstained: u64 = totals.abstained.values().sum();
    let percent = 100.0 * abstained as f64 / totals.drawn.max(1) as f64;
    println!(
        "{spec}: {} kernels count of {} drawn, {abstained} abstained ({percent:.1} %)",
        totals.counted, totals.drawn
    );
    for (title, all) in
        [("verdicts", &totals.words), ("broken", &totals.claims), ("abstained", &totals.abstained)]
    {
        for (what, n) in all {
            println!("  {title:9} {n:8} {what}");
        }
    }
}
