//! Jobs with text: a claim to run again or to make smaller, or a program to run.
//!
//! Contract: [`Jobs`] has a job as long as the scheduler has it, under the same identity.

use crate::base::Base;
use crate::lease::{JobId, Kind, Source};
use moire_corpus::Verified;
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The kinds of jobs with text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Run a claim again.
    Verify,
    /// Make the program of a claim smaller.
    Minimise,
    /// Do a part of a minimisation, for [`crate::reduction`].
    Part,
    /// Run the answer of a minimisation again.
    Confirm,
    /// Run a program.
    Replay,
}

/// Where a claim comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) campaign: String,
    pub(crate) item: u64,
    /// The epoch of the campaign in which it was admitted. A campaign that begins anew admits its claims anew.
    pub(crate) epoch: u32,
    /// The class of the claim.
    pub(crate) class: String,
}

/// A claim on a reduced program.
pub(crate) struct ReducedClaim {
    pub(crate) claim: v1::Claim,
    /// Where the worker comes from that reduced it.
    pub(crate) by: Source,
}

/// Names a minimisation under way; given out by [`crate::reduction`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReductionId(pub(crate) u64);

/// A job with text.
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    pub(crate) claim: v1::Claim,
    /// Where the worker comes from that made the claim.
    pub(crate) claimant: Option<Source>,
    /// Where the worker comes from that refuted it, once one has: a third decides.
    pub(crate) refuter: Option<Source>,
    /// Where the workers come from that had no answer to this step of it.
    pub(crate) silent: Vec<Source>,
    pub(crate) reduced: Option<ReducedClaim>,
    /// The claim on the least program so far.
    pub(crate) best: Option<v1::Claim>,
    /// Candidates tried for that.
    pub(crate) tried: u64,
    /// The batch of a [`JobKind::Part`].
    pub(crate) batch: Option<Batch>,
    /// Reductions that turned out wrong.
    pub(crate) wrong: u32,
    /// Unless a client submitted it.
    pub(crate) origin: Option<Origin>,
    pub(crate) plan: Option<v1::Plan>,
    pub(crate) verified: Verified,
    pub(crate) reply: Option<tokio::sync::oneshot::Sender<Option<Reply>>>,
}

impl Job {
    pub(crate) fn new(kind: JobKind, claim: v1::Claim) -> Self {
        Self {
            kind,
            claim,
            claimant: None,
            refuter: None,
            silent: Vec::new(),
            reduced: None,
            best: None,
            tried: 0,
            batch: None,
            wrong: 0,
            origin: None,
            plan: None,
            verified: Verified::Unverified,
            reply: None,
        }
    }
    /// Whether it is work for this campaign.
    pub(crate) fn of(&self, campaign: &str) -> bool {
        self.origin.as_ref().is_some_and(|o| o.campaign == campaign)
    }
    /// Whether a client submitted it and has gone.
    pub(crate) fn unwanted(&self) -> bool {
        self.reply.as_ref().is_some_and(tokio::sync::oneshot::Sender::is_closed)
    }
    /// The claim that is to be made smaller.
    pub(crate) fn at_hand(&self) -> &v1::Claim {
        self.best.as_ref().unwrap_or(&self.claim)
    }
    /// The claim a verifying worker is asked about.
    pub(crate) fn asked(&self) -> &v1::Claim {
        self.reduced.as_ref().filter(|_| self.kind == JobKind::Confirm).map_or(&self.claim, |r| &r.claim)
    }
}

/// A batch of a round of a minimisation.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The minimisation.
    pub(crate) reduction: ReductionId,
    /// Cuts to try; empty where some are put together.
    pub(crate) cuts: Range<u64>,
    /// Cuts to put together.
    pub(crate) join: Vec<u64>,
}

/// The answer of a job.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Verified(v1::VerifyResult),
    Minimised(v1::MinimiseResult),
    Replayed(v1::ItemResult),
}

/// The answer of a job, and where the worker comes from that gave it.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) by: Source,
    pub(crate) answer: Answer,
}

/// Who may do a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whom {
    /// Only workers with these capabilities.
    pub(crate) needs: BTreeSet<String>,
    /// None of these sources.
    pub(crate) avoid: BTreeSet<Source>,
}

impl Whom {
    /// Whether every worker may.
    pub(crate) fn is_anyone(&self) -> bool {
        self.needs.is_empty() && self.avoid.is_empty()
    }
}

/// The jobs that wait for an answer.
#[derive(Default)]
pub(crate) struct Jobs(BTreeMap<JobId, Job>);

impl Jobs {
    /// Queues a job as work of a kind. `avoid`: whose workers get it only if no other comes for it in time.
    pub(crate) fn queue(&mut self, base: &mut Base, job: Job, kind: Kind, avoid: Option<Source>) -> JobId {
        let campaign = job.origin.as_ref().map_or("", |o| o.campaign.as_str());
        let id = base.fleet.job(campaign, kind, None);
        base.fleet.avoid(id, avoid, false);
        // A side that is a tool is named as the capability is.
        base.fleet.takes(id, job.claim.models.iter().map(|side| side.name.clone()));
        let variants = |side: &v1::Side| side.variants.get("sm").map(|sm| format!("{}:sm_{sm}", side.name));
        base.fleet.takes(id, job.claim.models.iter().filter_map(variants));
        self.0.insert(id, job);
        id
    }
    /// Queues the next step of a claim.
    pub(crate) fn again(&mut self, base: &mut Base, job: Job, kind: JobKind, avoid: Option<Source>) {
        let turn = if kind == JobKind::Minimise { Kind::Minimise } else { Kind::Verify };
        self.queue(base, Job { kind, silent: Vec::new(), ..job }, turn, avoid);
    }
    /// The job of this identity.
    pub(crate) fn get(&self, id: JobId) -> Option<&Job> {
        self.0.get(&id)
    }
    /// Takes a job out.
    pub(crate) fn remove(&mut self, id: JobId) -> Option<Job> {
        self.0.remove(&id)
    }
    /// The jobs for which `wanted` holds.
    pub(crate) fn those(&self, wanted: impl Fn(&Job) -> bool) -> Vec<JobId> {
        self.0.iter().filter(|(_, job)| wanted(job)).map(|(id, _)| *id).collect()
    }
    /// Drops the jobs of a campaign.
    pub(crate) fn drop_campaign(&mut self, campaign: &str) {
        self.0.retain(|_, job| !job.of(campaign));
    }
}
