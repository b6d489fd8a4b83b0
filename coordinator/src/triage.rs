//! From claims to findings, in an order that does not depend on who reports first.
//!
//! Contract: an admitted claim ([`crate::run`]) takes these steps.
//!
//! 1. Another worker runs it again. If no other comes in time, the claimant does, and the finding says so. If the other
//!    refutes it, a third decides between them, and who was wrong is noted ([`crate::suspects`]); if there is no third, the
//!    claim is refuted. If the other has no answer, yet another is asked. A claim that is not confirmed is counted and not
//!    kept.
//!    What a device showed ([`needs::is_sampled`]) is seen again or not, and never refuted.
//! 2. It is reduced.
//! 3. Another worker runs the reduced claim again. If the rule is not broken there, a third decides; if it is not broken
//!    there either, or there is no third, yet another makes the reduction again.
//! 4. The reduced program is brought to canonical form, and merged with the finding of the same key.

use crate::base::Base;
use crate::clock::unix_ms;
use crate::finding::{finding, merge};
use crate::job::{Answer, Job, JobKind, Jobs, Origin, ReducedClaim, Reply};
use crate::lease::{JobId, Kind, Source, WorkerId};
use crate::reduction::{Reductions, forget_best};
use crate::run::{Admitted, CampaignRun, LOST, NOT_SEEN_AGAIN, NOT_VERIFIED, REFUTED};
use crate::trial::{Event as Told, Planted};
use crate::{failpoints, intake};
use moire_corpus::{CampaignState, Finding, FindingId, StoreError, Verified, Write};
use moire_proto::needs;
use moire_proto::v1::verify_result::Answer as Said;
use std::collections::{BTreeMap, BTreeSet};

/// Most wrong reductions of one claim; after that the claim is kept unreduced.
const REDUCTIONS_MAX: u32 = 3;
/// Sources without an answer after which a step of a claim has none.
const SILENT_MAX: usize = 2;

/// The campaigns, and the jobs under way: for their claims, and for clients.
#[derive(Default)]
pub(crate) struct Triage {
    /// Campaigns by name.
    pub(crate) runs: BTreeMap<String, CampaignRun>,
    /// Campaigns that changed since they were last advanced.
    pub(crate) touched: BTreeSet<String>,
    pub(crate) jobs: Jobs,
    pub(crate) reductions: Reductions,
    /// Findings of the current batch, and whether they are new. Two sightings in one batch are merged here.
    pub(crate) fresh: BTreeMap<FindingId, (Finding, bool)>,
}

impl Triage {
    /// Admits claims and prepares the writes of what is complete.
    pub(crate) fn advance(&mut self, base: &mut Base, name: &str) {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return };
        let epoch = run.campaign.epoch;
        for Admitted { item, claimant, class, claim } in run.admit(base.trial.has(Planted::ChargesClaims)) {
            failpoints::hit(failpoints::VERIFY);
            let origin = Some(Origin { campaign: name.to_owned(), item, epoch, class });
            let job = Job { claimant: Some(claimant.clone()), origin, ..Job::new(JobKind::Verify, claim) };
            self.jobs.queue(base, job, Kind::Verify, Some(claimant));
        }
        base.fleet.limit(name, run.limit());
        let (items, findings) = run.ready();
        for (item, found) in findings {
            let id = found.id;
            self.keep(base, found);
            base.writes.push(Write::Sighting { campaign: name.to_owned(), item, finding: id });
        }
        if !items.is_empty() {
            base.writes.push(Write::Items { campaign: name.to_owned(), items });
            if let Some(run) = self.runs.get_mut(name) {
                run.digest = None;
            }
        }
    }

    /// Adds a finding to the batch, merged with the one of the same identity.
    pub(crate) fn keep(&mut self, base: &mut Base, found: Finding) {
        let id = found.id;
        let stored = || base.store.finding(&id).ok().flatten().map(|f| (f, false));
        let (known, new) = self.fresh.remove(&id).or_else(stored).map_or((None, true), |(f, n)| (Some(f), n));
        let before = known.as_ref().map(|f| f.state.clone());
        let merged = merge(known, found);
        base.states.changed(&id, before.as_ref(), &merged.state);
        self.fresh.insert(id, (merged.clone(), new));
        base.writes.push(Write::Finding(Box::new(merged)));
    }

    /// After a commit: closes a campaign that has all its items.
    pub(crate) fn finish(&mut self, base: &mut Base, name: &str) -> Result<(), StoreError> {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return Ok(()) };
        let below =
            run.reported.iter().take_while(|i| run.progress.contains(**i)).copied().collect::<Vec<_>>();
        below.iter().for_each(|i| _ = run.reported.remove(i));
        let early = base.trial.has(Planted::DoneEarly)
            && run.reported.len() as u64 + run.progress.done() >= run.end();
        if early || run.idle() {
            failpoints::hit(failpoints::CAMPAIGN_DONE);
            run.campaign.state = CampaignState::Done;
            base.store.commit(vec![Write::Campaign(Box::new(run.campaign.clone()))])?;
            let digest = base.store.digest(name)?;
            run.digest = Some(digest);
            base.trial.tell(|| Told::Ended { campaign: name.to_owned(), digest: digest.to_string() });
            let now = base.now();
            base.fleet.drop_campaign(name, now);
        }
        Ok(())
    }

    /// Continues after a job. `answer`: the answer, and the worker that gave it; `None`: the job was given up.
    pub(crate) fn job_over(&mut self, base: &mut Base, id: JobId, answer: Option<(WorkerId, Answer)>) {
        let Some(mut job) = self.jobs.remove(id) else { return };
        if job.kind == JobKind::Part {
            return self.reductions.batch_over(base, &mut self.jobs, job.batch, answer.map(|a| a.1));
        }
        if let Some(reply) = job.reply.take() {
            let mut said = answer.map(|(by, answer)| Reply { by: base.fleet.source(by), answer });
            if let Some(Reply { answer: Answer::Minimised(result), .. }) = &mut said {
                result.tried = result.tried.saturating_add(job.tried);
            }
            // The client may have gone.
            let _ = reply.send(said);
            return;
        }
        match (job.kind, answer) {
            (JobKind::Verify, Some((by, Answer::Verified(result)))) => {
                let by = base.fleet.source(by);
                self.judged(base, job, by, result.answer());
            }
            (JobKind::Minimise, Some((by, Answer::Minimised(result)))) => {
                let same = result.claim.as_ref().is_none_or(|c| c.program == job.claim.program);
                let by = base.fleet.source(by);
                job.reduced = result.claim.map(|claim| ReducedClaim { claim, by: by.clone() });
                job.refuter = None;
                match same {
                    true => self.found(base, &job),
                    false => self.jobs.again(base, job, JobKind::Confirm, Some(by)),
                }
            }
            (JobKind::Confirm, Some((by, Answer::Verified(result)))) => {
                let by = base.fleet.source(by);
                self.reduced(base, job, by, result.answer());
            }
            (JobKind::Confirm, Some(_)) => self.found(base, &job),
            (JobKind::Minimise | JobKind::Confirm, _) => {
                job.reduced = None;
                self.found(base, &job);
            }
            (JobKind::Verify, _) if job.refuter.is_some() => self.refuse(&job, REFUTED),
            (JobKind::Verify | JobKind::Replay | JobKind::Part, _) => self.refuse(&job, LOST),
        }
    }

    /// Takes what a worker says of a claim that it has run again. Nobody refutes what somebody else has seen.
    fn judged(&mut self, base: &mut Base, mut job: Job, by: Source, said: Said) {
        let said = if needs::is_sampled(&job.claim.oracle) && said != Said::Confirmed {
            Said::Abstained
        } else {
            said
        };
        let own = job.claimant.as_ref() == Some(&by);
        match (said, job.refuter.clone()) {
            (Said::Confirmed, refuter) => {
                job.verified = if own { Verified::Itself } else { Verified::Other };
                if !own {
                    base.suspects.right(job.claimant.iter().chain([&by]));
                }
                refuter.iter().for_each(|wrong| base.suspects.wrong(wrong, &base.fleet));
                if let Some(run) = self.of(&job)
                    && let Some(origin) = &job.origin
                {
                    let found = made(run, origin.item, &job);
                    run.confirmed(origin.item, &origin.class, found);
                    self.touched.insert(origin.campaign.clone());
                }
                self.reductions.start(base, &mut self.jobs, job);
            }
            (Said::Abstained, refuter) if !own => {
                let why = if refuter.is_some() { REFUTED } else { NOT_VERIFIED };
                let asked = job.claimant.iter().cloned().chain(refuter).collect();
                if let Some(job) = self.ask_another(base, job, by, asked) {
                    self.refuse(&job, why);
                }
            }
            (Said::Abstained, None) => self.refuse(&job, NOT_VERIFIED),
            (Said::Refuted | Said::Unspecified, None) if !own => {
                base.suspects.disputed += 1;
                let avoid = job.claimant.iter().cloned().chain([by.clone()]).collect::<Vec<_>>();
                job.refuter = Some(by);
                let id = self.jobs.queue(base, job, Kind::Verify, None);
                base.fleet.avoid(id, avoid, true);
                self.undecided(base, id);
            }
            (Said::Refuted | Said::Unspecified, Some(refuter)) => {
                base.suspects.right([&refuter, &by]);
                job.claimant.iter().for_each(|wrong| base.suspects.wrong(wrong, &base.fleet));
                self.refuse(&job, REFUTED);
            }
            _ => self.refuse(&job, REFUTED),
        }
    }

    /// Asks another source than those that were asked, because this one has no answer. Gives the job back if there is none,
    /// or if two had no answer.
    fn ask_another(
        &mut self,
        base: &mut Base,
        mut job: Job,
        by: Source,
        mut asked: Vec<Source>,
    ) -> Option<Job> {
        job.silent.push(by);
        asked.extend(job.silent.iter().cloned());
        if job.silent.len() >= SILENT_MAX {
            return Some(job);
        }
        let id = self.jobs.queue(base, job, Kind::Verify, None);
        base.fleet.avoid(id, asked, true);
        match base.fleet.has_others(id) {
            true => None,
            false => {
                base.fleet.drop_job(id);
                self.jobs.remove(id)
            }
        }
    }

    /// Takes what a worker says of a reduced claim. If it refutes the claim and a third worker is there, that one decides.
    fn reduced(&mut self, base: &mut Base, mut job: Job, by: Source, said: Said) {
        let reducer = job.reduced.as_ref().map(|reduced| reduced.by.clone());
        let own = reducer.as_ref() == Some(&by);
        if said == Said::Abstained {
            // Nobody else says that the rule is broken there, so the claim stays as it was made.
            let asked = reducer.into_iter().chain(job.refuter.clone()).collect();
            if let Some(job) = self.ask_another(base, job, by, asked) {
                self.found(base, &Job { reduced: None, ..job });
            }
            return;
        }
        match (said == Said::Refuted, job.refuter.take()) {
            (false, None) => self.found(base, &job),
            (false, Some(refuter)) if !own => {
                base.suspects.right(reducer.iter().chain([&by]));
                base.suspects.wrong(&refuter, &base.fleet);
                self.found(base, &job);
            }
            (true, None) if !own && base.fleet.sources().len() > 2 => {
                base.suspects.disputed += 1;
                job.refuter = Some(by.clone());
                let id = self.jobs.queue(base, job, Kind::Verify, reducer);
                base.fleet.avoid(id, [by], false);
            }
            // Two refute it, or only its own reducer stands by it.
            _ => self.reduce_again(base, job),
        }
    }

    /// Has a claim reduced again whose reduction was wrong.
    fn reduce_again(&mut self, base: &mut Base, mut job: Job) {
        let by = job.reduced.take().map(|reduced| reduced.by);
        job.wrong += 1;
        // From now on one worker does the whole reduction, from the start.
        forget_best(base, &job);
        job.best = None;
        match job.wrong < REDUCTIONS_MAX {
            true => self.jobs.again(base, job, JobKind::Minimise, by),
            false => self.found(base, &job),
        }
    }

    /// Ends a dispute that nobody comes to decide, or a question to which nobody else comes.
    fn undecided(&mut self, base: &mut Base, id: JobId) {
        if base.fleet.in_vain(id, base.now())
            && base.fleet.drop_job(id)
            && let Some(job) = self.jobs.remove(id)
        {
            match (job.kind, &job.refuter) {
                (JobKind::Confirm, _) => self.found(base, &Job { reduced: None, ..job }),
                (_, Some(_)) => self.refuse(&job, REFUTED),
                (_, None) => self.refuse(&job, NOT_VERIFIED),
            }
        }
    }

    /// The campaign that a job is of, if it has not begun anew since.
    fn of(&mut self, job: &Job) -> Option<&mut CampaignRun> {
        let origin = job.origin.as_ref()?;
        self.runs.get_mut(&origin.campaign).filter(|run| run.campaign.epoch == origin.epoch)
    }

    /// Makes the claim a finding, which waits for its item.
    fn found(&mut self, base: &mut Base, job: &Job) {
        failpoints::hit(failpoints::MINIMISED);
        forget_best(base, job);
        let Some(Origin { campaign: name, item, class, .. }) = &job.origin else { return };
        let Some(run) = self.of(job) else { return };
        let found = made(run, *item, job);
        run.found(*item, class, found);
        self.touched.insert(name.clone());
    }

    /// Drops the claim and counts the reason.
    fn refuse(&mut self, job: &Job, why: &str) {
        let why = if needs::is_sampled(&job.claim.oracle) { NOT_SEEN_AGAIN } else { why };
        let Some(origin) = &job.origin else { return };
        if let Some(run) = self.of(job) {
            run.refused(origin.item, &origin.class, why);
            self.touched.insert(origin.campaign.clone());
        }
    }

    /// Drops the jobs of a campaign that has ended.
    pub(crate) fn drop_jobs(&mut self, campaign: &str) {
        self.jobs.drop_campaign(campaign);
        self.reductions.drop_campaign(campaign);
    }

    /// Forgets waiting jobs whose clients have disconnected, and ends disputes that nobody comes to decide.
    pub(crate) fn drop_unwanted(&mut self, base: &mut Base) {
        let asked =
            |job: &Job| job.kind == JobKind::Verify && job.refuter.is_some() || !job.silent.is_empty();
        let disputes = self.jobs.those(asked);
        disputes.into_iter().for_each(|id| self.undecided(base, id));
        let mut unwanted = self.jobs.those(Job::unwanted);
        unwanted.extend(self.reductions.drop_unwanted(&self.jobs));
        for id in unwanted.into_iter().filter(|id| base.fleet.drop_job(*id)) {
            self.jobs.remove(id);
        }
    }
}

/// The finding of the claim of a job, as far as it is reduced.
fn made(run: &CampaignRun, item: u64, job: &Job) -> Finding {
    let reduced = job.reduced.as_ref().map_or(&job.claim, |r| &r.claim);
    let mut found = finding(&run.campaign, item, &job.claim, reduced, job.verified, unix_ms());
    intake::fit_finding(&mut found, &reduced.program);
    found
}
