//! Whose turn it is: campaigns with a range to lease by virtual time, and jobs that wait by kind, campaign and age.
//!
//! Contract: it holds exactly what is in no lease, and the scheduler reports each change. The next one is found without a
//! look at the others.

use super::ids::JobId;
use super::types::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// The order in which campaigns and waiting jobs get leases.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Campaigns with a range to lease: virtual time, then name.
    ranges: BTreeSet<(u64, String)>,
    /// Jobs in no lease; no set is empty.
    jobs: BTreeMap<Kind, BTreeMap<String, BTreeSet<JobId>>>,
    queued: usize,
}

impl Turns {
    /// The number of jobs that wait.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }
    /// Whether there is anything to lease at all.
    pub(super) fn any(&self) -> bool {
        self.queued > 0 || !self.ranges.is_empty()
    }
    /// Campaigns with a range, in turn.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &String> {
        self.ranges.iter().map(|(_, name)| name)
    }
    /// Jobs by kind, most urgent first, then by campaign; within one oldest first.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&Kind, &BTreeMap<String, BTreeSet<JobId>>)> {
        self.jobs.iter()
    }

    /// Moves a campaign from one virtual time to another; `None`: it has nothing to lease.
    pub(super) fn set(&mut self, name: &str, before: Option<u64>, now: Option<u64>) {
        if before == now {
            return;
        }
        if let Some(at) = before {
            self.ranges.remove(&(at, name.to_owned()));
        }
        if let Some(at) = now {
            self.ranges.insert((at, name.to_owned()));
        }
    }
    /// Adds a job that waits.
    pub(super) fn wait(&mut self, kind: Kind, campaign: &str, job: JobId) {
        let jobs = self.jobs.entry(kind).or_default().entry(campaign.to_owned()).or_default();
        self.queued += usize::from(jobs.insert(job));
    }
    /// Takes a job out; false: it did not wait.
    pub(super) fn take(&mut self, kind: Kind, campaign: &str, job: JobId) -> bool {
        let Some(campaigns) = self.jobs.get_mut(&kind) else { return false };
        let Some(jobs) = campaigns.get_mut(campaign) else { return false };
        let taken = jobs.remove(&job);
        self.queued -= usize::from(taken);
        if jobs.is_empty() {
            campaigns.remove(campaign);
        }
        taken
    }
    /// Removes all jobs of a campaign.
    pub(super) fn forget(&mut self, campaign: &str) {
        for campaigns in self.jobs.values_mut() {
            self.queued -= campaigns.remove(campaign).map_or(0, |jobs| jobs.len());
        }
    }
}
