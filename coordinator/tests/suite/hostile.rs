//! Workers that send nonsense, lie or vanish: nothing panics, no finding is stored that does not reproduce, and the
//! campaign ends with the digest of a quiet one. Also tested: the bounds on a worker, the services for health and
//! reflection, and access control.

mod believed;
mod door;
mod pieces;

use crate::fake::{Fake, claim, connected, honest, people, quiet, spec, start, worker};
use moire_coordinator::v1::{self, from_worker::Message as Up, lease::Work, to_worker::Message as Down};
use moire_coordinator::{Local, lease::Config};
use moire_corpus::Verified;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// A worker whose messages the test writes.
struct Hand {
    up: mpsc::Sender<v1::FromWorker>,
    down: tonic::Streaming<v1::ToWorker>,
}

fn hello() -> v1::Hello {
    v1::Hello { protocol: moire_proto::PROTOCOL, fingerprint: "fake-1".to_owned(), ..v1::Hello::default() }
}

impl Hand {
    /// Connects and sends `first`.
    async fn try_with(local: &Local, first: Option<Up>) -> Result<Self, Status> {
        let addr = format!("http://{}", local.addr());
        let mut client =
            v1::worker_service_client::WorkerServiceClient::connect(addr).await.expect("it listens");
        let (up, outgoing) = mpsc::channel(64);
        up.send(v1::FromWorker { message: first }).await.unwrap();
        let mut down = client.work(ReceiverStream::new(outgoing)).await?.into_inner();
        match down.message().await? {
            Some(v1::ToWorker { message: Some(Down::Welcome(_)) }) => Ok(Self { up, down }),
            other => panic!("{other:?} instead of a welcome"),
        }
    }
    async fn new(local: &Local) -> Self {
        Self::try_with(local, Some(Up::Hello(hello()))).await.unwrap()
    }
    async fn say(&self, message: Up) {
        // Sending fails if the stream has ended, which the caller notices.
        let _ = self.up.send(v1::FromWorker { message: Some(message) }).await;
    }
    async fn report(&self, report: v1::Report) {
        self.say(Up::Report(report)).await;
    }
    /// Asks for one lease and waits for it.
    async fn lease(&mut self) -> v1::Lease {
        self.say(Up::Credit(v1::Credit { leases: 1 })).await;
        self.next_lease().await
    }
    async fn next_lease(&mut self) -> v1::Lease {
        loop {
            if let Some(Down::Lease(lease)) = self.next().await.unwrap().message {
                return lease;
            }
        }
    }
    async fn next(&mut self) -> Result<v1::ToWorker, Status> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.down.message());
        next.await.expect("an answer")?.ok_or_else(|| Status::unknown("the stream is over"))
    }
    /// Waits for the acknowledgement of a report. Returns whether it was accepted.
    async fn acknowledged(&mut self, sequence: u64) -> bool {
        loop {
            if let Some(Down::Ack(ack)) = self.next().await.unwrap().message
                && ack.sequence == sequence
            {
                return ack.accepted;
            }
        }
    }
    /// Returns the leases sent until the coordinator has handled all earlier messages and given out leases for them.
    /// Two reports are sent for that: the answer to the second comes after those leases.
    async fn leases(&mut self) -> Vec<v1::Lease> {
        let mut leases = Vec::new();
        for sequence in [u64::MAX - 1, u64::MAX] {
            self.report(v1::Report { sequence, lease: u64::MAX, ..v1::Report::default() }).await;
            loop {
                match self.next().await.unwrap().message {
                    Some(Down::Lease(lease)) => leases.push(lease),
                    Some(Down::Ack(ack)) if ack.sequence == sequence => break,
                    _ => {}
                }
            }
        }
        leases
    }
    /// Reads to the end of the stream, and returns its status.
    async fn end(mut self) -> Status {
        loop {
            if let Err(status) = self.next().await {
                return status;
            }
        }
    }
}

fn range(lease: &v1::Lease) -> std::ops::Range<u64> {
    match &lease.work {
        Some(Work::Range(r)) => r.from..r.to,
        other => panic!("{other:?} is not a range"),
    }
}

/// Makes an empty report on the lease.
fn on(lease: &v1::Lease) -> v1::Report {
    v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() }
}

/// Makes the honest and complete report on a range lease.
fn all(lease: &v1::Lease) -> v1::Report {
    v1::Report { items: range(lease).map(honest).collect(), done: true, ..on(lease) }
}

fn verified(answer: v1::verify_result::Answer) -> v1::VerifyResult {
    v1::VerifyResult { answer: answer.into(), reason: String::new() }
}

/// Returns a configuration in which no clock runs out, however slow the machine.
fn patient() -> Config {
    let hour = 3_600_000;
    let clocks =
        Config { liveness_ms: hour, progress_ms: hour, kill_ms: hour, avoid_ms: hour, ..Config::default() };
    Config { repeat_per_mille: 0, ..clocks }
}

async fn status(local: &Local) -> v1::Status {
    people(local).await.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_bad_first_messages_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let refused = |first| async { Hand::try_with(&local, first).await.err().unwrap().code() };
    assert_eq!(refused(None).await, Code::InvalidArgument);
    assert_eq!(refused(Some(Up::Credit(v1::Credit { leases: 1 }))).await, Code::InvalidArgument);
    let old = v1::Hello { protocol: 99, ..hello() };
    assert_eq!(refused(Some(Up::Hello(old))).await, Code::FailedPrecondition);
    let long = v1::Hello { fingerprint: "f".repeat(1000), ..hello() };
    assert_eq!(refused(Some(Up::Hello(long))).await, Code::InvalidArgument);
    let many = v1::Hello { capabilities: vec!["x".to_owned(); 1000], ..hello() };
    assert_eq!(refused(Some(Up::Hello(many))).await, Code::InvalidArgument);
    // Bytes that are not HTTP at all.
    let mut raw = tokio::net::TcpStream::connect(local.addr()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut raw, &[0xA5; 4096]).await.unwrap();
    let hand = Hand::new(&local).await;
    hand.say(Up::Hello(hello())).await;
    assert_eq!(hand.end().await.code(), Code::InvalidArgument);
    let hand = Hand::new(&local).await;
    hand.up.send(v1::FromWorker { message: None }).await.unwrap();
    assert_eq!(hand.end().await.code(), Code::InvalidArgument);
    let now = status(&local).await;
    assert_eq!((now.workers, now.bad_messages, now.refused), (0, 4, 1), "{now:?}");
    local.stop().await.unwrap();
}

/// Lists reports on `lease` that each breach the protocol.
fn breaches(lease: &v1::Lease) -> Vec<v1::Report> {
    let first = range(lease).start;
    let item = honest(first);
    let only = |item: v1::ItemResult| v1::Report { items: vec![item], ..on(lease) };
    let row = |engine: v1::EngineResult| v1::ItemResult { engines: vec![engine], ..item.clone() };
    let claim = |claim: v1::Claim| v1::ItemResult { claims: vec![claim], ..item.clone() };
    let side = v1::Side { name: "ptx".to_owned(), fingerprint: vec![1], ..v1::Side::default() };
    vec![
        only(v1::ItemResult { program: vec![1, 2, 3], ..item.clone() }),
        only(row(v1::EngineResult {
            outcomes: vec![0; 31],
            leaves: vec![0; 32],
            ..v1::EngineResult::default()
        })),
        only(claim(v1::Claim { models: vec![side], ..v1::Claim::default() })),
        only(claim(v1::Claim { oracle: "o".repeat(1000), ..v1::Claim::default() })),
        only(honest(range(lease).end)),
        only(honest(u64::MAX)),
        v1::Report { items: vec![item.clone(), item.clone()], ..on(lease) },
        v1::Report { done: true, ..on(lease) },
        v1::Report { verify: Some(verified(v1::verify_result::Answer::Confirmed)), ..on(lease) },
        v1::Report { minimise: Some(v1::MinimiseResult::default()), ..on(lease) },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breach_costs_the_connection_and_nothing_else() {
    let (expected, findings) = quiet(1, 400).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(400)).await.unwrap();
    let mut tried = 0;
    loop {
        let mut hand = Hand::new(&local).await;
        let lease = hand.lease().await;
        let Some(breach) = breaches(&lease).into_iter().nth(tried) else { break };
        hand.report(breach).await;
        assert_eq!(hand.end().await.code(), Code::InvalidArgument, "breach {tried}");
        tried += 1;
    }
    assert_eq!((tried, status(&local).await.bad_messages), (10, 10));
    let task = worker(&local, Arc::default());
    let end = local.run(spec(400), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.quarantined), (v1::CampaignPhase::Done, 0));
    assert_eq!(end.digest, expected.digest);
    assert_eq!(local.findings().await.unwrap().len(), findings.len());
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_foreign_and_repeated_reports_change_nothing() {
    let (expected, _) = quiet(1, 200).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(200)).await.unwrap();
    let (mut a, mut b) = (Hand::new(&local).await, Hand::new(&local).await);
    let (mine, other) = (a.lease().await, b.lease().await);
    let wrong = [
        v1::Report { epoch: mine.epoch + 1, ..all(&mine) },
        v1::Report { epoch: mine.epoch.wrapping_sub(1), ..all(&mine) },
        v1::Report { lease: u64::MAX, ..all(&mine) },
        all(&other),
    ];
    for (n, report) in (1..).zip(wrong) {
        a.report(v1::Report { sequence: n, ..report }).await;
        assert!(!a.acknowledged(n).await, "report {n}");
    }
    let part = v1::Report { items: range(&mine).skip(1).take(3).map(honest).collect(), ..on(&mine) };
    for n in [10, 11] {
        a.report(v1::Report { sequence: n, ..part.clone() }).await;
        assert!(a.acknowledged(n).await, "repeating is harmless");
    }
    // Another answer for an item already taken is ignored.
    let lie = v1::ItemResult { program: vec![9; 32], ..honest(range(&mine).start + 1) };
    a.report(v1::Report { sequence: 12, items: vec![lie], ..on(&mine) }).await;
    assert!(a.acknowledged(12).await);
    a.report(v1::Report { sequence: 13, ..all(&mine) }).await;
    a.report(v1::Report { sequence: 14, ..all(&mine) }).await;
    assert!(!a.acknowledged(14).await, "the lease is over");
    drop((a, b));
    let task = worker(&local, Arc::default());
    let end = local.run(spec(200), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!((end.digest, end.quarantined), (expected.digest, 0));
    assert_eq!(status(&local).await.stale_reports, 5);
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_are_refuted_and_floods_are_cut() {
    let (expected, findings) = quiet(1, 300).await;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), Config { avoid_ms: 50, ..patient() }).await;
    local.create(spec(300)).await.unwrap();
    let mut liar = Hand::new(&local).await;
    let lease = liar.lease().await;
    // The rows are true, but every item has a false claim, a claim that is too large, and a flood of reasons.
    let mut report = all(&lease);
    for item in &mut report.items {
        let program = format!("a lie about {}", item.item);
        let lie = v1::Claim {
            program,
            oracle: format!("lie-{}", item.item),
            direction: "subset".to_owned(),
            ..v1::Claim::default()
        };
        let large = v1::Claim { program: "x".repeat(60_000), ..v1::Claim::default() };
        item.claims.extend([lie, large]);
        item.abstentions = (0..50).map(|n| (format!("reason {n} of {}", item.item), u64::MAX)).collect();
    }
    liar.report(report).await;
    // The liar takes no more work but stays connected, and the others do not wait for it for long.
    let task = worker(&local, Arc::default());
    let end = local.run(spec(300), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.digest), (v1::CampaignPhase::Done, expected.digest));
    assert_eq!(end.refuted, 64 + expected.refuted);
    assert!(end.abstentions.len() <= 210, "{}", end.abstentions.len());
    let stored = local.findings().await.unwrap();
    let texts = |all: &[moire_corpus::Finding]| all.iter().map(|f| f.reduced.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&stored), texts(&findings));
    local.stop().await.unwrap();
    task.abort();
}

/// One claim on its way to a finding, handled by workers that send wrong answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_answers_to_jobs_go_to_another_worker() {
    use v1::verify_result::Answer::{Confirmed, Refuted};
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(10)).await.unwrap();
    let mut good = Hand::new(&local).await;
    let lease = good.lease().await;
    good.report(v1::Report { sequence: 77, ..all(&lease) }).await;
    let minimised = |program: &str, oracle: &str| {
        let claim = v1::Claim { program: program.to_owned(), oracle: oracle.to_owned(), ..claim(0).into() };
        v1::MinimiseResult { claim: Some(claim), tried: 1, normal: true, ..v1::MinimiseResult::default() }
    };
    // Wrong answers to a verification: a minimisation, nothing, an answer without a verdict, and items besides the
    // answer.
    let kinds = [
        v1::Report { minimise: Some(minimised("p0", "fake")), ..v1::Report::default() },
        v1::Report { done: true, ..v1::Report::default() },
        v1::Report { verify: Some(v1::VerifyResult::default()), ..v1::Report::default() },
        v1::Report { items: vec![honest(0)], verify: Some(verified(Confirmed)), ..v1::Report::default() },
    ];
    for kind in kinds {
        let mut bad = Hand::new(&local).await;
        let lease = bad.lease().await;
        assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "program of 0"), "{lease:?}");
        bad.report(v1::Report { lease: lease.lease, epoch: lease.epoch, ..kind }).await;
        assert_eq!(bad.end().await.code(), Code::InvalidArgument);
    }
    let mut other = Hand::new(&local).await;
    let lease = other.lease().await;
    other.report(v1::Report { verify: Some(verified(Confirmed)), ..on(&lease) }).await;
    // Wrong answers to a minimisation: another rule is a breach; a program that does not show the claim is refuted.
    let mut bad = Hand::new(&local).await;
    let lease = bad.lease().await;
    assert!(matches!(lease.work, Some(Work::Minimise(_))), "{lease:?}");
    bad.report(v1::Report { minimise: Some(minimised("p0", "another")), ..on(&lease) }).await;
    assert_eq!(bad.end().await.code(), Code::InvalidArgument);
    let mut bad = Hand::new(&local).await;
    let lease = bad.lease().await;
    bad.report(v1::Report { minimise: Some(minimised("nonsense", "fake")), ..on(&lease) }).await;
    let lease = good.lease().await;
    assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "nonsense"), "{lease:?}");
    good.report(v1::Report { verify: Some(verified(Refuted)), ..on(&lease) }).await;
    // A third worker decides between them.
    let lease = other.lease().await;
    assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "nonsense"), "{lease:?}");
    other.report(v1::Report { verify: Some(verified(Refuted)), ..on(&lease) }).await;
    // Another worker minimises the claim, and a third one runs the result again.
    let lease = good.lease().await;
    assert!(matches!(lease.work, Some(Work::Minimise(_))), "{lease:?}");
    good.report(v1::Report { minimise: Some(minimised("p0", "fake")), ..on(&lease) }).await;
    let lease = other.lease().await;
    assert!(matches!(&lease.work, Some(Work::Verify(c)) if c.program == "p0"), "{lease:?}");
    assert!(local.findings().await.unwrap().is_empty(), "not before it is run again");
    other.report(v1::Report { verify: Some(verified(Confirmed)), ..on(&lease) }).await;
    assert!(good.acknowledged(77).await, "the first report is acknowledged when its finding is durable");
    let stored = local.findings().await.unwrap();
    assert_eq!(stored.iter().map(|f| f.reduced.as_str()).collect::<Vec<_>>(), ["p0"]);
    assert_eq!(stored[0].verified, Verified::Other);
    assert_eq!(status(&local).await.bad_messages, 5);
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnects_count_against_an_item_and_drains_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), Config { attempts_max: 3, ..patient() }).await;
    local.create(spec(100)).await.unwrap();
    for n in 0..6 {
        let mut hand = Hand::new(&local).await;
        assert_eq!(range(&hand.lease().await).start, 0, "the first item is tried first, round {n}");
        if n % 2 == 0 {
            hand.say(Up::Draining(v1::Draining {})).await;
        }
        hand.report(v1::Report { sequence: 1, lease: u64::MAX, ..v1::Report::default() }).await;
        assert!(!hand.acknowledged(1).await, "all earlier messages are handled");
        drop(hand);
        while status(&local).await.workers > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let mut hand = Hand::new(&local).await;
    assert_eq!(range(&hand.lease().await), 1..64, "three disconnects: given up");
    drop(hand);
    let task = worker(&local, Arc::default());
    let end = local.run(spec(100), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!((end.phase(), end.programs, end.quarantined), (v1::CampaignPhase::Done, 100, 1));
    local.stop().await.unwrap();
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credit_bounds_the_number_of_leases_out() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), Config { credit_max: 4, ..patient() }).await;
    local.create(spec(100_000)).await.unwrap();
    let mut hand = Hand::new(&local).await;
    for _ in 0..5 {
        hand.say(Up::Credit(v1::Credit { leases: u32::MAX })).await;
    }
    let held = hand.leases().await;
    assert_eq!(held.len(), 4, "a lease over the cap");
    assert_eq!(status(&local).await.leases, 4);
    hand.report(all(&held[3])).await;
    hand.say(Up::Credit(v1::Credit { leases: 10 })).await;
    assert_eq!(hand.leases().await.len(), 1);
    assert_eq!(status(&local).await.leases, 4);
    local.stop().await.unwrap();
}

/// A flood of unverified claims does not fill the coordinator's memory: it leases no new items while they are open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_claims_hold_back_new_items() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    local.create(spec(1_000_000)).await.unwrap();
    let (slow, mut fast) = (Hand::new(&local).await, Hand::new(&local).await);
    let mut leased = 0;
    loop {
        fast.say(Up::Credit(v1::Credit { leases: 1 })).await;
        let Some(lease) = fast.leases().await.pop() else { break };
        // The other worker should verify, but asks for no work. So every item with a claim stays open.
        let claimed = |index| v1::ItemResult { claims: vec![claim(index).into()], ..honest(index) };
        leased += 1;
        fast.report(v1::Report { items: range(&lease).map(claimed).collect(), done: true, ..on(&lease) })
            .await;
    }
    let held = leased * moire_coordinator::LEASE_ITEMS as usize;
    assert!((4096..=4096 + 2 * 64).contains(&held), "{held}");
    drop(slow);
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection_are_served() {
    use tonic_health::pb::{
        HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
    };
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", local.addr())).unwrap();
    let channel = endpoint.connect().await.unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "moire.v1.WorkerService", "moire.v1.ControlService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let mut reflection = ServerReflectionClient::new(channel);
    let ask = |what| ServerReflectionRequest { host: String::new(), message_request: Some(what) };
    let asked = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("moire.v1.ToWorker".to_owned())),
    ];
    let answers = reflection.server_reflection_info(tokio_stream::iter(asked)).await.unwrap();
    let mut answers = answers.into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list of services")
    };
    let names: Vec<_> = list.service.iter().map(|s| s.name.as_str()).collect();
    assert!(
        names.contains(&"moire.v1.WorkerService") && names.contains(&"moire.v1.ControlService"),
        "{names:?}"
    );
    let file = answers.message().await.unwrap().unwrap().message_response;
    assert!(matches!(file, Some(MessageResponse::FileDescriptorResponse(_))), "{file:?}");
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_sends_a_job_and_gets_its_answer_or_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let task = worker(&local, Arc::new(Fake::default()));
    connected(&local, 1).await;
    let mut client = people(&local).await;
    let ask = |job| v1::SubmitJobRequest { plan: None, job: Some(job) };
    use v1::submit_job_request::Job;
    let done = client.submit_job(ask(Job::Verify(claim(0).into()))).await.unwrap().into_inner().result;
    let Some(v1::submit_job_response::Result::Verify(result)) = done else { panic!("{done:?}") };
    assert_eq!(result.answer(), v1::verify_result::Answer::Confirmed);
    let side = v1::Side { fingerprint: vec![1, 2, 3], ..v1::Side::default() };
    let bad = [
        Job::Verify(v1::Claim { models: vec![side], ..v1::Claim::default() }),
        Job::Replay(v1::ReplayJob { program: "x".repeat(100_000) }),
    ];
    for job in bad {
        assert_eq!(client.submit_job(ask(job)).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let none = v1::SubmitJobRequest::default();
    assert_eq!(client.submit_job(none).await.unwrap_err().code(), Code::InvalidArgument);
    local.stop().await.unwrap();
    task.abort();
}
