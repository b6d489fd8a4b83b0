//! A campaign from end to end over loopback: its digest does not depend on the number of workers, on workers that die,
//! or on a restart of the coordinator.

mod reduce;

use crate::fake::{Fake, connected, quiet, spec, worker};
use moire_coordinator::{Local, lease::Config, v1};
use moire_corpus::Verified;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Reduced, Verification};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

async fn start(dir: &Path) -> Local {
    crate::fake::start(dir, Config::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_does_not_depend_on_the_number_of_workers() {
    let (one, findings) = quiet(1, 1500).await;
    assert_eq!((one.phase(), one.programs, one.discrepancies), (v1::CampaignPhase::Done, 1500, 30));
    assert!(one.findings >= 6 && one.refuted >= 1, "{one:?}");
    assert!(findings.iter().all(|f| f.verified == Verified::Itself), "there was one worker");
    let (three, findings) = quiet(3, 1500).await;
    assert_eq!(three.digest, one.digest);
    assert!(findings.iter().all(|f| f.verified == Verified::Other), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_survives_lost_workers_and_a_restart() {
    let (expected, _) = quiet(2, 1000).await;
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

/// A claim that no worker could run again is not a finding, and is not minimised.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_cannot_be_verified_is_counted_and_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let task = worker(&local, Arc::new(Fake { mute: true, ..Fake::default() }));
    let end = local.run(spec(200), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    let findings = local.findings().await.unwrap();
    local.stop().await.unwrap();
    task.abort();
    assert_eq!((end.phase(), end.discrepancies, end.refuted), (v1::CampaignPhase::Done, 4, 0));
    assert_eq!(end.abstentions.get("not verified"), Some(&4), "{end:?}");
    assert_eq!(findings, []);
}

/// Claims wait for the items before them, so those are still run once the time is over, and others are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_are_settled_though_items_before_them_were_open() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let first = worker(&local, Arc::new(Fake { pause: Duration::from_millis(200), ..Fake::default() }));
    local.create(spec(0)).await.unwrap();
    connected(&local, 1).await;
    let quick = Arc::<Fake>::default();
    let second = worker(&local, quick.clone());
    while local.status("c").await.unwrap().unverified == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    first.abort();
    let end = local.settle("c", tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.unverified), (v1::CampaignPhase::Paused, 0));
    assert!(end.findings > 0, "{end:?}");
    let ran = quick.ran.load(std::sync::atomic::Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(quick.ran.load(std::sync::atomic::Ordering::Relaxed), ran, "nothing more is drawn");
    local.stop().await.unwrap();
    second.abort();
}

#[tokio::test]
async fn other_builds_far_addresses_and_bad_names_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let other = v1::CampaignSpec { fingerprint: "another".to_owned(), ..spec(10) };
    local.create(other).await.unwrap();
    let options = moire_worker::Options { name: "w".to_owned(), threads: 1 };
    let refused =
        moire_worker::work(local.addr(), Arc::new(Fake::default()), options.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("fingerprint mismatch"), "{refused}");
    let there: std::net::SocketAddr = "192.0.2.1:1".parse().unwrap();
    let far = moire_worker::work(there, Arc::new(Fake::default()), options).await.unwrap_err();
    assert!(far.to_string().contains("not on this machine"), "{far}");
    let bad = local.create(v1::CampaignSpec { name: "a b".to_owned(), ..spec(1) }).await.unwrap_err();
    assert!(bad.to_string().contains("name"), "{bad}");
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_mixes_no_builds() {
    let (expected, _) = quiet(1, 600).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let old = Arc::new(Fake { pause: Duration::from_millis(1), ..Fake::default() });
    let new = Arc::new(Fake { build: 1, ..Fake::default() });
    let task = worker(&local, old.clone());
    local.run(spec(600), tokio::time::sleep(Duration::from_millis(100)), |_| {}).await.unwrap();
    local.stop().await.unwrap();
    task.abort();
    // The coordinator is upgraded first. A worker that is upgraded too early is refused and does not try again.
    let local = start(dir.path()).await;
    let options = moire_worker::Options { name: "new".to_owned(), threads: 1 };
    let (_asked, stop) = tokio::sync::watch::channel(());
    let refused = moire_worker::stay(&local.addr().into(), new.clone(), options, stop).await.unwrap_err();
    assert!(refused.to_string().contains("fingerprint mismatch: the worker has fake-2"), "{refused}");
    // Then a campaign of the new build starts: each worker gets the items of its own build.
    let next = v1::CampaignSpec { name: "next".to_owned(), fingerprint: "fake-2".to_owned(), ..spec(600) };
    local.create(next.clone()).await.unwrap();
    let tasks = [worker(&local, old.clone()), worker(&local, new.clone())];
    let limit = || tokio::time::sleep(Duration::from_secs(60));
    let ends = [
        local.run(spec(600), limit(), |_| {}).await.unwrap(),
        local.run(next, limit(), |_| {}).await.unwrap(),
    ];
    local.stop().await.unwrap();
    tasks.into_iter().for_each(|t| t.abort());
    for end in ends {
        assert_eq!((end.phase(), &end.digest), (v1::CampaignPhase::Done, &expected.digest));
    }
    let of = |fake: &Fake| fake.campaigns.lock().unwrap().iter().cloned().collect::<Vec<_>>();
    assert_eq!((of(&old), of(&new)), (vec!["c".to_owned()], vec!["next".to_owned()]));
}

#[tokio::test]
async fn a_campaign_keeps_what_it_needs_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let needs = vec!["sm_100a".to_owned(), "tileiras".to_owned()];
    let asked = v1::CampaignSpec { needs: needs.clone(), canaries: true, ..spec(10) };
    local.create(asked).await.unwrap();
    local.create(v1::CampaignSpec { name: "plain".to_owned(), ..spec(10) }).await.unwrap();
    local.stop().await.unwrap();
    let local = start(dir.path()).await;
    let kept = local.status("c").await.unwrap().spec.unwrap();
    assert_eq!((kept.needs, kept.canaries), (needs, true));
    let kept = local.status("plain").await.unwrap().spec.unwrap();
    assert_eq!((kept.needs, kept.canaries), (Vec::new(), false));
    let task = worker(&local, Arc::default());
    let end = local
        .run(
            v1::CampaignSpec { name: "plain".to_owned(), ..spec(10) },
            tokio::time::sleep(Duration::from_secs(60)),
            |_| {},
        )
        .await
        .unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done);
    assert_eq!(local.status("c").await.unwrap().programs, 0, "no worker has what it needs");
    local.stop().await.unwrap();
    task.abort();
}

/// A stream that only tools judge is for workers that have them, also where the campaign does not say so, and gives one
/// digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_tool_waits_for_workers_that_have_it() {
    let mut digests = Vec::new();
    for company in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let local = start(dir.path()).await;
        let asked = |profile: &str, oracles: &[&str]| v1::CampaignSpec {
            name: format!("{profile}-{}", oracles.len()),
            profile: profile.to_owned(),
            oracles: oracles.iter().map(|o| (*o).to_owned()).collect(),
            ..spec(100)
        };
        let bare = Arc::<Fake>::default();
        let mut tasks: Vec<_> = (0..company).map(|_| worker(&local, bare.clone())).collect();
        crate::fake::connected(&local, company).await;
        let needs = |status: v1::CampaignStatus| {
            let spec = status.spec.unwrap_or_default();
            (spec.oracles.join("+"), spec.needs.join("+"), status.able)
        };
        let of = |oracles: &str, tools: &str, able| (oracles.to_owned(), tools.to_owned(), able);
        let kernels = needs(local.create(asked("tile-ir", &[])).await.unwrap());
        assert_eq!(kernels, of("compiler", "tileiras", 0));
        assert_eq!(needs(local.create(asked("source", &[])).await.unwrap()), of("llvm", "llvm", 0));
        let mixed = local.create(asked("source", &["mixing", "nvcc"])).await.unwrap();
        assert_eq!(needs(mixed), of("mixing+nvcc", "mixing+nvcc", 0));
        let plain = local.create(asked("mixed", &["self"])).await.unwrap();
        assert_eq!(needs(plain), of("self", "", company));
        let limit = || tokio::time::sleep(Duration::from_secs(60));
        if company > 0 {
            let plain = local.run(asked("mixed", &["self"]), limit(), |_| {}).await.unwrap();
            assert_eq!(plain.phase(), v1::CampaignPhase::Done);
            assert_eq!(local.status("tile-ir-0").await.unwrap().programs, 0);
        }
        let has = vec!["tileiras".to_owned()];
        tasks.push(worker(&local, Arc::new(Fake { has, ..Fake::default() })));
        let end = local.run(asked("tile-ir", &[]), limit(), |_| {}).await.unwrap();
        assert_eq!((end.phase(), end.programs), (v1::CampaignPhase::Done, 100));
        assert!(!bare.campaigns.lock().unwrap().contains("tile-ir-0"), "it has no such tool");
        digests.push(end.digest);
        local.stop().await.unwrap();
        tasks.into_iter().for_each(|t| t.abort());
    }
    assert_eq!(digests[0], digests[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finding_that_needs_a_device_class_is_run_again_only_on_workers_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let class = "sm_100a".to_owned();
    let (bare, other) = (Arc::<Fake>::default(), "sm_90a".to_owned());
    let equipped = Arc::new(Fake { has: vec![class.clone()], ..Fake::default() });
    let older = Arc::new(Fake { has: vec![other], ..Fake::default() });
    let tasks = [&bare, &older, &equipped].map(|engine| worker(&local, engine.clone()));
    crate::fake::connected(&local, 3).await;
    let asked = v1::CampaignSpec { needs: vec![class], ..spec(100) };
    local.run(asked, tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    let id = local.findings().await.unwrap()[0].id.to_string();
    let mut client = crate::fake::people(&local).await;
    let mut again = async || {
        let request = v1::RetestFindingRequest { id: id.clone(), runs: 8 };
        let record = client.retest_finding(request).await.unwrap().into_inner();
        let finding: moire_corpus::Finding = serde_json::from_str(&record.json).unwrap();
        let last = finding.retest.unwrap();
        (last.seen, last.silent, last.reason)
    };
    assert_eq!(again().await, (8, 0, String::new()));
    let ran = |fake: &Fake| fake.verified.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((ran(&bare), ran(&older)), (0, 0));
    assert!(ran(&equipped) >= 8);
    // The worker with the class leaves, and no other takes its place.
    tasks[2].abort();
    let gone = async {
        while workers_here(&local).await > 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert_eq!(again().await, (0, 8, "no worker with sm_100a is connected".to_owned()));
    assert_eq!((ran(&bare), ran(&older)), (0, 0));
    local.stop().await.unwrap();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A worker whose claims are about what a device showed.
#[derive(Default)]
struct Seeing(Fake);

impl Engine for Seeing {
    fn capabilities(&self) -> Vec<String> {
        vec!["stand-in".to_owned()]
    }
    fn fingerprint(&self) -> String {
        self.0.fingerprint()
    }
    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport {
        let mut report = self.0.run(item, cancel);
        report.claims.iter_mut().for_each(|claim| claim.oracle = "stand-in".to_owned());
        report
    }
    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        self.0.verify(claim, cancel)
    }
    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        told: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        self.0.minimise(claim, budget, cancel, told)
    }
}

/// A sample refutes and never confirms: what one worker saw, another one does not see again, or does not see again yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_device_showed_is_seen_again_or_not_and_never_refuted() {
    const AGAIN: &str = "seen on a device, and not seen again";
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let join = || {
        let (addr, options) = (local.addr(), moire_worker::Options { name: "w".to_owned(), threads: 1 });
        tokio::spawn(async move { _ = moire_worker::work(addr, Arc::<Seeing>::default(), options).await })
    };
    let tasks = [join(), join(), join()];
    crate::fake::connected(&local, 3).await;
    let asked = v1::CampaignSpec { oracles: vec!["stand-in".to_owned()], ..spec(600) };
    let end = local.run(asked, tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done);
    // The engine refutes the claim about the fifth program.
    assert!(end.abstentions.get(AGAIN).is_some_and(|n| *n > 0), "{:?}", end.abstentions);
    assert!(!end.abstentions.contains_key("refuted"), "{:?}", end.abstentions);
    let findings = local.findings().await.unwrap();
    assert!(!findings.is_empty() && findings.iter().all(|f| f.oracle == "stand-in"), "{findings:?}");
    local.stop().await.unwrap();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Returns the number of connected workers.
async fn workers_here(local: &Local) -> u32 {
    let mut client = crate::fake::people(local).await;
    client.get_status(v1::GetStatusRequest {}).await.unwrap().get_ref().workers
}

#[tokio::test]
async fn findings_are_announced_once_when_they_are_durable() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path()).await;
    let (sender, receiver) = std::sync::mpsc::channel();
    local.announce(move |f| sender.send(f.id).unwrap()).await.unwrap();
    let task = worker(&local, Arc::default());
    local.run(spec(1500), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    let mut stored: Vec<_> = local.findings().await.unwrap().iter().map(|f| f.id).collect();
    local.stop().await.unwrap();
    task.abort();
    let mut announced: Vec<_> = receiver.iter().collect();
    announced.sort();
    stored.sort();
    assert_eq!(announced, stored);
}
