//! The one thread that owns store and scheduler: takes events, commits, then acknowledges.
//!
//! Contract: an acknowledgement follows the commit of everything it acknowledges; an item's result and the
//! findings it led to are one commit. Source: design sections 7 and 9.

use crate::lease::{Action, Config, Grant, JobId, LeaseId, Scheduler, Work, WorkerId};
use crate::triage::{Job, Run};
use crate::{Error, MINIMISE_CANDIDATES, failpoints};
use moire_corpus::{Campaign, CampaignState, Finding, Store, Write};
use moire_proto::v1::{self, lease::Work as Sent, to_worker::Message as Down};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Events handled before one commit.
const BATCH: usize = 256;

pub(crate) type Announce = Box<dyn Fn(&Finding) + Send>;
pub(crate) type Outbox = mpsc::Sender<Result<v1::ToWorker, tonic::Status>>;

/// What happens to the core.
pub(crate) enum Event {
    /// Time passes.
    Tick,
    /// Something to do with the core at hand.
    Call(Box<dyn FnOnce(&mut Core) + Send>),
    /// Write what is done and stop.
    Stop,
}

/// State of the coordinator.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) fleet: Scheduler,
    pub(crate) runs: BTreeMap<String, Run>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    outboxes: BTreeMap<WorkerId, Outbox>,
    pub(crate) writes: Vec<Write>,
    /// Findings of the batch not yet committed, so that two sightings in one batch meet; and whether they are new.
    pub(crate) fresh: BTreeMap<moire_corpus::FindingId, (Finding, bool)>,
    acks: Vec<(WorkerId, v1::ReportAck)>,
    started: Instant,
    pub(crate) bad_messages: u64,
    pub(crate) refused: u64,
    config: Config,
    /// Told each new finding once it is durable.
    pub(crate) announce: Option<Announce>,
}

impl Core {
    pub(crate) fn new(store: Store, config: Config) -> Result<Self, Error> {
        let mut core = Self {
            store,
            fleet: Scheduler::new(config),
            runs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            outboxes: BTreeMap::new(),
            writes: Vec::new(),
            fresh: BTreeMap::new(),
            acks: Vec::new(),
            started: Instant::now(),
            bad_messages: 0,
            refused: 0,
            config,
            announce: None,
        };
        for mut campaign in core.store.campaigns()? {
            campaign.epoch += 1;
            core.store.commit(vec![Write::Campaign(Box::new(campaign.clone()))])?;
            core.adopt(campaign, BTreeSet::new())?;
        }
        Ok(core)
    }

    /// Handles events until told to stop.
    pub(crate) fn run(mut self, mut events: mpsc::Receiver<Event>) -> Result<(), Error> {
        while let Some(first) = events.blocking_recv() {
            let mut stop = self.handle(first);
            for _ in 1..BATCH {
                let Some(next) = events.try_recv().ok().filter(|_| !stop) else { break };
                stop = self.handle(next);
            }
            self.settle()?;
            if stop {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Handles one event; true: it was the last.
    fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Call(call) => call(self),
            Event::Stop => return true,
            Event::Tick => {}
        }
        false
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
    pub(crate) fn unix_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes a campaign of the store into the scheduler.
    pub(crate) fn adopt(&mut self, campaign: Campaign, needs: BTreeSet<String>) -> Result<(), Error> {
        let progress = self.store.progress(&campaign.name)?;
        let run = Run::new(campaign, progress, needs);
        let name = run.campaign.name.clone();
        if matches!(run.campaign.state, CampaignState::Running | CampaignState::Paused) {
            self.fleet.campaign(&name, run.lease_spec());
            self.fleet.run_campaign(&name, run.campaign.state == CampaignState::Running);
        }
        self.runs.insert(name, run);
        Ok(())
    }

    pub(crate) fn hello(&mut self, hello: v1::Hello, outbox: Outbox) -> Result<WorkerId, tonic::Status> {
        if hello.protocol != moire_proto::PROTOCOL {
            self.refused += 1;
            let (theirs, ours) = (hello.protocol, moire_proto::PROTOCOL);
            let text =
                format!("the worker speaks protocol {theirs}, this coordinator {ours}: use the same moire");
            return Err(tonic::Status::failed_precondition(text));
        }
        let bound = self.runs.values().filter(|r| r.open()).map(|r| r.campaign.generator.as_str());
        let bound: BTreeSet<&str> = bound.filter(|g| !g.is_empty()).collect();
        if !bound.is_empty() && !bound.contains(hello.fingerprint.as_str()) {
            self.refused += 1;
            let expected = bound.into_iter().collect::<Vec<_>>().join(", ");
            return Err(tonic::Status::failed_precondition(format!(
                "fingerprint mismatch: the worker has {}, the campaigns need {expected}; use the same moire",
                hello.fingerprint
            )));
        }
        for run in self.runs.values_mut().filter(|r| r.open() && r.campaign.generator.is_empty()) {
            run.campaign.generator.clone_from(&hello.fingerprint);
            self.writes.push(Write::Campaign(Box::new(run.campaign.clone())));
            self.fleet.bind(&run.campaign.name, &hello.fingerprint);
        }
        let (capabilities, now) = (hello.capabilities.into_iter().collect(), self.now());
        let id = self.fleet.hello(capabilities, &hello.fingerprint, now);
        let id = id.map_err(|e| tonic::Status::resource_exhausted(e.to_string()))?;
        self.outboxes.insert(id, outbox);
        self.send(id, Down::Welcome(v1::Welcome { worker: id, liveness_ms: self.config.liveness_ms }));
        Ok(id)
    }

    pub(crate) fn gone(&mut self, worker: WorkerId) {
        self.outboxes.remove(&worker);
        self.fleet.disconnect(worker);
    }

    pub(crate) fn message(&mut self, worker: WorkerId, message: v1::FromWorker) {
        use v1::from_worker::Message as Up;
        let now = self.now();
        match message.message {
            Some(Up::Credit(credit)) => self.fleet.credit(worker, credit.leases, now),
            Some(Up::Heartbeat(beat)) => {
                let ticks: Vec<_> = beat.leases.iter().map(|l| (l.lease, l.ticks)).collect();
                self.fleet.heartbeat(worker, &ticks, now);
            }
            Some(Up::KillAck(ack)) => self.fleet.kill_ack(worker, ack.lease, now),
            Some(Up::Draining(_)) => self.fleet.drain(worker),
            Some(Up::Report(report)) => self.report(worker, report, now),
            Some(Up::Hello(_)) | None => self.bad_messages += 1,
        }
    }

    fn report(&mut self, worker: WorkerId, report: v1::Report, now: u64) {
        let sequence = report.sequence;
        let grant = self.fleet.check(worker, report.lease, report.epoch, now);
        let accepted = grant.is_some();
        match grant {
            Some(Grant { campaign, work: Work::Range { .. } }) => {
                self.items(worker, report.lease, &campaign, report.items);
                if report.done {
                    self.fleet.done(report.lease);
                }
            }
            Some(Grant { work: Work::Job(id), .. }) => {
                self.fleet.done(report.lease);
                let result = (report.verify, report.minimise, report.items.into_iter().next());
                self.job_over(id, Some(result));
            }
            None => {}
        }
        self.acks.push((worker, v1::ReportAck { sequence, accepted }));
    }

    fn items(&mut self, worker: WorkerId, lease: LeaseId, campaign: &str, items: Vec<v1::ItemResult>) {
        let Some(run) = self.runs.get_mut(campaign) else { return };
        for item in items {
            let index = item.item;
            if item.program.len() != 32
                || item.engines.iter().any(|e| e.outcomes.len() != 32 || e.leaves.len() != 32)
            {
                self.bad_messages += 1;
            } else if self.fleet.take_item(lease, index) {
                run.reported(item, worker);
            }
        }
    }

    /// Decides, commits, acknowledges, and gives out leases.
    fn settle(&mut self) -> Result<(), Error> {
        let names: Vec<String> = self.runs.keys().cloned().collect();
        names.iter().for_each(|name| self.advance(name));
        if !self.writes.is_empty() {
            failpoints::hit(failpoints::COMMIT_BEFORE);
            let _receipt = self.store.commit(std::mem::take(&mut self.writes))?;
            failpoints::hit(failpoints::COMMIT_AFTER);
            let fresh = std::mem::take(&mut self.fresh);
            for (finding, _) in fresh.values().filter(|f| f.1) {
                self.announce.iter().for_each(|tell| tell(finding));
            }
        }
        for name in &names {
            self.finish(name)?;
        }
        for (worker, ack) in std::mem::take(&mut self.acks) {
            self.send(worker, Down::Ack(ack));
        }
        let now = self.now();
        for action in self.fleet.poll(now) {
            self.act(action);
        }
        Ok(())
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Grant { worker, lease, epoch, grant } => {
                failpoints::hit(failpoints::GRANT);
                let Some(work) = self.describe(&grant) else {
                    return self.fleet.done(lease);
                };
                let plan = match grant.work {
                    Work::Job(id) => self.jobs.get(&id).and_then(|j| j.plan.clone()),
                    Work::Range { .. } => None,
                };
                let plan = plan.or_else(|| self.runs.get(&grant.campaign).map(Run::plan));
                self.send(worker, Down::Lease(v1::Lease { lease, epoch, plan, work: Some(work) }));
            }
            Action::Cancel { worker, lease, reason } => {
                self.send(worker, Down::Cancel(v1::CancelLease { lease, reason: reason.to_owned() }));
            }
            Action::Disconnect { worker, clock } => {
                tracing::warn!(worker, clock, "worker lost");
                if let Some(outbox) = self.outboxes.remove(&worker) {
                    let _ =
                        outbox.try_send(Err(tonic::Status::deadline_exceeded(format!("{clock} ran out"))));
                }
            }
            Action::Quarantine { campaign, item } => {
                tracing::warn!(campaign, item, "quarantined: it ended its workers too often");
                if let Some(run) = self.runs.get_mut(&campaign) {
                    run.quarantined(item);
                }
            }
            Action::JobFailed { job } => self.job_over(job, None),
        }
    }

    fn describe(&self, grant: &Grant) -> Option<Sent> {
        match grant.work {
            Work::Range { from, to } => {
                let campaign = &self.runs.get(&grant.campaign)?.campaign;
                let (fingerprint, profile) = (campaign.generator.clone(), campaign.profile.clone());
                Some(Sent::Range(v1::Range { fingerprint, seed: campaign.seed, profile, from, to }))
            }
            Work::Job(id) => {
                use crate::triage::JobKind;
                let job = self.jobs.get(&id)?;
                let (claim, candidates) = (Some(job.claim.clone()), MINIMISE_CANDIDATES);
                Some(match job.kind {
                    JobKind::Verify => Sent::Verify(job.claim.clone()),
                    JobKind::Minimise => Sent::Minimise(v1::MinimiseJob { claim, candidates }),
                    JobKind::Replay => Sent::Replay(v1::ReplayJob { program: job.claim.program.clone() }),
                })
            }
        }
    }

    /// Sends without waiting; a worker that does not read is dropped.
    fn send(&mut self, worker: WorkerId, message: Down) {
        let Some(outbox) = self.outboxes.get(&worker) else { return };
        if outbox.try_send(Ok(v1::ToWorker { message: Some(message) })).is_err() {
            self.gone(worker);
        }
    }
}
