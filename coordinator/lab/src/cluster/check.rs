//! The checker of histories: a pure function over events, which shares no code with the system under test.
//!
//! The rules that each history must keep, by the names of their violations:
//!
//! * `epochs`: each time a coordinator process takes up a campaign, it begins a greater epoch than all before. Leases
//!   carry the epoch of their campaign, and a report is accepted only with the epoch of its lease.
//! * `owners`: a report is accepted if and only if its lease is alive, belongs to the sender and is not cancelled.
//! * `one lease`: a coordinator process uses no lease id twice, and no item or job is in two leases at a time. A
//!   cancelled lease holds its items until its worker has stopped or is gone.
//! * `once`: an item is counted once, within its lease, and never leased again afterwards.
//! * `durable`: every acknowledged item is durable. After a restart exactly the durable items are there. A campaign
//!   ends when all its items are durable, and stays ended.
//! * `clocks`: no clock runs out early, and none is forgotten. The clocks are the liveness of a worker, the progress of
//!   a lease, and the acknowledgement of a cancellation.
//! * `workers`: a worker reports only on leases that it holds, with their epoch, and not after they were cancelled. It
//!   acknowledges a cancellation once, and reports nothing on that lease afterwards.
//! * `pieces`: reported totals of an exploration survive each restart, and at the end they are those of one thread, and so
//!   are the executions that are marked; where a worker lies about them, an end without totals will do.
//! * `belief`: no finding is closed that an honest worker still sees.
//! * `end`: the campaign and the exploration end, and the campaign ends with the digest of a run without faults.

use moire_coordinator::lease::{Config, JobId, LeaseId, LeaseTicks, Work, WorkerId};
use moire_coordinator::trial::{End, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The facts about a run that the rules refer to.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The clocks.
    pub(super) config: Config,
    /// The campaign, and its number of items.
    pub(super) campaign: (String, u64),
    /// Its digest without faults, if that is known.
    pub(super) digest: Option<String>,
    /// The totals that one thread finds for the exploration, if the run has one.
    pub(super) explored: Option<Totals>,
    /// Whether a worker always lies.
    pub(super) lies: bool,
}

/// The totals of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) executions: u64,
    /// The sum of the executions' numbers.
    pub(super) digest: u64,
    /// The hash of what is marked; 0 before the end.
    pub(super) marks: u64,
}

/// Longest delay with which a clock may be checked.
const SLACK_MS: u64 = 250;
/// Largest difference between two timestamps of one moment.
const GRAIN_MS: u64 = 2;

/// An event that the protocol forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// The name of the rule in the list above.
    pub(super) rule: &'static str,
    /// The index of the event in the history; the length of the history if the end is missing.
    pub(super) at: usize,
    /// The reason.
    pub(super) why: String,
}

#[derive(Debug)]
struct Live {
    worker: WorkerId,
    epoch: u32,
    work: Work,
    ticks: u64,
    progressed: u64,
    cancelled: Option<u64>,
    /// Items that it gave back.
    given: BTreeSet<u64>,
    /// It may end at any time: workers contradict each other about what it is of.
    disputed: bool,
}

impl Live {
    /// Whether it holds some of this work.
    fn holds(&self, work: Work) -> bool {
        match (work, self.work) {
            (Work::Range { from, to }, Work::Range { from: f, to: t }) => {
                (from.max(f)..to.min(t)).any(|item| !self.given.contains(&item))
            }
            (Work::Job(a), Work::Job(b)) => a == b,
            _ => false,
        }
    }
}

/// The state of one coordinator process.
#[derive(Debug, Default)]
struct Process {
    heard: BTreeMap<WorkerId, u64>,
    leases: BTreeMap<LeaseId, Live>,
    used: BTreeSet<LeaseId>,
    jobs_done: BTreeSet<JobId>,
    taken: BTreeSet<u64>,
}

/// A lease as the worker process knows it.
#[derive(Debug, Default)]
struct Held {
    epoch: u32,
    cancelled: bool,
}

/// The state of one connection of a worker process.
#[derive(Debug, Default)]
struct Session {
    worker: WorkerId,
    held: BTreeMap<LeaseId, Held>,
    stopped: BTreeSet<LeaseId>,
}

/// The last lease of an exploration.
#[derive(Clone, Copy, Debug)]
struct LastLease {
    /// The number of the coordinator start that gave it.
    start: u64,
    epoch: u32,
}

struct Checker<'a> {
    terms: &'a Terms,
    found: Vec<Violation>,
    at: usize,
    now: u64,
    epoch: u32,
    durable: BTreeSet<u64>,
    quarantined: BTreeSet<u64>,
    ended: Option<String>,
    process: Option<Process>,
    sessions: BTreeMap<String, Session>,
    granted: BTreeSet<(WorkerId, LeaseId, u32)>,
    /// Number of coordinator starts.
    starts: u64,
    /// The last lease of each exploration.
    spread: BTreeMap<String, LastLease>,
    /// The last reported totals of the exploration, and whether they were final.
    explored: Option<(Totals, bool)>,
    /// Whether it ended because workers contradict each other.
    failed: bool,
}

/// Finds all violations in a history of one campaign: events in order, each with its time in milliseconds.
pub(super) fn check(history: &[(u64, Event)], terms: &Terms) -> Vec<Violation> {
    let mut checker = Checker {
        terms,
        found: Vec::new(),
        at: 0,
        now: 0,
        epoch: 0,
        durable: BTreeSet::new(),
        quarantined: BTreeSet::new(),
        ended: None,
        process: None,
        sessions: BTreeMap::new(),
        granted: BTreeSet::new(),
        starts: 0,
        spread: BTreeMap::new(),
        explored: None,
        failed: false,
    };
    for (at, (now, event)) in history.iter().enumerate() {
        (checker.at, checker.now) = (at, checker.now.max(*now));
        checker.clocks();
        checker.coordinator(event);
        checker.worker(event);
    }
    checker.at = history.len();
    checker.end();
    checker.found
}

impl Checker<'_> {
    fn wrong(&mut self, rule: &'static str, why: String) {
        self.found.push(Violation { rule, at: self.at, why });
    }
    fn hold(&mut self, rule: &'static str, holds: bool, why: impl FnOnce() -> String) {
        if !holds {
            self.wrong(rule, why());
        }
    }

    /// Reports, once each, the clocks that ran out unnoticed.
    fn clocks(&mut self) {
        let Some(process) = &mut self.process else { return };
        let (now, config) = (self.now, &self.terms.config);
        let late = |since: u64, limit: u64| now > since + limit + SLACK_MS;
        let mut forgotten = Vec::new();
        for (worker, heard) in &mut process.heard {
            if late(*heard, config.liveness_ms) {
                forgotten.push(format!("worker {worker} was last heard at {heard} and is still here"));
                *heard = now;
            }
        }
        for (lease, live) in &mut process.leases {
            match &mut live.cancelled {
                Some(at) if late(*at, config.kill_ms) => {
                    forgotten.push(format!("lease {lease} was cancelled at {at} and still lives"));
                    *at = now;
                }
                None if late(live.progressed, config.progress_ms) => {
                    forgotten.push(format!("lease {lease} shows no progress since {}", live.progressed));
                    live.progressed = now;
                }
                _ => {}
            }
        }
        forgotten.into_iter().for_each(|why| self.wrong("clocks", why));
    }

    fn coordinator(&mut self, event: &Event) {
        match event {
            Event::Opened => {
                self.process = Some(Process::default());
                self.starts += 1;
            }
            Event::Killed => self.process = None,
            Event::Known { epoch, stored, ended, .. } => self.known(*epoch, stored, *ended),
            Event::Welcome { worker, .. } => self.heard(*worker, &[]),
            Event::Heard { worker, ticks } => self.heard(*worker, ticks),
            Event::Granted { worker, lease, epoch, campaign, work } => {
                match campaign.as_str() {
                    // A client asked for it.
                    "" => {}
                    name if name == self.terms.campaign.0 => self.of_campaign(*lease, *epoch),
                    name => self.of_exploration(*lease, *epoch, name),
                }
                self.grant(*worker, *lease, *epoch, *work);
                let disputed = self.terms.lies && *campaign != self.terms.campaign.0;
                self.here().leases.entry(*lease).and_modify(|live| live.disputed = disputed);
            }
            Event::Cancelled { lease } => self.cancelled(*lease),
            Event::KillAcked { worker, lease } => {
                let stopped = |l: &Live| l.worker == *worker && l.cancelled.is_some();
                if self.here().leases.get(lease).is_some_and(stopped) {
                    self.here().leases.remove(lease);
                }
            }
            Event::Gone { worker, end } => self.gone(*worker, *end),
            Event::Reported { worker, lease, epoch, accepted } => {
                self.reported(*worker, *lease, *epoch, *accepted);
            }
            Event::Taken { lease, items } => self.took(*lease, items),
            Event::GivenBack { lease, item: None } => _ = self.here().leases.remove(lease),
            Event::GivenBack { lease, item: Some(item) } => {
                self.here().leases.entry(*lease).and_modify(|live| _ = live.given.insert(*item));
            }
            Event::Finished { lease } => self.finished(*lease),
            Event::Quarantined { item, .. } => _ = self.quarantined.insert(*item),
            Event::Committed { items, .. } => self.committed(items),
            Event::Acknowledged { items, .. } => {
                let lost: Vec<_> = items.iter().filter(|i| !self.durable.contains(i)).collect();
                let why = format!("acknowledged and not durable: {lost:?}");
                self.hold("durable", lost.is_empty(), || why);
            }
            Event::Ended { digest, .. } => {
                let (all, have) = (self.terms.campaign.1, self.durable.len() as u64);
                self.hold("durable", have == all, || format!("ended with {have} of {all} items durable"));
                self.ended = Some(digest.clone());
            }
            Event::Explored { executions, digest, marks, over, failed } => {
                self.failed |= *failed;
                self.told(Totals { executions: *executions, digest: *digest, marks: *marks }, *over);
            }
            Event::Retested { open } => {
                self.hold("belief", *open, || "a finding that shows is closed".to_owned());
            }
            _ => {}
        }
    }

    /// Returns the current coordinator process. If the history has no `Opened`, one is assumed.
    fn here(&mut self) -> &mut Process {
        self.process.get_or_insert_default()
    }

    fn known(&mut self, epoch: u32, stored: &[Range<u64>], ended: bool) {
        let before = self.epoch;
        self.hold("epochs", epoch > before, || format!("epoch {epoch} begins after epoch {before}"));
        self.epoch = epoch;
        let stored: BTreeSet<u64> = stored.iter().cloned().flatten().collect();
        let lost: Vec<_> = self.durable.difference(&stored).copied().collect();
        let made: Vec<_> = stored.difference(&self.durable).copied().collect();
        self.hold("durable", lost.is_empty(), || format!("committed and not in the store: {lost:?}"));
        self.hold("durable", made.is_empty(), || format!("in the store and never committed: {made:?}"));
        let over = self.ended.is_some();
        self.hold("durable", ended == over, || format!("ended is {ended} in the store and was {over}"));
    }

    fn heard(&mut self, worker: WorkerId, ticks: &[LeaseTicks]) {
        let now = self.now;
        let process = self.here();
        process.heard.insert(worker, now);
        for beat in ticks {
            let own = process.leases.get_mut(&beat.lease).filter(|l| l.worker == worker);
            if let Some(live) = own.filter(|l| l.ticks < beat.ticks) {
                (live.ticks, live.progressed) = (beat.ticks, now);
            }
        }
    }

    fn of_campaign(&mut self, lease: LeaseId, epoch: u32) {
        let (current, ended) = (self.epoch, self.ended.is_some());
        self.hold("epochs", epoch == current, || {
            format!("lease {lease} of epoch {epoch} in epoch {current}")
        });
        self.hold("durable", !ended, || format!("lease {lease} of a campaign that has ended"));
    }

    fn of_exploration(&mut self, lease: LeaseId, epoch: u32, name: &str) {
        let starts = self.starts;
        let fine = match self.spread.insert(name.to_owned(), LastLease { start: starts, epoch }) {
            Some(last) if last.start == starts => epoch == last.epoch,
            Some(last) => epoch > last.epoch,
            None => true,
        };
        self.hold("epochs", fine, || format!("lease {lease} of epoch {epoch} on a piece of {name}"));
        let over = self.explored.is_some_and(|(_, over)| over);
        self.hold("pieces", !over, || format!("lease {lease} of an exploration that is over"));
    }

    fn told(&mut self, now: Totals, over: bool) {
        let fine = match self.explored {
            Some((before, true)) => over && now == before,
            Some((before, false)) => now.executions >= before.executions,
            None => true,
        };
        let before = self.explored.replace((now, over));
        self.hold("pieces", fine, || format!("{now:?} is told of the exploration after {before:?}"));
    }

    fn grant(&mut self, worker: WorkerId, lease: LeaseId, epoch: u32, work: Work) {
        let now = self.now;
        self.granted.insert((worker, lease, epoch));
        let process = self.here();
        let fresh = process.used.insert(lease);
        let known = process.heard.contains_key(&worker);
        let held = process.leases.iter().find(|(_, l)| l.holds(work)).map(|(id, _)| *id);
        let again: Vec<u64> = match work {
            Work::Range { from, to } => {
                let counted = |i: &u64| process.taken.contains(i);
                (from..to).filter(counted).collect()
            }
            Work::Job(id) => process.jobs_done.get(&id).map(|id| id.0).into_iter().collect(),
        };
        let given = BTreeSet::new();
        let live =
            Live { worker, epoch, work, ticks: 0, progressed: now, cancelled: None, given, disputed: false };
        process.leases.insert(lease, live);
        let stored: Vec<u64> = match work {
            Work::Range { from, to } => self.durable.range(from..to).copied().collect(),
            Work::Job(_) => Vec::new(),
        };
        self.hold("one lease", fresh, || format!("lease {lease} is used twice"));
        self.hold("owners", known, || {
            format!("lease {lease} goes to worker {worker}, which is not connected")
        });
        if let Some(other) = held {
            self.wrong("one lease", format!("{work:?} of lease {lease} is in lease {other}"));
        }
        self.hold("once", again.is_empty(), || {
            format!("lease {lease} has items that are already counted: {again:?}")
        });
        self.hold("once", stored.is_empty(), || {
            format!("lease {lease} has items that are already durable: {stored:?}")
        });
    }

    fn cancelled(&mut self, lease: LeaseId) {
        let (now, limit, ended) = (self.now, self.terms.config.progress_ms, self.ended.is_some());
        let Some(live) = self.here().leases.get_mut(&lease) else { return };
        live.cancelled.get_or_insert(now);
        let progressed = live.progressed;
        let due = ended || live.disputed || now + GRAIN_MS > progressed + limit;
        self.hold("clocks", due, || format!("lease {lease} is cancelled, with progress at {progressed}"));
    }

    fn gone(&mut self, worker: WorkerId, end: End) {
        let (now, config) = (self.now, self.terms.config);
        let process = self.here();
        let heard = process.heard.remove(&worker);
        let cancelled =
            process.leases.values().filter(|l| l.worker == worker).filter_map(|l| l.cancelled).min();
        process.leases.retain(|_, l| l.worker != worker);
        let due = match end {
            End::Clock("liveness") => heard.is_some_and(|at| now + GRAIN_MS > at + config.liveness_ms),
            End::Clock(_) => cancelled.is_some_and(|at| now + GRAIN_MS > at + config.kill_ms),
            End::Closed | End::Expelled => true,
        };
        self.hold("clocks", due, || {
            format!("worker {worker} is gone by {end:?}; heard at {heard:?}, told to stop at {cancelled:?}")
        });
    }

    fn reported(&mut self, worker: WorkerId, lease: LeaseId, epoch: u32, accepted: bool) {
        let now = self.now;
        let (mut own, mut same) = (false, false);
        if let Some(live) = self.here().leases.get_mut(&lease) {
            own = live.worker == worker && live.cancelled.is_none() && (accepted || !live.disputed);
            same = live.epoch == epoch;
            if own && same {
                live.progressed = now;
            }
        }
        let told =
            |what: &str| format!("a report of worker {worker} on lease {lease}, epoch {epoch}, {what}");
        self.hold("owners", !accepted || own, || told("is taken, and the lease is not its own"));
        self.hold("epochs", !accepted || !own || same, || told("is taken, and the epoch is another"));
        self.hold("owners", accepted || !own || !same, || told("is refused, and the lease is its own"));
    }

    fn took(&mut self, lease: LeaseId, items: &[u64]) {
        for item in items {
            let within = |l: &Live| l.holds(Work::Range { from: *item, to: item + 1 });
            let within = self.here().leases.get(&lease).is_some_and(within);
            let fresh = self.here().taken.insert(*item) && !self.durable.contains(item);
            self.hold("once", within, || {
                format!("item {item} is counted for lease {lease}, which does not hold it")
            });
            self.hold("once", fresh, || format!("item {item} is counted twice"));
        }
    }

    fn finished(&mut self, lease: LeaseId) {
        let Some(live) = self.here().leases.remove(&lease) else { return };
        let missing = match live.work {
            Work::Range { from, to } => {
                let missing = |i: &u64| !self.here().taken.contains(i) && !live.given.contains(i);
                (from..to).filter(missing).count()
            }
            Work::Job(id) => usize::from(!self.here().jobs_done.insert(id)),
        };
        self.hold("once", missing == 0, || {
            format!("lease {lease} is over, {missing} of it missing or known")
        });
    }

    fn committed(&mut self, items: &[u64]) {
        for item in items {
            let counted = self.here().taken.contains(item) || self.quarantined.contains(item);
            let fresh = self.durable.insert(*item);
            self.hold("once", counted, || format!("item {item} is committed and was never counted"));
            self.hold("once", fresh, || format!("item {item} is committed twice"));
        }
    }

    fn worker(&mut self, event: &Event) {
        match event {
            Event::WorkerWelcome { name, worker } => {
                self.sessions.insert(name.clone(), Session { worker: *worker, ..Session::default() });
            }
            Event::WorkerLost { name } => _ = self.sessions.remove(name),
            Event::WorkerLease { name, lease, epoch } => {
                let session = self.sessions.entry(name.clone()).or_default();
                let fresh = session.held.insert(*lease, Held { epoch: *epoch, cancelled: false }).is_none();
                let worker = session.worker;
                let given = self.granted.contains(&(worker, *lease, *epoch));
                self.hold("workers", fresh && given, || {
                    format!("{name} has lease {lease}, which was not given to it or was received twice")
                });
            }
            Event::WorkerCancel { name, lease } => {
                let session = self.sessions.entry(name.clone()).or_default();
                session.held.entry(*lease).or_default().cancelled = true;
            }
            Event::WorkerReport { name, lease, epoch } => {
                let session = self.sessions.entry(name.clone()).or_default();
                let fine = session.held.get(lease).is_some_and(|l| l.epoch == *epoch && !l.cancelled);
                let fine = fine && !session.stopped.contains(lease);
                self.hold("workers", fine, || {
                    format!("{name} reports lease {lease}, lost, cancelled or never held")
                });
            }
            Event::WorkerKillAck { name, lease } => {
                let session = self.sessions.entry(name.clone()).or_default();
                let told = session.held.get(lease).is_some_and(|l| l.cancelled);
                let once = session.stopped.insert(*lease);
                self.hold("workers", told && once, || {
                    format!("{name} acknowledges a stop of lease {lease} unasked or twice")
                });
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        match (&self.ended, &self.terms.digest) {
            (None, _) => self.wrong("end", format!("{} does not end", self.terms.campaign.0)),
            (Some(digest), Some(quiet)) if digest != quiet => {
                self.wrong("end", format!("digest {digest}, without faults {quiet}"));
            }
            _ => {}
        }
        let Some(alone) = self.terms.explored else { return };
        match self.explored {
            Some((_, true)) if self.failed && self.terms.lies => {}
            Some((sum, true)) if sum == alone => {}
            Some((sum, true)) => {
                self.wrong("pieces", format!("the fleet has {sum:?}, one thread {alone:?}"));
            }
            _ => self.wrong("end", "the exploration does not end".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        liveness_ms: 100,
        progress_ms: 200,
        kill_ms: 50,
        avoid_ms: 0,
        rest_ms: 0,
        repeat_per_mille: 0,
        secret: None,
        attempts_max: 5,
        workers_max: 9,
        credit_max: 9,
    };

    /// Two items in one lease, and a restart before the end.
    fn good() -> Vec<(u64, Event)> {
        use Event::*;
        let (campaign, name) = ("c".to_owned(), "w".to_owned());
        let known = |epoch, stored| Known { campaign: campaign.clone(), epoch, stored, ended: false };
        let granted = |epoch, from| {
            let (campaign, work) = (campaign.clone(), Work::Range { from, to: 2 });
            Granted { worker: WorkerId(1), lease: LeaseId(2), epoch, campaign, work }
        };
        let events = vec![
            Opened,
            known(1, vec![]),
            Welcome { worker: WorkerId(1), name: name.clone() },
            WorkerWelcome { name: name.clone(), worker: WorkerId(1) },
            granted(1, 0),
            WorkerLease { name: name.clone(), lease: LeaseId(2), epoch: 1 },
            WorkerReport { name: name.clone(), lease: LeaseId(2), epoch: 1 },
            Heard { worker: WorkerId(1), ticks: vec![] },
            Reported { worker: WorkerId(1), lease: LeaseId(2), epoch: 1, accepted: true },
            Taken { lease: LeaseId(2), items: vec![0] },
            Committed { campaign: campaign.clone(), items: vec![0] },
            Acknowledged { worker: WorkerId(1), campaign: campaign.clone(), items: vec![0] },
            Killed,
            WorkerLost { name: name.clone() },
            Opened,
            known(2, std::iter::once(0..1).collect()),
            Welcome { worker: WorkerId(1), name },
            granted(2, 1),
            Reported { worker: WorkerId(1), lease: LeaseId(2), epoch: 1, accepted: false },
            Reported { worker: WorkerId(1), lease: LeaseId(2), epoch: 2, accepted: true },
            Taken { lease: LeaseId(2), items: vec![1] },
            Finished { lease: LeaseId(2) },
            Committed { campaign: campaign.clone(), items: vec![1] },
            Acknowledged { worker: WorkerId(1), campaign: campaign.clone(), items: vec![1] },
            Ended { campaign, digest: "d".to_owned() },
            Explored { executions: 5, digest: 50, marks: 7, over: true, failed: false },
        ];
        events.into_iter().enumerate().map(|(at, event)| (at as u64, event)).collect()
    }

    /// Returns the rules that a history breaks.
    fn broken(history: &[(u64, Event)]) -> Vec<&'static str> {
        let campaign = ("c".to_owned(), 2);
        let explored = Some(Totals { executions: 5, digest: 50, marks: 7 });
        let digest = Some("d".to_owned());
        let terms = Terms { config: CONFIG, campaign, digest, explored, lies: false };
        let mut rules: Vec<_> = check(history, &terms).into_iter().map(|v| v.rule).collect();
        rules.dedup();
        rules
    }

    fn without(at: usize) -> Vec<(u64, Event)> {
        let mut history = good();
        history.remove(at);
        history
    }

    #[test]
    fn a_good_history_is_good() {
        assert_eq!(broken(&good()), Vec::<&str>::new());
    }

    #[test]
    fn missing_and_repeated_events_are_found() {
        let first = |at| broken(&without(at)).first().copied();
        assert_eq!(first(4), Some("workers"), "a lease that was never given");
        assert_eq!(first(6), None, "a worker's own event may be missing: the worker was killed");
        assert_eq!(first(9), Some("once"), "an item that was never counted");
        assert_eq!(first(10), Some("durable"), "acknowledged before it is durable");
        assert_eq!(first(24), Some("end"));
        let twice = |at: usize| {
            let mut history = good();
            history.insert(at, history[at].clone());
            broken(&history).first().copied()
        };
        assert_eq!(twice(4), Some("one lease"));
        assert_eq!(twice(9), Some("once"));
        assert_eq!(twice(10), Some("once"));
        assert_eq!(twice(15), Some("epochs"));
    }

    #[test]
    fn changed_events_are_found() {
        let change = |at: usize, event: Event| {
            let mut history = good();
            history[at].1 = event;
            broken(&history).first().copied()
        };
        let known = Event::Known { campaign: "c".to_owned(), epoch: 2, stored: vec![], ended: false };
        assert_eq!(change(15, known), Some("durable"), "the store has lost an item");
        let old = Event::Reported { worker: WorkerId(1), lease: LeaseId(2), epoch: 1, accepted: true };
        assert_eq!(change(18, old), Some("epochs"));
        let other = Event::Reported { worker: WorkerId(3), lease: LeaseId(2), epoch: 2, accepted: true };
        assert_eq!(change(19, other), Some("owners"));
        let refused = Event::Reported { worker: WorkerId(1), lease: LeaseId(2), epoch: 2, accepted: false };
        assert_eq!(change(19, refused), Some("owners"));
        let early = Event::Cancelled { lease: LeaseId(2) };
        assert_eq!(change(7, early), Some("clocks"));
        let gone = Event::Gone { worker: WorkerId(1), end: End::Clock("liveness") };
        assert_eq!(change(7, gone), Some("clocks"));
        let wrong = Event::Ended { campaign: "c".to_owned(), digest: "e".to_owned() };
        assert_eq!(change(24, wrong), Some("end"));
    }

    #[test]
    fn a_piece_that_is_lost_or_counted_twice_is_found() {
        let of = |executions, marks, over| {
            let digest = 10 * executions;
            Event::Explored { executions, digest, marks, over, failed: false }
        };
        let told = |executions, over| of(executions, if over { 7 } else { 0 }, over);
        let with = |at: usize, event: Event| {
            let mut history = good();
            history.insert(at, (at as u64, event));
            broken(&history)
        };
        assert_eq!(with(13, told(3, false)), Vec::<&str>::new());
        assert_eq!(with(13, told(6, false)), ["pieces"], "the totals decrease");
        assert_eq!(with(26, told(6, true)), ["pieces"], "the exploration goes on after its end");
        assert_eq!(broken(&without(25)), ["end"]);
        let mut history = good();
        history[25].1 = told(4, true);
        assert_eq!(broken(&history), ["pieces"]);
        history[25].1 = of(5, 8, true);
        assert_eq!(broken(&history), ["pieces"], "another execution is marked");
        assert_eq!(with(26, Event::Retested { open: true }), Vec::<&str>::new());
        assert_eq!(with(26, Event::Retested { open: false }), ["belief"]);
        let leased = |epoch| {
            let (campaign, work) = ("explore/x".to_owned(), Work::Job(JobId(9)));
            (
                14,
                Event::Granted {
                    worker: WorkerId(1),
                    lease: LeaseId(30 + u64::from(epoch)),
                    epoch,
                    campaign,
                    work,
                },
            )
        };
        let mut history = good();
        history.splice(17..17, [leased(3)]);
        history.splice(12..12, [leased(3)]);
        assert!(broken(&history).contains(&"epochs"), "each start has its own epoch");
    }

    #[test]
    fn a_forgotten_clock_is_found() {
        let mut history = good();
        history.iter_mut().skip(18).for_each(|(at, _)| *at += 1_000);
        assert_eq!(broken(&history).first().copied(), Some("clocks"));
    }
}
