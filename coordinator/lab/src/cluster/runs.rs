//! Runs of simulated clusters, and the violations in them.
//!
//! Contract: run N is a function of seed N. [`super::check`] checks its history, and the digest of its store must be
//! that of a run without faults. With `--planted` a bug is planted, and runs are made until the checker finds it.

use super::Cluster;
use super::check::{Terms, Violation, check};
use super::engine;
use super::faults::{self, FaultPlan};
use super::world::{self, Bug, RunResult};
use anyhow::{Context, Result, anyhow, bail};
use moire_console::exit;
use moire_coordinator::trial::{Event, Planted};
use moire_worker::trial::Planted as WorkerPlanted;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most violations printed for one run.
const PRINTED: usize = 5;

pub(crate) fn run(args: &Cluster) -> Result<u8> {
    let fleet = Fleet::new(args)?;
    let ended = match &args.planted {
        Some(name) => planted(args, &fleet, name),
        None => clean(args, &fleet),
    };
    std::fs::remove_dir_all(&fleet.place).context("removing the stores")?;
    ended
}

/// The settings of all runs.
struct Fleet {
    place: PathBuf,
    threads: usize,
    quiet: BTreeMap<u64, String>,
}

/// A run and its violations.
struct Judged {
    run: RunResult,
    violations: Vec<Violation>,
}

impl Fleet {
    fn new(args: &Cluster) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let root = match &args.store {
            Some(folder) => folder.clone(),
            None if memory.is_dir() => memory.to_owned(),
            None => std::env::temp_dir(),
        };
        static FLEETS: AtomicU64 = AtomicU64::new(0);
        let number = FLEETS.fetch_add(1, Ordering::Relaxed);
        let place = root.join(format!("moire-cluster-{}-{number}", std::process::id()));
        let threads = args.threads.filter(|n| *n > 0);
        let threads =
            threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let mut fleet = Self { place, threads, quiet: BTreeMap::new() };
        for programs in faults::SIZES {
            let judged = fleet.judge(FaultPlan::quiet(programs), None)?;
            if let Some(first) = judged.violations.first() {
                bail!("a run without faults: {}: {}", first.rule, first.why);
            }
            fleet.quiet.insert(programs, judged.run.digest);
        }
        Ok(fleet)
    }

    fn judge(&self, plan: FaultPlan, bug: Option<Bug>) -> Result<Judged> {
        let name = format!("{}-{:?}", plan.seed, std::thread::current().id());
        let (seed, programs) = (plan.seed, plan.programs);
        let explored = plan.explores.then(engine::alone);
        let lies = plan.workers.iter().any(|w| w.lie.is_some());
        let run = world::run(plan, bug, &self.place.join(name)).with_context(|| format!("seed {seed}"))?;
        let digest = self.quiet.get(&programs).cloned();
        let campaign = (world::CAMPAIGN.to_owned(), programs);
        let terms = Terms { config: world::LEASE, campaign, digest: digest.clone(), explored, lies };
        let mut violations = check(&run.history, &terms);
        if digest.is_some_and(|quiet| quiet != run.digest) && violations.is_empty() {
            let why = format!("the store has digest {}", run.digest);
            violations.push(Violation { rule: "end", at: run.history.len(), why });
        }
        Ok(Judged { run, violations })
    }

    /// Makes runs of the seeds from `from` on, on all threads, and hands each to `take`, which returns whether to go
    /// on.
    fn each(
        &self,
        from: u64,
        runs: u64,
        bug: Option<Bug>,
        take: impl Fn(u64, Judged) -> bool + Sync,
    ) -> Result<()> {
        let (next, failed) = (AtomicU64::new(0), Mutex::new(None));
        let stop = || next.store(runs, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    // Thousands of runs full of faults would flood the log; their histories hold all events.
                    let _silent = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
                    while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < runs)
                    {
                        let seed = from.wrapping_add(number);
                        match self.judge(FaultPlan::of(seed), bug).map(|judged| take(seed, judged)) {
                            Ok(true) => {}
                            Ok(false) => stop(),
                            Err(error) => {
                                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                                stop();
                            }
                        }
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// The sums over all runs.
#[derive(Default)]
struct Score {
    runs: u64,
    broken: BTreeMap<u64, Vec<Violation>>,
    counts: BTreeMap<&'static str, u64>,
    led_to: BTreeMap<&'static str, u64>,
    simulated: Duration,
    events: u64,
}

impl Score {
    fn add(&mut self, seed: u64, judged: &Judged) {
        self.runs += 1;
        self.simulated += judged.run.simulated;
        self.events += judged.run.history.len() as u64;
        for (name, n) in &judged.run.counts {
            *self.counts.entry(name).or_default() += n;
        }
        for (_, event) in &judged.run.history {
            if let Some(name) = consequence(event) {
                *self.led_to.entry(name).or_default() += 1;
            }
        }
        if !judged.violations.is_empty() {
            self.broken.insert(seed, judged.violations.clone());
        }
    }
}

/// Returns the name under which an event is counted, if it is counted.
fn consequence(event: &Event) -> Option<&'static str> {
    use moire_coordinator::trial::End;
    Some(match event {
        Event::Granted { campaign, .. } if campaign != world::CAMPAIGN => "leases of pieces",
        Event::Granted { .. } => "leases",
        Event::Cancelled { .. } => "cancelled",
        Event::Gone { end: End::Clock("liveness"), .. } => "liveness ran out",
        Event::Gone { end: End::Clock(_), .. } => "acknowledgement of a kill ran out",
        Event::Gone { end: End::Expelled, .. } => "worker sent away",
        Event::Gone { end: End::Closed, .. } => "connection ended",
        Event::Reported { accepted: false, .. } => "report refused",
        Event::Opened => "start of the coordinator",
        _ => return None,
    })
}

fn clean(args: &Cluster, fleet: &Fleet) -> Result<u8> {
    let (start, score) = (Instant::now(), Mutex::new(Score::default()));
    fleet.each(args.seed, args.runs, None, |seed, judged| {
        if args.history && seed == args.seed {
            judged.run.history.iter().for_each(|(at, event)| println!("{at:>8} {event:?}"));
        }
        let mut score = score.lock().unwrap_or_else(PoisonError::into_inner);
        score.add(seed, &judged);
        if score.runs.is_multiple_of(100) {
            eprintln!("{} of {} runs", score.runs, args.runs);
        }
        true
    })?;
    let score = score.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (seed, violations) in &score.broken {
        report(*seed, violations, None);
    }
    for (name, n) in &score.counts {
        println!("fault {name}: {n}");
    }
    for (name, n) in &score.led_to {
        println!("saw {name}: {n}");
    }
    println!(
        "{} runs from seed {}: {} broken; {} events, {:.0} s simulated in {:.1} s",
        score.runs,
        args.seed,
        score.broken.len(),
        score.events,
        score.simulated.as_secs_f64(),
        start.elapsed().as_secs_f64()
    );
    Ok(if score.broken.is_empty() { exit::CLEAN } else { exit::FINDING })
}

/// Prints the violations in a run, and the command that repeats the run.
fn report(seed: u64, violations: &[Violation], bug: Option<&str>) {
    for v in violations.iter().take(PRINTED) {
        println!("BROKEN seed {seed}: {}: {} (event {})", v.rule, v.why, v.at);
    }
    let bug = bug.map(|name| format!(" --planted {name}")).unwrap_or_default();
    println!("replay: moire bench cluster --runs 1 --seed {seed}{bug} --history");
}

/// Lists every planted bug with its name.
fn bugs() -> Vec<(String, Bug)> {
    let kebab = |name: String| {
        let mut out = String::new();
        for c in name.chars() {
            if c.is_uppercase() && !out.is_empty() {
                out.push('-');
            }
            out.extend(c.to_lowercase());
        }
        out
    };
    let coordinator = Planted::ALL.iter().map(|b| (kebab(format!("{b:?}")), Bug::Coordinator(*b)));
    let worker = WorkerPlanted::ALL.iter().map(|b| (kebab(format!("worker{b:?}")), Bug::Worker(*b)));
    coordinator.chain(worker).collect()
}

fn planted(args: &Cluster, fleet: &Fleet, name: &str) -> Result<u8> {
    let all = bugs();
    let chosen: Vec<_> = all.iter().filter(|(n, _)| name == "all" || n == name).collect();
    if chosen.is_empty() {
        let names: Vec<_> = all.iter().map(|(n, _)| n.as_str()).collect();
        return Err(anyhow!("there is no bug `{name}`; the names are all, {}", names.join(", ")));
    }
    let mut missed = 0;
    for (name, bug) in chosen {
        match find(args, fleet, *bug)? {
            Some((seed, violations)) => {
                let rules: std::collections::BTreeSet<_> = violations.iter().map(|v| v.rule).collect();
                println!("{name}: found with seed {seed}, by {rules:?}");
                report(seed, &violations[..1], Some(name));
            }
            None => {
                missed += 1;
                println!("{name}: MISSED in {} runs", args.runs);
            }
        }
    }
    Ok(if missed == 0 { exit::CLEAN } else { exit::FINDING })
}

/// The first seed with which a bug may show: some need workers that come from elsewhere.
fn first(seed: u64, bug: Bug) -> u64 {
    use Planted::{MarksUncompared, MemoryMatches, RetestsAlone};
    let apart = [MarksUncompared, MemoryMatches, RetestsAlone].map(Bug::Coordinator).contains(&bug);
    if apart { seed.max(faults::APART) } else { seed }
}

/// Finds the first seed with which the checker finds a bug.
fn find(args: &Cluster, fleet: &Fleet, bug: Bug) -> Result<Option<(u64, Vec<Violation>)>> {
    let (from, found) = (first(args.seed, bug), Mutex::new(BTreeMap::new()));
    fleet.each(from, args.runs, Some(bug), |seed, judged| {
        if args.history && seed == from {
            judged.run.history.iter().for_each(|(at, event)| println!("{at:>8} {event:?}"));
        }
        let clean = judged.violations.is_empty();
        if !clean {
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, judged.violations);
        }
        clean
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner).pop_first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(seed: u64, runs: u64) -> Cluster {
        Cluster { runs, seed, threads: None, planted: None, history: false, store: None }
    }

    #[test]
    fn a_sample_of_runs_is_clean_and_a_function_of_the_seed() {
        let fleet = Fleet::new(&args(1, 0)).unwrap();
        let made = Mutex::new(BTreeMap::new());
        fleet
            .each(5_000, 60, None, |seed, judged| {
                assert_eq!(judged.violations, [], "seed {seed}");
                made.lock().unwrap().insert(seed, judged.run.history);
                true
            })
            .unwrap();
        fleet
            .each(faults::APART, 12, None, |seed, judged| {
                assert_eq!(judged.violations, [], "seed {seed}");
                assert!(judged.run.counts.contains_key("worker that always lies"), "seed {seed}");
                true
            })
            .unwrap();
        fleet
            .each(5_020, 10, None, |seed, judged| {
                assert!(
                    judged.run.history == made.lock().unwrap()[&seed],
                    "seed {seed} gave another history"
                );
                true
            })
            .unwrap();
        std::fs::remove_dir_all(&fleet.place).unwrap();
        assert_eq!(made.lock().unwrap().len(), 60);
    }

    /// Each planted bug is found within 30 runs. For bugs that need a rare coincidence, the seeds start near one.
    #[test]
    fn the_checker_finds_every_planted_bug() {
        let fleet = Fleet::new(&args(1, 0)).unwrap();
        for (name, bug) in bugs() {
            let from = match name.as_str() {
                "any-epoch" => 40,
                "commits-late" => 35,
                // A report from a worker that does not hold the lease is rare, and so is one that flaps often enough.
                "any-owner" | "blames-items" => 855,
                _ => 1,
            };
            let found = find(&args(from, 30), &fleet, bug).unwrap();
            assert!(found.is_some(), "{name}");
        }
        std::fs::remove_dir_all(&fleet.place).unwrap();
    }
}
