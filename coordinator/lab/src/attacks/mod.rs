//! `moire bench attacks`: a coordinator among hostile workers and clients that must not harm the honest ones.
//!
//! Contract: campaigns run one after the other until the time is up. Each runs once undisturbed, and once on a `moire serve`
//! with two honest workers, ten hostile ones ([`hostile`]) and hostile clients ([`clients`]). Both runs must end with the
//! same digest and the same findings; an honest peer must be answered in time (`--answer`), and the coordinator must not take
//! more than [`MEMORY_MIB`]. Workers that answer their items wrongly change a digest; so they get a campaign of their own,
//! which must end with a finding about the fleet. All is written to a table: attack, expectation, outcome.

mod clients;
mod hostile;
mod table;

use super::chaos::whole;
use super::process::Process;
use anyhow::{Context, Result, bail};
use hostile::{Attack, Counts};
use moire_console::campaign::Settings;
use moire_console::control::{connect, runtime, said};
use moire_console::exit;
use moire_console::time::duration;
use moire_coordinator::v1;
use moire_corpus::{Options, Store};
use moire_worker::job::Engine as _;
use moire_worker::oracle::Oracles;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::Table;

/// Longest time that an honest client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most memory of a coordinator under attack, in MiB.
const MEMORY_MIB: u64 = 256;
/// Time that a coordinator has to start.
const START: Duration = Duration::from_secs(20);
/// Time between two looks at a campaign.
const LOOK: Duration = Duration::from_millis(100);

/// The arguments of `moire bench attacks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Attacks {
    /// Start no further campaign after this time: 90s, 10m, 1h
    #[arg(long = "for", value_name = "TIME", default_value = "1h")]
    time: String,
    /// Seed of the first campaign
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs of one campaign
    #[arg(long, value_name = "N", default_value_t = 1_500)]
    programs: u64,
    /// Longest time until an honest client has its answer; a machine with other work needs more
    #[arg(long, value_name = "TIME", default_value = "1s")]
    answer: String,
    /// Folder for the stores [default: a temporary one, removed when all is well]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// A coordinator of its own process.
struct Server {
    process: Process,
    addr: SocketAddr,
    http: SocketAddr,
}

impl Server {
    /// Starts one. `repeat`: how many of a thousand answers another worker gives again.
    fn start(store: &Path, repeat: &str) -> Result<Self> {
        let words =
            ["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--repeat", repeat, "--store"];
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).chain([store.as_os_str()]).collect();
        let mut process = Process::start(&words)?;
        let until = Instant::now() + START;
        let mut at = |mark: &str| -> Result<SocketAddr> {
            let said = process.says(mark, until)?.context("the coordinator did not start")?;
            said.parse().with_context(|| format!("the coordinator says it is at {said}"))
        };
        let (addr, http) = (at(" on ")?, at("http://")?);
        Ok(Self { process, addr, http })
    }
}

/// The result of a campaign under attack.
struct Attacked {
    told: Told,
    /// The longest time until an honest client had its answer, and how many it got.
    slowest: Duration,
    answers: u64,
    peak_mib: u64,
    counts: Arc<Counts>,
}

pub(crate) fn run(args: &Attacks) -> Result<u8> {
    let (until, answer) = (Instant::now() + duration(&args.time)?, duration(&args.answer)?);
    let temporary = std::env::temp_dir().join(format!("moire-attacks-{}", std::process::id()));
    let folder = args.store.clone().unwrap_or_else(|| temporary.clone());
    let mut table = Table::default();
    let mut number = 0;
    while number == 0 || Instant::now() < until {
        let settings = settings(args, &folder, number);
        let (quiet, ended) = campaign(&settings, &Attack::HARMLESS, "20")?;
        table.undisturbed(&quiet, &ended, answer);
        number += 1;
        eprintln!("{number} campaigns under attack");
    }
    let settings = Settings { programs: Some(128), ..settings(args, &folder, number) };
    let (_, ended) = campaign(&settings, &[Attack::WrongAnswers], "1000")?;
    table.believed(&ended);
    print!("{table}");
    println!("{number} campaigns of {} programs under attack; {} rows failed", args.programs, table.failed());
    if table.failed() > 0 {
        println!("the stores are kept in {}", folder.display());
        return Ok(exit::FINDING);
    }
    if args.store.is_none() {
        std::fs::remove_dir_all(&temporary).context("removing the stores")?;
    }
    Ok(exit::CLEAN)
}

/// The settings of one campaign.
fn settings(args: &Attacks, folder: &Path, number: u64) -> Settings {
    Settings {
        seed: args.seed.wrapping_add(number),
        profile: "core".to_owned(),
        oracles: Vec::new(),
        models: Vec::new(),
        programs: Some(args.programs),
        time: None,
        settling: Duration::ZERO,
        workers: 2,
        store: folder.join(format!("quiet-{number}")),
        device: None,
    }
}

/// What a store says of a campaign at its end: its digest and its findings, those about the fleet counted apart.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    digest: String,
    findings: BTreeSet<String>,
    fleet: usize,
}

fn told(store: &Path, name: &str) -> Result<Told> {
    let (store, _) = Store::open(store, Options::default())?;
    let (mut ids, mut fleet) = (BTreeSet::new(), 0);
    for finding in store.findings() {
        let finding = finding?;
        if finding.oracle == "fleet" {
            fleet += 1;
        } else {
            ids.insert(finding.id.to_string());
        }
    }
    Ok(Told { digest: store.digest(name)?.to_string(), findings: ids, fleet })
}

/// Runs a campaign undisturbed, and under attack.
fn campaign(settings: &Settings, attacks: &[Attack], repeat: &str) -> Result<(Told, Attacked)> {
    if settings.store.exists() {
        bail!("{} already exists; the attacks need new stores", settings.store.display());
    }
    let oracles = Arc::new(Oracles::new());
    let spec = settings.spec(&oracles.fingerprint());
    whole(settings)?.wait()?;
    let quiet = told(&settings.store, &spec.name)?;
    let store = settings.store.with_extension("attacked");
    let server = Server::start(&store, repeat)?;
    let words = ["work", "--threads", "1", "--coordinator"];
    let addr = server.addr.to_string();
    let worker =
        || Process::start(&words.iter().map(OsStr::new).chain([OsStr::new(&addr)]).collect::<Vec<_>>());
    let counts = Arc::<Counts>::default();
    let runtime = runtime()?;
    let (slowest, answers) = runtime.block_on(async {
        let mut client = connect(&server.addr.into()).await?;
        client.create_campaign(spec.clone()).await.map_err(said)?;
        let mut tasks = tokio::task::JoinSet::new();
        for attack in attacks {
            for n in 0..attack.workers() {
                tasks.spawn(hostile::attack(
                    *attack,
                    n,
                    server.addr,
                    Arc::clone(&oracles),
                    Arc::clone(&counts),
                ));
            }
        }
        if attacks.len() > 1 {
            clients::spawn(&mut tasks, server.addr, server.http, &counts);
        }
        let _honest = (worker()?, worker()?);
        watch(&server, &spec.name).await
    })?;
    let peak_mib = server.process.peak_mib().unwrap_or(0);
    runtime.shutdown_background();
    server.process.kill()?;
    let ended = Attacked { told: told(&store, &spec.name)?, slowest, answers, peak_mib, counts };
    Ok((quiet, ended))
}

/// Asks for the campaign, as an honest client on a connection of its own each time, until it is done. Returns the longest
/// time until an answer, and the number of answers.
async fn watch(server: &Server, name: &str) -> Result<(Duration, u64)> {
    let (mut slowest, mut answers) = (Duration::ZERO, 0);
    loop {
        let began = Instant::now();
        let asked = async {
            let mut client = connect(&server.addr.into()).await?;
            let name = v1::CampaignName { name: name.to_owned() };
            Ok::<_, anyhow::Error>(client.get_campaign(name).await.map_err(said)?.into_inner())
        };
        let status =
            tokio::time::timeout(PATIENCE, asked).await.context("an honest client got no answer")??;
        slowest = slowest.max(began.elapsed());
        answers += 1;
        if status.phase() == v1::CampaignPhase::Done {
            return Ok((slowest, answers));
        }
        tokio::time::sleep(LOOK).await;
    }
}
