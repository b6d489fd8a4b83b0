//! A campaign from end to end over loopback: the digest depends on neither the number of workers nor their
//! deaths nor a restart of the coordinator. Source: design section 9.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::print_stdout, reason = "tests")]

use moire_coordinator::{Local, lease::Config, v1};
use moire_worker::job::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Answers from the index alone: every 50th item breaks one of three rules.
#[derive(Default)]
struct Fake {
    pause: Duration,
    ran: AtomicU64,
}

impl Engine for Fake {
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }
    fn fingerprint(&self) -> String {
        "fake-1".to_owned()
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        std::thread::sleep(self.pause);
        self.ran.fetch_add(1, Ordering::Relaxed);
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&item.index.to_le_bytes());
        let row = EngineReport {
            engine: "fake".to_owned(),
            outcomes: hash,
            executions: 2,
            ..EngineReport::default()
        };
        let rule = format!("rule-{}", item.index / 50 % 3);
        let program = format!("program of {}", item.index / 50 % 7);
        let claim =
            Claim { oracle: "fake".to_owned(), axioms: vec![vec![rule]], program, ..Claim::default() };
        let claims = if item.index.is_multiple_of(50) { vec![claim] } else { Vec::new() };
        ItemReport { program: hash, engines: vec![row], claims, ..ItemReport::default() }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        match claim.program.ends_with('5') {
            true => Verification::Refuted("not here".to_owned()),
            false => Verification::Confirmed,
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, _: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        let program = claim.program.replace("program of ", "p");
        Reduced { claim: Claim { program, ..claim.clone() }, tried: 1, normal: true }
    }
}

fn spec(programs: u64) -> v1::CampaignSpec {
    v1::CampaignSpec { name: "c".to_owned(), seed: 1, programs, ..v1::CampaignSpec::default() }
}

async fn start(dir: &Path) -> Local {
    Local::start(dir, "127.0.0.1:0".parse().unwrap(), Config::default()).await.unwrap()
}

fn worker(local: &Local, engine: Arc<Fake>) -> tokio::task::JoinHandle<()> {
    let (addr, options) = (local.addr(), moire_worker::Options { name: "w".to_owned(), threads: 2 });
    tokio::spawn(async move { _ = moire_worker::work(addr, engine, options).await })
}

async fn quiet(workers: usize, programs: u64) -> v1::CampaignStatus {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let tasks: Vec<_> = (0..workers).map(|_| worker(&local, Arc::default())).collect();
    let limit = tokio::time::sleep(Duration::from_secs(60));
    let end = local.run(spec(programs), limit, |_| {}).await.unwrap();
    local.stop().await.unwrap();
    tasks.into_iter().for_each(|t| t.abort());
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_does_not_depend_on_the_number_of_workers() {
    let one = quiet(1, 1500).await;
    assert_eq!((one.phase(), one.programs, one.discrepancies), (v1::CampaignPhase::Done, 1500, 30));
    assert!(one.findings >= 6 && one.refuted >= 1, "{one:?}");
    assert_eq!(quiet(3, 1500).await.digest, one.digest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_survives_lost_workers_and_a_restart() {
    let expected = quiet(2, 1000).await;
    let dir = tempfile::tempdir().unwrap();
    let slow = || Arc::new(Fake { pause: Duration::from_millis(1), ..Fake::default() });
    for _ in 0..2 {
        let local = start(dir.path()).await;
        let mut tasks = vec![worker(&local, slow()), worker(&local, slow())];
        let kills = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(60)).await;
                tasks.remove(0).abort();
                tasks.push(worker(&local, slow()));
            }
        };
        local.run(spec(1000), kills, |_| {}).await.unwrap();
        local.stop().await.unwrap();
        tasks.into_iter().for_each(|t| t.abort());
    }
    let local = start(dir.path()).await;
    let task = worker(&local, Arc::default());
    let end = local.run(spec(1000), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    local.stop().await.unwrap();
    task.abort();
    assert_eq!((end.phase(), end.quarantined), (v1::CampaignPhase::Done, 0));
    assert_eq!(end.digest, expected.digest);
}

#[tokio::test]
async fn strangers_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let other = v1::CampaignSpec { fingerprint: "another".to_owned(), ..spec(10) };
    local.create(other).await.unwrap();
    let options = moire_worker::Options { name: "w".to_owned(), threads: 1 };
    let refused =
        moire_worker::work(local.addr(), Arc::new(Fake::default()), options.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("fingerprint mismatch"), "{refused}");
    let far = moire_worker::work("192.0.2.1:1".parse().unwrap(), Arc::new(Fake::default()), options)
        .await
        .unwrap_err();
    assert!(far.to_string().contains("loopback"), "{far}");
    let bad = local.create(v1::CampaignSpec { name: "a b".to_owned(), ..spec(1) }).await.unwrap_err();
    assert!(bad.to_string().contains("name"), "{bad}");
    local.stop().await.unwrap();
}
