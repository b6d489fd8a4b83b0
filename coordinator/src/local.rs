//! A running coordinator: for `moire serve`, and with workers beside it for `moire fuzz`.
//!
//! Source: design sections 8 and 9.

use crate::core::{Core, Event};
use crate::service::{Control, Workers};
use crate::{Error, http, lease, v1};
use moire_corpus::{Finding, Options, Recovery, Store};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::TcpListenerStream;

/// Events that wait for the core.
const EVENTS_MAX: usize = 4096;
/// Time between looks at the clocks.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for open streams when stopping.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// What a coordinator is started with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Where workers and clients connect (port 0: any free one).
    pub listen: SocketAddr,
    /// Where metrics, health and pages are, if anywhere.
    pub http: Option<SocketAddr>,
    /// Limits and clocks of leases.
    pub lease: lease::Config,
}

/// A coordinator serving on a loopback address.
pub struct Local {
    addr: SocketAddr,
    http_addr: Option<SocketAddr>,
    recovery: Recovery,
    control: Control,
    events: mpsc::Sender<Event>,
    core: tokio::task::JoinHandle<Result<(), Error>>,
    servers: tokio::task::JoinSet<()>,
    /// Dropped to stop the servers.
    stop: watch::Sender<()>,
}

/// A listener on this machine.
async fn bind(addr: SocketAddr) -> Result<TcpListener, Error> {
    if !addr.ip().is_loopback() {
        return Err(Error::NotLoopback(addr));
    }
    TcpListener::bind(addr).await.map_err(|source| Error::Listen { addr, source })
}

/// Completes when the sender is dropped.
async fn stopped(mut stop: watch::Receiver<()>) {
    while stop.changed().await.is_ok() {}
}

/// Starts the thread of the core, and the clock that wakes it.
fn spawn(core: Core) -> (mpsc::Sender<Event>, tokio::task::JoinHandle<Result<(), Error>>) {
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    let core = tokio::task::spawn_blocking(move || core.run(inbox));
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
async fn grpc(listener: TcpListener, control: Control, stop: watch::Receiver<()>) -> Result<(), Error> {
    let limit = moire_proto::MESSAGE_BYTES_MAX;
    let workers = v1::worker_service_server::WorkerServiceServer::new(Workers::new(control.clone()));
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
        .add_service(healthy)
        .add_service(described)
        .add_service(workers.max_decoding_message_size(limit))
        .add_service(people.max_decoding_message_size(limit))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped(stop))
        .await?;
    Ok(())
}

impl Local {
    /// As [`Local::open`], with the defaults and no HTTP.
    ///
    /// # Errors
    /// See [`Local::open`].
    pub async fn start(dir: &Path, listen: SocketAddr, lease: lease::Config) -> Result<Self, Error> {
        Self::open(dir, Setup { listen, http: None, lease }).await
    }

    /// Opens the store at `dir` and serves.
    ///
    /// # Errors
    /// An address is not loopback or not free, or the store does not open.
    pub async fn open(dir: &Path, setup: Setup) -> Result<Self, Error> {
        let listener = bind(setup.listen).await?;
        let addr = listener.local_addr()?;
        let pages = match setup.http {
            Some(addr) => Some(bind(addr).await?),
            None => None,
        };
        let http_addr = pages.as_ref().map(TcpListener::local_addr).transpose()?;
        let (store, recovery) = Store::open(dir, Options::default())?;
        let (events, core) = spawn(Core::new(store, setup.lease)?);
        let control = Control::new(events.clone());
        let (stop, stopping) = watch::channel(());
        let mut servers = tokio::task::JoinSet::new();
        let serving = grpc(listener, control.clone(), stopping.clone());
        servers.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the gRPC server ended");
            }
        });
        if let Some(pages) = pages {
            let serving = axum::serve(pages, http::router(control.clone()));
            servers.spawn(async move {
                if let Err(error) = serving.with_graceful_shutdown(stopped(stopping)).await {
                    tracing::error!(%error, "the HTTP server ended");
                }
            });
        }
        Ok(Self { addr, http_addr, recovery, control, events, core, servers, stop })
    }

    /// Where it serves.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
    /// Where metrics and health are.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http_addr
    }
    /// What opening the store found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
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
    /// All findings.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn findings(&self) -> Result<Vec<Finding>, Error> {
        Ok(self.control.call(|core| core.store.findings().collect::<Result<Vec<_>, _>>()).await??)
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

    /// Serves until `until` completes, then stops.
    ///
    /// # Errors
    /// What ended the coordinator.
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
    /// What ended the coordinator.
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
