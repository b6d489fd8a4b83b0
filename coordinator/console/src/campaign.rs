//! A campaign in this process: a coordinator and its workers, which talk gRPC over loopback.
//!
//! Contract: the name of a campaign holds the fingerprint of generator and models, so a campaign never mixes builds. A
//! campaign that is run again resumes from the last stop and ends with the same digest.

use crate::claim::kind;
use crate::{control, ending};
use anyhow::Result;
use moire_coordinator::{Local, digest_words, lease, v1};
use moire_corpus::{Finding, Hash, Options, Store};
use moire_program::canon::spell::Spell as _;
use moire_worker::job::{
    Budget, Cancel, Claim, Engine, Item, ItemReport, Part, Parted, Reduced, Verification,
};
use moire_worker::oracle::{
    DEVICE, Host, LIBNVVM, LLVM, LOWERING, NVCC, Oracles, SASS_TOOLS, STAND_IN, TILEIRAS, TRITON,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of the program stream.
    pub seed: u64,
    /// The profile of the program stream.
    pub profile: String,
    /// Only these oracles; empty: all of the profile.
    pub oracles: Vec<String>,
    /// Models compared, in order; empty: the default ones.
    pub models: Vec<String>,
    /// Number of programs after which the campaign ends; none: no limit.
    pub programs: Option<u64>,
    /// Time after which the run stops.
    pub time: Option<Duration>,
    /// Time that claims have after that to be verified and reduced.
    pub settling: Duration,
    /// Number of workers, of one thread each.
    pub workers: usize,
    /// Folder of the store.
    pub store: PathBuf,
    /// What the oracles `device` and `stand-in` ask.
    pub device: Option<Arc<dyn Host>>,
}

/// The progress of a run, and at its end the results.
#[derive(Debug, Default)]
pub struct Totals {
    /// Name of the campaign.
    pub campaign: String,
    /// The status of the whole campaign, earlier runs included.
    pub status: v1::CampaignStatus,
    /// Programs and executions recorded before this run.
    pub before: (u64, u64),
    /// The answers of the workers in this run.
    pub tally: Tally,
    /// Findings of the campaign, at the end of the run.
    pub findings: Vec<Finding>,
    /// What was confirmed and is not in the store, one of each id; with `true` what is reduced.
    pub under_way: Vec<(Finding, bool)>,
    /// Time the run took.
    pub seconds: f64,
    /// Digest of the campaign, at the end of the run.
    pub digest: String,
    /// Whether Ctrl-C ended the run.
    pub interrupted: bool,
}

/// The answers of the workers of this process.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of claims by oracle, direction and models.
    pub claims: BTreeMap<String, u64>,
    /// Number of claims that a rule is broken; differences between versions of a model are not counted.
    pub broken: u64,
    /// Number of kernels by compiler and by verdict, and of programs by device.
    pub compiled: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Totals {
    /// Takes the current status, and shows it.
    fn see(
        &mut self,
        status: &v1::CampaignStatus,
        engine: &Tallied,
        start: Instant,
        progress: &mut dyn FnMut(&Totals),
    ) {
        self.status = status.clone();
        self.tally = engine.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.seconds = start.elapsed().as_secs_f64();
        progress(self);
    }
}

/// The oracles, with a tally of their answers.
struct Tallied {
    oracles: Oracles,
    tally: Mutex<Tally>,
}

impl Engine for Tallied {
    fn capabilities(&self) -> Vec<String> {
        self.oracles.capabilities()
    }

    fn fingerprint(&self) -> String {
        self.oracles.fingerprint()
    }

    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport {
        let report = self.oracles.run(item, cancel);
        if !cancel.is_cancelled() {
            self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
        }
        report
    }

    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        self.oracles.verify(claim, cancel)
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        self.oracles.minimise(claim, budget, cancel, progress)
    }

    fn part(&self, claim: &Claim, part: &Part, cancel: &Cancel) -> Option<Parted> {
        self.oracles.part(claim, part, cancel)
    }
}

impl Tally {
    fn add(&mut self, report: &ItemReport) {
        for claim in &report.claims {
            *self.claims.entry(kind(claim)).or_default() += 1;
            self.broken += u64::from(claim.direction.is_bug());
        }
        for row in &report.engines {
            let tools = [TILEIRAS, LLVM, NVCC, LIBNVVM, TRITON, DEVICE, STAND_IN, SASS_TOOLS];
            if tools.iter().any(|t| row.engine.starts_with(t.capability)) || row.engine == LOWERING.name {
                let verdicts = self.compiled.entry(row.engine.clone()).or_default();
                *verdicts.entry(row.verdict.clone()).or_default() += 1;
            }
        }
    }
}

impl Settings {
    /// Describes the campaign of these settings, for workers with this fingerprint.
    pub fn spec(&self, fingerprint: &str) -> v1::CampaignSpec {
        let mut name =
            format!("fuzz-{}-{}-{}", self.profile, self.seed, &fingerprint[..8.min(fingerprint.len())]);
        if !self.oracles.is_empty() || !self.models.is_empty() {
            let mut what = self.oracles.spelling() + &self.models.spelling();
            // What two devices show is not put together.
            let identity = self.device.iter().map(|host| host.identity());
            identity.for_each(|it| what.push_str(&format!("{} {} {}", it.name, it.uuid, it.driver)));
            name.push_str(&format!("-{}", &Hash::of(what.as_bytes()).short()[..6]));
        }
        v1::CampaignSpec {
            name,
            seed: self.seed,
            profile: self.profile.clone(),
            oracles: self.oracles.clone(),
            models: self.models.clone(),
            programs: self.programs.unwrap_or(0),
            priority: 1,
            canaries: true,
            needs: needs(&self.oracles),
            fingerprint: fingerprint.to_owned(),
        }
    }
}

/// Lists the capabilities that a worker needs for these oracles.
pub fn needs(oracles: &[String]) -> Vec<String> {
    moire_proto::needs::needs(oracles.iter().map(String::as_str)).collect()
}

/// What is said when the end is asked for.
pub const STOPPING: &str = "stopping; what is done is recorded; press Ctrl-C again to stop at once";

/// A listener that gets each new finding once it is durable.
pub type Announce = Box<dyn Fn(&Finding) + Send>;

/// Runs the campaign until its limit, its time or a request to end ([`ending`]). `progress` gets the totals a few times a second.
///
/// # Errors
/// The store or the coordinator fails.
pub fn run(settings: &Settings, announce: Announce, progress: &mut dyn FnMut(&Totals)) -> Result<Totals> {
    ending::listen(STOPPING);
    let runtime = control::runtime()?;
    let engine =
        Arc::new(Tallied { oracles: Oracles::with_device(settings.device.clone()), tally: Mutex::default() });
    let spec = settings.spec(&engine.fingerprint());
    let name = spec.name.clone();
    let mut totals = runtime.block_on(campaign(settings, spec, &engine, announce, progress))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    let digest = Store::open(&settings.store, Options::default())?.0.digest(&name)?;
    totals.digest = digest_words(digest, totals.status.quarantined);
    Ok(totals)
}

/// The time after which a worker that lost its coordinator comes back.
const AGAIN: Duration = Duration::from_millis(500);

/// Starts workers of one thread each for the coordinator at `addr`, in this process. One whose lease made no progress is given up
/// by the coordinator, and comes back.
pub fn workers<E: Engine + 'static>(addr: SocketAddr, engine: &Arc<E>, workers: usize) {
    for n in 0..workers.max(1) {
        let options = moire_worker::Options { name: format!("local-{n}"), threads: 1 };
        let engine: Arc<dyn Engine> = Arc::<E>::clone(engine);
        tokio::spawn(async move {
            // Until the runtime ends, after the coordinator.
            while let Err(error) = moire_worker::work(addr, Arc::clone(&engine), options.clone()).await {
                tracing::debug!(%error, "worker ended");
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
}

async fn campaign(
    settings: &Settings,
    spec: v1::CampaignSpec,
    engine: &Arc<Tallied>,
    announce: Announce,
    progress: &mut dyn FnMut(&Totals),
) -> Result<Totals> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let local = Local::start(&settings.store, anywhere, lease::Config::default()).await?;
    crate::stored::say(&settings.store, local.recovery(), local.losses());
    local.announce(announce).await?;
    let first = local.create(spec.clone()).await?;
    let mut totals = Totals {
        campaign: spec.name.clone(),
        before: (first.programs, first.executions),
        ..Totals::default()
    };
    workers(local.addr(), engine, settings.workers);
    let start = Instant::now();
    let time = settings.time;
    let mut interrupted = false;
    let stop = async {
        let over = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = ending::asked() => interrupted = true,
        }
    };
    totals.status = local.run(spec, stop, |status| totals.see(status, engine, start, progress)).await?;
    if !interrupted && totals.status.phase != i32::from(v1::CampaignPhase::Done) {
        totals.status = settle(&local, settings, engine, &mut totals, start, progress).await?;
    }
    totals.interrupted = interrupted;
    totals.tally = engine.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
    totals.seconds = start.elapsed().as_secs_f64();
    totals.findings = local.findings().await?.into_iter().filter(|f| f.campaign == totals.campaign).collect();
    totals.under_way = local.under_way(&totals.campaign).await?;
    totals.under_way.sort_by_key(|(f, reduced)| (f.id, !reduced, f.reduced.len()));
    totals.under_way.dedup_by_key(|(f, _)| f.id);
    totals.under_way.retain(|(f, _)| totals.findings.iter().all(|known| known.id != f.id));
    local.stop().await?;
    Ok(totals)
}

/// Lets the claims of a campaign whose time is over be verified. The campaign stays paused, so that no other coordinator of the
/// store takes it up unasked.
async fn settle(
    local: &Local,
    settings: &Settings,
    engine: &Tallied,
    totals: &mut Totals,
    start: Instant,
    progress: &mut dyn FnMut(&Totals),
) -> Result<v1::CampaignStatus> {
    let over = async {
        tokio::select! {
            () = tokio::time::sleep(settings.settling) => {}
            () = ending::asked() => {}
        }
    };
    let name = totals.campaign.clone();
    Ok(local.settle(&name, over, |status| totals.see(status, engine, start, progress)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "0-01234567-366dc2 1-01234567-8b7d48 2-01234567-8bfbe8 3-01234567-a2b67e 4-01234567-3b4ade 5-01234567-623b04 6-01234567-e1c96e 7-01234567-060966 8-01234567-547ace 9-01234567-6c2332 10-01234567-7d9c5f 11-01234567-8ad2d9 12-01234567-6aaeab 13-01234567-9ac0b2 14-01234567-d665b9 15-01234567-98f61f 16-01234567-e8c75b 17-01234567-159656 18-01234567-b5932f 19-01234567-1f2553";

    #[test]
    fn twenty_campaigns_keep_their_names() {
        let settings = |n: u64| Settings {
            seed: n,
            profile: "core".into(),
            oracles: if n < 10 { vec!["self".into(), format!("oracle{n}")] } else { Vec::new() },
            models: vec![format!("ptx:Q1={n}"), "ptx-6.0".into()],
            programs: None,
            time: None,
            settling: Duration::ZERO,
            workers: 1,
            store: PathBuf::new(),
            device: None,
        };
        let names = (0..20).map(|n| settings(n).spec("0123456789").name.replace("fuzz-core-", ""));
        assert_eq!(names.collect::<Vec<_>>().join(" "), NAMES);
    }
}
