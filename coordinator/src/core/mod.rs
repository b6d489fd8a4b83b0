//! The one thread that owns store and scheduler: takes events, commits, then acknowledges.
//!
//! Contract: an acknowledgement follows the commit of everything it acknowledges; an item's result and the
//! findings it led to are one commit. The parts own their state ([`Triage`], [`Spread`], [`Totals`]) and share [`Base`];
//! `workers` handles the messages of workers, `requests` those of clients.

mod requests;
mod workers;

pub(crate) use requests::{readable, record};

use crate::base::Base;
use crate::door::Refused;
use crate::draw::Draw;
use crate::lease::{Config, WorkerId};
use crate::parts::{self, RefusedPart, Subject};
use crate::repeat::Repeats;
use crate::run::CampaignRun;
use crate::spread::Spread;
use crate::totals::{TOTALS, Totals};
use crate::triage::Triage;
use crate::trial::{Event as Told, Planted, Trial};
use crate::{BATCH_EVENTS, Error, aside, failpoints, run};
use moire_corpus::{Campaign, CampaignState, Finding, Receipt, Store, StoreError, Write};
use moire_proto::v1::{self, to_worker::Message as Down};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

pub(crate) type Announce = Box<dyn Fn(&Finding) + Send>;
pub(crate) type Outbox = mpsc::Sender<Result<v1::ToWorker, tonic::Status>>;
pub(crate) type Inbox = mpsc::Receiver<Result<v1::ToWorker, tonic::Status>>;

/// An event of the core.
pub(crate) enum Event {
    /// Time passes.
    Tick,
    /// Runs this on the thread of the core.
    Call(Box<dyn FnOnce(&mut Core) + Send>),
    /// Write what is ready and stop.
    Stop,
}

/// An acknowledgement that is sent once these items of a campaign are durable.
struct Owed {
    worker: WorkerId,
    ack: v1::ReportAck,
    campaign: String,
    items: Vec<u64>,
}

/// The state of a coordinator.
pub(crate) struct Core {
    pub(crate) base: Base,
    pub(crate) triage: Triage,
    /// Explorations that the fleet shares.
    pub(crate) spread: Spread,
    /// Ranges that another source does again.
    pub(crate) repeats: Repeats,
    /// The channel to each worker.
    outboxes: BTreeMap<WorkerId, Outbox>,
    /// The names of the connected workers.
    names: BTreeMap<WorkerId, String>,
    acks: Vec<Owed>,
    /// Writes of the previous batch; used only by [`Planted::CommitsLate`].
    late: Vec<Write>,
    pub(crate) bad_messages: u64,
    pub(crate) refused: u64,
    /// Calls and connections that the door refused.
    turned_away: Arc<Refused>,
    pub(crate) totals: Totals,
    /// Called with each new finding once it is durable.
    pub(crate) announce: Option<Announce>,
}

impl Core {
    pub(crate) fn new(
        store: Store,
        config: Config,
        turned_away: Arc<Refused>,
        trial: Trial,
    ) -> Result<Self, Error> {
        let (totals, unread) = match store.totals() {
            Err(why) if why.is_about_content() => (BTreeMap::new(), Some(why)),
            read => (read?, None),
        };
        let totals = Totals::new(totals);
        let draw = Draw::new(config.repeat_per_mille, config.secret);
        let mut core = Self {
            base: Base::new(store, config, trial),
            triage: Triage::default(),
            spread: Spread::new(draw),
            repeats: Repeats::new(draw),
            outboxes: BTreeMap::new(),
            names: BTreeMap::new(),
            acks: Vec::new(),
            late: Vec::new(),
            bad_messages: 0,
            refused: 0,
            turned_away,
            totals,
            announce: None,
        };
        core.base.trial.tell(|| Told::Opened);
        unread.iter().for_each(|why| core.base.aside.note("the totals", why));
        for read in core.base.store.each_campaign().collect::<Vec<_>>() {
            let name = read.as_ref().map_or_else(|_| "a campaign".to_owned(), |c| aside::campaign(&c.name));
            match read.and_then(|campaign| core.take_up(campaign)) {
                Err(why) if why.is_about_content() => core.base.aside.note(&name, &why),
                taken => taken?,
            }
        }
        core.spread.adopt_all(&mut core.base)?;
        Ok(core)
    }

    /// Takes up a campaign of the store, with the epoch of this start.
    fn take_up(&mut self, mut campaign: Campaign) -> Result<(), StoreError> {
        let last = || StoreError::Invalid("it has the last epoch there is".to_owned());
        campaign.epoch = campaign.epoch.checked_add(1).ok_or_else(last)?;
        if !self.base.trial.has(Planted::EpochNotRecorded) {
            self.base.store.commit([Write::Campaign(Box::new(campaign.clone()))])?;
        }
        self.adopt(campaign)
    }

    /// Handles events until told to stop. Blocks its thread while it works.
    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>) -> Result<(), Error> {
        while let Some(first) = events.recv().await {
            let mut stop = self.handle(first);
            for _ in 1..BATCH_EVENTS {
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
            Event::Tick => self.tick(),
        }
        false
    }

    /// Gives up work for which no worker comes in time.
    fn tick(&mut self) {
        self.triage.drop_unwanted(&mut self.base);
        let runs = &self.triage.runs;
        let of = |name: &str| runs.get(name).map(|run| run.campaign.clone());
        let settled = self.repeats.tick(&mut self.base, of);
        self.triage.touched.extend(settled);
    }

    /// Takes a campaign of the store into the scheduler.
    pub(crate) fn adopt(&mut self, campaign: Campaign) -> Result<(), StoreError> {
        let progress = self.base.store.progress(&campaign.name)?;
        let run = CampaignRun::new(campaign, progress);
        let name = run.campaign.name.clone();
        self.base.trial.tell(|| Told::Known {
            campaign: name.clone(),
            epoch: run.campaign.epoch,
            stored: run.progress.completed.iter().map(|&(from, to)| from..to).collect(),
            ended: !run.open(),
        });
        if matches!(run.campaign.state, CampaignState::Running | CampaignState::Paused) {
            self.base.fleet.campaign(&name, run.lease_spec());
            self.base.fleet.run_campaign(&name, run.campaign.state == CampaignState::Running);
        }
        self.triage.touched.insert(name.clone());
        self.triage.runs.insert(name, run);
        Ok(())
    }

    /// Decides, commits, acknowledges, and gives out leases.
    pub(crate) fn settle(&mut self, last: bool) -> Result<(), Error> {
        let mut names = std::mem::take(&mut self.triage.touched);
        names.iter().for_each(|name| self.triage.advance(&mut self.base, name));
        for found in std::mem::take(&mut self.base.disputes) {
            self.triage.keep(&mut self.base, found);
        }
        self.totals.note(self.counted(), self.base.now(), last, &mut self.base.writes);
        if self.base.trial.has(Planted::AcksBeforeCommit) {
            self.acknowledge();
        }
        self.commit(&mut names)?;
        names.retain(|name| !self.repeats.busy(name));
        for name in &names {
            match self.triage.finish(&mut self.base, name) {
                Err(why) if why.is_about_content() => self.set_aside(name, &why),
                finished => finished?,
            }
        }
        self.acknowledge();
        for source in self.base.suspects.leaving() {
            self.expel(&source);
        }
        let now = self.base.now();
        for action in self.base.fleet.poll(now) {
            self.act(action);
        }
        for (worker, lease) in self.spread.settle(&mut self.base) {
            self.send(worker, Down::Give(v1::Give { lease: lease.0 }));
        }
        self.base.states.count_more(&self.base.store)
    }

    /// Makes the batch in hand durable; adds the campaigns whose items it had to `names`.
    fn commit(&mut self, names: &mut BTreeSet<String>) -> Result<(), Error> {
        let mut writes = std::mem::take(&mut self.base.writes);
        let told = self.base.trial.items(&writes);
        if self.base.trial.has(Planted::ForgetsPieces) {
            writes.retain(|write| !matches!(write, Write::Piece { .. }));
        }
        if self.base.trial.has(Planted::CommitsLate) {
            std::mem::swap(&mut writes, &mut self.late);
        }
        if !writes.is_empty() {
            failpoints::hit(failpoints::COMMIT_BEFORE);
            let (mut receipt, refused) = parts::commit(&mut self.base.store, writes)?;
            for part in refused {
                receipt.add(self.refused(&part)?);
            }
            failpoints::hit(failpoints::COMMIT_AFTER);
            self.totals.committed();
            self.spread.committed();
            for (name, progress) in receipt.progress {
                if let Some(run) = self.triage.runs.get_mut(&name) {
                    run.progress = progress;
                }
                names.insert(name);
            }
            let fresh = std::mem::take(&mut self.triage.fresh);
            for (finding, _) in fresh.values().filter(|f| f.1) {
                self.announce.iter().for_each(|tell| tell(finding));
            }
        }
        told.into_iter().for_each(|event| self.base.trial.tell(|| event));
        Ok(())
    }

    /// Goes on without a part of the batch that the store refused. An item is recorded without what it said; if even that
    /// does not fit, its campaign is set aside.
    fn refused(&mut self, part: &RefusedPart) -> Result<Receipt, Error> {
        for write in &part.writes {
            if let Write::Finding(finding) = write {
                self.triage.fresh.remove(&finding.id);
                self.base.aside.note(&format!("finding {}", finding.id.short()), &part.why);
            }
        }
        match part.subject() {
            Subject::Item(campaign, done) => {
                self.base.aside.note(&format!("item {} of campaign {campaign}", done.item), &part.why);
                let bare = Write::Items { campaign: campaign.clone(), items: vec![run::bare(*done)] };
                match self.base.store.commit([bare]) {
                    Err(why) if why.is_about_content() => self.set_aside(&campaign, &why),
                    stored => return Ok(stored?),
                }
            }
            Subject::Campaign(name) => self.set_aside(&name, &part.why),
            Subject::Exploration(id) => self.spread.not_stored(&mut self.base, id, &part.why),
            Subject::Other => self.base.aside.note("a record", &part.why),
        }
        Ok(Receipt::default())
    }

    /// Serves a campaign no longer: its record cannot be read or written. Nothing more of it is acknowledged.
    fn set_aside(&mut self, name: &str, why: &StoreError) {
        let now = self.base.now();
        self.base.fleet.drop_campaign(name, now);
        self.triage.drop_jobs(name);
        self.triage.runs.remove(name);
        for owed in self.acks.iter_mut().filter(|owed| owed.campaign == name) {
            owed.ack.accepted = false;
            owed.campaign.clear();
            owed.items.clear();
        }
        self.base.aside.note(&aside::campaign(name), why);
    }

    /// Sends the acknowledgements whose items are durable.
    fn acknowledge(&mut self) {
        let early = self.base.trial.has(Planted::AcksBeforeCommit);
        for owed in std::mem::take(&mut self.acks) {
            let run = self.triage.runs.get(&owed.campaign).filter(|r| r.open());
            match run.is_none_or(|r| early || owed.items.iter().all(|i| r.progress.contains(*i))) {
                true => {
                    let (worker, campaign) = (owed.worker, owed.campaign);
                    self.send(worker, Down::Ack(owed.ack));
                    let items = owed.items;
                    self.base.trial.tell(|| Told::Acknowledged { worker, campaign, items });
                }
                false if self.outboxes.contains_key(&owed.worker) => self.acks.push(owed),
                false => {}
            }
        }
    }

    /// Counts since the start of this process, in the order of [`TOTALS`].
    fn counted(&self) -> [u64; TOTALS.len()] {
        let (fleet, away) = (self.base.fleet.counts(), &self.turned_away);
        [
            fleet.leases,
            fleet.lost,
            fleet.expired,
            fleet.stale_reports,
            fleet.duplicate_items,
            fleet.quarantined,
            self.bad_messages,
            self.refused,
            self.base.suspects.disputed,
            away.connections.load(Ordering::Relaxed),
            away.denied.load(Ordering::Relaxed),
            away.limited.load(Ordering::Relaxed),
            self.spread.executions(),
            self.repeats.twice,
            self.repeats.disputed.saturating_add(self.spread.disputed()),
            fleet.aborted,
            fleet.elsewhere,
        ]
    }
}
