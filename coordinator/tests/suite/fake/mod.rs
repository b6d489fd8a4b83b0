//! An engine whose answers are a function of the index alone, and a coordinator for it.

use moire_coordinator::{Local, lease::Config, v1};
use moire_worker::job::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An engine for which every 50th item breaks one of three rules.
#[derive(Default)]
pub(crate) struct Fake {
    pub pause: Duration,
    pub ran: AtomicU64,
    /// Number of the build; 0 is the first one.
    pub build: u64,
    /// Whether it abstains from every verification.
    pub mute: bool,
    /// Its capabilities.
    pub has: Vec<String>,
    /// Number of claims that it ran again.
    pub verified: AtomicU64,
    /// Campaigns of which it ran items.
    pub campaigns: Mutex<BTreeSet<String>>,
}

impl Engine for Fake {
    fn capabilities(&self) -> Vec<String> {
        self.has.clone()
    }
    fn fingerprint(&self) -> String {
        format!("fake-{}", 1 + self.build)
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        std::thread::sleep(self.pause);
        self.ran.fetch_add(1, Ordering::Relaxed);
        self.campaigns.lock().unwrap().insert(item.plan.campaign.clone());
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&item.index.to_le_bytes());
        let row = EngineReport {
            engine: "fake".to_owned(),
            outcomes: hash,
            executions: 2,
            ..EngineReport::default()
        };
        let claims = if item.index.is_multiple_of(50) { vec![claim(item.index)] } else { Vec::new() };
        ItemReport { program: hash, engines: vec![row], claims, ..ItemReport::default() }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        self.verified.fetch_add(1, Ordering::Relaxed);
        if self.mute {
            return Verification::Abstained("a tool that is not here".to_owned());
        }
        let real = claim.program.starts_with("program of ") || claim.program.starts_with('p');
        match !real || claim.program.ends_with('5') {
            true => Verification::Refuted("not here".to_owned()),
            false => Verification::Confirmed,
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, _: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        let program = claim.program.replace("program of ", "p");
        Reduced { claim: Claim { program, ..claim.clone() }, tried: 1, normal: true }
    }
}

/// Returns the claim about the item at `index`, for items that break a rule.
pub(crate) fn claim(index: u64) -> Claim {
    let rule = format!("rule-{}", index / 50 % 3);
    let program = format!("program of {}", index / 50 % 7);
    Claim { oracle: "fake".to_owned(), axioms: vec![vec![rule]], program, ..Claim::default() }
}

/// Returns the honest answer for an item, as a message.
pub(crate) fn honest(index: u64) -> v1::ItemResult {
    let source = Source::Generated { seed: 1, profile: String::new(), index };
    let item = Item { plan: Arc::default(), index, source };
    moire_worker::wire::item_result(index, Fake::default().run(&item, &Cancel::new()))
}

pub(crate) fn spec(programs: u64) -> v1::CampaignSpec {
    v1::CampaignSpec { name: "c".to_owned(), seed: 1, programs, ..v1::CampaignSpec::default() }
}

/// Starts a coordinator that has nothing done again, so that tests know which leases there are.
pub(crate) async fn start(dir: &Path, config: Config) -> Local {
    let config = Config { repeat_per_mille: 0, ..config };
    Local::start(dir, "127.0.0.1:0".parse().unwrap(), config).await.unwrap()
}

pub(crate) fn worker(local: &Local, engine: Arc<Fake>) -> tokio::task::JoinHandle<()> {
    let (addr, options) = (local.addr(), moire_worker::Options { name: "w".to_owned(), threads: 2 });
    tokio::spawn(async move { _ = moire_worker::work(addr, engine, options).await })
}

/// Waits until this many workers are connected.
pub(crate) async fn connected(local: &Local, workers: u32) {
    let mut client = people(local).await;
    while client.get_status(v1::GetStatusRequest {}).await.unwrap().get_ref().workers < workers {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Connects a client of the control service.
pub(crate) async fn people(
    local: &Local,
) -> v1::control_service_client::ControlServiceClient<tonic::transport::Channel> {
    let addr = format!("http://{}", local.addr());
    v1::control_service_client::ControlServiceClient::connect(addr).await.unwrap()
}

/// Runs a campaign without faults. Returns its last status and its findings.
pub(crate) async fn quiet(workers: usize, programs: u64) -> (v1::CampaignStatus, Vec<moire_corpus::Finding>) {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), Config { avoid_ms: 3_600_000, ..Config::default() }).await;
    let tasks: Vec<_> = (0..workers).map(|_| worker(&local, Arc::default())).collect();
    connected(&local, u32::try_from(workers).unwrap()).await;
    let limit = tokio::time::sleep(Duration::from_secs(60));
    let end = local.run(spec(programs), limit, |_| {}).await.unwrap();
    let findings = local.findings().await.unwrap();
    local.stop().await.unwrap();
    tasks.into_iter().for_each(|t| t.abort());
    (end, findings)
}
