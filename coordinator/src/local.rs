//! A running coordinator: for `moire serve`, and with workers beside it for `moire fuzz`.
//!
//! Source: design sections 8 and 9.

use crate::core::{Core, Event};
use crate::service::{Control, Workers};
use crate::{Error, lease, v1};
use moire_corpus::{Finding, Options, Recovery, Store};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Events that wait for the core.
const EVENTS_MAX: usize = 4096;
/// Time between looks at the clocks.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for open streams when stopping.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// A coordinator serving on a loopback address.
pub struct Local {
    addr: SocketAddr,
    recovery: Recovery,
    control: Control,
    events: mpsc::Sender<Event>,
    core: tokio::task::JoinHandle<Result<(), Error>>,
    server: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
    stop: oneshot::Sender<()>,
}

impl Local {
    /// Opens the store at `dir` and serves on `addr` (port 0: any free one).
    ///
    /// # Errors
    /// The address is not loopback or not free, or the store does not open.
    pub async fn start(dir: &Path, addr: SocketAddr, config: lease::Config) -> Result<Self, Error> {
        if !addr.ip().is_loopback() {
            return Err(Error::NotLoopback(addr));
        }
        let listener = tokio::net::TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (store, recovery) = Store::open(dir, Options::default())?;
        let core = Core::new(store, config)?;
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
        let control = Control::new(events.clone());
        let limit = moire_proto::MESSAGE_BYTES_MAX;
        let workers = v1::worker_service_server::WorkerServiceServer::new(Workers::new(control.clone()));
        let people = v1::control_service_server::ControlServiceServer::new(control.clone());
        let (health, healthy) = tonic_health::server::health_reporter();
        health.set_serving::<v1::worker_service_server::WorkerServiceServer<Workers>>().await;
        health.set_serving::<v1::control_service_server::ControlServiceServer<Control>>().await;
        let described = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(moire_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(|e| Error::Status(tonic::Status::internal(e.to_string())))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tonic::transport::Server::builder()
            .add_service(healthy)
            .add_service(described)
            .add_service(workers.max_decoding_message_size(limit))
            .add_service(people.max_decoding_message_size(limit))
            .serve_with_incoming_shutdown(tokio_stream::wrappers::TcpListenerStream::new(listener), async {
                let _ = stopped.await;
            });
        let server = tokio::spawn(server);
        Ok(Self { addr, recovery, control, events, core, server, stop })
    }

    /// Where it serves.
    pub fn addr(&self) -> SocketAddr {
        self.addr
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
        let _ = self.stop.send(());
        let _ = self.events.send(Event::Stop).await;
        let ended = self.core.await.map_err(|_| Error::Stopped)?;
        let abort = self.server.abort_handle();
        if tokio::time::timeout(SHUTDOWN, self.server).await.is_err() {
            abort.abort();
        }
        ended
    }
}
