//! The messages between the core and its workers.
//!
//! Contract: a worker that breaks the protocol is disconnected with the reason. A worker that does not read is dropped.

use super::{Core, Outbox, Owed};
use crate::job::JobKind;
use crate::lease::{Action, Grant, JobId, LeaseId, LeaseTicks, Source, Work, WorkerId};
use crate::run::CampaignRun;
use crate::trial::{End, Event as Told, Planted};
use crate::{MINIMISE_CANDIDATES, belief, failpoints, intake, stored};
use moire_corpus::Write;
use moire_proto::v1::{self, lease::Work as Sent, to_worker::Message as Down};
use std::collections::BTreeSet;

/// Longest name a worker gives, in bytes of JSON.
const NAME_BYTES_MAX: usize = 128;
/// Capabilities a worker may have.
const CAPABILITIES_MAX: usize = 64;

impl Core {
    /// Takes a worker. `source`: where it comes from, if the door knows.
    pub(crate) fn hello(
        &mut self,
        hello: v1::Hello,
        source: Option<Source>,
        outbox: Outbox,
    ) -> Result<WorkerId, tonic::Status> {
        let apart = self.base.trial.apart.then(|| Source::Known(hello.name.clone()));
        let source = source.or(apart);
        if let Some(source) = source.as_ref().filter(|source| self.base.suspects.refuses(source)) {
            self.refused += 1;
            let why = self.base.suspects.says(source).unwrap_or_default();
            return Err(tonic::Status::permission_denied(format!(
                "{why}; check its memory and its build, and start the coordinator again to take it back"
            )));
        }
        if hello.protocol != moire_proto::PROTOCOL {
            self.refused += 1;
            let (theirs, ours) = (hello.protocol, moire_proto::PROTOCOL);
            let text =
                format!("the worker speaks protocol {theirs}, this coordinator {ours}: use the same moire");
            return Err(tonic::Status::failed_precondition(text));
        }
        let long = |text: &String| stored::bytes(text) > NAME_BYTES_MAX;
        let capabilities = &hello.capabilities;
        if long(&hello.name)
            || long(&hello.fingerprint)
            || capabilities.len() > CAPABILITIES_MAX
            || capabilities.iter().any(long)
        {
            self.bad_messages += 1;
            return Err(tonic::Status::invalid_argument(
                "a worker has names of at most 128 bytes and at most 64 capabilities",
            ));
        }
        let bound = self.triage.runs.values().filter(|r| r.open()).map(|r| r.campaign.generator.as_str());
        let bound: BTreeSet<&str> = bound.filter(|g| !g.is_empty()).collect();
        if !bound.is_empty() && !bound.contains(hello.fingerprint.as_str()) {
            self.refused += 1;
            let expected = bound.into_iter().collect::<Vec<_>>().join(", ");
            return Err(tonic::Status::failed_precondition(format!(
                "fingerprint mismatch: the worker has {}, the campaigns need {expected}; use the same moire",
                hello.fingerprint
            )));
        }
        let (capabilities, now) = (hello.capabilities.into_iter().collect(), self.base.now());
        let id = self.base.fleet.hello(capabilities, &hello.fingerprint, now);
        let id = id.map_err(|e| tonic::Status::resource_exhausted(e.to_string()))?;
        source.into_iter().for_each(|source| self.base.fleet.comes_from(id, source));
        self.base.trial.tell(|| Told::Welcome { worker: id, name: hello.name.clone() });
        self.names.insert(id, hello.name);
        self.outboxes.insert(id, outbox);
        self.send(id, Down::Welcome(v1::Welcome { worker: id.0, liveness_ms: self.base.config.liveness_ms }));
        Ok(id)
    }

    /// The name a worker gave.
    pub(crate) fn worker_name(&self, worker: WorkerId) -> &str {
        self.names.get(&worker).map_or("", String::as_str)
    }

    pub(crate) fn gone(&mut self, worker: WorkerId) {
        self.outboxes.remove(&worker);
        if self.base.fleet.knows(worker) {
            self.base.trial.tell(|| Told::Gone { worker, end: End::Closed });
        }
        self.names.remove(&worker);
        self.base.fleet.disconnect(worker);
    }

    /// Takes a message; false: the worker is not connected any more.
    pub(crate) fn message(&mut self, worker: WorkerId, message: v1::FromWorker) -> bool {
        use v1::from_worker::Message as Up;
        let now = self.base.now();
        if self.base.fleet.knows(worker) {
            self.base.trial.heard(worker, &message);
        }
        match message.message {
            Some(Up::Credit(credit)) => self.base.fleet.credit(worker, credit.leases, now),
            Some(Up::Heartbeat(beat)) => {
                let ticks =
                    beat.leases.iter().map(|l| LeaseTicks { lease: LeaseId(l.lease), ticks: l.ticks });
                self.base.fleet.heartbeat(worker, &ticks.collect::<Vec<_>>(), now);
            }
            Some(Up::KillAck(ack)) => self.base.fleet.kill_ack(worker, LeaseId(ack.lease), now),
            Some(Up::Draining(_)) => self.base.fleet.drain(worker, now),
            Some(Up::Report(report)) => self.report(worker, report, now),
            Some(Up::Hello(_)) => self.fault(worker, "hello is the first message only"),
            None => self.fault(worker, "a message without content"),
        }
        self.base.fleet.knows(worker)
    }

    /// The worker broke the protocol: its stream ends with the reason, and others get its leases.
    fn fault(&mut self, worker: WorkerId, why: &'static str) {
        self.bad_messages += 1;
        self.send_away(worker, tonic::Status::invalid_argument(why));
    }

    /// Sends away the workers of a source that was wrong too often.
    pub(super) fn expel(&mut self, source: &Source) {
        let why = self.base.suspects.says(source).unwrap_or_default();
        for worker in self.base.fleet.those_from(source) {
            self.send_away(worker, tonic::Status::permission_denied(why.clone()));
        }
    }

    fn send_away(&mut self, worker: WorkerId, why: tonic::Status) {
        tracing::warn!(worker = worker.0, why = why.message(), "worker sent away");
        if let Some(outbox) = self.outboxes.remove(&worker) {
            // If the channel is full or closed, the stream ends without the reason.
            let _ = outbox.try_send(Err(why));
        }
        self.base.trial.tell(|| Told::Gone { worker, end: End::Expelled });
        self.names.remove(&worker);
        self.base.fleet.expel(worker);
    }

    fn report(&mut self, worker: WorkerId, report: v1::Report, now: u64) {
        let (sequence, lease) = (report.sequence, LeaseId(report.lease));
        let owed = |accepted, campaign, items| {
            let ack = v1::ReportAck { sequence, accepted };
            Owed { worker, ack, campaign, items }
        };
        let (epoch, grant) = (report.epoch, self.base.fleet.check(worker, lease, report.epoch, now));
        self.base.trial.tell(|| Told::Reported { worker, lease, epoch, accepted: grant.is_some() });
        let Some(grant) = grant else {
            return self.acks.push(owed(false, String::new(), Vec::new()));
        };
        if !report.aborted.is_empty() {
            let why = stored::beginning(&report.aborted, NAME_BYTES_MAX);
            tracing::warn!(worker = worker.0, campaign = grant.campaign, why, "a lease was given back");
            self.base.fleet.abort(lease);
            self.base.trial.tell(|| Told::GivenBack { lease, item: None });
            return self.acks.push(owed(true, String::new(), Vec::new()));
        }
        let taken = match grant.work {
            Work::Range { from, to } => self.items((worker, now), lease, &grant.campaign, from..to, report),
            Work::Job(id) if self.repeats.has(id) => self.repeated(worker, lease, id, report),
            Work::Job(id) if self.spread.has(id) => {
                let name = self.names.get(&worker).map_or("", String::as_str);
                let taken = self.spread.step(&mut self.base, name, lease, id, report).map(|()| Vec::new());
                if taken.is_ok() && !self.base.fleet.holds(lease) {
                    self.base.trial.tell(|| Told::Finished { lease });
                }
                taken
            }
            Work::Job(id) => self.answer(worker, lease, id, report),
        };
        match taken {
            Ok(items) => self.acks.push(owed(true, grant.campaign, items)),
            Err(why) => self.fault(worker, why),
        }
    }

    /// Takes the items of a report; returns those whose commit the acknowledgement waits for.
    fn items(
        &mut self,
        (worker, now): (WorkerId, u64),
        lease: LeaseId,
        campaign: &str,
        range: std::ops::Range<u64>,
        report: v1::Report,
    ) -> Result<Vec<u64>, &'static str> {
        let done = report.done;
        let items = intake::items(&range, report)?;
        let mut named: Vec<u64> = items.iter().map(|i| i.item).collect();
        let (twice, mut taken) = (self.base.trial.has(Planted::CountsTwice), Vec::new());
        if let Some(run) = self.triage.runs.get_mut(campaign) {
            self.triage.touched.insert(campaign.to_owned());
            let source = self.base.fleet.source(worker);
            // The first answer decides the build of the others, a hello decides nothing.
            if run.campaign.generator.is_empty() && !items.is_empty() {
                run.campaign.generator = self.base.fleet.fingerprint(worker).to_owned();
                self.base.writes.push(Write::Campaign(Box::new(run.campaign.clone())));
                self.base.fleet.bind(campaign, &run.campaign.generator, now);
            }
            for item in items {
                let index = item.item;
                if item.abstentions.keys().any(|reason| belief::is_silent(reason))
                    && self.base.fleet.elsewhere(lease, index, now)
                {
                    self.repeats.heard(lease, &item);
                    named.retain(|named| *named != index);
                    self.base.trial.tell(|| Told::GivenBack { lease, item: Some(index) });
                    continue;
                }
                if self.base.fleet.take_item(lease, index) | twice {
                    self.repeats.heard(lease, &item);
                    if run.reported(item, source.clone(), twice) {
                        taken.push(index);
                    }
                }
            }
        }
        self.base.trial.tell(|| Told::Taken { lease, items: taken });
        if !done {
            return Ok(named);
        }
        match self.base.fleet.done(lease) {
            true => {
                self.repeats.finished(&mut self.base, lease);
                self.base.trial.tell(|| Told::Finished { lease });
                Ok(named)
            }
            false => Err("a range lease is over when all its items are reported"),
        }
    }

    /// Takes a report on a range that is done again.
    fn repeated(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        id: JobId,
        report: v1::Report,
    ) -> Result<Vec<u64>, &'static str> {
        let runs = &self.triage.runs;
        let of = |name: &str| runs.get(name).map(|run| run.campaign.clone());
        let campaign = self.repeats.describe(id).map(|(campaign, _)| campaign.to_owned());
        if self.repeats.report(&mut self.base, of, (worker, lease, id), report)? {
            self.triage.touched.extend(campaign);
            self.base.trial.tell(|| Told::Finished { lease });
        }
        Ok(Vec::new())
    }

    fn answer(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        id: JobId,
        report: v1::Report,
    ) -> Result<Vec<u64>, &'static str> {
        if let Some(job) = self.triage.jobs.get(id) {
            let answer = intake::answer(job, report)?;
            self.base.fleet.done(lease);
            self.triage.job_over(&mut self.base, id, Some((worker, answer)));
        } else {
            self.base.fleet.forget(lease);
        }
        self.base.trial.tell(|| Told::Finished { lease });
        Ok(Vec::new())
    }

    pub(super) fn act(&mut self, action: Action) {
        match action {
            // The worker was dropped while an earlier action was sent, and its leases with it.
            Action::Grant { worker, .. } | Action::Cancel { worker, .. }
                if !self.outboxes.contains_key(&worker) => {}
            Action::Grant { worker, lease, epoch, grant } => {
                failpoints::hit(failpoints::GRANT);
                self.base.trial.tell(|| {
                    let campaign = grant.campaign.clone();
                    Told::Granted { worker, lease, epoch, campaign, work: grant.work }
                });
                let Some(work) = self.describe(&grant) else {
                    self.base.trial.tell(|| Told::Finished { lease });
                    return self.base.fleet.forget(lease);
                };
                if let Work::Range { from, to } = grant.work {
                    self.repeats.granted(worker, lease, &grant.campaign, from..to);
                }
                let plan = match grant.work {
                    Work::Job(id) => self.triage.jobs.get(id).and_then(|j| j.plan.clone()),
                    Work::Range { .. } => None,
                };
                let plan = plan.or_else(|| self.triage.runs.get(&grant.campaign).map(CampaignRun::plan));
                self.send(worker, Down::Lease(v1::Lease { lease: lease.0, epoch, plan, work: Some(work) }));
                if let Work::Job(id) = grant.work {
                    self.spread.lent(id, worker, lease);
                }
            }
            Action::Cancel { worker, lease, reason } => {
                self.base.trial.tell(|| Told::Cancelled { lease });
                self.send(
                    worker,
                    Down::Cancel(v1::CancelLease { lease: lease.0, reason: reason.to_owned() }),
                );
            }
            Action::Disconnect { worker, clock } => {
                self.base.trial.tell(|| Told::Gone { worker, end: End::Clock(clock) });
                tracing::warn!(worker = worker.0, clock, "worker lost");
                self.names.remove(&worker);
                if let Some(outbox) = self.outboxes.remove(&worker) {
                    let _ =
                        outbox.try_send(Err(tonic::Status::deadline_exceeded(format!("{clock} ran out"))));
                }
            }
            Action::Quarantine { campaign, item } => {
                self.base.trial.tell(|| Told::Quarantined { campaign: campaign.clone(), item });
                tracing::warn!(campaign, item, "quarantined: it ended its workers too often");
                if let Some(run) = self.triage.runs.get_mut(&campaign) {
                    run.quarantined(item);
                    self.triage.touched.insert(campaign);
                }
            }
            Action::JobFailed { job } if self.repeats.has(job) => {
                self.triage.touched.extend(self.repeats.failed(job));
            }
            Action::JobFailed { job } if self.spread.has(job) => self.spread.failed(&mut self.base, job),
            Action::JobFailed { job } => self.triage.job_over(&mut self.base, job, None),
        }
    }

    fn describe(&self, grant: &Grant) -> Option<Sent> {
        match grant.work {
            Work::Range { from, to } => self.range(&grant.campaign, from..to),
            Work::Job(id) if self.repeats.has(id) => {
                self.repeats.describe(id).and_then(|(campaign, range)| self.range(campaign, range))
            }
            Work::Job(id) if self.spread.has(id) => self.spread.describe(id).map(Sent::Explore),
            Work::Job(id) => {
                let job = self.triage.jobs.get(id)?;
                let candidates = MINIMISE_CANDIDATES;
                Some(match job.kind {
                    JobKind::Verify | JobKind::Confirm => Sent::Verify(job.asked().clone()),
                    JobKind::Minimise => {
                        let claim = Some(job.at_hand().clone());
                        Sent::Minimise(v1::MinimiseJob { claim, candidates, ..v1::MinimiseJob::default() })
                    }
                    JobKind::Part => {
                        let batch = job.batch.as_ref()?;
                        let claim = Some(self.triage.reductions.get(batch.reduction)?.job.at_hand().clone());
                        let (from, to, join) = (batch.cuts.start, batch.cuts.end, batch.join.clone());
                        Sent::Minimise(v1::MinimiseJob { claim, candidates, from, to, join })
                    }
                    JobKind::Replay => Sent::Replay(v1::ReplayJob { program: job.claim.program.clone() }),
                })
            }
        }
    }

    /// The message of a range of a campaign.
    fn range(&self, campaign: &str, range: std::ops::Range<u64>) -> Option<Sent> {
        let campaign = &self.triage.runs.get(campaign)?.campaign;
        let (fingerprint, profile) = (campaign.generator.clone(), campaign.profile.clone());
        let (from, to) = (range.start, range.end);
        Some(Sent::Range(v1::Range { fingerprint, seed: campaign.seed, profile, from, to }))
    }

    /// Sends without waiting; a worker that does not read is dropped.
    pub(crate) fn send(&mut self, worker: WorkerId, message: Down) {
        let Some(outbox) = self.outboxes.get(&worker) else { return };
        if outbox.try_send(Ok(v1::ToWorker { message: Some(message) })).is_err() {
            self.gone(worker);
        }
    }
}
