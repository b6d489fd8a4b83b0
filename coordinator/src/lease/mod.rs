//! Leases: which worker works on which items. A pure state machine without I/O and without a clock (time is passed in).
//!
//! Contract:
//!
//! - An item is in at most one live lease. A result is taken once, and only from the live lease with the right epoch.
//! - A worker never holds more leases than the cap on its credit.
//! - Whatever a worker does, every item ends up either taken or quarantined.
//! - Leases are given out by kind (minimise, verify, replay, explore, then generated items), then by fair share of the
//!   campaign.
//! - Three clocks run for each lease: liveness of the worker, progress of the lease, acknowledgement of a kill.
//!
//! Cost: giving out a lease takes time logarithmic in workers and campaigns. A poll in which nothing is due takes time
//! linear in the workers that could take more. Ten thousand workers and a thousand campaigns are measured by `moire bench scale`.

mod ids;
mod trust;
mod turns;
mod types;
pub use ids::{JobId, LeaseId, Source, WorkerId};
pub use types::*;

use crate::trial::Planted;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The state machine of leases.
#[derive(Debug, Default)]
pub struct Scheduler {
    config: Config,
    /// The last identity given out.
    last: u64,
    campaigns: BTreeMap<String, Campaign>,
    jobs: BTreeMap<JobId, Job>,
    /// Jobs added since the last poll.
    unseen: Vec<JobId>,
    turns: turns::Turns,
    workers: BTreeMap<WorkerId, Worker>,
    /// By capabilities and fingerprint: the classes of connected workers.
    classes: BTreeMap<(BTreeSet<String>, String), Class>,
    leases: BTreeMap<LeaseId, Lease>,
    /// No clock runs out before this time.
    quiet_until: u64,
    actions: Vec<Action>,
    counts: Counts,
    /// A planted bug, to test that the tests find it.
    planted: Option<Planted>,
}

impl Scheduler {
    /// An empty fleet.
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }
    /// The same with a planted bug, to test that the tests find it.
    pub(crate) fn planted(self, planted: Option<Planted>) -> Self {
        Self { planted, ..self }
    }
    fn has(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }
    /// Counts of what went wrong so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// Workers connected.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }
    /// The workers connected, by identity.
    pub fn each_worker(&self) -> impl Iterator<Item = WorkerView<'_>> {
        self.workers.iter().map(|(id, w)| WorkerView {
            id: *id,
            capabilities: &w.capabilities,
            leases: w.leases.len(),
            heard_ms: w.heard,
            draining: w.draining,
            source: &w.source,
        })
    }
    /// Live leases.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }
    /// Jobs waiting for a worker.
    pub fn queued(&self) -> usize {
        self.turns.queued()
    }
    /// Number of leases that could be given out now if there were workers for them: jobs, and ranges of running
    /// campaigns. At most [`WAITING_MAX`].
    pub fn waiting(&self) -> u64 {
        let batches = |c: &Campaign| {
            let below = c.pending.iter().map(|(from, to)| to.min(&c.limit).saturating_sub(*from));
            below.map(|n| n.div_ceil(c.spec.batch.max(1))).fold(0, u64::saturating_add)
        };
        let ranges = self.campaigns.values().filter(|c| c.running).map(batches);
        let jobs = self.turns.queued() as u64;
        ranges.fold(jobs, u64::saturating_add).min(WAITING_MAX)
    }

    /// Adds a campaign. One of that name that is known already is replaced, with the items it had left.
    pub fn campaign(&mut self, name: &str, spec: CampaignSpec) {
        let pending = spec.missing.iter().filter(|r| !r.is_empty()).map(|r| (r.start, r.end)).collect();
        let served = self.campaigns.values().filter(|c| c.running).map(|c| c.served).min().unwrap_or(0);
        let (limit, suspects) = (u64::MAX, BTreeMap::new());
        let new = Campaign { spec, pending, served, running: true, limit, suspects, turn: None };
        if let Some(old) = self.campaigns.insert(name.to_owned(), new) {
            self.turns.set(name, old.turn, None);
        }
        self.turn(name);
    }
    /// Starts or stops giving out leases of a campaign.
    pub fn run_campaign(&mut self, name: &str, running: bool) {
        if let Some(campaign) = self.campaigns.get_mut(name) {
            campaign.running = running;
            self.turn(name);
        }
    }
    /// Leases no item of the campaign from `limit` on, until the next call sets another limit.
    pub fn limit(&mut self, name: &str, limit: u64) {
        if let Some(campaign) = self.campaigns.get_mut(name) {
            campaign.limit = limit;
            self.turn(name);
        }
    }
    /// Binds a campaign to workers of this fingerprint, and cancels its leases of others.
    pub fn bind(&mut self, name: &str, fingerprint: &str, now: u64) {
        let Some(campaign) = self.campaigns.get_mut(name) else { return };
        fingerprint.clone_into(&mut campaign.spec.fingerprint);
        let other = |l: &Lease| {
            l.campaign == name && self.workers.get(&l.worker).is_some_and(|w| w.fingerprint != fingerprint)
        };
        let doomed: Vec<_> = self.leases.iter().filter(|(_, l)| other(l)).map(|(id, _)| *id).collect();
        doomed.into_iter().for_each(|id| self.kill(id, now, "the campaign is for another build"));
    }
    /// The fingerprint of a worker; none if it is not connected.
    pub fn fingerprint(&self, worker: WorkerId) -> &str {
        self.workers.get(&worker).map_or("", |w| &w.fingerprint)
    }
    /// Forgets a campaign and its waiting jobs, and cancels its leases.
    pub fn drop_campaign(&mut self, name: &str, now: u64) {
        if let Some(old) = self.campaigns.remove(name) {
            self.turns.set(name, old.turn, None);
        }
        self.turns.forget(name);
        self.jobs.retain(|_, job| job.campaign != name);
        let doomed: Vec<_> =
            self.leases.iter().filter(|(_, l)| l.campaign == name).map(|(id, _)| *id).collect();
        doomed.into_iter().for_each(|id| self.kill(id, now, "the campaign has ended"));
    }
    /// Adds a job that carries text. `avoid` names a worker that gets it only if no other can take it, or none has taken
    /// it within `avoid_ms`.
    pub fn job(&mut self, campaign: &str, kind: Kind, avoid: Option<WorkerId>) -> JobId {
        let id = JobId(self.fresh());
        let (name, tools, needs) = (campaign.to_owned(), BTreeSet::new(), BTreeSet::new());
        let avoid = avoid.map(|worker| self.source(worker)).into_iter().collect();
        let (since, strict, attempts) = (None, false, 0);
        self.jobs.insert(id, Job { campaign: name, kind, avoid, strict, tools, needs, since, attempts });
        self.unseen.push(id);
        self.turns.wait(kind, campaign, id);
        id
    }
    /// Restricts a job to workers with these capabilities. Names that no connected worker offers are ignored.
    pub fn takes(&mut self, job: JobId, names: impl IntoIterator<Item = String>) {
        self.jobs.entry(job).and_modify(|job| job.tools.extend(names));
    }
    /// Restricts a job to workers that have all of these capabilities. It waits as long as no such worker is connected.
    pub fn needs(&mut self, job: JobId, needs: BTreeSet<String>) {
        self.jobs.entry(job).and_modify(|job| job.needs.extend(needs));
    }

    /// Forgets a waiting job. False if the job is in a lease or does not exist.
    pub fn drop_job(&mut self, job: JobId) -> bool {
        let waits = self.jobs.get(&job).is_some_and(|j| self.turns.take(j.kind, &j.campaign, job));
        if waits {
            self.jobs.remove(&job);
        }
        waits
    }

    /// Whether a job waits or is in a lease.
    pub fn knows_job(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }
    /// Notes that part of a job is done for good: earlier losses of its workers are forgotten.
    pub fn advanced(&mut self, job: JobId) {
        self.jobs.entry(job).and_modify(|job| job.attempts = 0);
    }
    /// Whether a lease is live.
    pub fn holds(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease).is_some_and(|l| l.killed.is_none())
    }
    /// Number of further leases of this campaign that the connected workers have credit for.
    pub fn hungry(&self, campaign: &str) -> usize {
        let Some(campaign) = self.campaigns.get(campaign).filter(|c| c.running) else { return 0 };
        let able = self.workers.values().filter(|w| !w.draining && campaign.suits(w));
        able.map(|w| w.credit as usize).sum()
    }
    /// Number of connected workers that have what a campaign needs.
    pub fn able_to_work(&self, campaign: &str) -> usize {
        let Some(campaign) = self.campaigns.get(campaign) else { return 0 };
        self.workers.values().filter(|w| !w.draining && campaign.suits(w)).count()
    }
    /// Number of workers that have this capability.
    pub fn able(&self, capability: &str) -> usize {
        self.workers.values().filter(|w| w.capabilities.contains(capability)).count()
    }

    /// Whether some connected worker has all these capabilities and comes from none of these sources.
    pub fn suited(&self, needs: &BTreeSet<String>, avoid: &BTreeSet<Source>) -> bool {
        let suits = |w: &Worker| needs.is_subset(&w.capabilities) && !avoid.contains(&w.source);
        self.workers.values().any(|w| !w.draining && suits(w))
    }

    /// Adds a worker. Its identity is new on every connection.
    ///
    /// # Errors
    /// The fleet is full.
    pub fn hello(
        &mut self,
        capabilities: BTreeSet<String>,
        fingerprint: &str,
        now: u64,
    ) -> Result<WorkerId, Full> {
        if self.workers.len() >= self.config.workers_max {
            return Err(Full(self.config.workers_max));
        }
        let (id, fingerprint) = (WorkerId(self.fresh()), fingerprint.to_owned());
        let class = self.classes.entry((capabilities.clone(), fingerprint.clone()));
        let class = class.or_insert(Class { id: ClassId(id), workers: 0 });
        class.workers += 1;
        let class = class.id;
        let leases = BTreeSet::new();
        let (source, credit, heard) = (Source::Stream(id), 0, now);
        let (proven, draining) = (false, false);
        let new =
            Worker { capabilities, fingerprint, source, proven, class, credit, heard, leases, draining };
        self.workers.insert(id, new);
        self.due(now.saturating_add(self.config.liveness_ms));
        Ok(id)
    }
    /// Notes that the worker can take more leases. Credit that would lift it over the cap, counting the leases it holds,
    /// is ignored.
    pub fn credit(&mut self, worker: WorkerId, leases: u32, now: u64) {
        let cap = self.config.credit_max;
        if let Some(w) = self.workers.get_mut(&worker) {
            w.heard = now;
            let held = u32::try_from(w.leases.len()).expect("a worker holds at most `credit_max` leases");
            w.credit = w.credit.saturating_add(leases).min(cap.saturating_sub(held));
        }
    }
    /// Takes a heartbeat: the worker lives, and its leases are this far.
    pub fn heartbeat(&mut self, worker: WorkerId, ticks: &[LeaseTicks], now: u64) {
        let (deaf, renews) = (self.has(Planted::HeartbeatUnheard), self.has(Planted::RenewsRevoked));
        let Some(w) = self.workers.get_mut(&worker) else { return };
        if !deaf {
            w.heard = now;
        }
        for beat in ticks {
            let own = self.leases.get_mut(&beat.lease).filter(|l| l.worker == worker);
            let Some(lease) = own else { continue };
            if lease.ticks < beat.ticks {
                lease.ticks = beat.ticks;
                lease.progressed = now;
            }
            if renews {
                lease.killed = None;
            }
        }
    }
    /// Notes that the worker takes no more leases.
    pub fn drain(&mut self, worker: WorkerId, now: u64) {
        if let Some(w) = self.workers.get_mut(&worker) {
            w.heard = now;
            w.draining = true;
        }
    }
    /// Removes a worker whose connection has ended. If it was not draining, the loss counts against the items it was
    /// working on.
    pub fn disconnect(&mut self, worker: WorkerId) {
        let Some(w) = self.leave(worker) else { return };
        let blame = if w.draining { 0 } else { LOSS };
        w.leases.iter().for_each(|id| self.lose(*id, blame, Some(&w)));
    }
    /// Removes a worker that broke the protocol. Others get its leases.
    pub fn expel(&mut self, worker: WorkerId) {
        let Some(w) = self.leave(worker) else { return };
        w.leases.iter().for_each(|id| self.lose(*id, FAULT, Some(&w)));
    }
    fn leave(&mut self, worker: WorkerId) -> Option<Worker> {
        let mut w = self.workers.remove(&worker)?;
        let key = (std::mem::take(&mut w.capabilities), std::mem::take(&mut w.fingerprint));
        if let Some(class) = self.classes.get_mut(&key) {
            class.workers -= 1;
            if class.workers == 0 {
                self.classes.remove(&key);
            }
        }
        Some(w)
    }
    /// Whether the worker is connected.
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// The work of a lease, if a result for it may be taken: the lease is live, belongs to the worker and has this epoch.
    pub fn check(&mut self, worker: WorkerId, lease: LeaseId, epoch: u32, now: u64) -> Option<Grant> {
        if let Some(w) = self.workers.get_mut(&worker) {
            w.heard = now;
        }
        let (any_epoch, any_owner) = (self.has(Planted::AnyEpoch), self.has(Planted::AnyOwner));
        let own = |l: &&mut Lease| {
            (any_owner || l.worker == worker) && (any_epoch || l.epoch == epoch) && l.killed.is_none()
        };
        let Some(live) = self.leases.get_mut(&lease).filter(own) else {
            self.counts.stale_reports += 1;
            return None;
        };
        live.progressed = now;
        Some(Grant { campaign: live.campaign.clone(), work: live.work })
    }
    /// Takes the result of one item of a range. False if the item is not of this lease or was taken before.
    pub fn take_item(&mut self, lease: LeaseId, item: u64) -> bool {
        let Some(l) = self.leases.get_mut(&lease) else { return false };
        let Work::Range { from, to } = l.work else { return false };
        let taken = (from..to).contains(&item) && l.taken.insert(item);
        if !taken {
            self.counts.duplicate_items += 1;
        } else if let Some(campaign) = self.campaigns.get_mut(&l.campaign) {
            campaign.suspects.remove(&item);
        }
        let worker = l.worker;
        self.workers.entry(worker).and_modify(|w| w.proven |= taken);
        taken
    }
    /// Gives an item of a range to another source, because the worker of the lease has no answer to it for want of memory.
    /// False if there is no better answer: no other source is there, or none came for the item in time.
    pub fn elsewhere(&mut self, lease: LeaseId, item: u64, now: u64) -> bool {
        let Some(l) = self.leases.get(&lease) else { return false };
        let (name, source) = (l.campaign.clone(), self.source(l.worker));
        let Some(campaign) = self.campaigns.get(&name) else { return false };
        let suspect = campaign.suspects.get(&item).cloned().unwrap_or_default();
        let waited = !suspect.silent.0.is_empty() && !self.is_awaited(campaign, &suspect, now);
        let mut suspect = suspect;
        suspect.silent.0.insert(source);
        suspect.silent.1 = now;
        if waited || !self.is_awaited(campaign, &suspect, now) || self.has(Planted::MemoryMatches) {
            return false;
        }
        if !self.leases.get_mut(&lease).is_some_and(|l| l.taken.insert(item)) {
            self.counts.duplicate_items += 1;
            return true;
        }
        self.counts.elsewhere += 1;
        if let Some(campaign) = self.campaigns.get_mut(&name) {
            campaign.pass_on(item, suspect);
        }
        self.turn(&name);
        true
    }
    /// Gives the job of a lease to another source, because its worker has no answer for want of memory. False if that source
    /// had none before, or no other is there.
    pub fn pass_on(&mut self, lease: LeaseId) -> bool {
        let Some(Lease { work: Work::Job(id), worker, .. }) = self.leases.get(&lease) else { return false };
        let (id, source) = (*id, self.source(*worker));
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let new = job.avoid.insert(source);
        // It has waited for nobody yet.
        job.since = None;
        self.unseen.push(id);
        let passes = new && self.has_others(id);
        if passes {
            self.lose(lease, 0, None);
        }
        passes
    }
    /// Takes a lease back from its worker, which cannot do it: a process was killed from outside. It counts as a loss.
    pub fn abort(&mut self, lease: LeaseId) {
        self.counts.aborted += 1;
        self.lose(lease, LOSS, None);
    }
    /// Ends a lease. False if it goes on, because some of its items are not taken yet.
    pub fn done(&mut self, lease: LeaseId) -> bool {
        let Some(l) = self.leases.get(&lease) else { return false };
        match l.work {
            Work::Range { from, to } if l.taken.len() as u64 != to - from => return false,
            Work::Range { .. } => {}
            Work::Job(id) => {
                let worker = l.worker;
                self.jobs.remove(&id);
                self.workers.entry(worker).and_modify(|w| w.proven = true);
            }
        }
        self.release(lease);
        true
    }
    /// Ends a lease for which its worker has nothing more to do. Undelivered items of a range are leased again.
    pub fn forget(&mut self, lease: LeaseId) {
        if !self.done(lease) {
            self.lose(lease, 0, None);
        }
    }
    /// Notes that the worker has stopped working on a cancelled lease.
    pub fn kill_ack(&mut self, worker: WorkerId, lease: LeaseId, now: u64) {
        if let Some(w) = self.workers.get_mut(&worker) {
            w.heard = now;
        }
        if self.leases.get(&lease).is_some_and(|l| l.worker == worker && l.killed.is_some()) {
            self.lose(lease, LOSS, None);
        }
    }

    /// Runs the clocks, gives out leases, and returns what is to be done, in order.
    pub fn poll(&mut self, now: u64) -> Vec<Action> {
        if now > self.quiet_until {
            self.expire(now);
        }
        for id in std::mem::take(&mut self.unseen) {
            self.jobs.entry(id).and_modify(|job| job.since = Some(now));
        }
        // From here on ranges only get fewer. So if there is none for one worker, there is none for others of its class.
        let mut barren = BTreeSet::new();
        if self.turns.any() {
            let ready = self.workers.iter().filter(|(_, w)| w.credit > 0 && !w.draining);
            for (id, class) in ready.map(|(id, w)| (*id, w.class)).collect::<Vec<_>>() {
                if self.turns.queued() == 0 && barren.contains(&class) {
                    continue;
                }
                while self.grant(id, now, &mut barren) {}
            }
        }
        std::mem::take(&mut self.actions)
    }

    fn expire(&mut self, now: u64) {
        let config = self.config;
        let late = |since: u64, limit: u64| now.saturating_sub(since) > limit;
        let silent = self.workers.iter().filter(|(_, w)| late(w.heard, config.liveness_ms));
        let deaf = self.leases.values().filter(|l| l.killed.is_some_and(|at| late(at, config.kill_ms)));
        let deaf = deaf.map(|l| (l.worker, "kill acknowledgement"));
        let gone: BTreeMap<_, _> = silent.map(|(id, _)| (*id, "liveness")).chain(deaf).collect();
        for (worker, clock) in gone {
            self.counts.expired += 1;
            self.actions.push(Action::Disconnect { worker, clock });
            self.disconnect(worker);
        }
        let stuck =
            self.leases.iter().filter(|(_, l)| l.killed.is_none() && late(l.progressed, config.progress_ms));
        let stuck = stuck.filter(|_| !self.has(Planted::ForgivesStuck));
        for id in stuck.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.counts.expired += 1;
            self.kill(id, now, "no progress");
        }
        let silent = self.workers.values().map(|w| w.heard.saturating_add(config.liveness_ms));
        let stuck = self.leases.values().map(|l| match l.killed {
            Some(at) => at.saturating_add(config.kill_ms),
            None => l.progressed.saturating_add(config.progress_ms),
        });
        self.quiet_until = silent.chain(stuck).min().unwrap_or(u64::MAX);
    }

    /// Notes that a clock runs out at `at` unless its worker is heard before.
    fn due(&mut self, at: u64) {
        self.quiet_until = self.quiet_until.min(at);
    }

    fn kill(&mut self, id: LeaseId, now: u64, reason: &'static str) {
        let Some(lease) = self.leases.get_mut(&id).filter(|l| l.killed.is_none()) else { return };
        lease.killed = Some(now);
        self.actions.push(Action::Cancel { worker: lease.worker, lease: id, reason });
        self.due(now.saturating_add(self.config.kill_ms));
        if self.has(Planted::RequeuesEarly) {
            self.lose(id, 0, None);
        }
    }

    fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Puts a campaign at its place in the order of turns.
    fn turn(&mut self, name: &str) {
        let Some(campaign) = self.campaigns.get_mut(name) else { return };
        let turn = (campaign.running && campaign.next().is_some()).then_some(campaign.served);
        let before = std::mem::replace(&mut campaign.turn, turn);
        self.turns.set(name, before, turn);
    }

    /// Gives `worker` one lease, if it may have one. `barren`: classes of workers for which there is no range.
    fn grant(&mut self, worker: WorkerId, now: u64, barren: &mut BTreeSet<ClassId>) -> bool {
        let Some(w) = self.workers.get(&worker).filter(|w| w.credit > 0) else { return false };
        let picked = self.pick_job(w, now).or_else(|| {
            let range = (!barren.contains(&w.class)).then(|| self.pick_range(w, now)).flatten();
            // A range that this worker may not have may be for another of its class.
            if range.is_none() && !self.has_suspects(w) {
                barren.insert(w.class);
            }
            range
        });
        let Some((campaign, work)) = picked else { return false };
        let epoch = self.campaigns.get(&campaign).map_or(0, |c| c.spec.epoch);
        match work {
            Work::Job(id) => _ = self.turns.take(self.jobs[&id].kind, &campaign, id),
            Work::Range { from, to } => self.carve(&campaign, from, to),
        }
        let id = LeaseId(self.fresh());
        let grant = Grant { campaign: campaign.clone(), work };
        self.actions.push(Action::Grant { worker, lease: id, epoch, grant });
        let taken = BTreeSet::new();
        let lease = Lease { worker, campaign, epoch, work, taken, ticks: 0, progressed: now, killed: None };
        self.leases.insert(id, lease);
        self.counts.leases += 1;
        if let Some(w) = self.workers.get_mut(&worker) {
            w.credit -= 1;
            w.leases.insert(id);
        }
        self.due(now.saturating_add(self.config.progress_ms));
        true
    }

    /// The next job for this worker: by kind, then of the campaign served least, then the oldest.
    fn pick_job(&self, w: &Worker, now: u64) -> Option<(String, Work)> {
        for (_, campaigns) in self.turns.kinds() {
            let first = campaigns.iter().filter_map(|(name, jobs)| {
                let campaign = self.campaigns.get(name);
                if campaign.is_some_and(|c| !c.running || !c.suits(w)) {
                    return None;
                }
                let free = |id: &&JobId| {
                    let job = &self.jobs[id];
                    if !self.able_to(w, job)
                        || job.attempts > 0 && !self.is_trusted(w, |o| self.able_to(o, job))
                    {
                        return false;
                    }
                    let rather_not = || job.strict || self.has_other(job) && !self.is_late(job, now);
                    !job.avoid.contains(&w.source) || !rather_not()
                };
                let id = *jobs.iter().find(free)?;
                Some((campaign.map_or(0, |c| c.served), id, name))
            });
            if let Some((_, id, name)) = first.min() {
                return Some((name.clone(), Work::Job(id)));
            }
        }
        None
    }

    /// Whether a worker has all capabilities that a job needs, and of those it is restricted to ([`Self::takes`]) all
    /// that some connected worker offers.
    fn equipped(&self, w: &Worker, job: &Job) -> bool {
        let had = |tool: &String| self.classes.keys().any(|(capabilities, _)| capabilities.contains(tool));
        job.needs.is_subset(&w.capabilities)
            && job.tools.iter().all(|tool| w.capabilities.contains(tool) || !had(tool))
    }

    fn pick_range(&self, w: &Worker, now: u64) -> Option<(String, Work)> {
        let range = |name: &String| {
            let campaign = self.campaigns.get(name).filter(|c| c.suits(w))?;
            let Range { start: from, end: to } = campaign.next_of(|s| self.may_have(w, campaign, s, now))?;
            let to = to.min(campaign.limit).min(from.saturating_add(campaign.spec.batch.max(1)));
            Some((name.clone(), Work::Range { from, to }))
        };
        self.turns.ranges().find_map(range)
    }

    fn carve(&mut self, name: &str, from: u64, to: u64) {
        let campaign = self.campaigns.get_mut(name).expect("the range was picked from this campaign");
        let end = campaign.pending.remove(&from).expect("the range was picked from the pending ones");
        if self.planted == Some(Planted::TwoOwners) {
            campaign.pending.insert(from, end);
        } else if to < end {
            campaign.pending.insert(to, end);
        }
        let weight = u64::from(campaign.spec.weight.max(1));
        campaign.served = campaign.served.saturating_add((to - from).saturating_mul(SHARE_UNIT) / weight);
        self.turn(name);
    }

    /// Removes a lease from its worker.
    fn release(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.remove(&id)
            && let Some(w) = self.workers.get_mut(&lease.worker)
        {
            w.leases.remove(&id);
        }
    }

    /// Removes a lease and puts back the work that it has not delivered.
    /// `gone`: its worker, if it is not connected any more.
    fn lose(&mut self, id: LeaseId, blame: u32, gone: Option<&Worker>) {
        let Some(lease) = self.leases.get_mut(&id) else { return };
        let (work, name, mut taken) = (lease.work, lease.campaign.clone(), std::mem::take(&mut lease.taken));
        let loser = gone.or_else(|| self.workers.get(&lease.worker));
        let loser = loser.map_or((Source::Stream(lease.worker), false), |w| (w.source.clone(), w.proven));
        self.release(id);
        self.counts.lost += 1;
        match self.planted {
            Some(Planted::ForgetsRequeue) => return,
            Some(Planted::ForgetsTaken) => taken.clear(),
            _ => {}
        }
        match work {
            Work::Job(job) => self.requeue(job, blame, loser.1),
            Work::Range { from, to } => {
                let left: Vec<u64> = (from..to).filter(|i| !taken.contains(i)).collect();
                self.put_back(&name, &left, blame, loser);
            }
        }
    }

    fn requeue(&mut self, job: JobId, blame: u32, proven: bool) {
        let blame = match self.jobs.get(&job) {
            Some(entry) if !proven && !self.is_alone(|w| self.able_to(w, entry)) => blame.min(FAULT),
            _ => blame,
        };
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        entry.attempts = entry.attempts.saturating_add(blame);
        if blame > 0 {
            // Somebody had it and lost it. It has waited for nobody yet, and attempts are bounded.
            entry.since = None;
            self.unseen.push(job);
        }
        if entry.attempts < self.config.attempts_max.saturating_mul(LOSS) {
            self.turns.wait(entry.kind, &entry.campaign, job);
        } else {
            self.jobs.remove(&job);
            self.actions.push(Action::JobFailed { job });
        }
    }

    /// `loser`: where the worker comes from that lost them, and whether it had delivered anything.
    fn put_back(&mut self, name: &str, left: &[u64], blame: u32, loser: (Source, bool)) {
        let Some(campaign) = self.campaigns.get(name) else { return };
        let Some((&item, rest)) = left.split_first() else { return };
        let mut suspect = campaign.suspects.get(&item).cloned().unwrap_or_default();
        suspect.weight = suspect.weight.saturating_add(self.weight(campaign, &suspect, blame, &loser));
        if blame > 0 {
            suspect.by.insert(loser.0);
        }
        let given_up = suspect.weight >= self.config.attempts_max.saturating_mul(LOSS);
        let Some(campaign) = self.campaigns.get_mut(name) else { return };
        campaign.suspects.remove(&item);
        if given_up {
            self.counts.quarantined += 1;
            self.actions.push(Action::Quarantine { campaign: name.to_owned(), item });
        } else {
            // The suspect gets a lease of its own, so that it cannot take others with it again.
            campaign.suspects.insert(item, suspect);
            campaign.pending.insert(item, item + 1);
        }
        for run in rest.chunk_by(|a, b| a + 1 == *b) {
            campaign.pending.insert(run[0], run[0] + run.len() as u64);
        }
        self.turn(name);
    }
}
