//! Which workers are independent of each other, and who gets a job that somebody else has to do.
//!
//! Contract: two workers are independent if their sources differ. A source is a credential on a host, as the door knows
//! them. Where nobody has to identify himself, each connection counts as a source of its own. Workers are at home if one
//! owner runs all of them on this machine.
//!
//! An item or a job is given up when it has ended several workers, not when one worker has ended several times. A worker
//! that ends before it has delivered anything may have ended by itself, and so may one that lost the item before. Their
//! ends weigh little as long as another worker is busy that could have the item, and the item goes to that one.

use super::Scheduler;
use super::ids::{JobId, LeaseId, Source, WorkerId};
use super::types::{Campaign, FAULT, Job, PATIENCE, Suspect, Worker};
use crate::trial::Planted;
use std::collections::BTreeSet;

impl Scheduler {
    /// Notes where a worker comes from.
    pub fn comes_from(&mut self, worker: WorkerId, source: Source) {
        self.workers.entry(worker).and_modify(|w| w.source = source);
    }
    /// Where a worker comes from, or came from without a name.
    pub fn source(&self, worker: WorkerId) -> Source {
        self.workers.get(&worker).map_or(Source::Stream(worker), |w| w.source.clone())
    }
    /// Where the worker comes from that holds a lease.
    pub fn holder(&self, lease: LeaseId) -> Source {
        let worker = self.leases.get(&lease).map_or(WorkerId(0), |lease| lease.worker);
        self.source(worker)
    }
    /// Whether all connected workers are of one owner on this machine, so that a second one would say no more.
    pub fn at_home(&self) -> bool {
        let mut owners = self.workers.values().map(|w| w.source.owner());
        let first = owners.next().unwrap_or_default();
        self.workers.is_empty() || first.is_some() && owners.all(|owner| owner == first)
    }
    /// The sources of the connected workers.
    pub fn sources(&self) -> BTreeSet<&Source> {
        self.workers.values().map(|w| &w.source).collect()
    }
    /// The connected workers of a source.
    pub fn those_from(&self, source: &Source) -> Vec<WorkerId> {
        self.workers.iter().filter(|(_, w)| w.source == *source).map(|(id, _)| *id).collect()
    }
    /// Keeps a job from these sources as long as others can take it. With `strict` it never goes to them.
    pub fn avoid(&mut self, job: JobId, sources: impl IntoIterator<Item = Source>, strict: bool) {
        self.jobs.entry(job).and_modify(|job| {
            job.avoid.extend(sources);
            job.strict |= strict;
        });
    }
    /// Whether a job waits in vain: nobody is connected who may take it, or it has waited for too long.
    pub fn in_vain(&self, job: JobId, now: u64) -> bool {
        self.jobs.get(&job).is_some_and(|job| !self.has_other(job) || self.is_late(job, now))
    }

    /// Whether a worker of a source that a job does not avoid could take it.
    pub fn has_others(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| self.has_other(job))
    }
    /// Whether a worker of a source that the job does not avoid could take it.
    pub(super) fn has_other(&self, job: &Job) -> bool {
        self.workers.values().any(|w| !w.draining && !job.avoid.contains(&w.source) && self.able_to(w, job))
    }
    /// Whether the job has waited for others for long enough.
    pub(super) fn is_late(&self, job: &Job, now: u64) -> bool {
        job.since.is_some_and(|at| now.saturating_sub(at) > self.config.avoid_ms)
    }
    /// Whether a worker has what the job and its campaign need.
    pub(super) fn able_to(&self, w: &Worker, job: &Job) -> bool {
        self.campaigns.get(&job.campaign).is_none_or(|c| c.suits(w)) && self.equipped(w, job)
    }

    /// The weight of a loss of an item.
    pub(super) fn weight(
        &self,
        campaign: &Campaign,
        suspect: &Suspect,
        blame: u32,
        (source, proven): &(Source, bool),
    ) -> u32 {
        let alone = || self.is_alone(|w| campaign.suits(w));
        let again = || {
            suspect.by.contains(source)
                && !self.is_alone(|w| campaign.suits(w) && !suspect.by.contains(&w.source))
        };
        match self.has(Planted::BlamesItems) || (*proven || alone()) && !again() {
            true => blame,
            false => blame.min(FAULT),
        }
    }
    /// Whether an item waits for a source that may have an answer to it: one that works, or one that comes in time.
    pub(super) fn is_awaited(&self, campaign: &Campaign, suspect: &Suspect, now: u64) -> bool {
        let (silent, since) = &suspect.silent;
        let works = |w: &Worker| !w.draining && (w.credit > 0 || !w.leases.is_empty());
        let other = |w: &Worker| works(w) && campaign.suits(w) && !silent.contains(&w.source);
        let patience = if self.at_home() { 1 } else { PATIENCE };
        let late = now.saturating_sub(*since) > self.config.avoid_ms.saturating_mul(patience);
        !late || self.workers.values().any(other)
    }
    /// Whether a worker may have an item that was lost, or to which somebody has no answer.
    pub(super) fn may_have(&self, w: &Worker, campaign: &Campaign, suspect: &Suspect, now: u64) -> bool {
        if suspect.silent.0.contains(&w.source) && self.is_awaited(campaign, suspect, now) {
            return false;
        }
        if suspect.by.is_empty() {
            return true;
        }
        let lost_it = suspect.by.contains(&w.source)
            && !self.is_alone(|o| campaign.suits(o) && !suspect.by.contains(&o.source));
        self.has(Planted::BlamesItems) || self.is_trusted(w, |o| campaign.suits(o)) && !lost_it
    }
    /// Whether some campaign that suits this worker has an item that was lost.
    pub(super) fn has_suspects(&self, w: &Worker) -> bool {
        self.campaigns.values().any(|c| c.running && !c.suspects.is_empty() && c.suits(w))
    }
    /// Whether a worker has delivered something, or no other that has is there for the work.
    pub(super) fn is_trusted(&self, w: &Worker, suits: impl Fn(&Worker) -> bool) -> bool {
        w.proven || self.is_alone(suits)
    }
    /// Whether no busy worker that has delivered something suits.
    pub(super) fn is_alone(&self, suits: impl Fn(&Worker) -> bool) -> bool {
        let busy = |w: &Worker| w.proven && !w.draining && (w.credit > 0 || !w.leases.is_empty());
        !self.workers.values().any(|w| busy(w) && suits(w))
    }
}
