//! Who is believed: false claims cost their class nothing, one worker alone refutes nothing, and a worker that is wrong
//! again and again is sent away.

use super::{Hand, all, on, patient, status, verified};
use crate::fake::{Fake, claim, connected, quiet, spec, start, worker};
use moire_coordinator::lease::Config;
use moire_coordinator::v1::{self, lease::Work};
use moire_corpus::Verified;
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

fn later() -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_secs(60))
}

/// A worker with bad memory: dozens of false claims of the classes in which there are true ones, and before those.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_claims_use_up_no_class() {
    let (expected, findings) = quiet(1, 400).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), Config { avoid_ms: 50, ..patient() }).await;
    local.create(spec(400)).await.unwrap();
    let mut liar = Hand::new(&local).await;
    let lease = liar.lease().await;
    let mut report = all(&lease);
    for item in &mut report.items {
        let program = format!("a lie about {}", item.item);
        item.claims
            .extend((0..3).map(|rule| v1::Claim { program: program.clone(), ..claim(50 * rule).into() }));
    }
    liar.report(report).await;
    let task = worker(&local, Arc::default());
    let end = local.run(spec(400), later(), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.digest), (v1::CampaignPhase::Done, expected.digest));
    assert_eq!(end.refuted, 64 * 3 + expected.refuted);
    let texts = |all: &[moire_corpus::Finding]| all.iter().map(|f| f.reduced.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&local.findings().await.unwrap()), texts(&findings));
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_third_decides_between_two() {
    use v1::verify_result::Answer::{Confirmed, Refuted};
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(10)).await.unwrap();
    let (mut claimant, mut wrong) = (Hand::new(&local).await, Hand::new(&local).await);
    let mut third = Hand::new(&local).await;
    let lease = claimant.lease().await;
    claimant.report(all(&lease)).await;
    let lease = wrong.lease().await;
    assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "program of 0"), "{lease:?}");
    wrong.report(v1::Report { verify: Some(verified(Refuted)), ..on(&lease) }).await;
    // Neither of the two decides, though both have time.
    for one in [&mut wrong, &mut claimant] {
        one.say(v1::from_worker::Message::Credit(v1::Credit { leases: 1 })).await;
        assert_eq!(one.leases().await.len(), 0);
    }
    let lease = third.lease().await;
    assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "program of 0"), "{lease:?}");
    third.report(v1::Report { sequence: 5, verify: Some(verified(Confirmed)), ..on(&lease) }).await;
    assert!(third.acknowledged(5).await);
    drop((claimant, third));
    let task = worker(&local, Arc::default());
    let suspects = status(&local).await.suspects;
    assert!(
        suspects.len() == 1 && suspects[0].contains("contradicted by two others 1 times"),
        "{suspects:?}"
    );
    drop(wrong);
    let end = local.run(spec(10), later(), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.refuted), (v1::CampaignPhase::Done, 0));
    let stored = local.findings().await.unwrap();
    assert_eq!(stored.iter().map(|f| f.reduced.as_str()).collect::<Vec<_>>(), ["p0"]);
    assert_eq!(stored[0].verified, Verified::Other);
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_wrong_again_and_again_is_sent_away() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(400)).await.unwrap();
    let mut liar = Hand::new(&local).await;
    let lease = liar.lease().await;
    let tasks = [worker(&local, Arc::new(Fake::default())), worker(&local, Arc::new(Fake::default()))];
    connected(&local, 3).await;
    let mut report = all(&lease);
    for item in &mut report.items {
        let program = format!("a lie about {}", item.item);
        item.claims = vec![v1::Claim { program, ..claim(item.item).into() }];
    }
    liar.report(report).await;
    let ended = liar.end().await;
    assert_eq!(ended.code(), Code::PermissionDenied, "{ended:?}");
    let suspects = status(&local).await.suspects;
    assert!(suspects.iter().any(|s| s.ends_with("refused from now on")), "{suspects:?}");
    let end = local.run(spec(400), later(), |_| {}).await.unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done);
    local.stop().await.unwrap();
    tasks.into_iter().for_each(|task| task.abort());
}
