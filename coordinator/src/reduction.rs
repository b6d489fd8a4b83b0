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
use crate::job::{Answer, Batch, Job, JobKind, Jobs, ReductionId};
use crate::lease::{JobId, Kind};
use moire_corpus::{Hash, Write};
use moire_program::canon::spell::hash;
use moire_program::reduce::cuts;
use moire_program::text::{Format, parse};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet};

/// Cuts of one lease.
const BATCH: u64 = 8;
/// Fewest cuts for which the fleet is used: those of about thirty instructions. Below that one worker is as fast.
const CUTS_MIN: u64 = 64;
/// Most rounds. A worker that lies about which cuts hold cannot keep the fleet busy.
const ROUNDS_MAX: u32 = 32;

/// A minimisation under way.
pub(crate) struct Reduction {
    /// Its job, with the best claim so far.
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
    under_way: BTreeMap<ReductionId, Reduction>,
    /// The last one given out.
    last: ReductionId,
}

/// The key under which the best claim so far is stored.
fn key(claim: &v1::Claim) -> Hash {
    let models: Vec<_> = claim.models.iter().map(|m| (&m.name, &m.variants)).collect();
    Hash(hash(&(&claim.oracle, &claim.direction, models, &claim.program)))
}

/// The number of cuts of a claim's program; 0 if it is no litmus text.
fn count(claim: &v1::Claim) -> u64 {
    parse(&claim.program, Format::Native).map_or(0, |program| cuts(&program).len() as u64)
}

impl Reductions {
    /// Starts a minimisation, from the stored claim of its last round if there is one.
    pub(crate) fn start(&mut self, base: &mut Base, jobs: &mut Jobs, mut job: Job) {
        job.best = match &job.origin {
            Some(_) => base.store.best(&key(&job.claim)).ok().flatten(),
            None => None,
        }
        .map(|program| v1::Claim { program, ..job.claim.clone() });
        self.round(base, jobs, Reduction { job, waiting: 0, holds: BTreeSet::new(), rounds: 0 });
    }

    /// Leases the cuts of the best claim so far; if there are few, one worker does the rest.
    fn round(&mut self, base: &mut Base, jobs: &mut Jobs, mut reduction: Reduction) {
        let all = count(reduction.job.at_hand());
        if all < CUTS_MIN || reduction.rounds >= ROUNDS_MAX {
            return jobs.again(base, reduction.job, JobKind::Minimise, None);
        }
        reduction.rounds += 1;
        reduction.holds.clear();
        self.last.0 += 1;
        let id = self.last;
        let batch = |n| Batch { reduction: id, cuts: n * BATCH..all.min((n + 1) * BATCH), join: Vec::new() };
        let batches: Vec<Batch> = (0..all.div_ceil(BATCH)).map(batch).collect();
        self.lease_batches(base, jobs, id, reduction, batches);
    }

    fn lease_batches(
        &mut self,
        base: &mut Base,
        jobs: &mut Jobs,
        id: ReductionId,
        mut reduction: Reduction,
        batches: Vec<Batch>,
    ) {
        reduction.waiting = batches.len();
        // The answer is checked against the rule; the program is sent from the reduction.
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

    /// Takes the answer to a batch; `None`: the batch was given up, and none of its cuts holds.
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
        // An older worker that does not know batches answers with a whole reduction, which the round cannot use.
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
                let together = Batch { reduction: batch.reduction, cuts: 0..0, join };
                self.lease_batches(base, jobs, batch.reduction, reduction, vec![together]);
            }
            () => self.round_over(base, jobs, reduction, joined),
        }
    }

    /// Starts the next round with the combined cuts, or the last step if there are none.
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

    /// The minimisation of this identity.
    pub(crate) fn get(&self, id: ReductionId) -> Option<&Reduction> {
        self.under_way.get(&id)
    }

    /// Drops the minimisations of a campaign that has ended.
    pub(crate) fn drop_campaign(&mut self, campaign: &str) {
        self.under_way.retain(|_, r| !r.job.of(campaign));
    }

    /// Drops minimisations whose clients have disconnected; returns the jobs of their batches.
    pub(crate) fn drop_unwanted(&mut self, jobs: &Jobs) -> Vec<JobId> {
        let gone = self.under_way.iter().filter(|(_, r)| r.job.unwanted());
        let gone: BTreeSet<ReductionId> = gone.map(|(id, _)| *id).collect();
        self.under_way.retain(|id, _| !gone.contains(id));
        jobs.those(|job| job.batch.as_ref().is_some_and(|b| gone.contains(&b.reduction)))
    }
}

/// Forgets the best claim of a job that is over.
pub(crate) fn forget_best(base: &mut Base, job: &Job) {
    if job.origin.is_some() && job.best.is_some() {
        base.writes.push(Write::Best { claim: key(&job.claim), program: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = "293f4eda 8533514e 610c0ce8 9ddf2bd4 a22e5ea6 106e4fff 87798637 25c6abb8 cd6dedd0 66749d0a 443a8b06 acc16397 5b854342 0b309987 2baabc71 f37cc039 5b25cf65 6fb29a6b f6cb2c82 daa12b09";

    #[test]
    fn twenty_minimisations_keep_their_keys() {
        let side = |n: u32| v1::Side { name: format!("ptx{n}"), ..v1::Side::default() };
        let claim = |n: u32| v1::Claim {
            oracle: "model-pair".into(),
            direction: "subset".into(),
            models: vec![side(n), side(0)],
            program: format!("moire \"\"\n.global .b32 x;\nP{n} (gpu 0, cta 0) {{\n}}\n"),
            ..v1::Claim::default()
        };
        let keys = (0..20).map(|n| key(&claim(n)).short()[..8].to_owned());
        assert_eq!(keys.collect::<Vec<_>>().join(" "), KEYS);
    }
}
