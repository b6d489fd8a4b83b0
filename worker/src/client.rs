//! The lease loop: one stream to the coordinator, one blocking thread per lease.
//!
//! Contract: results go out in item order, each report names its lease and epoch; a cancelled lease stops
//! reporting and is acknowledged once its thread is free. Source: design section 9.

use crate::job::{Budget, Cancel, Engine, Item, Plan, Source};
use crate::link::{Link, LinkError};
use crate::{failpoints, wire};
use moire_proto::v1::{self, from_worker::Message as Up, lease::Work, to_worker::Message as Down};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Items of one report at most.
const REPORT_ITEMS: usize = 32;
/// Longest time a result waits for others.
const REPORT_AFTER: Duration = Duration::from_millis(200);
/// First pause before another connection; it doubles.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How to work.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name for people.
    pub name: String,
    /// Leases held at one time (each has a thread).
    pub threads: u32,
}

/// Why a worker stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// No connection.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The coordinator refused or ended the stream.
    #[error("{}", .0.message())]
    Status(#[from] tonic::Status),
    /// The stream is over.
    #[error("the coordinator has gone")]
    Gone,
}

impl WorkError {
    /// Whether another connection may do better: not for one of another build, and not for one without the right.
    fn passes(&self) -> bool {
        use tonic::Code;
        let Self::Status(status) = self else { return true };
        !matches!(
            status.code(),
            Code::FailedPrecondition | Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied
        )
    }
}

/// Leases held, each with its request to stop; all are stopped when the connection ends, for nobody wants their answers.
#[derive(Default)]
struct Held(BTreeMap<u64, Cancel>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.values().for_each(Cancel::cancel);
    }
}

/// Works for a coordinator until the stream ends.
///
/// # Errors
/// See [`WorkError`]; a drained worker returns `Ok`.
pub async fn work(link: impl Into<Link>, engine: Arc<dyn Engine>, options: Options) -> Result<(), WorkError> {
    let (_never, stop) = watch::channel(());
    session(&link.into(), &engine, &options, stop, &mut false).await
}

/// Works for a coordinator, and connects again when the connection is lost, until `stop` says something: then what is
/// under way is finished and reported.
///
/// # Errors
/// There was no first connection, or another one would fare no better: another build, or no right to work.
pub async fn stay(
    link: &Link,
    engine: Arc<dyn Engine>,
    options: Options,
    mut stop: watch::Receiver<()>,
) -> Result<(), WorkError> {
    let (mut welcome, mut pause) = (false, PAUSE);
    // Workers that lost their coordinator together do not come back together.
    let spread = f64::from(blake3::hash(options.name.as_bytes()).as_bytes()[0]) / 255.0;
    loop {
        let began = Instant::now();
        let error = match session(link, &engine, &options, stop.clone(), &mut welcome).await {
            Ok(()) => return Ok(()),
            Err(error) if welcome && error.passes() => error,
            Err(error) => return Err(error),
        };
        if began.elapsed() > PAUSE_MAX {
            pause = PAUSE;
        }
        let wait = pause.mul_f64(0.5 + spread);
        tracing::warn!(%error, "connecting again in {} ms", wait.as_millis());
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(()) = stop.changed() => return Ok(()),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// One connection. `welcome` is set when the coordinator has taken this worker.
async fn session(
    link: &Link,
    engine: &Arc<dyn Engine>,
    options: &Options,
    mut stop: watch::Receiver<()>,
    welcome: &mut bool,
) -> Result<(), WorkError> {
    let mut client = v1::worker_service_client::WorkerServiceClient::new(link.connect().await?)
        .max_decoding_message_size(moire_proto::MESSAGE_BYTES_MAX);
    let (up, outgoing) = mpsc::channel(64);
    let hello = v1::Hello {
        protocol: moire_proto::PROTOCOL,
        name: options.name.clone(),
        capabilities: engine.capabilities(),
        fingerprint: engine.fingerprint(),
    };
    send(&up, Up::Hello(hello)).await?;
    let mut incoming = client.work(ReceiverStream::new(outgoing)).await?.into_inner();
    let first = incoming.next().await.ok_or(WorkError::Gone)??;
    let Some(Down::Welcome(terms)) = first.message else { return Err(WorkError::Gone) };
    *welcome = true;
    send(&up, Up::Credit(v1::Credit { leases: options.threads })).await?;
    let mut held = Held::default();
    let (over, mut finished) = mpsc::channel::<u64>(64);
    let mut beat = tokio::time::interval(Duration::from_millis((terms.liveness_ms / 3).max(10)));
    let mut draining = false;
    loop {
        tokio::select! {
            message = incoming.next() => match message.ok_or(WorkError::Gone)??.message {
                Some(Down::Lease(lease)) => {
                    let cancel = Cancel::new();
                    held.0.insert(lease.lease, cancel.clone());
                    let (engine, up, over) = (engine.clone(), up.clone(), over.clone());
                    tokio::task::spawn_blocking(move || {
                        let id = lease.lease;
                        run(&*engine, lease, &cancel, &up);
                        // Both fail only when the loop has ended.
                        let _ = over.blocking_send(id);
                    });
                }
                Some(Down::Cancel(c)) => match held.0.get(&c.lease) {
                    Some(cancel) => cancel.cancel(),
                    None => send(&up, Up::KillAck(v1::KillAck { lease: c.lease })).await?,
                },
                Some(Down::Drain(_)) => {
                    draining = true;
                    send(&up, Up::Draining(v1::Draining {})).await?;
                }
                Some(Down::Ack(_) | Down::Welcome(_)) | None => {}
            },
            Some(id) = finished.recv() => {
                if held.0.remove(&id).is_some_and(|c| c.is_cancelled()) {
                    send(&up, Up::KillAck(v1::KillAck { lease: id })).await?;
                }
                if !draining {
                    send(&up, Up::Credit(v1::Credit { leases: 1 })).await?;
                }
            }
            Ok(()) = stop.changed(), if !draining => {
                draining = true;
                send(&up, Up::Draining(v1::Draining {})).await?;
            }
            _ = beat.tick() => {
                let leases = held.0.iter().map(|(lease, c)| v1::LeaseProgress { lease: *lease, ticks: c.ticks() });
                send(&up, Up::Heartbeat(v1::Heartbeat { leases: leases.collect() })).await?;
            }
        }
        if draining && held.0.is_empty() {
            return Ok(());
        }
    }
}

async fn send(up: &mpsc::Sender<v1::FromWorker>, message: Up) -> Result<(), WorkError> {
    up.send(v1::FromWorker { message: Some(message) }).await.map_err(|_| WorkError::Gone)
}

/// Runs one lease on this thread and reports it.
fn run(engine: &dyn Engine, lease: v1::Lease, cancel: &Cancel, up: &mpsc::Sender<v1::FromWorker>) {
    failpoints::hit(failpoints::LEASE);
    let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
    let deliver = |report: v1::Report| {
        if !cancel.is_cancelled() {
            failpoints::hit(failpoints::REPORT_BEFORE);
            // Fails only when the stream is gone; the lease is then lost as a whole.
            let _ = up.blocking_send(v1::FromWorker { message: Some(Up::Report(report)) });
            failpoints::hit(failpoints::REPORT_AFTER);
        }
    };
    let plan = Arc::new(Plan::from(lease.plan.unwrap_or_default()));
    let last = v1::Report { done: true, ..blank.clone() };
    match lease.work {
        Some(Work::Range(range)) => {
            let mut report = blank.clone();
            let mut since = Instant::now();
            for index in range.from..range.to {
                if cancel.is_cancelled() {
                    return;
                }
                let source = Source::Generated { seed: range.seed, profile: range.profile.clone(), index };
                let answer = engine.run(&Item { plan: plan.clone(), index, source }, cancel);
                cancel.tick();
                report.items.push(wire::item_result(index, answer));
                if report.items.len() >= REPORT_ITEMS || since.elapsed() > REPORT_AFTER {
                    deliver(std::mem::replace(&mut report, blank.clone()));
                    since = Instant::now();
                }
            }
            deliver(v1::Report { done: true, ..report });
        }
        Some(Work::Verify(claim)) => {
            let answer = claim.try_into().map(|claim| engine.verify(&claim, cancel));
            let answer = answer.unwrap_or_else(|e| crate::job::Verification::Abstained(e.to_string()));
            deliver(v1::Report { verify: Some(wire::verify_result(answer)), ..last });
        }
        Some(Work::Minimise(job)) => {
            let Ok(claim) = job.claim.unwrap_or_default().try_into() else { return deliver(last) };
            let budget = Budget { candidates: job.candidates };
            let reduced = engine.minimise(&claim, budget, cancel, &mut |_| cancel.tick());
            let (claim, tried, normal) = (Some(reduced.claim.into()), reduced.tried, reduced.normal);
            deliver(v1::Report { minimise: Some(v1::MinimiseResult { claim, tried, normal }), ..last });
        }
        Some(Work::Replay(job)) => {
            let answer = engine.run(&Item { plan, index: 0, source: Source::Text(job.program) }, cancel);
            deliver(v1::Report { items: vec![wire::item_result(0, answer)], ..last });
        }
        None => deliver(last),
    }
}
