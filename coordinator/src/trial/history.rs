//! The events of a coordinator and its workers, in the order in which they happened.

use crate::lease::{LeaseId, LeaseTicks, Work, WorkerId};
use std::ops::Range;

/// How a stream of a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The worker, or the network, ended it.
    Closed,
    /// A clock ran out: `liveness` or `kill acknowledgement`.
    Clock(&'static str),
    /// The worker broke the protocol.
    Expelled,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process of the coordinator began.
    Opened,
    /// It knows a campaign: leases are of `epoch`, the store has the items of `stored`.
    Known {
        /// Its name.
        campaign: String,
        /// Of leases from now on.
        epoch: u32,
        /// In order, disjoint.
        stored: Vec<Range<u64>>,
        /// It has ended.
        ended: bool,
    },
    /// A worker was taken.
    Welcome {
        /// Its identity here.
        worker: WorkerId,
        /// The name it gave.
        name: String,
    },
    /// A message of a worker was looked at.
    Heard {
        /// The worker.
        worker: WorkerId,
        /// How far its leases are, by its own count.
        ticks: Vec<LeaseTicks>,
    },
    /// A lease went out.
    Granted {
        /// The worker.
        worker: WorkerId,
        /// Its identity.
        lease: LeaseId,
        /// Its epoch.
        epoch: u32,
        /// Its campaign.
        campaign: String,
        /// Its work.
        work: Work,
    },
    /// A cancellation went out.
    Cancelled {
        /// The lease.
        lease: LeaseId,
    },
    /// A worker says that a cancelled lease has stopped.
    KillAcked {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        lease: LeaseId,
    },
    /// A worker is gone, and its leases with it.
    Gone {
        /// The worker.
        worker: WorkerId,
        /// The reason.
        end: End,
    },
    /// A report was looked at.
    Reported {
        /// The worker.
        worker: WorkerId,
        /// Its lease.
        lease: LeaseId,
        /// Its epoch.
        epoch: u32,
        /// Whether it was taken.
        accepted: bool,
    },
    /// Items of a report were counted.
    Taken {
        /// Their lease.
        lease: LeaseId,
        /// The items.
        items: Vec<u64>,
    },
    /// A worker has no answer to an item of a lease, or to what is left of the lease: others get it.
    GivenBack {
        /// The lease.
        lease: LeaseId,
        /// The item; `None`: all that is left.
        item: Option<u64>,
    },
    /// A lease has delivered everything.
    Finished {
        /// The lease.
        lease: LeaseId,
    },
    /// Items were given up.
    Quarantined {
        /// Their campaign.
        campaign: String,
        /// The item.
        item: u64,
    },
    /// Items are durable.
    Committed {
        /// Their campaign.
        campaign: String,
        /// The items.
        items: Vec<u64>,
    },
    /// A report was acknowledged as taken: these items of it are durable.
    Acknowledged {
        /// The worker.
        worker: WorkerId,
        /// Their campaign.
        campaign: String,
        /// The items.
        items: Vec<u64>,
    },
    /// A campaign has all its items.
    Ended {
        /// Its name.
        campaign: String,
        /// Of all its items and findings.
        digest: String,
    },
    /// The progress of an exploration was reported to a client.
    Explored {
        /// Counted so far.
        executions: u64,
        /// The sum of their numbers.
        digest: u64,
        /// The hash of what is marked; 0 before the end.
        marks: u64,
        /// Nothing is left.
        over: bool,
        /// It ended because workers contradict each other.
        failed: bool,
    },
    /// A finding was run again.
    Retested {
        /// Whether it is open.
        open: bool,
    },
    /// The coordinator's process was killed.
    Killed,
    /// Of a worker's process: the coordinator has taken it.
    WorkerWelcome {
        /// Its name.
        name: String,
        /// Its identity there.
        worker: WorkerId,
    },
    /// Of a worker's process: a lease came.
    WorkerLease {
        /// Its name.
        name: String,
        /// The lease.
        lease: LeaseId,
        /// Its epoch.
        epoch: u32,
    },
    /// Of a worker's process: a cancellation came.
    WorkerCancel {
        /// Its name.
        name: String,
        /// The lease.
        lease: LeaseId,
    },
    /// Of a worker's process: a report went out.
    WorkerReport {
        /// Its name.
        name: String,
        /// Of which lease.
        lease: LeaseId,
        /// Of which epoch.
        epoch: u32,
    },
    /// Of a worker's process: the acknowledgement of a cancellation went out.
    WorkerKillAck {
        /// Its name.
        name: String,
        /// The lease.
        lease: LeaseId,
    },
    /// Of a worker's process: the connection is over, or the process was killed.
    WorkerLost {
        /// Its name.
        name: String,
    },
}
