//! Pieces of an exploration given to workers that report twice, report too late, or never report: the counts and the
//! remaining pieces stay consistent. The tree is made up, because the coordinator knows nothing of trees.

use super::{Hand, hello, on, patient, people, start, status};
use moire_coordinator::v1::{
    self, ExploreStatus, explore_step::Step, from_worker::Message as Up, lease::Work,
};
use moire_coordinator::{Local, v1::control_service_client::ControlServiceClient};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;

const TREE: &str = "tree-made-up";

/// A worker that knows the tree.
async fn hand(local: &Local) -> Hand {
    let hello = v1::Hello { capabilities: vec![TREE.to_owned()], ..hello() };
    Hand::try_with(local, Some(Up::Hello(hello))).await.unwrap()
}

fn asked() -> v1::Exploration {
    v1::Exploration {
        program: "any".to_owned(),
        fingerprint: vec![7; 32],
        tree: TREE.to_owned(),
        ..v1::Exploration::default()
    }
}

/// Makes totals with this many executions and a mark.
fn counted(complete: u64, path: &[u32]) -> v1::Explored {
    let mark = ("thing".to_owned(), v1::Node { path: path.to_vec() });
    v1::Explored {
        complete,
        digest: complete << 60,
        marks: BTreeMap::from([mark]),
        ..v1::Explored::default()
    }
}

fn node(path: &[u32]) -> v1::Node {
    v1::Node { path: path.to_vec() }
}

fn reached(lease: &v1::Lease, path: &[u32], complete: u64) -> v1::Report {
    let explored = Some(counted(complete, path));
    let step = v1::ExploreStep { step: Some(Step::Reached(node(path))), explored };
    v1::Report { explore: Some(step), ..on(lease) }
}

fn given(lease: &v1::Lease, path: &[u32]) -> v1::Report {
    let step = v1::ExploreStep { step: Some(Step::Given(node(path))), explored: None };
    v1::Report { explore: Some(step), ..on(lease) }
}

fn over(lease: &v1::Lease, path: &[u32], complete: u64) -> v1::Report {
    let step = v1::ExploreStep { step: None, explored: Some(counted(complete, path)) };
    v1::Report { explore: Some(step), done: true, ..on(lease) }
}

fn piece(lease: &v1::Lease) -> (Vec<u32>, Vec<u32>) {
    match &lease.work {
        Some(Work::Explore(job)) => job.piece.clone().map(|p| (p.behind, p.until)).unwrap(),
        other => panic!("{other:?} is not a piece"),
    }
}

type Stream = tonic::Streaming<ExploreStatus>;

async fn explore(local: &Local) -> (ControlServiceClient<Channel>, Stream) {
    let mut client = people(local).await;
    let stream = client.explore(asked()).await.unwrap().into_inner();
    (client, stream)
}

/// Reads the stream up to the first status for which `wanted` holds.
async fn heard(stream: &mut Stream, wanted: impl Fn(&ExploreStatus) -> bool) -> ExploreStatus {
    loop {
        let status = stream.message().await.unwrap().expect("it goes on");
        if wanted(&status) {
            return status;
        }
    }
}

fn complete(status: &ExploreStatus) -> u64 {
    status.explored.as_ref().map_or(0, |e| e.complete)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_and_remaining_pieces_stay_consistent() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let (_client, mut stream) = explore(&local).await;
    let mut first = hand(&local).await;
    let whole = first.lease().await;
    assert_eq!(piece(&whole), (vec![], vec![]));
    for _ in 0..2 {
        // Each report comes twice. Some are about parts that are already explored or given away.
        first.report(reached(&whole, &[0], 5)).await;
        first.report(given(&whole, &[2])).await;
        first.report(given(&whole, &[1, 4])).await;
        first.report(given(&whole, &[3])).await;
        first.report(given(&whole, &[0, 9])).await;
        first.report(reached(&whole, &[2, 1], 100)).await;
        first.report(reached(&whole, &[], 100)).await;
        first.report(given(&whole, &[])).await;
    }
    let now = heard(&mut stream, |s| s.waiting == 2).await;
    assert_eq!((complete(&now), now.leased, now.able), (5, 1, 1));
    // The holder dies: the piece is as after its last step.
    drop(first);
    let mut second = hand(&local).await;
    let mut pieces: Vec<_> = Vec::new();
    for _ in 0..3 {
        let lease = second.lease().await;
        pieces.push((piece(&lease), lease));
    }
    pieces.sort_by(|a, b| a.0.cmp(&b.0));
    let stretches: Vec<_> = pieces.iter().map(|p| p.0.clone()).collect();
    let expected = [(vec![0], vec![1, 4]), (vec![1, 4], vec![2]), (vec![2], vec![])];
    assert_eq!(stretches, expected);
    // A report on the lease of the dead worker, and repeated reports, change nothing.
    second.report(over(&whole, &[0], 1000)).await;
    for (n, (_, lease)) in pieces.iter().enumerate().rev() {
        let path = [n as u32, 1];
        second.report(over(lease, &path, 10 + n as u64)).await;
        second.report(over(lease, &path, 10 + n as u64)).await;
    }
    let end = heard(&mut stream, |s| s.over).await;
    let explored = end.explored.unwrap();
    assert_eq!((explored.complete, explored.digest), (5 + 33, 38_u64 << 60));
    assert_eq!(explored.marks["thing"].path, [0], "the least path stays");
    assert_eq!((end.waiting, end.leased), (0, 0));
    assert!(status(&local).await.stale_reports >= 4);
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_worker_gives_a_part_to_an_idle_one() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let (_client, mut stream) = explore(&local).await;
    let (mut busy, mut idle) = (hand(&local).await, hand(&local).await);
    let lease = busy.lease().await;
    idle.say(Up::Credit(v1::Credit { leases: 1 })).await;
    let wish = loop {
        if let Some(v1::to_worker::Message::Give(give)) = busy.next().await.unwrap().message {
            break give;
        }
    };
    assert_eq!(wish.lease, lease.lease);
    busy.report(given(&lease, &[0])).await;
    assert_eq!(piece(&idle.next_lease().await), (vec![0], vec![]));
    // An unsupported construct ends the exploration for all.
    let why = v1::Unsupported { reason: "é".repeat(2_000), line: 3 };
    let step = v1::ExploreStep { step: Some(Step::Unsupported(why)), explored: None };
    busy.report(v1::Report { explore: Some(step), done: true, ..on(&lease) }).await;
    let end = heard(&mut stream, |s| s.over).await;
    let why = end.unsupported.unwrap();
    assert_eq!((why.line, why.reason.len()), (3, 1_000));
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_step_disconnects_its_worker_and_does_not_end_the_exploration() {
    let dir = tempfile::tempdir().unwrap();
    let local = start(dir.path(), patient()).await;
    let (_client, mut stream) = explore(&local).await;
    let bad: [fn(&v1::Lease) -> v1::Report; 5] = [
        |lease| v1::Report { done: true, ..on(lease) },
        |lease| v1::Report { done: true, ..given(lease, &[1]) },
        |lease| v1::Report { done: false, ..over(lease, &[1], 1) },
        |lease| given(lease, &[1; 5_000]),
        |lease| v1::Report { items: vec![v1::ItemResult::default()], ..over(lease, &[1], 1) },
    ];
    for report in bad {
        let mut hand = hand(&local).await;
        let lease = hand.lease().await;
        hand.report(report(&lease)).await;
        assert_eq!(hand.end().await.code(), Code::InvalidArgument);
    }
    let mut last = hand(&local).await;
    let lease = last.lease().await;
    last.report(over(&lease, &[0], u64::MAX)).await;
    assert_eq!(complete(&heard(&mut stream, |s| s.over).await), u64::MAX);
    local.stop().await.unwrap();
}

/// Reads a number from the metrics.
async fn metric(http: std::net::SocketAddr, name: &str) -> u64 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(http).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    let line =
        page.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {page}"));
    line.trim().parse().unwrap()
}

/// Starts a coordinator with metrics, whose explorations rest after this time without a client.
async fn resting(dir: &Path, rest_ms: u64) -> (Local, std::net::SocketAddr) {
    let anywhere = "127.0.0.1:0".parse().unwrap();
    let lease = moire_coordinator::lease::Config { rest_ms, ..patient() };
    let setup =
        moire_coordinator::Setup { http: Some(anywhere), lease, ..moire_coordinator::Setup::new(anywhere) };
    let local = Local::open(dir, setup).await.unwrap();
    let http = local.http_addr().unwrap();
    (local, http)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exploration_without_clients_rests_until_one_asks() {
    let dir = tempfile::tempdir().unwrap();
    let (local, http) = resting(dir.path(), 200).await;
    let asked = explore(&local).await;
    let mut hand = hand(&local).await;
    let whole = hand.lease().await;
    hand.report(given(&whole, &[1])).await;
    hand.report(v1::Report { sequence: 3, ..reached(&whole, &[0], 7) }).await;
    assert!(hand.acknowledged(3).await);
    assert_eq!(metric(http, "moire_explorations{state=\"running\"}").await, 1);
    assert_eq!(metric(http, "moire_exploration_pieces{state=\"waiting\"}").await, 1);
    assert_eq!(metric(http, "moire_exploration_pieces{state=\"leased\"}").await, 1);
    drop(asked);
    while metric(http, "moire_explorations{state=\"resting\"}").await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    hand.say(Up::Credit(v1::Credit { leases: 1 })).await;
    assert!(hand.leases().await.is_empty(), "it rests");
    let (_client, mut stream) = explore(&local).await;
    let rest = hand.next_lease().await;
    assert_eq!(piece(&rest), (vec![1], vec![]));
    hand.report(over(&whole, &[0], 1)).await;
    hand.report(over(&rest, &[2], 2)).await;
    assert_eq!(complete(&heard(&mut stream, |s| s.over).await), 10);
    assert_eq!(metric(http, "moire_explorations{state=\"over\"}").await, 1);
    local.stop().await.unwrap();
    let (local, http) = resting(dir.path(), 200).await;
    assert_eq!(metric(http, "moire_explorations_executions_total").await, 10, "counted over a restart");
    local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_exploration_more_than_the_store_keeps_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (local, http) = resting(dir.path(), 3_600_000).await;
    let mut client = people(&local).await;
    let numbered = |n: u32| v1::Exploration { program: format!("any {n}"), ..asked() };
    let mut streams = Vec::new();
    for n in 0..64 {
        streams.push(client.explore(numbered(n)).await.unwrap().into_inner());
    }
    let full = client.explore(numbered(64)).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full}");
    // A finished exploration makes room.
    let mut hand = hand(&local).await;
    let lease = hand.lease().await;
    hand.report(v1::Report { sequence: 3, ..over(&lease, &[0], 1) }).await;
    assert!(hand.acknowledged(3).await);
    assert_eq!(metric(http, "moire_explorations{state=\"over\"}").await, 1);
    let _one_more = client.explore(numbered(64)).await.unwrap();
    assert_eq!(metric(http, "moire_explorations{state=\"over\"}").await, 0);
    assert_eq!(metric(http, "moire_explorations{state=\"running\"}").await, 64);
    local.stop().await.unwrap();
}

/// A restarted coordinator continues from its store, and refuses reports of the epoch before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_continues_in_another_epoch() {
    async fn part(
        dir: &Path,
        number: u32,
    ) -> (Local, Hand, v1::Lease, (ControlServiceClient<Channel>, Stream)) {
        let local = start(dir, patient()).await;
        let asked = explore(&local).await;
        let mut hand = hand(&local).await;
        let lease = hand.lease().await;
        hand.report(reached(&lease, &[number], 1)).await;
        (local, hand, lease, asked)
    }
    let dir = tempfile::tempdir().unwrap();
    let (local, _hand, old, (_client, mut stream)) = part(dir.path(), 0).await;
    heard(&mut stream, |s| complete(s) == 1).await;
    local.stop().await.unwrap();
    let (local, mut hand, lease, (_client, mut stream)) = part(dir.path(), 1).await;
    assert_eq!(piece(&lease), (vec![0], vec![]));
    assert_ne!(old.epoch, lease.epoch);
    hand.report(v1::Report { sequence: 9, epoch: old.epoch, ..over(&lease, &[9], 100) }).await;
    assert!(!hand.acknowledged(9).await);
    hand.report(over(&lease, &[9], 1)).await;
    let end = heard(&mut stream, |s| s.over).await;
    assert_eq!((complete(&end), end.leases), (3, 1));
    local.stop().await.unwrap();
}
