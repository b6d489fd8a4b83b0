//! A running coordinator: for `moire serve`, and with workers beside it for `moire fuzz`.

use crate::core::{Core, Event};
use crate::door::guard::Guard;
use crate::door::{Audit, Connection, Door, Face, Gate, Io};
use crate::service::{Control, Workers};
use crate::trial::Trial;
use crate::{Error, Limits, http, lease, v1};
use moire_corpus::{Finding, FindingId, Hash, HashError, Loss, Options, Recovery, Store};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;

/// Most events that wait for the core.
const EVENTS_MAX: usize = 4096;
/// Time between two checks of the clocks.
const TICK: Duration = Duration::from_millis(50);
/// Most streams of one connection at one time.
const STREAMS_MAX: u32 = 256;
/// Largest headers of a call, in bytes.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Most streams that a connection may reset before they were accepted.
const RESETS_MAX: usize = 32;
/// Time between two keep-alive pings, and for their answers, so that half-open connections end.
const ALIVE: Duration = Duration::from_secs(20);
/// Longest wait for open streams when stopping.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// The settings of a coordinator.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where workers and clients connect (port 0: any free one).
    pub listen: SocketAddr,
    /// Where metrics, health and pages are, if anywhere.
    pub http: Option<SocketAddr>,
    /// Folder with `ca.crt`, `tls.crt`, `tls.key` and `tokens`; see [`crate::certs`]. Without it only this machine is
    /// served.
    pub certs: Option<PathBuf>,
    /// Bounds on peers [default: [`Limits::FAR`] with certificates, [`Limits::NEAR`] without].
    pub limits: Option<Limits>,
    /// Limits and clocks of leases.
    pub lease: lease::Config,
}

impl Setup {
    /// On this machine alone, with the defaults and no HTTP.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, http: None, certs: None, limits: None, lease: lease::Config::default() }
    }
    fn limits(&self) -> Limits {
        self.limits.unwrap_or(if self.certs.is_some() { Limits::FAR } else { Limits::NEAR })
    }
}

/// A coordinator that serves.
pub struct Local {
    addr: SocketAddr,
    http_addr: Option<SocketAddr>,
    recovery: Recovery,
    losses: Vec<Loss>,
    control: Control,
    events: mpsc::Sender<Event>,
    core: tokio::task::JoinHandle<Result<(), Error>>,
    servers: tokio::task::JoinSet<()>,
    /// Dropped to stop the servers.
    stop: watch::Sender<()>,
}

/// Listens on an address; without certificates it must be a loopback address.
async fn bind(addr: SocketAddr, door: &Door) -> Result<TcpListener, Error> {
    if !door.locked() && !addr.ip().to_canonical().is_loopback() {
        return Err(Error::NotLoopback(addr));
    }
    TcpListener::bind(addr).await.map_err(|source| Error::Listen { addr, source })
}

/// Completes when the sender is dropped.
async fn stopped(mut stop: watch::Receiver<()>) {
    while stop.changed().await.is_ok() {}
}

/// Starts the core, on a thread of its own or as a task, and the clock that wakes it.
fn spawn(core: Core, as_task: bool) -> (mpsc::Sender<Event>, tokio::task::JoinHandle<Result<(), Error>>) {
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    let running = core.run(inbox);
    let core = match as_task {
        true => tokio::spawn(running),
        false => {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(running))
        }
    };
    let ticks = events.downgrade();
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(TICK);
        loop {
            clock.tick().await;
            let Some(events) = ticks.upgrade() else { return };
            if events.send(Event::Tick).await.is_err() {
                return;
            }
        }
    });
    (events, core)
}

/// Serves both services, health and reflection.
async fn grpc(
    incoming: impl Stream<Item = std::io::Result<Connection>>,
    door: Arc<Door>,
    control: Control,
    stop: watch::Receiver<()>,
) -> Result<(), Error> {
    let limit = moire_proto::MESSAGE_BYTES_MAX;
    let workers = Workers::new(control.clone(), door.clone());
    let workers = v1::worker_service_server::WorkerServiceServer::new(workers);
    let people = v1::control_service_server::ControlServiceServer::new(control);
    let (health, healthy) = tonic_health::server::health_reporter();
    health.set_serving::<v1::worker_service_server::WorkerServiceServer<Workers>>().await;
    health.set_serving::<v1::control_service_server::ControlServiceServer<Control>>().await;
    let described = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(moire_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| Error::Status(tonic::Status::internal(e.to_string())))?;
    tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .http2_max_pending_accept_reset_streams(Some(RESETS_MAX))
        .http2_keepalive_interval(Some(ALIVE))
        .http2_keepalive_timeout(Some(ALIVE))
        .layer(Guard(door))
        .add_service(healthy)
        .add_service(described)
        .add_service(workers.max_decoding_message_size(limit))
        .add_service(people.max_decoding_message_size(limit))
        .serve_with_incoming_shutdown(incoming, stopped(stop))
        .await?;
    Ok(())
}

impl Local {
    /// As [`Local::open`], with the defaults and no HTTP.
    ///
    /// # Errors
    /// See [`Local::open`].
    pub async fn start(dir: &Path, listen: SocketAddr, lease: lease::Config) -> Result<Self, Error> {
        Self::open(dir, Setup { lease, ..Setup::new(listen) }).await
    }

    /// Opens the store at `dir` and serves.
    ///
    /// # Errors
    /// An address is not loopback and there are no certificates, or is not free; or certificates or store cannot be used.
    pub async fn open(dir: &Path, setup: Setup) -> Result<Self, Error> {
        let audit = if setup.certs.is_some() { Audit::new(dir) } else { Audit::none() };
        let door = Arc::new(Door::new(setup.certs.as_deref(), setup.limits(), audit)?);
        let listener = bind(setup.listen, &door).await?;
        let addr = listener.local_addr()?;
        let pages = match setup.http {
            Some(addr) => Some(bind(addr, &door).await?),
            None => None,
        };
        let http_addr = pages.as_ref().map(TcpListener::local_addr).transpose()?;
        let (store, recovery) = Store::open(dir, Options::default())?;
        let losses = store.losses().cloned().collect();
        let core = Core::new(store, setup.lease, door.refused.clone(), Trial::default())?;
        let (events, core) = spawn(core, false);
        let control = Control::new(events.clone(), door.clone());
        let (stop, stopping) = watch::channel(());
        let mut servers = tokio::task::JoinSet::new();
        let gate = Gate::open(listener, door.clone(), Face::Calls, stopping.clone())?;
        let serving = grpc(gate.incoming(), door.clone(), control.clone(), stopping.clone());
        servers.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the gRPC server ended");
            }
        });
        if let Some(pages) = pages {
            let gate = Gate::open(pages, door.clone(), Face::Pages, stopping.clone())?;
            let serving = http::serve(gate, door, control.clone(), stopped(stopping));
            servers.spawn(async move {
                if let Err(error) = serving.await {
                    tracing::error!(%error, "the HTTP server ended");
                }
            });
        }
        Ok(Self { addr, http_addr, recovery, losses, control, events, core, servers, stop })
    }

    /// Opens the store at `dir` and serves connections that come from `connections`, on trial: everything is a task of
    /// this runtime and goes by its clock.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn on_trial(
        dir: &Path,
        options: Options,
        lease: lease::Config,
        connections: mpsc::Receiver<(Box<dyn Io>, SocketAddr)>,
        trial: Trial,
    ) -> Result<Self, Error> {
        let door = Arc::new(Door::new(None, Limits::NEAR, Audit::none())?);
        let (store, recovery) = Store::open(dir, options)?;
        let losses = store.losses().cloned().collect();
        let (events, core) = spawn(Core::new(store, lease, door.refused.clone(), trial)?, true);
        let control = Control::new(events.clone(), door.clone());
        let (stop, stopping) = watch::channel(());
        let mut servers = tokio::task::JoinSet::new();
        let serving = grpc(Gate::over(connections, door.clone()), door, control.clone(), stopping);
        // Ends with `stop`, or with the world.
        servers.spawn(async { _ = serving.await });
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        Ok(Self { addr, http_addr: None, recovery, losses, control, events, core, servers, stop })
    }

    /// Where it serves.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
    /// Where metrics and health are.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http_addr
    }
    /// The findings of opening the store.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }
    /// What the store had when it was opened, and has no more: losses that nobody has acknowledged.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }
    /// Whether the core has ended (a store that failed, say); [`Local::stop`] then says why.
    pub fn is_over(&self) -> bool {
        self.core.is_finished()
    }

    /// Has `tell` called, on the coordinator's thread, with each new finding once it is durable.
    ///
    /// # Errors
    /// The coordinator has stopped.
    pub async fn announce(&self, tell: impl Fn(&Finding) + Send + 'static) -> Result<(), Error> {
        self.control.call(move |core| core.announce = Some(Box::new(tell))).await
    }

    /// Creates the campaign, or resumes the one of this name with the same seed and profile.
    ///
    /// # Errors
    /// The specification makes no sense, or the name is taken by another campaign.
    pub async fn create(&self, spec: v1::CampaignSpec) -> Result<v1::CampaignStatus, Error> {
        self.control.call(move |core| core.create(spec, true)).await?
    }
    /// How far a campaign is.
    ///
    /// # Errors
    /// There is no such campaign.
    pub async fn status(&self, name: &str) -> Result<v1::CampaignStatus, Error> {
        let name = name.to_owned();
        Ok(self.control.call(move |core| core.status(&name)).await??)
    }
    /// Starts an exploration, or finds the one that is there; how far it is.
    ///
    /// # Errors
    /// It is none, or there is no room for one more.
    pub async fn explore(&self, asked: v1::Exploration) -> Result<v1::ExploreStatus, Error> {
        self.control
            .call(move |core| {
                let id = core.explore(asked)?;
                Ok(core.explore_status(&id)?)
            })
            .await?
    }
    /// How far an exploration is that was started here. One that failed stays as it is, until it is started again.
    ///
    /// # Errors
    /// There is no such exploration.
    pub async fn explored(&self, id: &str) -> Result<v1::ExploreStatus, Error> {
        let id: Hash = id.parse().map_err(|e: HashError| tonic::Status::invalid_argument(e.to_string()))?;
        Ok(self.control.call(move |core| core.explore_status(&id)).await??)
    }
    /// Runs a finding again so many times, and returns it with the result.
    ///
    /// # Errors
    /// There is no such finding, or the coordinator stopped.
    pub async fn retest(&self, id: &FindingId, runs: u32) -> Result<Finding, Error> {
        let record = self.control.retest(v1::RetestFindingRequest { id: id.to_string(), runs }).await?;
        let unread = |e: serde_json::Error| tonic::Status::internal(e.to_string());
        Ok(serde_json::from_str(&record.json).map_err(unread)?)
    }
    /// All findings.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn findings(&self) -> Result<Vec<Finding>, Error> {
        Ok(self.control.call(|core| core.base.store.findings().collect::<Result<Vec<_>, _>>()).await??)
    }

    /// What was confirmed and is not in the store yet: with `true` what is reduced and waits for earlier items of its
    /// campaign.
    ///
    /// # Errors
    /// The coordinator has stopped.
    pub async fn under_way(&self, name: &str) -> Result<Vec<(Finding, bool)>, Error> {
        let name = name.to_owned();
        let of = move |core: &mut Core| {
            let run = core.triage.runs.get(&name);
            run.into_iter().flat_map(|run| run.under_way()).map(|(f, reduced)| (f.clone(), reduced)).collect()
        };
        self.control.call(of).await
    }

    /// Runs `spec` to its end, or until `cancel` completes; `observe` sees the status a few times a second.
    /// Workers have to be started beside it, on [`Local::addr`].
    ///
    /// # Errors
    /// See [`Local::create`]; or the coordinator stopped.
    pub async fn run(
        &self,
        spec: v1::CampaignSpec,
        cancel: impl Future<Output = ()>,
        mut observe: impl FnMut(&v1::CampaignStatus),
    ) -> Result<v1::CampaignStatus, Error> {
        let name = spec.name.clone();
        let mut status = self.create(spec).await?;
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        tokio::pin!(cancel);
        loop {
            observe(&status);
            if status.phase == i32::from(v1::CampaignPhase::Done) {
                return Ok(status);
            }
            tokio::select! {
                () = &mut cancel => return self.status(&name).await,
                _ = clock.tick() => status = self.status(&name).await?,
            }
        }
    }

    /// Pauses a campaign and waits until its claims are verified and reduced, or until `cancel` completes; `observe` sees
    /// the status a few times a second. [`Local::create`] lets it go on.
    ///
    /// # Errors
    /// There is no such campaign, it has ended, or the coordinator stopped.
    pub async fn settle(
        &self,
        name: &str,
        cancel: impl Future<Output = ()>,
        mut observe: impl FnMut(&v1::CampaignStatus),
    ) -> Result<v1::CampaignStatus, Error> {
        let paused = name.to_owned();
        let mut status = self.control.call(move |core| core.drain(&paused)).await??;
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        tokio::pin!(cancel);
        loop {
            observe(&status);
            if status.unverified == 0 || status.phase == i32::from(v1::CampaignPhase::Done) {
                return Ok(status);
            }
            tokio::select! {
                () = &mut cancel => return self.status(name).await,
                _ = clock.tick() => status = self.status(name).await?,
            }
        }
    }

    /// Serves until `until` completes, then stops.
    ///
    /// # Errors
    /// The error that ended the coordinator.
    pub async fn serve(self, until: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(until);
        let mut clock = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                () = &mut until => return self.stop().await,
                _ = clock.tick() => if self.is_over() { return self.stop().await },
            }
        }
    }

    /// Writes what is done and stops; open streams are cut after a moment.
    ///
    /// # Errors
    /// The error that ended the coordinator.
    pub async fn stop(self) -> Result<(), Error> {
        drop(self.stop);
        let _ = self.events.send(Event::Stop).await;
        let ended = self.core.await.map_err(|_| Error::Stopped)?;
        let mut servers = self.servers;
        let over = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN, over).await.is_err() {
            servers.abort_all();
        }
        ended
    }
}
