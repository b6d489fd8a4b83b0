//! `moire bench fleet`: runs the README's fleet on this machine, and kills its workers again and again.
//!
//! Contract: unless its digest is given, a campaign is first run without kills. Then it is run by a coordinator with
//! certificates and two workers. Each worker is killed with SIGKILL at times that are a function of the seed, and
//! started again as by a service manager. Both runs must end with the same digest, and no item may be given up.

use super::chaos::{digest, draw, whole};
use super::process::Process;
use anyhow::{Context, Result, bail};
use moire_console::campaign::Settings;
use moire_console::control::{connect, runtime, said};
use moire_console::exit;
use moire_console::time::duration;
use moire_coordinator::clock::millis;
use moire_coordinator::{certs, v1};
use moire_worker::job::Engine;
use moire_worker::link::{Address, Link};
use moire_worker::oracle::Oracles;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of workers, as in the README.
const WORKERS: usize = 2;
/// Shortest life of a worker.
const LIFE_MIN_MS: u64 = 200;
/// Time a service manager waits before it starts a process again.
const RESTART: Duration = Duration::from_millis(500);
/// Longest wait for the coordinator to listen.
const START: Duration = Duration::from_secs(60);
/// Time between two polls of the workers.
const GLANCE: Duration = Duration::from_millis(20);
/// Time between two polls of the campaign.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct Fleet {
    /// Programs of the campaign
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    programs: u64,
    /// Seed of the campaign and of the kills
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these oracles (repeatable)
    #[arg(long)]
    oracle: Vec<String>,
    /// Compare these models (repeatable)
    #[arg(long = "model")]
    models: Vec<String>,
    /// Longest life of a worker
    #[arg(long, value_name = "TIME", default_value = "10s")]
    life: String,
    /// Digest of the campaign without kills [default: found by a run without kills]
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,
    /// Stop after this time: 90s, 10m, 2h
    #[arg(long = "for", value_name = "TIME", default_value = "2h")]
    time: String,
    /// New folder for stores and certificates [default: a temporary one, removed when all is well]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// A worker, running or about to be started.
struct Slot {
    process: Option<Process>,
    /// The time at which it is killed or started.
    due: Instant,
}

/// A campaign whose workers are killed.
struct Campaign<'a> {
    args: &'a Fleet,
    link: Link,
    address: String,
    worker: PathBuf,
    longest_ms: u64,
    starts: u64,
    kills: u64,
}

pub(crate) fn run(args: &Fleet) -> Result<u8> {
    let begun = Instant::now();
    let temporary = std::env::temp_dir().join(format!("moire-fleet-{}", std::process::id()));
    let folder = args.store.clone().unwrap_or_else(|| temporary.clone());
    if folder.exists() {
        bail!("{} already exists; name a new folder", folder.display());
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let settings = Settings {
        seed: args.seed,
        profile: "core".to_owned(),
        oracles: args.oracle.clone(),
        models: args.models.clone(),
        programs: Some(args.programs),
        time: None,
        settling: Duration::ZERO,
        workers: WORKERS,
        store: folder.join("quiet"),
        device: None,
    };
    let quiet = match &args.digest {
        Some(digest) => digest.clone(),
        None => {
            eprintln!("{} programs without kills", args.programs);
            digest(&whole(&settings)?.wait()?)?.replace("digest ", "")
        }
    };
    let peace = begun.elapsed();
    let Some((status, kills)) = disturbed(args, &folder, &settings)? else {
        eprintln!("not done in time");
        return Ok(exit::INCOMPLETE);
    };
    let in_peace = match args.digest {
        Some(_) => String::new(),
        None => format!(", {:.0} s without kills", peace.as_secs_f64()),
    };
    println!(
        "{} programs by {WORKERS} workers, killed {kills} times, {} given up, {} findings; {:.0} s{in_peace}",
        status.programs,
        status.quarantined,
        status.findings,
        (begun.elapsed() - peace).as_secs_f64(),
    );
    println!("digest {}", status.digest);
    if status.digest != quiet || status.quarantined > 0 {
        println!("PROBLEM the digest without kills is {quiet}; the stores are kept in {}", folder.display());
        return Ok(exit::FINDING);
    }
    println!("the digest is that of the run without kills");
    if args.store.is_none() {
        std::fs::remove_dir_all(&temporary).context("removing the stores")?;
    }
    Ok(exit::CLEAN)
}

/// Runs the campaign with kills; `None` if the time was up.
fn disturbed(args: &Fleet, folder: &Path, settings: &Settings) -> Result<Option<(v1::CampaignStatus, u64)>> {
    let until = Instant::now() + duration(&args.time)?;
    let life = duration(&args.life)?;
    let keys = folder.join("certs");
    certs::init(&keys, &[], 30)?;
    let (server, store) = (keys.join("server"), folder.join("fleet"));
    let words = ["serve", "--listen", "127.0.0.1:0", "--certs"].map(OsStr::new);
    let words = [&words[..], &[server.as_os_str(), OsStr::new("--store"), store.as_os_str()]].concat();
    let mut coordinator = Process::start(&words)?;
    let Some(address) = coordinator.says(" on ", Instant::now() + START)? else {
        bail!("the coordinator did not start: {}", coordinator.kill()?.err.join("\n"));
    };
    let to: Address = address.parse().map_err(anyhow::Error::msg)?;
    let mut campaign = Campaign {
        args,
        link: Link::new(to, Some(keys.join("operator"))),
        address,
        worker: keys.join("worker"),
        longest_ms: millis(life).max(LIFE_MIN_MS + 1),
        starts: 0,
        kills: 0,
    };
    let spec = settings.spec(&Oracles::new().fingerprint());
    let status = campaign.run(spec, until, &mut coordinator)?;
    Ok(status.map(|status| (status, campaign.kills)))
}

impl Campaign<'_> {
    fn run(
        &mut self,
        spec: v1::CampaignSpec,
        until: Instant,
        coordinator: &mut Process,
    ) -> Result<Option<v1::CampaignStatus>> {
        let runtime = runtime()?;
        let name = spec.name.clone();
        let mut client = runtime.block_on(connect(&self.link))?;
        runtime.block_on(client.create_campaign(spec)).map_err(said)?;
        let mut slots: Vec<_> = (0..WORKERS).map(|_| Slot { process: None, due: Instant::now() }).collect();
        let mut looked = Instant::now();
        while Instant::now() < until {
            for slot in &mut slots {
                self.tend(slot)?;
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                if coordinator.over(Instant::now())? {
                    bail!("the coordinator ended by itself");
                }
                let asked = client.get_campaign(v1::CampaignName { name: name.clone() });
                let status = runtime.block_on(asked).map_err(said)?.into_inner();
                eprintln!("{} of {} programs, {} kills", status.programs, self.args.programs, self.kills);
                if status.phase() == v1::CampaignPhase::Done {
                    return Ok(Some(status));
                }
            }
            std::thread::sleep(GLANCE);
        }
        Ok(None)
    }

    /// Kills or starts a worker when that is due.
    fn tend(&mut self, slot: &mut Slot) -> Result<()> {
        if Instant::now() < slot.due {
            return Ok(());
        }
        match slot.process.take() {
            Some(process) => {
                process.kill()?;
                self.kills += 1;
                slot.due = Instant::now() + RESTART;
            }
            None => {
                let words =
                    ["work", "--threads", "1", "--coordinator", &self.address, "--certs"].map(OsStr::new);
                slot.process = Some(Process::start(&[&words[..], &[self.worker.as_os_str()]].concat())?);
                self.starts += 1;
                let life =
                    LIFE_MIN_MS + draw(self.args.seed, self.starts, "life", self.longest_ms - LIFE_MIN_MS);
                slot.due = Instant::now() + Duration::from_millis(life);
            }
        }
        Ok(())
    }
}
