//! A fleet, simulated message by message, in front of the real core, scheduler and store.
//!
//! Contract: messages are handled as those of a stream, in the batches that the core's thread takes. Every answer is
//! durable before it is acknowledged. Only the network and the work itself are left out.

use moire_coordinator::lease::WorkerId;
use moire_coordinator::{BATCH_EVENTS, Error, Inline, v1};
use moire_corpus::{Options, Recovery};
use std::path::Path;
use std::time::{Duration, Instant};
use v1::{from_worker::Message as Up, lease::Work as Sent, to_worker::Message as Down};

/// Time between heartbeats, as real workers send them.
const BEAT: Duration = Duration::from_secs(5);
/// Engine rows of one answer, as a worker with three models sends them.
const ROWS: [&str; 4] = ["explorer/sc", "explorer/ptx-7.5", "explorer/ptx", "naive/ptx"];

/// A worker that answers at once.
struct Worker {
    id: WorkerId,
    held: Vec<v1::Lease>,
}

/// A simulated fleet in front of a real core.
pub(super) struct Fleet {
    core: Inline,
    workers: Vec<Worker>,
    /// Messages since the core last settled.
    waiting: usize,
    acknowledged: u64,
    /// The time of the last heartbeats.
    beat: Instant,
}

impl Fleet {
    /// Starts a coordinator without workers on the store at `dir`.
    pub(super) fn open(dir: &Path) -> Result<(Self, Recovery), Error> {
        let (core, recovery) = Inline::open(dir, Options::default())?;
        Ok((Self { core, workers: Vec::new(), waiting: 0, acknowledged: 0, beat: Instant::now() }, recovery))
    }

    /// Creates campaigns of this many programs each.
    pub(super) fn campaigns(&mut self, count: u64, programs: u64) -> Result<(), Error> {
        for n in 0..count {
            let name = format!("scale-{n}");
            let spec =
                v1::CampaignSpec { name, seed: n, programs, priority: 1, ..v1::CampaignSpec::default() };
            self.core.create(spec, true)?;
        }
        Ok(())
    }

    /// Connects workers, which do not ask for work yet.
    pub(super) fn join(&mut self, count: u64) -> Result<(), Error> {
        for n in 0..count {
            let fingerprint = "scale".to_owned();
            let (protocol, name) = (moire_proto::PROTOCOL, format!("simulated-{n}"));
            let hello = v1::Hello { protocol, name, fingerprint, capabilities: vec!["ptx".to_owned()] };
            let id = self.core.hello(hello)?;
            self.workers.push(Worker { id, held: Vec::new() });
            self.passed()?;
        }
        self.flush()
    }

    /// Lets every worker ask for this many leases. Returns the number of programs leased.
    pub(super) fn ask(&mut self, leases: u32) -> Result<u64, Error> {
        for n in 0..self.workers.len() {
            self.say(n, Up::Credit(v1::Credit { leases }))?;
        }
        self.flush()?;
        self.read();
        let programs = |lease: &v1::Lease| match &lease.work {
            Some(Sent::Range(range)) => range.to - range.from,
            _ => 0,
        };
        Ok(self.workers.iter().flat_map(|w| &w.held).map(programs).sum())
    }

    /// Lets every worker answer all its leases. Returns the number of programs answered; 0 if the core refused a
    /// message.
    pub(super) fn answer(&mut self) -> Result<u64, Error> {
        let before = self.acknowledged;
        let mut programs = 0;
        for n in 0..self.workers.len() {
            for lease in std::mem::take(&mut self.workers[n].held) {
                let Some(Sent::Range(range)) = lease.work else { continue };
                programs += range.to - range.from;
                let items = (range.from..range.to).map(|i| item(range.seed, i)).collect();
                let (lease, epoch) = (lease.lease, lease.epoch);
                let report = v1::Report { lease, epoch, items, done: true, ..v1::Report::default() };
                self.say(n, Up::Report(report))?;
            }
        }
        self.flush()?;
        self.read();
        debug_assert!(self.acknowledged >= before);
        Ok(if self.core.bad_messages() == 0 { programs } else { 0 })
    }

    /// Returns the number of reports acknowledged so far.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
    /// Counts the findings as the metrics do, while nothing else happens. Returns their number and the longest time
    /// that the core was busy without a break.
    pub(super) fn count_findings(&mut self) -> Result<(u64, Duration), Error> {
        let mut longest = Duration::ZERO;
        loop {
            let start = Instant::now();
            let (counted, whole) = self.core.count_findings()?;
            if whole {
                return Ok((counted, longest));
            }
            longest = longest.max(start.elapsed());
            self.core.settle()?;
        }
    }

    fn say(&mut self, worker: usize, message: Up) -> Result<(), Error> {
        self.core.message(self.workers[worker].id, v1::FromWorker { message: Some(message) });
        self.passed()
    }

    /// Lets the core settle as often as its thread would under load.
    fn passed(&mut self) -> Result<(), Error> {
        self.waiting += 1;
        if self.waiting >= BATCH_EVENTS { self.flush() } else { Ok(()) }
    }
    fn flush(&mut self) -> Result<(), Error> {
        self.waiting = 0;
        if self.beat.elapsed() > BEAT {
            self.beat = Instant::now();
            for worker in &self.workers {
                let leases = worker
                    .held
                    .iter()
                    .map(|l| v1::LeaseProgress { lease: l.lease, ticks: self.acknowledged });
                let beat = Up::Heartbeat(v1::Heartbeat { leases: leases.collect() });
                self.core.message(worker.id, v1::FromWorker { message: Some(beat) });
            }
        }
        self.core.settle()
    }

    /// Lets every worker read its messages.
    fn read(&mut self) {
        for worker in &mut self.workers {
            for sent in self.core.sent(worker.id) {
                match sent.message {
                    Some(Down::Lease(lease)) => worker.held.push(lease),
                    Some(Down::Ack(ack)) => self.acknowledged += u64::from(ack.accepted),
                    _ => {}
                }
            }
        }
    }
}

/// Builds the answer for one item.
fn item(seed: u64, index: u64) -> v1::ItemResult {
    let hash = |what: u64| {
        let mut bytes = vec![0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&index.to_le_bytes());
        bytes[16..24].copy_from_slice(&what.to_le_bytes());
        bytes
    };
    let row = |engine: &&str| v1::EngineResult {
        engine: (*engine).to_owned(),
        verdict: "clean".to_owned(),
        outcomes: hash(1),
        leaves: hash(2),
        executions: 20,
    };
    let engines = ROWS.iter().map(row).collect();
    v1::ItemResult { item: index, program: hash(0), engines, ..v1::ItemResult::default() }
}
