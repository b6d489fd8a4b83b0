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

/// A worker that cannot say makes no claim vanish: another one is asked. If that one cannot say either, it is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_does_not_vanish_because_one_worker_cannot_say() {
    use v1::verify_result::Answer::{Abstained, Confirmed};
    for last in [Confirmed, Abstained] {
        let dir = tempfile::tempdir().unwrap();
        let local = start(dir.path(), patient()).await;
        local.create(spec(10)).await.unwrap();
        let (mut claimant, mut mute) = (Hand::new(&local).await, Hand::new(&local).await);
        let mut third = Hand::new(&local).await;
        let lease = claimant.lease().await;
        claimant.report(all(&lease)).await;
        for (hand, said) in [(&mut mute, Abstained), (&mut third, last)] {
            let lease = hand.lease().await;
            assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "program of 0"), "{lease:?}");
            let result = v1::VerifyResult { reason: "the limit on memory".to_owned(), ..verified(said) };
            hand.report(v1::Report { sequence: 5, verify: Some(result), ..on(&lease) }).await;
            assert!(hand.acknowledged(5).await);
        }
        drop((claimant, mute, third));
        let task = worker(&local, Arc::default());
        let end = local.run(spec(10), later(), |_| {}).await.unwrap();
        assert_eq!((end.phase(), end.refuted), (v1::CampaignPhase::Done, 0));
        let stored = local.findings().await.unwrap();
        let kept = usize::from(last == Confirmed);
        assert_eq!(stored.len(), kept, "{stored:?}");
        assert_eq!(end.abstentions.contains_key("not verified"), last == Abstained, "{end:?}");
        local.stop().await.unwrap();
        task.abort();
    }
}

/// A lease that is given back is done by others, and no item is blamed for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_given_back_changes_no_digest() {
    let (expected, _) = quiet(1, 100).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(100)).await.unwrap();
    let mut killed = Hand::new(&local).await;
    let lease = killed.lease().await;
    let some = v1::Report { items: all(&lease).items.into_iter().take(3).collect(), ..on(&lease) };
    killed.report(some).await;
    let aborted = "its process was killed from outside".to_owned();
    killed.report(v1::Report { sequence: 5, aborted: aborted.clone(), ..on(&lease) }).await;
    assert!(killed.acknowledged(5).await);
    killed.report(v1::Report { sequence: 6, aborted, ..on(&lease) }).await;
    assert!(!killed.acknowledged(6).await, "it is over");
    drop(killed);
    let task = worker(&local, Arc::default());
    let end = local.run(spec(100), later(), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.quarantined, end.digest), (v1::CampaignPhase::Done, 0, expected.digest));
    local.stop().await.unwrap();
    task.abort();
}

fn lease_items(lease: &v1::Lease) -> u64 {
    let range = super::range(lease);
    range.end - range.start
}

/// A worker that has no memory for anything keeps no answer back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn want_of_memory_is_no_answer_while_others_have_one() {
    let (expected, findings) = quiet(1, 100).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(100)).await.unwrap();
    let mut mute = Hand::new(&local).await;
    let lease = mute.lease().await;
    let task = worker(&local, Arc::default());
    while local.status("c").await.unwrap().programs < 100 - lease_items(&lease) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut report = all(&lease);
    for item in &mut report.items {
        let abstentions = std::collections::BTreeMap::from([("the limit on memory".to_owned(), 1)]);
        *item = v1::ItemResult {
            item: item.item,
            program: vec![0; 32],
            abstentions,
            ..v1::ItemResult::default()
        };
    }
    mute.report(v1::Report { sequence: 5, ..report }).await;
    assert!(mute.acknowledged(5).await);
    drop(mute);
    let end = local.run(spec(100), later(), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.digest), (v1::CampaignPhase::Done, expected.digest));
    assert!(!end.abstentions.contains_key("the limit on memory"), "{:?}", end.abstentions);
    let texts = |all: &[moire_corpus::Finding]| all.iter().map(|f| f.reduced.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&local.findings().await.unwrap()), texts(&findings));
    local.stop().await.unwrap();
    task.abort();
}
