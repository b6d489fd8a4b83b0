//! `moire bench chaos`: campaigns whose processes are killed with SIGKILL at random moments.
//!
//! Contract: each campaign runs once without kills and once, in another store, with kills. The victim is a `moire fuzz`
//! process, a `moire serve` coordinator, or its workers one after the other. Both runs must end with the same digest,
//! and every announced finding must be in the store. The time of a kill is a function of the seed; how far the work has
//! come by then depends on the machine.

use super::process::{Ended, Process};
use anyhow::{Context, Result, bail};
use moire_console::campaign::Settings;
use moire_console::control::{connect, runtime, said};
use moire_console::exit;
use moire_console::time::duration;
use moire_coordinator::clock::millis;
use moire_coordinator::v1;
use moire_corpus::{Hash, Options, Store};
use moire_worker::job::Engine;
use moire_worker::oracle::Oracles;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest life of a round's processes.
const LIFE_MAX: Duration = Duration::from_secs(4);
/// Kills between two checks of the store.
const LOOK_EVERY: u64 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Chaos {
    /// Number of kills
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Stop after this time: 90s, 10m, 2h
    #[arg(long = "for", value_name = "TIME", default_value = "15m")]
    time: String,
    /// Seed of the first campaign and of the kills
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs of one campaign
    #[arg(long, value_name = "N", default_value_t = 1_500)]
    programs: u64,
    /// Folder for the stores [default: a temporary one, removed when all is well]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// The victim of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Whole,
    Coordinator,
    Workers,
}

/// A campaign whose processes are killed until it is done.
struct Trial {
    settings: Settings,
    expected: String,
    /// The time it takes without kills.
    quiet: Duration,
    /// The announced findings, as printed.
    acknowledged: BTreeSet<String>,
    /// The number of findings in the store.
    found: u64,
    problems: Vec<String>,
}

/// The sums over all rounds.
#[derive(Default)]
struct Score {
    kills: u64,
    whole: u64,
    coordinator: u64,
    worker: u64,
    campaigns: u64,
    acknowledged: u64,
    found: u64,
    problems: Vec<String>,
}

pub(crate) fn run(args: &Chaos) -> Result<u8> {
    let start = Instant::now();
    let until = start + duration(&args.time)?;
    let temporary = std::env::temp_dir().join(format!("moire-chaos-{}", std::process::id()));
    let folder = args.store.clone().unwrap_or_else(|| temporary.clone());
    let mut score = Score::default();
    while score.kills < args.rounds && Instant::now() < until {
        let mut trial = Trial::start(args, &folder, score.campaigns)?;
        let mut told = Instant::now();
        while score.kills < args.rounds && Instant::now() < until {
            if trial.round(args.seed, &mut score)? {
                break;
            }
            if told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                eprintln!("{} of {} kills, campaign {}", score.kills, args.rounds, score.campaigns + 1);
            }
        }
        trial.finish()?;
        score.campaigns += 1;
        score.acknowledged += trial.acknowledged.len() as u64;
        score.found += trial.found;
        score.problems.append(&mut trial.problems);
    }
    score.problems.iter().for_each(|p| println!("PROBLEM {p}"));
    let s = &score;
    println!(
        "{} kills (whole {}, coordinator {}, worker {}) in {} campaigns of {} programs; {} findings, {} announced; {} problems; {:.0} s",
        s.kills,
        s.whole,
        s.coordinator,
        s.worker,
        s.campaigns,
        args.programs,
        s.found,
        s.acknowledged,
        s.problems.len(),
        start.elapsed().as_secs_f64()
    );
    if !score.problems.is_empty() {
        println!("the stores are kept in {}", folder.display());
        return Ok(exit::FINDING);
    }
    if args.store.is_none() {
        std::fs::remove_dir_all(&temporary).context("removing the stores")?;
    }
    Ok(if score.kills < args.rounds { exit::INCOMPLETE } else { exit::CLEAN })
}

/// Draws a number that decides when to kill which process.
pub(super) fn draw(seed: u64, round: u64, what: &str, below: u64) -> u64 {
    let hash = Hash::of(format!("{seed} {round} {what}").as_bytes());
    let word = hash.0.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte));
    word % below.max(1)
}

impl Trial {
    /// Runs the campaign without kills.
    fn start(args: &Chaos, folder: &Path, number: u64) -> Result<Self> {
        let place = |kind: &str| folder.join(format!("{kind}-{number}"));
        if place("killed").exists() {
            bail!("{} already exists; chaos needs new stores", place("killed").display());
        }
        let settings = Settings {
            seed: args.seed.wrapping_add(number),
            profile: "core".to_owned(),
            oracles: Vec::new(),
            models: Vec::new(),
            programs: Some(args.programs),
            time: None,
            settling: Duration::ZERO,
            workers: 2,
            store: place("quiet"),
            device: None,
        };
        let begun = Instant::now();
        let expected = digest(&whole(&settings)?.wait()?)?;
        let (settings, quiet) = (Settings { store: place("killed"), ..settings }, begun.elapsed());
        Ok(Self { settings, expected, quiet, acknowledged: BTreeSet::new(), found: 0, problems: Vec::new() })
    }

    /// Starts processes and kills them. Returns true if the campaign is done.
    fn round(&mut self, seed: u64, score: &mut Score) -> Result<bool> {
        let number = score.kills;
        let victim = match draw(seed, number, "victim", 4) {
            0 | 1 => Victim::Whole,
            2 => Victim::Coordinator,
            _ => Victim::Workers,
        };
        let longest = millis((self.quiet / 3).min(LIFE_MAX));
        let life = Duration::from_millis(draw(seed, number, "moment", longest));
        let done = match victim {
            Victim::Whole => self.kill_whole(life)?,
            Victim::Coordinator | Victim::Workers => self.kill_part(victim, life)?,
        };
        if done {
            return Ok(true);
        }
        score.kills += 1;
        *match victim {
            Victim::Whole => &mut score.whole,
            Victim::Coordinator => &mut score.coordinator,
            Victim::Workers => &mut score.worker,
        } += 1;
        if score.kills.is_multiple_of(LOOK_EVERY) {
            self.look()?;
        }
        Ok(false)
    }

    fn kill_whole(&mut self, life: Duration) -> Result<bool> {
        let mut process = whole(&self.settings)?;
        let done = process.over(Instant::now() + life)?;
        let ended = process.kill()?;
        self.note(&ended);
        if done {
            digest(&ended)?;
        }
        Ok(done)
    }

    fn kill_part(&mut self, victim: Victim, life: Duration) -> Result<bool> {
        let end = Instant::now() + life;
        let store = self.settings.store.as_os_str();
        let words = ["serve", "--listen", "127.0.0.1:0", "--store"].map(OsStr::new);
        let mut server = Process::start(&[&words[..], &[store]].concat())?;
        // If workers are the victims, the coordinator gets enough time to start, however early the kill.
        let patience = if victim == Victim::Workers { end.max(Instant::now() + LIFE_MAX) } else { end };
        let addr = server.says(" on ", patience)?.and_then(|a| a.parse::<SocketAddr>().ok());
        let Some(addr) = addr else {
            let over = server.over(Instant::now())?;
            let ended = server.kill()?;
            if over || victim == Victim::Workers {
                bail!("the coordinator did not start: {}", ended.err.join("\n"));
            }
            self.note(&ended);
            return Ok(false);
        };
        let spec = self.settings.spec(&Oracles::new().fingerprint());
        let mut done = runtime()?.block_on(open(addr, spec.clone()))?;
        let mut workers = Vec::new();
        if !done {
            workers = vec![worker(addr)?, worker(addr)?];
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
        }
        if victim == Victim::Workers && !done {
            for _ in 0..2 {
                workers.remove(0).kill()?;
                workers.push(worker(addr)?);
                std::thread::sleep(life);
            }
            done = runtime()?.block_on(open(addr, spec))?;
        }
        let over = server.over(Instant::now())?;
        let ended = server.kill()?;
        self.note(&ended);
        if over {
            bail!("the coordinator ended by itself: {}", ended.err.join("\n"));
        }
        Ok(done)
    }

    /// Runs the campaign to its end and compares the digests.
    fn finish(&mut self) -> Result<()> {
        let ended = whole(&self.settings)?.wait()?;
        self.note(&ended);
        let (name, digest) = (self.name(), digest(&ended)?);
        if digest != self.expected {
            self.problems.push(format!("{name}: {digest}, without kills {}", self.expected));
        }
        self.look()
    }

    fn name(&self) -> String {
        format!("seed {}", self.settings.seed)
    }

    fn note(&mut self, ended: &Ended) {
        let id = |line: &String| Some(line.strip_prefix("finding ")?.split(' ').next()?.to_owned());
        self.acknowledged.extend(ended.err.iter().filter_map(id));
    }

    /// Checks that every announced finding is in the store.
    fn look(&mut self) -> Result<()> {
        let (store, _) = Store::open(&self.settings.store, Options::default())?;
        let ids = store.findings().map(|f| f.map(|f| f.id.short())).collect::<Result<BTreeSet<_>, _>>()?;
        self.found = ids.len() as u64;
        for lost in self.acknowledged.difference(&ids) {
            self.problems
                .push(format!("seed {}: finding {lost} was announced and is lost", self.settings.seed));
        }
        Ok(())
    }
}

/// Creates the campaign unless it exists. Returns true if it is done.
async fn open(addr: SocketAddr, spec: v1::CampaignSpec) -> Result<bool> {
    let mut client = connect(&addr.into()).await?;
    let name = v1::CampaignName { name: spec.name.clone() };
    match client.create_campaign(spec).await {
        Ok(_) => {}
        Err(status) if status.code() == tonic::Code::AlreadyExists => {}
        Err(status) => return Err(said(status)),
    }
    Ok(client.get_campaign(name).await?.get_ref().phase() == v1::CampaignPhase::Done)
}

pub(super) fn whole(settings: &Settings) -> Result<Process> {
    let (programs, seed) = (settings.programs.unwrap_or(0).to_string(), settings.seed.to_string());
    let workers = settings.workers.to_string();
    let mut words =
        vec!["fuzz", "--stream", "core", "--programs", &programs, "--seed", &seed, "--workers", &workers];
    words.extend(settings.oracles.iter().flat_map(|name| ["--oracle", name]));
    words.extend(settings.models.iter().flat_map(|name| ["--model", name]));
    let mut words: Vec<_> = words.into_iter().map(OsStr::new).collect();
    words.extend([OsStr::new("--store"), settings.store.as_os_str()]);
    Process::start(&words)
}

fn worker(addr: SocketAddr) -> Result<Process> {
    Process::start(&["work", "--threads", "1", "--coordinator", &addr.to_string()].map(OsStr::new))
}

/// Finds the digest line in the output of a run that went to its end.
pub(super) fn digest(ended: &Ended) -> Result<String> {
    let code = ended.status.code().unwrap_or(-1);
    let last = ended.out.last().filter(|l| l.starts_with("digest ")).cloned();
    match last {
        Some(line) if [exit::CLEAN, exit::FINDING].map(i32::from).contains(&code) => Ok(line),
        _ => bail!("moire fuzz ended with {code}: {}", ended.err.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_a_function_of_the_seed() {
        let stream = |seed| (0..100).map(|n| draw(seed, n, "moment", 1000)).collect::<Vec<_>>();
        assert_eq!(stream(1), stream(1));
        assert_ne!(stream(1), stream(2));
        let mean = stream(1).iter().sum::<u64>() / 100;
        assert!((300..700).contains(&mean), "{mean}");
    }
}
