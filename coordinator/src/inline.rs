//! A coordinator without a thread and without a network: its caller hands it one message after another.
//!
//! Contract: scheduler, core and store are those of every coordinator. Nothing happens between two calls, and the clock is
//! the real one. Measurements and fuzzers use it. A request whose answer needs a worker is accepted, and its answer is
//! dropped.

use crate::core::{Core, Inbox};
use crate::http::metrics;
use crate::job::{Reply, Whom};
use crate::lease::{Config, WorkerId};
use crate::trial::Trial;
use crate::{Error, v1};
use moire_corpus::{Options, Recovery, Store};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Messages that wait for one worker.
const OUTBOX_MAX: usize = 64;

/// A coordinator that its caller runs.
pub struct Inline {
    core: Core,
    inboxes: BTreeMap<WorkerId, Inbox>,
    /// The answers of clients' jobs. They are kept because a job is dropped when its client is gone.
    jobs: Vec<oneshot::Receiver<Option<Reply>>>,
}

impl Inline {
    /// Opens the store at `dir`.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovery), Error> {
        let (store, recovery) = Store::open(dir, options)?;
        let core = Core::new(store, Config::default(), std::sync::Arc::default(), Trial::default())?;
        Ok((Self { core, inboxes: BTreeMap::new(), jobs: Vec::new() }, recovery))
    }

    /// Decides, commits, acknowledges and gives out leases, as the core's thread does after each batch.
    ///
    /// # Errors
    /// The store fails.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.core.settle(false)
    }
    /// Settles a last time and closes the store.
    ///
    /// # Errors
    /// The store fails.
    pub fn close(mut self) -> Result<(), Error> {
        self.core.settle(true)
    }

    /// Connects a worker.
    ///
    /// # Errors
    /// It is refused.
    pub fn hello(&mut self, hello: v1::Hello) -> Result<WorkerId, Status> {
        let (outbox, inbox) = mpsc::channel(OUTBOX_MAX);
        let id = self.core.hello(hello, None, outbox)?;
        self.inboxes.insert(id, inbox);
        Ok(id)
    }
    /// Takes a message of a worker.
    pub fn message(&mut self, worker: WorkerId, message: v1::FromWorker) {
        self.core.message(worker, message);
    }
    /// Ends the connection of a worker.
    pub fn gone(&mut self, worker: WorkerId) {
        self.core.gone(worker);
    }
    /// Messages sent to a worker since the last call.
    pub fn sent(&mut self, worker: WorkerId) -> impl Iterator<Item = v1::ToWorker> + '_ {
        let inbox = self.inboxes.get_mut(&worker);
        inbox
            .into_iter()
            .flat_map(|inbox| std::iter::from_fn(|| inbox.try_recv().ok()))
            .filter_map(Result::ok)
    }
    /// Messages of workers that made no sense.
    pub fn bad_messages(&self) -> u64 {
        self.core.bad_messages
    }

    /// Creates a campaign. With `resume`, an existing one of the same name, seed and profile continues.
    ///
    /// # Errors
    /// The specification makes no sense, the name is taken, or the store fails.
    pub fn create(&mut self, spec: v1::CampaignSpec, resume: bool) -> Result<v1::CampaignStatus, Error> {
        self.core.create(spec, resume)
    }
    /// Sets the state of a campaign.
    ///
    /// # Errors
    /// There is no such campaign or state, or the store fails.
    pub fn set_state(&mut self, request: &v1::SetCampaignStateRequest) -> Result<v1::CampaignStatus, Error> {
        self.core.set_state(&request.name, request.phase())
    }
    /// How far each campaign is.
    ///
    /// # Errors
    /// The store fails.
    pub fn campaigns(&mut self) -> Result<Vec<v1::CampaignStatus>, Error> {
        let names: Vec<String> = self.core.triage.runs.keys().cloned().collect();
        names.iter().map(|name| Ok(self.core.status(name)?)).collect()
    }
    /// Submits a job.
    ///
    /// # Errors
    /// It makes no sense, or too many wait.
    pub fn submit(&mut self, request: v1::SubmitJobRequest) -> Result<(), Status> {
        let (reply, answer) = oneshot::channel();
        self.core.submit(request, Whom::default(), reply)?;
        self.jobs.push(answer);
        Ok(())
    }
    /// Starts an exploration, or finds the one that is there; how far it is.
    ///
    /// # Errors
    /// It makes no sense, there is no room for one more, or the store fails.
    pub fn explore(&mut self, asked: v1::Exploration) -> Result<v1::ExploreStatus, Error> {
        let id = self.core.explore(asked)?;
        Ok(self.core.explore_status(&id)?)
    }

    /// Changes the life cycle of a finding.
    ///
    /// # Errors
    /// There is no such finding or state, or the store fails.
    pub fn mark(&mut self, request: &v1::MarkFindingRequest) -> Result<v1::FindingRecord, Error> {
        self.core.mark(request)
    }
    /// One page of findings.
    ///
    /// # Errors
    /// The request makes no sense, or the store fails.
    pub fn list(&self, request: &v1::ListFindingsRequest) -> Result<v1::ListFindingsResponse, Error> {
        self.core.list(request)
    }
    /// Records what a report has told.
    ///
    /// # Errors
    /// The store fails.
    pub fn save_snapshot(&mut self, at_ms: u64) -> Result<v1::SnapshotRecord, Error> {
        self.core.save_snapshot(at_ms)
    }
    /// Findings counted so far, and whether these are all: they are counted a slice at a time.
    ///
    /// # Errors
    /// The store fails.
    pub fn count_findings(&mut self) -> Result<(u64, bool), Error> {
        let states = self.core.finding_states()?;
        Ok((states.counts().values().sum(), states.whole))
    }
    /// The text of `/metrics`.
    ///
    /// # Errors
    /// The store fails.
    pub fn metrics(&mut self) -> Result<String, Error> {
        metrics::render(&mut self.core, &[])
    }
}
