//! The lease loop: one stream to the coordinator, one blocking thread per lease.
//!
//! Contract: results go out in item order, and each report names its lease and epoch. A cancelled lease stops reporting,
//! and its cancellation is acknowledged once its thread is free.

use crate::confine::Confine;
use crate::job::{Cancel, Engine};
use crate::lease::{Desk, run};
use crate::link::{Link, LinkError};
use crate::trial::{Planted, Seen, Trial};
use moire_proto::v1::{self, from_worker::Message as Up, to_worker::Message as Down};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// First pause before another connection. It doubles with each failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause before another connection, before it is spread.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name that people see.
    pub name: String,
    /// Most leases held at one time. Each has a thread.
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
    /// Whether another connection may succeed. It cannot if this worker is of another build or has no right to work. A
    /// worker that was never welcomed tries again only if the coordinator is not up yet, ends, or has no room now.
    fn passes(&self, welcome: bool) -> bool {
        use tonic::Code;
        let status = match self {
            Self::Link(error) => return welcome || error.passes(),
            Self::Gone => return true,
            Self::Status(status) => status,
        };
        match status.code() {
            Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::Unauthenticated
            | Code::PermissionDenied => false,
            Code::Unavailable | Code::ResourceExhausted => true,
            _ => welcome,
        }
    }
}

/// The leases held, each with its requests. All are stopped when the connection ends, because their answers could not be
/// delivered.
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
    let worker = Worker { link: link.into(), engine, options, confine: None, trial: Trial::default() };
    worker.session(stop, &mut false).await
}

/// Works for a coordinator until `stop` changes; then running leases are finished and reported. Connects again when the
/// connection is lost, or when the coordinator or its name is not there yet.
///
/// # Errors
/// Another connection would fail as well: another build, no right to work, malformed certificates.
pub async fn stay(
    link: &Link,
    engine: Arc<dyn Engine>,
    options: Options,
    stop: watch::Receiver<()>,
) -> Result<(), WorkError> {
    stay_on(link, engine, options, None, stop, Trial::default()).await
}

/// [`stay`], with every lease in a process of its own. `engine` says what those processes can do.
///
/// # Errors
/// See [`stay`].
pub async fn stay_confined(
    link: &Link,
    engine: Arc<dyn Engine>,
    options: Options,
    confine: Confine,
    stop: watch::Receiver<()>,
) -> Result<(), WorkError> {
    stay_on(link, engine, options, Some(Arc::new(confine)), stop, Trial::default()).await
}

/// [`stay`] in a trial.
///
/// # Errors
/// See [`stay`].
pub async fn stay_on_trial(
    link: &Link,
    engine: Arc<dyn Engine>,
    options: Options,
    stop: watch::Receiver<()>,
    trial: Trial,
) -> Result<(), WorkError> {
    stay_on(link, engine, options, None, stop, trial).await
}

async fn stay_on(
    link: &Link,
    engine: Arc<dyn Engine>,
    options: Options,
    confine: Option<Arc<Confine>>,
    mut stop: watch::Receiver<()>,
    trial: Trial,
) -> Result<(), WorkError> {
    let (mut welcome, mut pause) = (false, MIN_PAUSE);
    // Spreads the pauses of workers that lost their coordinator at the same time.
    let spread = f64::from(blake3::hash(options.name.as_bytes()).as_bytes()[0]) / 255.0;
    let worker = Worker { link: link.clone(), engine, options, confine, trial };
    loop {
        let began = Instant::now();
        let ended = worker.session(stop.clone(), &mut welcome).await;
        worker.trial.tell(|| Seen::Lost);
        let error = match ended {
            Ok(()) => return Ok(()),
            Err(error) if error.passes(welcome) => error,
            Err(error) => return Err(error),
        };
        if began.elapsed() > MAX_PAUSE {
            pause = MIN_PAUSE;
        }
        let wait = pause.mul_f64(0.5 + spread);
        tracing::warn!(%error, "connecting again in {} ms", wait.as_millis());
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(()) = stop.changed() => return Ok(()),
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// State that all connections of a worker share.
struct Worker {
    link: Link,
    engine: Arc<dyn Engine>,
    options: Options,
    /// Where leases run: in processes of their own, or in this one.
    confine: Option<Arc<Confine>>,
    trial: Trial,
}

impl Worker {
    /// Starts a lease on its own thread or, in a trial, as a task. `over` gets the lease when it ends.
    fn start(
        &self,
        lease: v1::Lease,
        cancel: Cancel,
        up: mpsc::Sender<v1::FromWorker>,
        over: mpsc::Sender<u64>,
    ) {
        let (engine, confine, trial) = (self.engine.clone(), self.confine.clone(), self.trial.clone());
        let as_task = trial.pace.is_some();
        let work = async move {
            let id = lease.lease;
            let desk = Desk { cancel: &cancel, up: &up, trial: &trial };
            match confine {
                Some(confine) => confine.run(lease, &desk).await,
                None => run(engine, lease, &desk).await,
            }
            // Both fail only when the loop has ended.
            let _ = over.send(id).await;
        };
        match as_task {
            true => _ = tokio::spawn(work),
            false => {
                let runtime = tokio::runtime::Handle::current();
                tokio::task::spawn_blocking(move || runtime.block_on(work));
            }
        }
    }

    /// Says hello and waits for the coordinator's welcome; sets `welcome` then.
    async fn enter(
        &self,
        welcome: &mut bool,
    ) -> Result<(v1::Welcome, mpsc::Sender<v1::FromWorker>, tonic::Streaming<v1::ToWorker>), WorkError> {
        let mut client = v1::worker_service_client::WorkerServiceClient::new(self.link.connect().await?)
            .max_decoding_message_size(moire_proto::MESSAGE_BYTES_MAX);
        let (up, outgoing) = mpsc::channel(64);
        let hello = v1::Hello {
            protocol: moire_proto::PROTOCOL,
            name: self.options.name.clone(),
            capabilities: self.engine.capabilities(),
            fingerprint: self.engine.fingerprint(),
        };
        send(&up, Up::Hello(hello)).await?;
        let mut incoming = client.work(ReceiverStream::new(outgoing)).await?.into_inner();
        let first = incoming.next().await.ok_or(WorkError::Gone)??;
        let Some(Down::Welcome(terms)) = first.message else { return Err(WorkError::Gone) };
        *welcome = true;
        self.trial.tell(|| Seen::Welcome(terms.worker));
        Ok((terms, up, incoming))
    }

    /// One connection.
    async fn session(&self, mut stop: watch::Receiver<()>, welcome: &mut bool) -> Result<(), WorkError> {
        let (terms, up, mut incoming) = self.enter(welcome).await?;
        send(&up, Up::Credit(v1::Credit { leases: self.options.threads })).await?;
        let mut held = Held::default();
        let (over, mut finished) = mpsc::channel::<u64>(64);
        let third = Duration::from_millis((terms.liveness_ms / 3).max(10));
        let mut beat = tokio::time::interval(self.trial.beat(third));
        let mut draining = false;
        let mut late = self.trial.late();
        loop {
            // The fixed order makes a run in a simulated world repeatable. Nothing above the messages comes often enough to
            // keep them waiting.
            tokio::select! {
                biased;
                _ = beat.tick() => {
                    let leases = held.0.iter().map(|(lease, c)| v1::LeaseProgress { lease: *lease, ticks: c.ticks() });
                    send(&up, Up::Heartbeat(v1::Heartbeat { leases: leases.collect() })).await?;
                }
                Ok(()) = stop.changed(), if !draining => {
                    draining = true;
                    held.0.values().for_each(Cancel::leave);
                    send(&up, Up::Draining(v1::Draining {})).await?;
                }
                Some(id) = finished.recv() => {
                    if held.0.remove(&id).is_some_and(|c| c.is_cancelled()) && !self.trial.has(Planted::AcksKillEarly) {
                        self.kill_ack(&up, id).await?;
                    }
                    if !draining {
                        send(&up, Up::Credit(v1::Credit { leases: 1 })).await?;
                    }
                }
                message = incoming.next() => match message.ok_or(WorkError::Gone)??.message {
                    Some(Down::Lease(lease)) => {
                        let cancel = Cancel::new();
                        held.0.insert(lease.lease, cancel.clone());
                        self.trial.tell(|| Seen::Lease { lease: lease.lease, epoch: lease.epoch });
                        if let Some(report) = late.take() {
                            up.send(report).await.map_err(|_| WorkError::Gone)?;
                        }
                        self.start(lease, cancel, up.clone(), over.clone());
                    }
                    Some(Down::Cancel(c)) => {
                        self.trial.tell(|| Seen::Cancel(c.lease));
                        let holds = held.0.get(&c.lease).map(Cancel::cancel).is_some();
                        if !holds || self.trial.has(Planted::AcksKillEarly) {
                            self.kill_ack(&up, c.lease).await?;
                        }
                    }
                    Some(Down::Give(give)) => held.0.get(&give.lease).into_iter().for_each(Cancel::want),
                    Some(Down::Drain(_)) => {
                        draining = true;
                        held.0.values().for_each(Cancel::leave);
                        send(&up, Up::Draining(v1::Draining {})).await?;
                    }
                    Some(Down::Ack(_) | Down::Welcome(_)) | None => {}
                },
            }
            if draining && held.0.is_empty() {
                return Ok(());
            }
        }
    }

    async fn kill_ack(&self, up: &mpsc::Sender<v1::FromWorker>, lease: u64) -> Result<(), WorkError> {
        self.trial.tell(|| Seen::KillAck(lease));
        send(up, Up::KillAck(v1::KillAck { lease })).await
    }
}

async fn send(up: &mpsc::Sender<v1::FromWorker>, message: Up) -> Result<(), WorkError> {
    up.send(v1::FromWorker { message: Some(message) }).await.map_err(|_| WorkError::Gone)
}
