//! Types of the lease state machine.
//!
//! Times are milliseconds of any monotonic clock.

use super::ids::{JobId, LeaseId, Source, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The weight of a worker's sudden end, charged to the item or job it was working on.
pub(super) const LOSS: u32 = 16;
/// The weight of an answer that breaks the protocol, and of the end of a worker that may have ended by itself. That is the
/// worker's fault, so the weight is small; it is not zero, so that an item which no worker can answer properly is given up
/// in the end.
pub(super) const FAULT: u32 = 1;

/// Items of a campaign that were lost or have no answer; with more of them, they are done before all others.
pub(super) const SUSPECTS_MAX: usize = 65_536;

/// How much longer than a job an item, or a range, waits for another source: it comes after all jobs.
pub const PATIENCE: u64 = 6;

/// Largest number of waiting leases that is reported.
pub const WAITING_MAX: u64 = 1_000_000;

/// One unit of fair share, large enough that weights divide it well.
pub(super) const SHARE_UNIT: u64 = 1 << 10;

/// Limits and clocks.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Longest silence of a worker.
    pub liveness_ms: u64,
    /// Longest time a lease may show no progress.
    pub progress_ms: u64,
    /// Longest time between a cancellation and its acknowledgement.
    pub kill_ms: u64,
    /// Longest time a job waits for a worker other than the one it avoids. An item waits [`PATIENCE`] times as long, where
    /// workers come from elsewhere.
    pub avoid_ms: u64,
    /// Longest time an exploration continues without a client that asks about it.
    pub rest_ms: u64,
    /// Losses after which an item or a job is given up.
    pub attempts_max: u32,
    /// How many of a thousand answers of workers another source gives again.
    pub repeat_per_mille: u32,
    /// Decides which answers these are; `None`: chance does.
    pub secret: Option<u64>,
    /// Most workers at one time.
    pub workers_max: usize,
    /// Most leases that a worker may hold and have asked for, together.
    pub credit_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            liveness_ms: 15_000,
            progress_ms: 60_000,
            kill_ms: 10_000,
            avoid_ms: 10_000,
            rest_ms: 60_000,
            attempts_max: 5,
            repeat_per_mille: 20,
            secret: None,
            workers_max: 16_384,
            credit_max: 256,
        }
    }
}

/// Kinds of work, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Shrink a claim.
    Minimise,
    /// Run a claim again.
    Verify,
    /// Run a program.
    Replay,
    /// Explore a piece.
    Explore,
}

/// The work of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Generated items, half-open.
    Range {
        /// First.
        from: u64,
        /// One past the last.
        to: u64,
    },
    /// A job that carries text.
    Job(JobId),
}

/// How far a lease is, by the count of the worker that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTicks {
    /// The lease.
    pub lease: LeaseId,
    /// Grows with every step of its work.
    pub ticks: u64,
}

/// A lease, as given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The campaign; empty for jobs of no campaign.
    pub campaign: String,
    /// Its work.
    pub work: Work,
}

/// An action that the caller carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a lease.
    Grant {
        /// The worker.
        worker: WorkerId,
        /// Its identity.
        lease: LeaseId,
        /// Its fencing epoch.
        epoch: u32,
        /// Its work.
        grant: Grant,
    },
    /// Tell a worker to stop a lease.
    Cancel {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        lease: LeaseId,
        /// The reason.
        reason: &'static str,
    },
    /// Close a worker's stream.
    Disconnect {
        /// The worker.
        worker: WorkerId,
        /// The clock that ran out.
        clock: &'static str,
    },
    /// An item was lost too often: record it as quarantined.
    Quarantine {
        /// Its campaign.
        campaign: String,
        /// The item.
        item: u64,
    },
    /// A job was lost too often: go on without its answer.
    JobFailed {
        /// The job.
        job: JobId,
    },
}

/// A campaign, as the scheduler sees it.
#[derive(Clone, Debug, Default)]
pub struct CampaignSpec {
    /// Fencing epoch of its leases.
    pub epoch: u32,
    /// Share among campaigns; 0 counts as 1.
    pub weight: u32,
    /// Capabilities a worker needs.
    pub needs: BTreeSet<String>,
    /// Fingerprint a worker needs; empty: any.
    pub fingerprint: String,
    /// Items still to be leased: disjoint.
    pub missing: Vec<Range<u64>>,
    /// Items of one lease.
    pub batch: u64,
}

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Leases given out.
    pub leases: u64,
    /// Leases that ended without all their results.
    pub lost: u64,
    /// Reports for an unknown, foreign or cancelled lease, or of another epoch.
    pub stale_reports: u64,
    /// Items reported twice within a lease, or outside its range.
    pub duplicate_items: u64,
    /// Clocks that ran out.
    pub expired: u64,
    /// Items given up.
    pub quarantined: u64,
    /// Leases that workers gave back, because a process was killed that did them.
    pub aborted: u64,
    /// Items that went to another source, because one had no answer for want of memory.
    pub elsewhere: u64,
}

/// Refusal of a worker: the fleet has its largest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} workers are connected, which is the limit")]
pub struct Full(pub usize);

#[derive(Debug)]
pub(super) struct Campaign {
    pub(super) spec: CampaignSpec,
    /// Ranges in no lease, by start; neighbours are not merged, so that suspects stay alone.
    pub(super) pending: BTreeMap<u64, u64>,
    /// Virtual time of fair share: items given out, divided by weight.
    pub(super) served: u64,
    pub(super) running: bool,
    /// Items from this one on are held back for now.
    pub(super) limit: u64,
    /// Items not yet taken that were lost. Each is leased alone.
    pub(super) suspects: BTreeMap<u64, Suspect>,
    /// Its key among the turns, while it has something to lease.
    pub(super) turn: Option<u64>,
}

/// An item that was lost, or to which somebody has no answer: it may be what ends its workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspect {
    /// Its losses, in units of [`FAULT`].
    pub(super) weight: u32,
    /// The sources whose workers lost it.
    pub(super) by: BTreeSet<Source>,
    /// The sources that have no answer to it, and when the last of them said so.
    pub(super) silent: (BTreeSet<Source>, u64),
}

impl Campaign {
    /// The next range in no lease, whole.
    pub(super) fn next(&self) -> Option<Range<u64>> {
        self.next_of(|_| true)
    }
    /// The next range in no lease that this worker may have, whole. `may`: whether it may have a suspect.
    pub(super) fn next_of(&self, may: impl Fn(&Suspect) -> bool) -> Option<Range<u64>> {
        let below = self.pending.range(..self.limit);
        let full = self.suspects.len() >= SUSPECTS_MAX;
        let free = |from: &u64| self.suspects.get(from).map_or(!full, &may);
        below.filter(|(from, _)| free(from)).map(|(from, to)| *from..*to).next()
    }
    /// Puts back an item to which some sources have no answer. Neighbours to which the same have none stay together.
    pub(super) fn pass_on(&mut self, item: u64, suspect: Suspect) {
        let alike = |other: &Suspect| other.by.is_empty() && other.silent.0 == suspect.silent.0;
        let before = self.pending.range(..item).next_back().map(|(from, to)| (*from, *to));
        let joined = before.filter(|(from, to)| *to == item && self.suspects.get(from).is_some_and(alike));
        self.pending.insert(joined.map_or(item, |(from, _)| from), item + 1);
        self.suspects.insert(item, suspect);
    }
    pub(super) fn suits(&self, w: &Worker) -> bool {
        let spec = &self.spec;
        (spec.fingerprint.is_empty() || spec.fingerprint == w.fingerprint)
            && spec.needs.is_subset(&w.capabilities)
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) campaign: String,
    pub(super) kind: Kind,
    /// Sources that get it only if no other can take it, or none has taken it in time; never, if it is `strict`.
    pub(super) avoid: BTreeSet<Source>,
    pub(super) strict: bool,
    /// Tools it needs; one that no connected worker has is ignored.
    pub(super) tools: BTreeSet<String>,
    /// Capabilities without which nobody gets it.
    pub(super) needs: BTreeSet<String>,
    /// The time of the first poll after it was added.
    pub(super) since: Option<u64>,
    /// Losses, in units of [`FAULT`].
    pub(super) attempts: u32,
}

/// A connected worker, as pages and metrics show it.
#[derive(Clone, Copy, Debug)]
pub struct WorkerView<'a> {
    /// Identity of the connection.
    pub id: WorkerId,
    /// Its capabilities.
    pub capabilities: &'a BTreeSet<String>,
    /// Leases it holds.
    pub leases: usize,
    /// When it was last heard of.
    pub heard_ms: u64,
    /// It takes no more leases.
    pub draining: bool,
    /// Where it comes from.
    pub source: &'a Source,
}

/// Workers of equal capabilities and fingerprint, named by the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassId(pub(super) WorkerId);

/// A class with connected workers.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) id: ClassId,
    /// Workers connected; at least one.
    pub(super) workers: usize,
}

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) capabilities: BTreeSet<String>,
    pub(super) fingerprint: String,
    pub(super) source: Source,
    /// It has delivered something since it connected.
    pub(super) proven: bool,
    pub(super) class: ClassId,
    pub(super) credit: u32,
    pub(super) heard: u64,
    pub(super) leases: BTreeSet<LeaseId>,
    pub(super) draining: bool,
}

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerId,
    pub(super) campaign: String,
    pub(super) epoch: u32,
    pub(super) work: Work,
    pub(super) taken: BTreeSet<u64>,
    pub(super) ticks: u64,
    pub(super) progressed: u64,
    /// When its cancellation was sent.
    pub(super) killed: Option<u64>,
}
