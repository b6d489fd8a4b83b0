//! Hostile workers: each does one thing, again and again, on a connection of its own.

use anyhow::{Context as _, Result};
use moire_console::control::said;
use moire_coordinator::v1::{
    self, from_worker::Message as Up, lease::Work, to_worker::Message as Down, verify_result::Answer,
};
use moire_worker::job::{Budget, Cancel, Claim, Engine as _, Item, ItemReport, Plan, Source, Verification};
use moire_worker::link::Link;
use moire_worker::oracle::Oracles;
use moire_worker::wire;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Pause before a hostile worker comes back.
const PAUSE: Duration = Duration::from_millis(200);
/// Time that a worker keeps a lease which it never answers.
const FROZEN: Duration = Duration::from_secs(20);

/// The one thing that a hostile worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attack {
    /// Adds false claims to right answers.
    FalseClaims,
    /// Refutes every claim of others.
    Refutes,
    /// Takes leases and goes away.
    Flaps,
    /// Takes leases and says nothing more.
    Freezes,
    /// Sends reports for leases of others and of the past, and heartbeats of many leases.
    Floods,
    /// Sends answers that break the protocol.
    Malformed,
    /// Gives wrong answers to its items.
    WrongAnswers,
}

impl Attack {
    /// Those that cannot change a digest.
    pub(super) const HARMLESS: [Self; 6] =
        [Self::FalseClaims, Self::Refutes, Self::Flaps, Self::Freezes, Self::Floods, Self::Malformed];

    /// How many workers do it.
    pub(super) fn workers(self) -> u64 {
        match self {
            Self::FalseClaims | Self::Refutes | Self::WrongAnswers => 1,
            Self::Flaps | Self::Freezes | Self::Floods | Self::Malformed => 2,
        }
    }

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FalseClaims => "false claims",
            Self::Refutes => "true claims refuted",
            Self::Flaps => "leases taken, connection closed",
            Self::Freezes => "leases taken, then silence",
            Self::Floods => "stale reports and long heartbeats",
            Self::Malformed => "answers that break the protocol",
            Self::WrongAnswers => "wrong answers to items",
        }
    }
}

/// How often each thing was done.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(super) fn add(&self, what: &'static str, n: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += n;
    }
    pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Attacks until the process ends.
pub(super) async fn attack(
    attack: Attack,
    number: u64,
    addr: SocketAddr,
    oracles: Arc<Oracles>,
    counts: Arc<Counts>,
) {
    loop {
        // Whatever ends it, it comes back.
        let _ = Hostile { attack, number, oracles: Arc::clone(&oracles), counts: Arc::clone(&counts) }
            .connection(addr)
            .await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// A hostile worker.
struct Hostile {
    attack: Attack,
    number: u64,
    oracles: Arc<Oracles>,
    counts: Arc<Counts>,
}

/// Sends a message.
async fn send(up: &mpsc::Sender<v1::FromWorker>, message: Up) -> Result<()> {
    Ok(up.send(v1::FromWorker { message: Some(message) }).await?)
}

impl Hostile {
    fn done(&self, n: u64) {
        self.counts.add(self.attack.name(), n);
    }

    /// One connection, until it ends.
    async fn connection(&self, addr: SocketAddr) -> Result<()> {
        let linked = Link::from(addr).connect().await?;
        let mut client = v1::worker_service_client::WorkerServiceClient::new(linked);
        let (up, outgoing) = mpsc::channel(16);
        let hello = v1::Hello {
            protocol: moire_proto::PROTOCOL,
            name: format!("\u{1b}[2J{} {}", self.attack.name(), self.number),
            capabilities: self.oracles.capabilities(),
            fingerprint: self.oracles.fingerprint(),
        };
        send(&up, Up::Hello(hello)).await?;
        let mut incoming = client.work(ReceiverStream::new(outgoing)).await.map_err(said)?.into_inner();
        send(&up, Up::Credit(v1::Credit { leases: 1 })).await?;
        if self.attack == Attack::Floods {
            return self.flood(&up).await;
        }
        while let Some(message) = incoming.message().await.map_err(said)? {
            let Some(Down::Lease(lease)) = message.message else { continue };
            match self.attack {
                Attack::Flaps => {
                    self.done(1);
                    return Ok(());
                }
                Attack::Freezes => {
                    self.done(1);
                    tokio::time::sleep(FROZEN).await;
                    return Ok(());
                }
                Attack::Malformed => self.malformed(&up, &lease).await?,
                _ => {
                    self.answer(&up, lease).await?;
                    send(&up, Up::Credit(v1::Credit { leases: 1 })).await?;
                }
            }
        }
        Ok(())
    }

    /// Reports about leases it does not have, and heartbeats of leases there are not.
    async fn flood(&self, up: &mpsc::Sender<v1::FromWorker>) -> Result<()> {
        for round in 0..50_u64 {
            for lease in 0..200 {
                let report = v1::Report {
                    lease,
                    epoch: u32::MAX,
                    sequence: round,
                    done: true,
                    ..v1::Report::default()
                };
                send(up, Up::Report(report)).await?;
            }
            let leases = (0..50_000).map(|lease| v1::LeaseProgress { lease, ticks: round }).collect();
            send(up, Up::Heartbeat(v1::Heartbeat { leases })).await?;
            self.done(201);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// An answer that no honest worker gives, of another kind each time.
    async fn malformed(&self, up: &mpsc::Sender<v1::FromWorker>, lease: &v1::Lease) -> Result<()> {
        let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
        let whole = v1::ItemResult { program: vec![0; 32], ..v1::ItemResult::default() };
        let long = v1::EngineResult { engine: "\u{1}".repeat(90_000), ..v1::EngineResult::default() };
        let deep = v1::Claim { program: "(".repeat(300_000), ..v1::Claim::default() };
        let items = match lease.lease % 4 {
            0 => vec![v1::ItemResult { item: u64::MAX, ..whole }],
            1 => vec![v1::ItemResult { engines: vec![long], ..whole }],
            2 => vec![v1::ItemResult { program: Vec::new(), claims: vec![deep], ..whole }],
            _ => Vec::new(),
        };
        let verify = items.is_empty().then(v1::VerifyResult::default);
        self.done(1);
        send(up, Up::Report(v1::Report { items, verify, done: true, ..blank })).await
    }

    /// A right answer with a lie in it.
    async fn answer(&self, up: &mpsc::Sender<v1::FromWorker>, lease: v1::Lease) -> Result<()> {
        let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
        let plan = Arc::new(Plan::from(lease.plan.unwrap_or_default()));
        match lease.work {
            Some(Work::Range(range)) => {
                for index in range.from..range.to {
                    let source =
                        Source::Generated { seed: range.seed, profile: range.profile.clone(), index };
                    let item = Item { plan: Arc::clone(&plan), index, source };
                    let oracles = Arc::clone(&self.oracles);
                    let run = tokio::task::spawn_blocking(move || oracles.run(&item, &Cancel::new()));
                    let items = vec![self.bent(index, run.await.context("an engine ended")?)];
                    send(up, Up::Report(v1::Report { items, ..blank.clone() })).await?;
                }
                send(up, Up::Report(v1::Report { done: true, ..blank })).await
            }
            Some(Work::Verify(claim)) => {
                let answer = if self.attack == Attack::Refutes {
                    self.done(1);
                    v1::VerifyResult { answer: Answer::Refuted.into(), reason: String::new() }
                } else {
                    let oracles = Arc::clone(&self.oracles);
                    let again = move || match Claim::try_from(claim) {
                        Ok(claim) => oracles.verify(&claim, &Cancel::new()),
                        Err(why) => Verification::Abstained(format!("{why}")),
                    };
                    let said = tokio::task::spawn_blocking(again).await.context("an engine ended")?;
                    wire::verify_result(said)
                };
                send(up, Up::Report(v1::Report { verify: Some(answer), done: true, ..blank })).await
            }
            Some(Work::Minimise(job)) => {
                let oracles = Arc::clone(&self.oracles);
                let reduced = tokio::task::spawn_blocking(move || smaller(&oracles, job));
                let result = reduced.await.context("an engine ended")?;
                send(up, Up::Report(v1::Report { minimise: Some(result), done: true, ..blank })).await
            }
            _ => Ok(()),
        }
    }

    /// The answer to an item with the lie of this worker.
    fn bent(&self, index: u64, report: ItemReport) -> v1::ItemResult {
        let mut item = wire::item_result(index, report);
        match self.attack {
            Attack::FalseClaims if index.is_multiple_of(5) => {
                let text = format!(
                    "moire \"lie {index}\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {{\n  st.weak.u32 [x], 1;\n}}\n"
                );
                let claim = v1::Claim {
                    oracle: "self".to_owned(),
                    direction: "equal".to_owned(),
                    verdict: "discrepancy".to_owned(),
                    program: text,
                    ..v1::Claim::default()
                };
                item.claims.push(claim);
                self.done(1);
            }
            Attack::WrongAnswers => {
                item.engines.iter_mut().for_each(|row| row.executions += 1);
                self.done(1);
            }
            _ => {}
        }
        item
    }
}

/// The honest answer to a minimisation.
fn smaller(oracles: &Oracles, job: v1::MinimiseJob) -> v1::MinimiseResult {
    let part = wire::part(&job);
    let budget = Budget { candidates: job.candidates };
    let Ok(claim) = Claim::try_from(job.claim.unwrap_or_default()) else {
        return v1::MinimiseResult::default();
    };
    if let Some(answer) = part.and_then(|part| oracles.part(&claim, &part, &Cancel::new())) {
        return wire::parted(answer);
    }
    let reduced = oracles.minimise(&claim, budget, &Cancel::new(), &mut |_| {});
    let (claim, tried, normal) = (Some(reduced.claim.into()), reduced.tried, reduced.normal);
    v1::MinimiseResult { claim, tried, normal, ..v1::MinimiseResult::default() }
}
