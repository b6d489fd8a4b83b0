//! A coordinator without its thread and its network: what workers and clients send is said to it, one thing after the other.
//!
//! Contract: whatever is said is taken or refused, and the coordinator goes on. What it answers fits a message, what it
//! wrote is read again by the next start. The entry point of a fuzz target: no clock passes here but the real one, and
//! only what answers at once can be asked.

use crate::core::Core;
use crate::http::metrics;
use crate::lease::{Config, WorkerId};
use crate::trial::Trial;
use crate::{Error, intake, v1};
use moire_corpus::{Options, Store};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Messages that wait for one worker.
const OUTBOX: usize = 64;
/// Workers that can be spoken for.
const WORKERS_MAX: usize = 8;

/// One thing said.
#[derive(Clone, Debug)]
pub enum Said {
    /// By one more worker.
    Hello(v1::Hello),
    /// By the worker of this number, counted from the first one on, around.
    Worker(u8, v1::FromWorker),
    /// The connection of this worker ends.
    Gone(u8),
    /// By a client.
    Create(v1::CampaignSpec),
    /// By a client.
    SetState(v1::SetCampaignStateRequest),
    /// By a client, who does not wait for the answer if it is not there at once.
    Submit(v1::SubmitJobRequest),
    /// By a client, who looks once.
    Explore(v1::Exploration),
    /// By a client.
    Mark(v1::MarkFindingRequest),
    /// By a client.
    List(v1::ListFindingsRequest),
    /// By a client.
    Save(v1::SaveSnapshotRequest),
}

struct Worker {
    id: WorkerId,
    inbox: mpsc::Receiver<Result<v1::ToWorker, Status>>,
}

/// See the module header.
pub struct Talk {
    dir: PathBuf,
    core: Core,
    workers: Vec<Worker>,
    jobs: Vec<oneshot::Receiver<Option<intake::Answer>>>,
}

fn open(dir: &Path) -> Result<Core, Error> {
    let options = Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() };
    Core::new(Store::open(dir, options)?.0, Config::default(), std::sync::Arc::default(), Trial::default())
}

/// Whether it was taken; an error of the request is none of the coordinator.
fn taken<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Status(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Talk {
    /// A coordinator on the store at `dir`, without workers.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self { dir: dir.to_owned(), core: open(dir)?, workers: Vec::new(), jobs: Vec::new() })
    }

    fn worker(&self, number: u8) -> Option<WorkerId> {
        let number = usize::from(number).checked_rem(self.workers.len())?;
        Some(self.workers[number].id)
    }

    /// Says one thing, and lets the coordinator settle; the sizes of the messages that answer it.
    ///
    /// # Errors
    /// The coordinator would have ended.
    pub fn say(&mut self, said: Said, size: impl Fn(&v1::ToWorker) -> usize) -> Result<Vec<usize>, Error> {
        match said {
            Said::Hello(hello) if self.workers.len() < WORKERS_MAX => {
                let (outbox, inbox) = mpsc::channel(OUTBOX);
                if let Ok(id) = self.core.hello(hello, outbox) {
                    self.workers.push(Worker { id, inbox });
                }
            }
            Said::Hello(_) => {}
            Said::Worker(number, message) => {
                self.worker(number).into_iter().for_each(|id| _ = self.core.message(id, message.clone()));
            }
            Said::Gone(number) => self.worker(number).into_iter().for_each(|id| self.core.gone(id)),
            Said::Create(spec) => _ = taken(self.core.create(spec, false))?,
            Said::SetState(r) => _ = taken(self.core.set_state(&r.name, r.phase()))?,
            Said::Submit(request) => {
                let (reply, answer) = oneshot::channel();
                if self.core.submit(request, BTreeSet::new(), reply).is_ok() {
                    self.jobs.push(answer);
                }
            }
            Said::Explore(asked) => {
                if let Some(id) = taken(self.core.explore(asked))? {
                    taken(self.core.explore_status(&id).map_err(Error::from))?;
                }
            }
            Said::Mark(request) => _ = taken(self.core.mark(&request))?,
            Said::List(request) => _ = taken(self.core.list(&request))?,
            Said::Save(request) => _ = taken(self.core.save_snapshot(request.at_ms))?,
        }
        self.core.settle(false)?;
        let mut sizes = Vec::new();
        for worker in &mut self.workers {
            while let Ok(message) = worker.inbox.try_recv() {
                sizes.extend(message.ok().as_ref().map(&size));
            }
        }
        Ok(sizes)
    }

    /// Looks at everything as clients and pages do, ends, and starts again on what is in the store. Returns the number of
    /// findings.
    ///
    /// # Errors
    /// The coordinator would have ended, or does not start any more.
    pub fn end(mut self) -> Result<usize, Error> {
        self.core.settle(true)?;
        metrics::render(&mut self.core, &[])?;
        let names: Vec<String> = self.core.runs.keys().cloned().collect();
        names.iter().try_for_each(|name| self.core.status(name).map(drop))?;
        drop(self.core);
        let core = open(&self.dir)?;
        Ok(core.store.findings().collect::<Result<Vec<_>, _>>()?.len())
    }
}
