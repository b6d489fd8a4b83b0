//! The two gRPC services in front of the core.
//!
//! Contract: a message that makes no sense ends in a `Status` or is counted; never a panic.

use crate::core::{Core, Event, record};
use crate::door::{Caller, Door, Pace};
use crate::job::{Answer, Whom};
use crate::{Error, v1};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Most messages that wait for a worker that does not read.
const OUTBOX_MAX: usize = 1024;
/// Time between two polls of a campaign that is watched.
const CAMPAIGN_EVERY: Duration = Duration::from_millis(250);
/// Time between two looks at an exploration on behalf of a waiting client.
const EXPLORE_EVERY: Duration = Duration::from_millis(50);

/// The control service, and the way to the core.
#[derive(Clone)]
pub(crate) struct Control {
    events: mpsc::Sender<Event>,
    door: Arc<Door>,
}

impl Control {
    pub(crate) fn new(events: mpsc::Sender<Event>, door: Arc<Door>) -> Self {
        Self { events, door }
    }
    /// Whether the core's thread is gone.
    pub(crate) fn stopped(&self) -> bool {
        self.events.is_closed()
    }
    /// Runs `f` on the core's thread.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let call = Event::Call(Box::new(move |core| _ = reply.send(f(core))));
        self.events.send(call).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Waits for an answer as long as the token of the call is good.
    async fn held<T>(&self, caller: &Caller, answer: impl Future<Output = T>) -> Result<T, Status> {
        tokio::select! {
            answer = answer => Ok(answer),
            status = self.door.revoked(caller) => Err(status),
        }
    }

    /// Streams the answers of `tell`, each one that differs from the last, until one is `over` or an error, or the token of
    /// the call is not good any more.
    fn watch<T: Clone + PartialEq + Send + 'static>(
        &self,
        caller: Caller,
        every: Duration,
        tell: impl FnMut(&mut Core) -> Result<T, Status> + Clone + Send + 'static,
        over: impl Fn(&T) -> bool + Send + 'static,
    ) -> Out<T> {
        let control = self.clone();
        let (sender, stream) = mpsc::channel(4);
        tokio::spawn(async move {
            // The slot of the call is taken until this task ends, and with it `caller`.
            let mut last = None;
            while !sender.is_closed() {
                let status = match control.door.still(&caller) {
                    true => control.call(tell.clone()).await.map_err(Status::from).flatten(),
                    false => Err(Status::unauthenticated("the token is not good any more")),
                };
                let over = status.as_ref().map_or(true, &over);
                if last.as_ref() != status.as_ref().ok() || over {
                    last = status.as_ref().ok().cloned();
                    if sender.send(status).await.is_err() {
                        return;
                    }
                }
                if over {
                    return;
                }
                tokio::time::sleep(every).await;
            }
        });
        Box::pin(ReceiverStream::new(stream))
    }
}

/// The worker service.
pub(crate) struct Workers {
    control: Control,
    door: Arc<Door>,
}

impl Workers {
    pub(crate) fn new(control: Control, door: Arc<Door>) -> Self {
        Self { control, door }
    }
}

/// A campaign in the list of all; one whose records cannot be read is said in the log, and left out.
fn listed(name: &str, status: Result<v1::CampaignStatus, Status>) -> Option<v1::CampaignStatus> {
    status.inspect_err(|error| tracing::error!(name, %error, "a campaign is left out")).ok()
}

/// The caller, as the guard identified it.
fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let found = request.extensions().get::<Caller>().cloned();
    found.ok_or_else(|| Status::internal("a call without a caller: the guard did not see it"))
}

type Out<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::worker_service_server::WorkerService for Workers {
    type WorkStream = Out<v1::ToWorker>;

    async fn work(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let caller = caller(&request)?;
        let mut incoming = request.into_inner();
        let first = tokio::time::timeout(self.door.limits().patience, incoming.next()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("the first message did not come in time"))?;
        let first = first.ok_or_else(|| Status::invalid_argument("the first message is hello"))??;
        let Some(v1::from_worker::Message::Hello(hello)) = first.message else {
            return Err(Status::invalid_argument("the first message is hello"));
        };
        caller.about(&hello.name);
        let (outbox, outgoing) = mpsc::channel(OUTBOX_MAX);
        let last = outbox.clone();
        let source = caller.source();
        let id = self.control.call(move |core| core.hello(hello, source, outbox)).await??;
        let (control, door) = (self.control.clone(), self.door.clone());
        tokio::spawn(async move {
            let mut pace = Pace::new(door.limits().messages_per_second, Instant::now().into_std());
            let revoked = door.revoked(&caller);
            tokio::pin!(revoked);
            loop {
                let message = tokio::select! {
                    biased;
                    status = &mut revoked => {
                        // If the channel is full or closed, the stream ends without the reason.
                        let _ = last.try_send(Err(status));
                        break;
                    }
                    message = incoming.next() => message,
                };
                let Some(Ok(message)) = message else { break };
                let wait = pace.next(Instant::now().into_std());
                if !wait.is_zero() {
                    tokio::time::sleep(wait).await;
                }
                // One message at a time: further ones wait in the flow-control window of the stream.
                if !control.call(move |core| core.message(id, message)).await.unwrap_or(false) {
                    return;
                }
            }
            let _ = control.call(move |core| core.gone(id)).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing))))
    }
}

#[tonic::async_trait]
impl v1::control_service_server::ControlService for Control {
    type WatchCampaignStream = Out<v1::CampaignStatus>;
    type ExploreStream = Out<v1::ExploreStatus>;

    async fn create_campaign(
        &self,
        r: Request<v1::CampaignSpec>,
    ) -> Result<Response<v1::CampaignStatus>, Status> {
        caller(&r)?.about(&r.get_ref().name);
        let spec = r.into_inner();
        Ok(Response::new(self.call(move |core| core.create(spec, false)).await??))
    }
    async fn list_campaigns(
        &self,
        _: Request<v1::ListCampaignsRequest>,
    ) -> Result<Response<v1::ListCampaignsResponse>, Status> {
        let all = |core: &mut Core| {
            let names: Vec<String> = core.triage.runs.keys().cloned().collect();
            names.iter().filter_map(|name| listed(name, core.status(name))).collect::<Vec<_>>()
        };
        Ok(Response::new(v1::ListCampaignsResponse { campaigns: self.call(all).await? }))
    }
    async fn get_campaign(
        &self,
        r: Request<v1::CampaignName>,
    ) -> Result<Response<v1::CampaignStatus>, Status> {
        let name = r.into_inner().name;
        Ok(Response::new(self.call(move |core| core.status(&name)).await??))
    }
    async fn set_campaign_state(
        &self,
        r: Request<v1::SetCampaignStateRequest>,
    ) -> Result<Response<v1::CampaignStatus>, Status> {
        caller(&r)?.about(&format!("{} {:?}", r.get_ref().name, r.get_ref().phase()));
        let r = r.into_inner();
        Ok(Response::new(self.call(move |core| core.set_state(&r.name, r.phase())).await??))
    }
    async fn watch_campaign(
        &self,
        r: Request<v1::CampaignName>,
    ) -> Result<Response<Out<v1::CampaignStatus>>, Status> {
        let caller = caller(&r)?;
        let name = r.into_inner().name;
        let tell = move |core: &mut Core| core.status(&name);
        let over = |s: &v1::CampaignStatus| s.phase >= i32::from(v1::CampaignPhase::Cancelled);
        Ok(Response::new(self.watch(caller, CAMPAIGN_EVERY, tell, over)))
    }
    async fn list_findings(
        &self,
        r: Request<v1::ListFindingsRequest>,
    ) -> Result<Response<v1::ListFindingsResponse>, Status> {
        let r = r.into_inner();
        Ok(Response::new(self.call(move |core| core.list(&r)).await??))
    }
    async fn get_finding(&self, r: Request<v1::FindingName>) -> Result<Response<v1::FindingRecord>, Status> {
        let id = r.into_inner().id;
        Ok(Response::new(record(&self.call(move |core| core.named(&id)).await??)?))
    }
    async fn mark_finding(
        &self,
        r: Request<v1::MarkFindingRequest>,
    ) -> Result<Response<v1::FindingRecord>, Status> {
        let caller = caller(&r)?;
        caller.about(&format!("{} {}", r.get_ref().id, r.get_ref().state));
        let mut r = r.into_inner();
        // An authenticated caller is the author of the change. A suppression names its owner, who may be another person.
        if let Some(who) = caller.known().filter(|_| r.state != "suppress") {
            who.clone_into(&mut r.who);
        }
        Ok(Response::new(self.call(move |core| core.mark(&r)).await??))
    }
    async fn retest_finding(
        &self,
        r: Request<v1::RetestFindingRequest>,
    ) -> Result<Response<v1::FindingRecord>, Status> {
        let caller = caller(&r)?;
        caller.about(&r.get_ref().id);
        Ok(Response::new(self.held(&caller, self.retest(r.into_inner())).await??))
    }
    async fn get_snapshot(
        &self,
        _: Request<v1::GetSnapshotRequest>,
    ) -> Result<Response<v1::SnapshotRecord>, Status> {
        Ok(Response::new(self.call(|core| core.last_snapshot()).await??))
    }
    async fn save_snapshot(
        &self,
        r: Request<v1::SaveSnapshotRequest>,
    ) -> Result<Response<v1::SnapshotRecord>, Status> {
        let at_ms = r.into_inner().at_ms;
        Ok(Response::new(self.call(move |core| core.save_snapshot(at_ms)).await??))
    }
    async fn submit_job(
        &self,
        r: Request<v1::SubmitJobRequest>,
    ) -> Result<Response<v1::SubmitJobResponse>, Status> {
        use v1::submit_job_response::Result as Found;
        let caller = caller(&r)?;
        let (reply, answer) = oneshot::channel();
        let r = r.into_inner();
        self.call(move |core| core.submit(r, Whom::default(), reply)).await??;
        let said = self.held(&caller, answer).await?.ok().flatten();
        let result = match said.ok_or_else(|| Status::aborted("the job was lost too often"))?.answer {
            Answer::Verified(result) => Found::Verify(result),
            Answer::Minimised(result) => Found::Minimise(result),
            Answer::Replayed(item) => Found::Replay(item),
        };
        Ok(Response::new(v1::SubmitJobResponse { result: Some(result) }))
    }
    async fn explore(&self, r: Request<v1::Exploration>) -> Result<Response<Out<v1::ExploreStatus>>, Status> {
        let caller = caller(&r)?;
        let asked = r.into_inner();
        let id = self.call(move |core| core.explore(asked)).await??;
        caller.about(&id.to_string());
        let tell = move |core: &mut Core| core.explore_status(&id);
        Ok(Response::new(self.watch(caller, EXPLORE_EVERY, tell, |status| status.over)))
    }
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::Status>, Status> {
        let count = |n: usize, what: &str| {
            u32::try_from(n)
                .map_err(|_| Status::internal(format!("{n} {what}: more than the message can count")))
        };
        let read = move |core: &mut Core| -> Result<v1::Status, Status> {
            Ok(v1::Status {
                workers: count(core.base.fleet.workers(), "workers")?,
                leases: count(core.base.fleet.leases(), "leases")?,
                queued: count(core.base.fleet.queued(), "jobs")?,
                stale_reports: core.base.fleet.counts().stale_reports,
                bad_messages: core.bad_messages,
                refused: core.refused,
                losses: core.base.store.losses().map(ToString::to_string).collect(),
                set_aside: core.base.aside.each().map(|(what, why)| format!("{what}: {why}")).collect(),
                suspects: core.base.suspects.all().collect(),
            })
        };
        Ok(Response::new(self.call(read).await??))
    }
}
