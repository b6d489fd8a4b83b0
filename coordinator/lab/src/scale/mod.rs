//! `moire bench scale`: measures how much one coordinator can handle, on one core.
//!
//! Contract: first a simulated fleet works in front of the real core and store ([`fleet`]). Then a store with many
//! findings is opened, counted and reported. Each line shows the memory of the process at that moment, and its peak
//! since the line before.

mod fleet;

use crate::cost::{forget_peak, mib};
use anyhow::{Context, Result, bail};
use fleet::Fleet;
use moire_console::{exit, stored};
use moire_coordinator::LEASE_ITEMS;
use moire_corpus::{Finding, Hash, ModelRef, Options, Provenance, Store, Verified, Write};
use moire_generate::{Profile, Stream};
use moire_program::text::print;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Findings of one commit.
const COMMIT: u64 = 512;
/// Number of distinct programs in the findings.
const TEXTS: u64 = 512;
/// Leases that each worker answers in a round.
const HELD: u32 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Scale {
    /// Simulated workers
    #[arg(long, default_value_t = 10_000)]
    workers: u64,
    /// Campaigns that share them
    #[arg(long, default_value_t = 1_000)]
    campaigns: u64,
    /// Rounds in which every worker takes and answers leases
    #[arg(long, default_value_t = 4)]
    rounds: u64,
    /// Findings of the store that is opened and reported
    #[arg(long, default_value_t = 1_000_000)]
    findings: u64,
    /// Folder for the stores, about 6 KB per finding [default: a temporary one, removed]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// The printer of lines with time and memory.
struct Clock {
    since: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { since: Instant::now() }
    }
    /// Prints a line with the seconds since the last one.
    fn says(&mut self, what: &str, count: Option<u64>) {
        let seconds = self.since.elapsed().as_secs_f64();
        let rate = count.map(|n| format!("{:.0} a second", n as f64 / seconds)).unwrap_or_default();
        let (now, peak) = (mib("VmRSS"), mib("VmHWM"));
        println!("{what:<44} {seconds:8.2} s  {rate:<22} memory {now} MiB, peak {peak} MiB");
        forget_peak();
        self.since = Instant::now();
    }
}

pub(crate) fn run(args: &Scale) -> Result<u8> {
    let temporary = std::env::temp_dir().join(format!("moire-scale-{}", std::process::id()));
    let folder = args.store.clone().unwrap_or_else(|| temporary.clone());
    if folder.exists() {
        bail!("{} already exists; name a new folder", folder.display());
    }
    let measured = fleet(args, &folder.join("fleet")).and_then(|()| findings(args, &folder));
    if args.store.is_none() {
        std::fs::remove_dir_all(&temporary).context("removing the stores")?;
    }
    measured.map(|()| exit::CLEAN)
}

fn fleet(args: &Scale, dir: &Path) -> Result<()> {
    if args.workers == 0 || args.campaigns == 0 {
        return Ok(());
    }
    let mut clock = Clock::start();
    let (mut fleet, _) = Fleet::open(dir)?;
    let each =
        args.workers * u64::from(HELD) * LEASE_ITEMS * (args.rounds + 2) / args.campaigns + LEASE_ITEMS;
    fleet.campaigns(args.campaigns, each)?;
    clock.says(&format!("{} campaigns created", args.campaigns), Some(args.campaigns));
    fleet.join(args.workers)?;
    clock.says(&format!("{} workers connected", args.workers), Some(args.workers));
    for round in 1..=args.rounds {
        let leased = fleet.ask(HELD)?;
        clock.says(&format!("round {round}: programs leased"), Some(leased));
        let before = fleet.acknowledged();
        let durable = fleet.answer()?;
        if fleet.acknowledged() - before != leased / LEASE_ITEMS || durable != leased {
            let acknowledged = fleet.acknowledged() - before;
            bail!("of {leased} programs leased {durable} were taken, {acknowledged} reports acknowledged");
        }
        clock.says(&format!("round {round}: answers durable"), Some(durable));
    }
    Ok(())
}

fn findings(args: &Scale, folder: &Path) -> Result<()> {
    if args.findings == 0 {
        return Ok(());
    }
    let (dir, out) = (folder.join("findings"), folder.join("report"));
    let mut clock = Clock::start();
    fill(&dir, args.findings)?;
    clock.says(&format!("{} findings stored, store closed", args.findings), Some(args.findings));
    let (mut coordinator, recovery) = Fleet::open(&dir)?;
    if recovery.rebuilt {
        bail!("the index was rebuilt, although the store was closed");
    }
    clock.says("a coordinator started on them", None);
    let (counted, longest) = coordinator.count_findings()?;
    if counted != args.findings {
        bail!("of {} findings {counted} are there", args.findings);
    }
    clock.says(&format!("its metrics, at most {} ms at once", longest.as_millis()), Some(counted));
    drop(coordinator);
    clock.says("it stopped", None);
    stored::report(&mut stored::open(&dir)?, None, stored::To::Folder(&out))?;
    clock.says("a report of all of them", Some(args.findings));
    for entry in std::fs::read_dir(&out).context("reading the report")? {
        let entry = entry?;
        println!("{:>12} bytes  {}", entry.metadata()?.len(), entry.file_name().to_string_lossy());
    }
    let marker = dir.join("index.clean");
    std::fs::remove_file(&marker).with_context(|| format!("removing {}", marker.display()))?;
    clock.since = Instant::now();
    drop(Fleet::open(&dir)?);
    clock.says("the same after a kill: index built anew", None);
    Ok(())
}

/// Fills a store with findings as campaigns leave them.
fn fill(dir: &Path, count: u64) -> Result<()> {
    let (mut store, _) = Store::open(dir, Options::default())?;
    let stream = Stream::new(1, Profile::Core);
    let texts: Vec<String> = (0..TEXTS).map(|n| print(&stream.item(n))).collect();
    let mut at = 0;
    while at < count {
        let to = count.min(at + COMMIT);
        let writes = (at..to).map(|n| Write::Finding(Box::new(finding(n, &texts)))).collect::<Vec<_>>();
        store.commit(writes)?;
        at = to;
    }
    Ok(())
}

fn finding(n: u64, texts: &[String]) -> Finding {
    let text = |n: u64| texts[usize::try_from(n % TEXTS).expect("below the number of texts")].clone();
    let model = |name: &str| ModelRef {
        name: name.to_owned(),
        fingerprint: Hash::of(name.as_bytes()),
        ..ModelRef::default()
    };
    let events =
        (0..6).map(|i| format!(r#"{{"id":{i},"index":{i},"label":"W x","thread":"P{i}","value":1}}"#));
    let events = events.collect::<Vec<_>>().join(",");
    let witness = format!(
        r#"{{"edges":[{{"from":1,"kind":"rf","to":2}},{{"from":2,"kind":"po","to":3}}],"events":[{events}],"model":"ptx","outcome":"P1:r0 = 1, x = {n}"}}"#
    );
    Finding {
        id: Hash::of(&n.to_le_bytes()),
        campaign: format!("scale-{}", n % 1000),
        oracle: ["model-pair", "metamorphic", "self"][usize::try_from(n % 3).expect("small")].to_owned(),
        rule: "subset".to_owned(),
        models: vec![model("ptx-7.5"), model("ptx")],
        reduced: text(n / 7),
        original: text(n),
        provenance: Provenance { generator: Hash::of(b"generator").to_string(), seed: 1, index: n },
        witness,
        axioms: vec![vec!["Coherence".to_owned()]],
        verdict: "discrepancy".to_owned(),
        verified: Verified::Other,
        first_seen_ms: 1_000 + n,
        last_seen_ms: 1_000 + n,
        last_tested_ms: 1_000 + n,
        count: 1,
        ..Finding::default()
    }
}
