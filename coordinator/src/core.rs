//! The one thread that owns store and scheduler: takes events, commits, then acknowledges.
//!
//! Contract: an acknowledgement follows the commit of everything it acknowledges; an item's result and the
//! findings it led to are one commit. Source: design sections 7 and 9.

use crate::door::Refused;
use crate::lease::{Action, Config, Grant, JobId, LeaseId, Scheduler, Work, WorkerId};
use crate::reduction::Reduction;
use crate::spread::Spread;
use crate::states::States;
use crate::totals::Totals;
use crate::triage::{Job, Run};
use crate::trial::{End, Event as Told, Planted, Trial};
use crate::{Error, MINIMISE_CANDIDATES, failpoints, intake};
use moire_corpus::{Campaign, CampaignState, Finding, Store, Write};
use moire_proto::v1::{self, lease::Work as Sent, to_worker::Message as Down};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Longest name a worker gives.
const NAME_BYTES_MAX: usize = 128;
/// Events handled before one commit.
pub(crate) const BATCH: usize = 256;

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

/// An acknowledgement that waits for the commit of these items of a campaign.
struct Owed {
    worker: WorkerId,
    ack: v1::ReportAck,
    campaign: String,
    items: Vec<u64>,
}

/// State of the coordinator.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) fleet: Scheduler,
    pub(crate) runs: BTreeMap<String, Run>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Minimisations under way, by number.
    pub(crate) reductions: BTreeMap<u64, Reduction>,
    pub(crate) reductions_made: u64,
    /// Explorations that the fleet shares.
    pub(crate) spread: Spread,
    outboxes: BTreeMap<WorkerId, Outbox>,
    /// What connected workers call themselves.
    names: BTreeMap<WorkerId, String>,
    pub(crate) writes: Vec<Write>,
    /// Findings of the batch not yet committed, so that two sightings in one batch meet; and whether they are new.
    pub(crate) fresh: BTreeMap<moire_corpus::FindingId, (Finding, bool)>,
    acks: Vec<Owed>,
    /// Writes of the batch before, with [`Planted::CommitsLate`].
    late: Vec<Write>,
    /// Campaigns something happened to since they were last decided about.
    pub(crate) touched: BTreeSet<String>,
    started: Instant,
    pub(crate) bad_messages: u64,
    pub(crate) refused: u64,
    /// What never came as far as here.
    pub(crate) turned_away: Arc<Refused>,
    pub(crate) totals: Totals,
    /// Findings by state, from the first time they are asked for.
    pub(crate) states: Option<States>,
    pub(crate) config: Config,
    /// Told each new finding once it is durable.
    pub(crate) announce: Option<Announce>,
    pub(crate) trial: Trial,
}

impl Core {
    pub(crate) fn new(
        store: Store,
        config: Config,
        turned_away: Arc<Refused>,
        trial: Trial,
    ) -> Result<Self, Error> {
        let totals = Totals::new(store.totals()?);
        let mut core = Self {
            store,
            fleet: Scheduler::new(config).planted(trial.planted),
            runs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            reductions: BTreeMap::new(),
            reductions_made: 0,
            spread: Spread::default(),
            outboxes: BTreeMap::new(),
            names: BTreeMap::new(),
            writes: Vec::new(),
            fresh: BTreeMap::new(),
            acks: Vec::new(),
            late: Vec::new(),
            touched: BTreeSet::new(),
            started: Instant::now(),
            bad_messages: 0,
            refused: 0,
            turned_away,
            totals,
            states: None,
            config,
            announce: None,
            trial,
        };
        core.trial.tell(|| Told::Opened);
        for mut campaign in core.store.campaigns()? {
            campaign.epoch += 1;
            if !core.trial.has(Planted::EpochNotRecorded) {
                core.store.commit(vec![Write::Campaign(Box::new(campaign.clone()))])?;
            }
            core.adopt(campaign)?;
        }
        core.adopt_explorations()?;
        Ok(core)
    }

    /// Handles events until told to stop. Blocks its thread while it works.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>) -> Result<(), Error> {
        while let Some(first) = events.recv().await {
            let mut stop = self.handle(first);
            for _ in 1..BATCH {
                let full = stop || self.spread.heavy();
                let Some(next) = (!full).then(|| events.try_recv().ok()).flatten() else { break };
                stop = self.handle(next);
            }
            self.settle(stop)?;
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
            Event::Tick => self.drop_unwanted(),
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

    /// When this process started, in Unix seconds.
    pub(crate) fn started_s(&self) -> u64 {
        Self::unix_ms().saturating_sub(self.now()) / 1000
    }
    /// Takes a campaign of the store into the scheduler.
    pub(crate) fn adopt(&mut self, campaign: Campaign) -> Result<(), Error> {
        let progress = self.store.progress(&campaign.name)?;
        let run = Run::new(campaign, progress);
        let name = run.campaign.name.clone();
        self.trial.tell(|| Told::Known {
            campaign: name.clone(),
            epoch: run.campaign.epoch,
            stored: run.progress.completed.clone(),
            ended: !run.open(),
        });
        if matches!(run.campaign.state, CampaignState::Running | CampaignState::Paused) {
            self.fleet.campaign(&name, run.lease_spec());
            self.fleet.run_campaign(&name, run.campaign.state == CampaignState::Running);
        }
        self.touched.insert(name.clone());
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
        let long = |text: &String| text.len() > NAME_BYTES_MAX;
        let capabilities = &hello.capabilities;
        if long(&hello.name)
            || long(&hello.fingerprint)
            || capabilities.len() > 64
            || capabilities.iter().any(long)
        {
            self.bad_messages += 1;
            return Err(tonic::Status::invalid_argument(
                "a worker has names of at most 128 bytes and at most 64 capabilities",
            ));
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
        self.trial.tell(|| Told::Welcome { worker: id, name: hello.name.clone() });
        self.names.insert(id, hello.name);
        self.outboxes.insert(id, outbox);
        self.send(id, Down::Welcome(v1::Welcome { worker: id, liveness_ms: self.config.liveness_ms }));
        Ok(id)
    }

    /// What a worker calls itself.
    pub(crate) fn worker_name(&self, worker: WorkerId) -> &str {
        self.names.get(&worker).map_or("", String::as_str)
    }

    pub(crate) fn gone(&mut self, worker: WorkerId) {
        self.outboxes.remove(&worker);
        if self.fleet.knows(worker) {
            self.trial.tell(|| Told::Gone { worker, end: End::Closed });
        }
        self.names.remove(&worker);
        self.fleet.disconnect(worker);
    }

    /// Takes a message; false: the worker is not connected any more.
    pub(crate) fn message(&mut self, worker: WorkerId, message: v1::FromWorker) -> bool {
        use v1::from_worker::Message as Up;
        let now = self.now();
        self.tell_heard(worker, &message);
        match message.message {
            Some(Up::Credit(credit)) => self.fleet.credit(worker, credit.leases, now),
            Some(Up::Heartbeat(beat)) => {
                let ticks: Vec<_> = beat.leases.iter().map(|l| (l.lease, l.ticks)).collect();
                self.fleet.heartbeat(worker, &ticks, now);
            }
            Some(Up::KillAck(ack)) => self.fleet.kill_ack(worker, ack.lease, now),
            Some(Up::Draining(_)) => self.fleet.drain(worker, now),
            Some(Up::Report(report)) => self.report(worker, report, now),
            Some(Up::Hello(_)) => self.fault(worker, "hello is the first message only"),
            None => self.fault(worker, "a message without content"),
        }
        self.fleet.knows(worker)
    }

    /// The worker broke the protocol: its stream ends with the reason, and others get its leases.
    fn fault(&mut self, worker: WorkerId, why: &'static str) {
        tracing::warn!(worker, why, "worker sent away");
        self.bad_messages += 1;
        if let Some(outbox) = self.outboxes.remove(&worker) {
            // Full or closed: it ends all the same.
            let _ = outbox.try_send(Err(tonic::Status::invalid_argument(why)));
        }
        self.trial.tell(|| Told::Gone { worker, end: End::Expelled });
        self.names.remove(&worker);
        self.fleet.expel(worker);
    }

    fn report(&mut self, worker: WorkerId, report: v1::Report, now: u64) {
        let (sequence, lease) = (report.sequence, report.lease);
        let owed = |accepted, campaign, items| {
            let ack = v1::ReportAck { sequence, accepted };
            Owed { worker, ack, campaign, items }
        };
        let (epoch, grant) = (report.epoch, self.fleet.check(worker, lease, report.epoch, now));
        self.trial.tell(|| Told::Reported { worker, lease, epoch, accepted: grant.is_some() });
        let Some(grant) = grant else {
            return self.acks.push(owed(false, String::new(), Vec::new()));
        };
        let taken = match grant.work {
            Work::Range { from, to } => self.items(worker, lease, &grant.campaign, from..to, report),
            Work::Job(id) if self.spread.has(id) => {
                let taken = self.step(worker, lease, id, report).map(|()| Vec::new());
                if taken.is_ok() && !self.fleet.holds(lease) {
                    self.trial.tell(|| Told::Finished { lease });
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
        worker: WorkerId,
        lease: LeaseId,
        campaign: &str,
        range: std::ops::Range<u64>,
        report: v1::Report,
    ) -> Result<Vec<u64>, &'static str> {
        let done = report.done;
        let items = intake::items(&range, report)?;
        let named: Vec<u64> = items.iter().map(|i| i.item).collect();
        let (twice, mut taken) = (self.trial.has(Planted::CountsTwice), Vec::new());
        if let Some(run) = self.runs.get_mut(campaign) {
            self.touched.insert(campaign.to_owned());
            for item in items {
                let index = item.item;
                if (self.fleet.take_item(lease, index) | twice) && run.reported(item, worker, twice) {
                    taken.push(index);
                }
            }
        }
        self.trial.tell(|| Told::Taken { lease, items: taken });
        if !done {
            return Ok(named);
        }
        match self.fleet.done(lease) {
            true => {
                self.trial.tell(|| Told::Finished { lease });
                Ok(named)
            }
            false => Err("a range lease is over when all its items are reported"),
        }
    }

    fn answer(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        id: JobId,
        report: v1::Report,
    ) -> Result<Vec<u64>, &'static str> {
        if let Some(job) = self.jobs.get(&id) {
            let answer = intake::answer(job, report)?;
            self.fleet.done(lease);
            self.job_over(id, Some((worker, answer)));
        } else {
            self.fleet.forget(lease);
        }
        self.trial.tell(|| Told::Finished { lease });
        Ok(Vec::new())
    }

    /// Decides, commits, acknowledges, and gives out leases.
    pub(crate) fn settle(&mut self, last: bool) -> Result<(), Error> {
        let mut names = std::mem::take(&mut self.touched);
        names.iter().for_each(|name| self.advance(name));
        self.note_totals(last);
        if self.trial.has(Planted::AcksBeforeCommit) {
            self.acknowledge();
        }
        self.commit(&mut names)?;
        for name in &names {
            self.finish(name)?;
        }
        self.acknowledge();
        let now = self.now();
        for action in self.fleet.poll(now) {
            self.act(action);
        }
        self.spread_out();
        self.count_more_states()
    }

    /// Makes the batch in hand durable; adds the campaigns whose items it had to `names`.
    fn commit(&mut self, names: &mut BTreeSet<String>) -> Result<(), Error> {
        let mut writes = std::mem::take(&mut self.writes);
        let told = self.trial.items(&writes);
        if self.trial.has(Planted::ForgetsPieces) {
            writes.retain(|write| !matches!(write, Write::Piece { .. }));
        }
        if self.trial.has(Planted::CommitsLate) {
            std::mem::swap(&mut writes, &mut self.late);
        }
        if !writes.is_empty() {
            failpoints::hit(failpoints::COMMIT_BEFORE);
            let receipt = self.store.commit(writes)?;
            failpoints::hit(failpoints::COMMIT_AFTER);
            self.totals.committed();
            self.spread.committed();
            for (name, progress) in receipt.progress {
                if let Some(run) = self.runs.get_mut(&name) {
                    run.progress = progress;
                }
                names.insert(name);
            }
            let fresh = std::mem::take(&mut self.fresh);
            for (finding, _) in fresh.values().filter(|f| f.1) {
                self.announce.iter().for_each(|tell| tell(finding));
            }
        }
        told.into_iter().for_each(|event| self.trial.tell(|| event));
        Ok(())
    }

    /// Sends the acknowledgements whose items are durable.
    fn acknowledge(&mut self) {
        let early = self.trial.has(Planted::AcksBeforeCommit);
        for owed in std::mem::take(&mut self.acks) {
            let run = self.runs.get(&owed.campaign).filter(|r| r.open());
            match run.is_none_or(|r| early || owed.items.iter().all(|i| r.progress.contains(*i))) {
                true => {
                    let (worker, campaign) = (owed.worker, owed.campaign);
                    self.send(worker, Down::Ack(owed.ack));
                    let items = owed.items;
                    self.trial.tell(|| Told::Acknowledged { worker, campaign, items });
                }
                false if self.outboxes.contains_key(&owed.worker) => self.acks.push(owed),
                false => {}
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            // It went away while what stood before this was sent, and its leases with it.
            Action::Grant { worker, .. } | Action::Cancel { worker, .. }
                if !self.outboxes.contains_key(&worker) => {}
            Action::Grant { worker, lease, epoch, grant } => {
                failpoints::hit(failpoints::GRANT);
                self.trial.tell(|| {
                    let campaign = grant.campaign.clone();
                    Told::Granted { worker, lease, epoch, campaign, work: grant.work }
                });
                let Some(work) = self.describe(&grant) else {
                    self.trial.tell(|| Told::Finished { lease });
                    return self.fleet.forget(lease);
                };
                let plan = match grant.work {
                    Work::Job(id) => self.jobs.get(&id).and_then(|j| j.plan.clone()),
                    Work::Range { .. } => None,
                };
                let plan = plan.or_else(|| self.runs.get(&grant.campaign).map(Run::plan));
                self.send(worker, Down::Lease(v1::Lease { lease, epoch, plan, work: Some(work) }));
                if let Work::Job(id) = grant.work {
                    self.lent_piece(id, worker, lease);
                }
            }
            Action::Cancel { worker, lease, reason } => {
                self.trial.tell(|| Told::Cancelled { lease });
                self.send(worker, Down::Cancel(v1::CancelLease { lease, reason: reason.to_owned() }));
            }
            Action::Disconnect { worker, clock } => {
                self.trial.tell(|| Told::Gone { worker, end: End::Clock(clock) });
                tracing::warn!(worker, clock, "worker lost");
                self.names.remove(&worker);
                if let Some(outbox) = self.outboxes.remove(&worker) {
                    let _ =
                        outbox.try_send(Err(tonic::Status::deadline_exceeded(format!("{clock} ran out"))));
                }
            }
            Action::Quarantine { campaign, item } => {
                self.trial.tell(|| Told::Quarantined { campaign: campaign.clone(), item });
                tracing::warn!(campaign, item, "quarantined: it ended its workers too often");
                if let Some(run) = self.runs.get_mut(&campaign) {
                    run.quarantined(item);
                    self.touched.insert(campaign);
                }
            }
            Action::JobFailed { job } if self.spread.has(job) => self.piece_failed(job),
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
            Work::Job(id) if self.spread.has(id) => self.describe_piece(id).map(Sent::Explore),
            Work::Job(id) => {
                use crate::triage::JobKind;
                let job = self.jobs.get(&id)?;
                let candidates = MINIMISE_CANDIDATES;
                Some(match job.kind {
                    JobKind::Verify | JobKind::Confirm => Sent::Verify(job.asked().clone()),
                    JobKind::Minimise => {
                        let claim = Some(job.at_hand().clone());
                        Sent::Minimise(v1::MinimiseJob { claim, candidates, ..v1::MinimiseJob::default() })
                    }
                    JobKind::Part => {
                        let batch = job.batch.as_ref()?;
                        let claim = Some(self.reductions.get(&batch.reduction)?.job.at_hand().clone());
                        let ((from, to), join) = (batch.cuts, batch.join.clone());
                        Sent::Minimise(v1::MinimiseJob { claim, candidates, from, to, join })
                    }
                    JobKind::Replay => Sent::Replay(v1::ReplayJob { program: job.claim.program.clone() }),
                })
            }
        }
    }

    /// Sends without waiting; a worker that does not read is dropped.
    pub(crate) fn send(&mut self, worker: WorkerId, message: Down) {
        let Some(outbox) = self.outboxes.get(&worker) else { return };
        if outbox.try_send(Ok(v1::ToWorker { message: Some(message) })).is_err() {
            self.gone(worker);
        }
    }
}
