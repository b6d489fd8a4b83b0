//! A coordinator without its thread and its network: what workers and clients send is said to it, one thing after the other.
//!
//! Contract: whatever is said is taken or refused, and the coordinator goes on. What it answers fits a message, what it
//! wrote is read again by the next start. The entry point of a fuzz target: no clock passes here but the real one, and
//! only what answers at once can be asked.

use moire_coordinator::lease::WorkerId;
use moire_coordinator::{Error, Inline, v1};
use moire_corpus::{Options, Store};
use std::path::{Path, PathBuf};

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

/// A coordinator to which a fuzzer speaks.
pub struct Talk {
    dir: PathBuf,
    coordinator: Inline,
    workers: Vec<WorkerId>,
}

fn open(dir: &Path) -> Result<Inline, Error> {
    Ok(Inline::open(dir, options())?.0)
}

fn options() -> Options {
    Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() }
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
        Ok(Self { dir: dir.to_owned(), coordinator: open(dir)?, workers: Vec::new() })
    }

    fn worker(&self, number: u8) -> Option<WorkerId> {
        let number = usize::from(number).checked_rem(self.workers.len())?;
        Some(self.workers[number])
    }

    /// Says one thing, and lets the coordinator settle; the sizes of the messages that answer it.
    ///
    /// # Errors
    /// The coordinator would have ended.
    pub fn say(&mut self, said: Said, size: impl Fn(&v1::ToWorker) -> usize) -> Result<Vec<usize>, Error> {
        match said {
            Said::Hello(hello) if self.workers.len() < WORKERS_MAX => {
                self.workers.extend(self.coordinator.hello(hello));
            }
            Said::Hello(_) => {}
            Said::Worker(number, message) => {
                self.worker(number).into_iter().for_each(|id| self.coordinator.message(id, message.clone()));
            }
            Said::Gone(number) => self.worker(number).into_iter().for_each(|id| self.coordinator.gone(id)),
            Said::Create(spec) => _ = taken(self.coordinator.create(spec, false))?,
            Said::SetState(request) => _ = taken(self.coordinator.set_state(&request))?,
            Said::Submit(request) => _ = self.coordinator.submit(request),
            Said::Explore(asked) => _ = taken(self.coordinator.explore(asked))?,
            Said::Mark(request) => _ = taken(self.coordinator.mark(&request))?,
            Said::List(request) => _ = taken(self.coordinator.list(&request))?,
            Said::Save(request) => _ = taken(self.coordinator.save_snapshot(request.at_ms))?,
        }
        self.coordinator.settle()?;
        Ok(self
            .workers
            .iter()
            .flat_map(|id| self.coordinator.sent(*id).map(|m| size(&m)).collect::<Vec<_>>())
            .collect())
    }

    /// Looks at everything as clients and pages do, ends, and starts again on what is in the store. Returns the number of
    /// findings.
    ///
    /// # Errors
    /// The coordinator would have ended, or does not start any more.
    pub fn end(mut self) -> Result<usize, Error> {
        self.coordinator.settle()?;
        self.coordinator.metrics()?;
        self.coordinator.campaigns()?;
        self.coordinator.close()?;
        drop(open(&self.dir)?);
        let store = Store::open(&self.dir, options())?.0;
        Ok(store.findings().collect::<Result<Vec<_>, _>>()?.len())
    }
}
