//! Reduces one claim on the whole fleet.
//!
//! Contract: reduction goes in rounds. All cuts of the current program are leased, a few at a time, to free workers. One more
//! lease combines the cuts that hold; the result is the program of the next round. When nothing more can be cut, one lease
//! brings the program into normal form with all passes.
//!
//! Each round depends only on its program and waits for all its answers, so the result does not depend on their order. The
//! best claim so far is stored after each round: if a worker goes away its batch is lost, if the coordinator goes away the
//! round. No answer is trusted: another worker runs the result again, like any claim. If it is wrong, one worker does the
//! whole reduction.

use crate::base::Base;
use crate::job::{Answer, Batch, Job, JobKind, Jobs};
use crate::lease::{JobId, Kind};
use moire_corpus::{Hash, Write};
use moire_program::reduce::cuts;
use moire_program::text::{Format, parse};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet};

/// Cuts of one lease.
const BATCH: u64 = 8;
/// Cuts below which one worker is as fast: those of some thirty instructions.
const CUTS_MIN: u64 = 64;
/// Rounds, so that a worker that lies about what holds keeps nobody busy.
const ROUNDS_MAX: u32 = 32;

/// A minimisation under way.
pub(crate) struct Reduction {
    /// The job that it is, with the best claim so far.
    pub(crate) job: Job,
    /// Leases of this round that have no answer yet.
    waiting: usize,
    /// Cuts that hold.
    holds: BTreeSet<u64>,
    rounds: u32,
}

/// The minimisations under way.
#[derive(Default)]
pub(crate) struct Reductions {
    under_way: BTreeMap<u64, Reduction>,
    /// Numbers given out.
    made: u64,
}

/// Under which the best claim so far is kept.
fn key(claim: &v1::Claim) -> Hash {
    let models: Vec<_> = claim.models.iter().map(|m| (&m.name, &m.variants)).collect();
    Hash::of(format!("{:?}", (&claim.oracle, &claim.direction, models, &claim.program)).as_bytes())
}

/// Cuts of a claim's program; none where it is no litmus text.
fn count(claim: &v1::Claim) -> u64 {
    parse(&claim.program, Format::Native).map_or(0, |program| cuts(&program).len() as u64)
}

impl Reductions {
    /// Starts, or goes on with, a minimisation.
    pub(crate) fn start(&mut self, base: &mut Base, jobs: &mut Jobs, mut job: Job) {
        job.best = match &job.origin {
            Some(_) => base.store.best(&key(&job.claim)).ok().flatten(),
            None => None,
        }
        .map(|program| v1::Claim { program, ..job.claim.clone() });
        self.round(base, jobs, Reduction { job, waiting: 0, holds: BTreeSet::new(), rounds: 0 });
    }

    /// Leases the cuts of the best claim so far; where there are few, one worker does the rest.
    fn round(&mut self, base: &mut Base, jobs: &mut Jobs, mut reduction: Reduction) {
        let all = count(reduction.job.at_hand());
        if all < CUTS_MIN || reduction.rounds >= ROUNDS_MAX {
            return jobs.again(base, reduction.job, JobKind::Minimise, None);
        }
        reduction.rounds += 1;
        reduction.holds.clear();
        self.made += 1;
        let id = self.made;
        let starts = (0..all).step_by(usize::try_from(BATCH).unwrap_or(1));
        let batches: Vec<Batch> = starts
            .map(|from| Batch { reduction: id, cuts: (from, all.min(from + BATCH)), join: Vec::new() })
            .collect();
        self.lease_batches(base, jobs, id, reduction, batches);
    }

    fn lease_batches(
        &mut self,
        base: &mut Base,
        jobs: &mut Jobs,
        id: u64,
        mut reduction: Reduction,
        batches: Vec<Batch>,
    ) {
        reduction.waiting = batches.len();
        // The rule, for the answer to be held to; the program is the reduction's.
        let (program, witness) = (String::new(), String::new());
        let claim = v1::Claim { program, witness, ..reduction.job.claim.clone() };
        let plan = reduction.job.plan.clone();
        let origin = reduction.job.origin.clone();
        for batch in batches {
            let mut job = Job::new(JobKind::Part, claim.clone());
            (job.origin, job.plan, job.batch) = (origin.clone(), plan.clone(), Some(batch));
            jobs.queue(base, job, Kind::Minimise, None);
        }
        self.under_way.insert(id, reduction);
    }

    /// An answer to a batch; `None`: it was given up, and none of it holds.
    pub(crate) fn batch_over(
        &mut self,
        base: &mut Base,
        jobs: &mut Jobs,
        batch: Option<Batch>,
        answer: Option<Answer>,
    ) {
        let Some(batch) = batch else { return };
        let Some(mut reduction) = self.under_way.remove(&batch.reduction) else { return };
        let mut joined = None;
        // A worker that knows no parts answers with all of it: nothing that this round could use.
        if let Some(Answer::Minimised(result)) =
            answer.filter(|a| matches!(a, Answer::Minimised(r) if r.part))
        {
            reduction.job.tried += result.tried;
            reduction.holds.extend(result.holds);
            joined = result.claim;
        }
        reduction.waiting = reduction.waiting.saturating_sub(1);
        match () {
            () if reduction.waiting > 0 => _ = self.under_way.insert(batch.reduction, reduction),
            () if batch.join.is_empty() && !reduction.holds.is_empty() => {
                let join = reduction.holds.iter().copied().collect();
                let together = Batch { reduction: batch.reduction, cuts: (0, 0), join };
                self.lease_batches(base, jobs, batch.reduction, reduction, vec![together]);
            }
            () => self.round_over(base, jobs, reduction, joined),
        }
    }

    /// Goes on with what was put together, or, where nothing was, to the last step.
    fn round_over(
        &mut self,
        base: &mut Base,
        jobs: &mut Jobs,
        mut reduction: Reduction,
        joined: Option<v1::Claim>,
    ) {
        let smaller = |claim: &v1::Claim| count(claim) < count(reduction.job.at_hand());
        let Some(best) = joined.filter(smaller) else {
            return jobs.again(base, reduction.job, JobKind::Minimise, None);
        };
        if reduction.job.origin.is_some() {
            let program = Some(best.program.clone());
            base.writes.push(Write::Best { claim: key(&reduction.job.claim), program });
        }
        reduction.job.best = Some(best);
        self.round(base, jobs, reduction);
    }

    /// The minimisation of this number.
    pub(crate) fn get(&self, number: u64) -> Option<&Reduction> {
        self.under_way.get(&number)
    }

    /// Drops the minimisations of a campaign that has ended.
    pub(crate) fn drop_campaign(&mut self, campaign: &str) {
        self.under_way.retain(|_, r| !r.job.of(campaign));
    }

    /// Drops minimisations whose clients have gone; returns their batches, which wait for nobody any more.
    pub(crate) fn drop_unwanted(&mut self, jobs: &Jobs) -> Vec<JobId> {
        let gone = self.under_way.iter().filter(|(_, r)| r.job.unwanted());
        let gone: BTreeSet<u64> = gone.map(|(number, _)| *number).collect();
        self.under_way.retain(|number, _| !gone.contains(number));
        jobs.those(|job| job.batch.as_ref().is_some_and(|b| gone.contains(&b.reduction)))
    }
}

/// Forgets the best claim of a job that is over.
pub(crate) fn forget_best(base: &mut Base, job: &Job) {
    if job.origin.is_some() && job.best.is_some() {
        base.writes.push(Write::Best { claim: key(&job.claim), program: None });
    }
}
