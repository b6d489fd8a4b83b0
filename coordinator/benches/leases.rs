//! Leases per second, granted and reported to their end: in the state machine alone, and over a gRPC stream on loopback
//! with the store behind it, where every report is durable before it is acknowledged.
//!
//! `cargo bench -p moire-coordinator` prints both; an element is one lease.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use moire_coordinator::v1::{
    self, from_worker::Message as Up, lease::Work as Sent, to_worker::Message as Down,
};
use moire_coordinator::{Local, lease::*};
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Leases of one round in the state machine.
const PURE: u64 = 10_000;
/// Leases of one round over gRPC.
const WIRED: u64 = 100;
/// Leases a worker holds at one time.
const HELD: u32 = 16;

/// All leases of a campaign, by workers that answer at once.
fn pure(leases: u64, workers: u64) -> u64 {
    let mut fleet = Scheduler::new(Config::default());
    let batch = moire_coordinator::LEASE_ITEMS;
    let missing = std::iter::once(0..leases * batch).collect();
    fleet.campaign("c", CampaignSpec { missing, batch, ..CampaignSpec::default() });
    for _ in 0..workers {
        let id = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
        fleet.credit(id, HELD, 0);
    }
    let mut done = 0;
    while done < leases {
        for action in fleet.poll(done) {
            let Action::Grant { worker, lease, epoch, grant } = action else { continue };
            let Work::Range { from, to } = grant.work else { continue };
            assert!(fleet.check(worker, lease, epoch, done).is_some());
            (from..to).for_each(|item| _ = fleet.take_item(lease, item));
            assert!(fleet.done(lease));
            fleet.credit(worker, 1, done);
            done += 1;
        }
    }
    done
}

fn item(index: u64) -> v1::ItemResult {
    let row = v1::EngineResult {
        engine: "explorer/ptx".to_owned(),
        verdict: "clean".to_owned(),
        outcomes: vec![1; 32],
        leaves: vec![2; 32],
        executions: 20,
    };
    v1::ItemResult { item: index, program: vec![3; 32], engines: vec![row; 4], ..v1::ItemResult::default() }
}

/// A worker that answers at once.
struct Wired {
    up: mpsc::Sender<v1::FromWorker>,
    down: tonic::Streaming<v1::ToWorker>,
}

impl Wired {
    async fn new(local: &Local) -> Self {
        let addr = format!("http://{}", local.addr());
        let mut client = v1::worker_service_client::WorkerServiceClient::connect(addr).await.unwrap();
        let (up, outgoing) = mpsc::channel(64);
        let hello = v1::Hello { protocol: moire_proto::PROTOCOL, ..v1::Hello::default() };
        up.send(v1::FromWorker { message: Some(Up::Hello(hello)) }).await.unwrap();
        let down = client.work(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
        let wired = Self { up, down };
        wired.say(Up::Credit(v1::Credit { leases: HELD })).await;
        wired
    }
    async fn say(&self, message: Up) {
        self.up.send(v1::FromWorker { message: Some(message) }).await.unwrap();
    }
    /// Takes and reports leases until so many are acknowledged.
    async fn run(&mut self, leases: u64) {
        let mut acknowledged = 0;
        while acknowledged < leases {
            match self.down.message().await.unwrap().and_then(|m| m.message) {
                Some(Down::Lease(lease)) => {
                    let Some(Sent::Range(range)) = lease.work else { continue };
                    let items = (range.from..range.to).map(item).collect();
                    let (lease, epoch) = (lease.lease, lease.epoch);
                    let report = v1::Report { lease, epoch, items, done: true, ..v1::Report::default() };
                    self.say(Up::Report(report)).await;
                    self.say(Up::Credit(v1::Credit { leases: 1 })).await;
                }
                Some(Down::Ack(ack)) => acknowledged += u64::from(ack.accepted),
                other => assert!(matches!(other, Some(Down::Welcome(_))), "{other:?}"),
            }
        }
    }
}

fn leases(c: &mut Criterion) {
    let mut group = c.benchmark_group("leases");
    group.sample_size(20);
    group.throughput(Throughput::Elements(PURE));
    for workers in [1, 64] {
        group.bench_function(format!("state machine, {workers} workers"), |b| b.iter(|| pure(PURE, workers)));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let local = runtime
        .block_on(Local::start(dir.path(), "127.0.0.1:0".parse().unwrap(), Config::default()))
        .unwrap();
    let endless = v1::CampaignSpec { name: "c".to_owned(), ..v1::CampaignSpec::default() };
    runtime.block_on(local.create(endless)).unwrap();
    let mut wired = runtime.block_on(Wired::new(&local));
    group.throughput(Throughput::Elements(WIRED));
    group.bench_function("gRPC and store, 1 worker", |b| b.iter(|| runtime.block_on(wired.run(WIRED))));
    group.finish();
    drop(wired);
    runtime.block_on(local.stop()).unwrap();
}

criterion_group!(benches, leases);
criterion_main!(benches);
