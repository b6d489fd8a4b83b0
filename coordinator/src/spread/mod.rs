//! Shared explorations: the fleet explores one program together, in leased pieces of the tree of decisions.
//!
//! Contract: a piece is a stretch of the leaves ([`frontier`]). Its holder reports steps, in order:
//!
//! - *reached*: everything up to a node is explored and counted; the piece now begins there;
//! - *given*: the piece now ends at a node; everything behind it is a piece of its own;
//! - the end.
//!
//! A step is one commit: its numbers are in the totals if and only if the leaves they count are in no piece. Steps arrive
//! over one stream in order. If a holder gives a part away and dies, the store has either the whole piece or both parts. In
//! both cases the next holder starts from the last stored step, and work of the dead holder since then is counted nowhere. A
//! step of an ended lease, or of an earlier coordinator (epoch), is dropped like any other report. A step that arrives twice
//! names a node outside of its piece.
//!
//! If a worker could take a piece and none waits, a holder is asked to give one away. An exploration that no client asks about
//! for a minute ([`crate::lease::Config::rest_ms`]) rests, and continues when a client asks again. A share of the counts is
//! compared with those of another source ([`repeat`]), and so are the executions that they mark as deciding. The client visits
//! each marked execution again.

mod frontier;
mod repeat;
mod wire;

use crate::base::Base;
use crate::belief::is_silent;
use crate::clock::unix_ms;
use crate::draw::Draw;
use crate::lease::{CampaignSpec, JobId, Kind, LeaseId, WorkerId};
use crate::{Error, v1};
use frontier::{Frontier, PIECES_MAX, order};
use moire_corpus::{Exploration, Explored, Hash, StoreError, Stored, Stretch, Write};
use moire_proto::NODES_MAX;
use repeat::{Drawn, Repeat};
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;
use wire::PieceStep;

/// Most explorations, ended ones included. Beyond it the oldest one that ended or rests is forgotten.
const EXPLORATIONS_MAX: usize = 64;
/// Time that a holder has to give a part away before others are asked too.
const GIVE_MS: u64 = 250;
/// Approximate size of steps, in bytes, after which a batch is committed.
const HEAVY: usize = 2 << 20;
/// Most workers for which checks are counted separately.
const NAMES_MAX: usize = 10_000;
/// The name of the limit on executions, as the explorer has it.
const EXECUTIONS: &str = "the limit on executions";

/// All explorations.
pub(crate) struct Spread {
    all: BTreeMap<Hash, SharedExploration>,
    /// The piece that a job is about.
    jobs: BTreeMap<JobId, Piece>,
    /// Stretches that another source explores again.
    again: BTreeMap<JobId, Repeat>,
    draws: Draw,
    /// Stretches about which two sources disagreed.
    disputed: u64,
    /// Explorations that changed since the last commit.
    dirty: BTreeSet<Hash>,
    /// Approximate size of the steps since the last commit, in bytes.
    bytes: usize,
    /// Executions counted since this process started.
    executions: u64,
}

/// An exploration, as pages and metrics show it.
pub(crate) struct View {
    pub(crate) id: Hash,
    pub(crate) state: &'static str,
    pub(crate) model: String,
    /// As last committed.
    pub(crate) executions: u64,
    pub(crate) waiting: usize,
    pub(crate) leased: usize,
}

/// The states of an exploration, as pages and metrics name them.
pub(crate) const STATES: [&str; 3] = ["running", "resting", "over"];

/// A piece of an exploration.
#[derive(Clone, Copy)]
struct Piece {
    exploration: Hash,
    /// As the frontier and the store name it.
    number: u64,
}

/// An exploration under way, or ended.
struct SharedExploration {
    exploration: Exploration,
    explored: Explored,
    /// The totals as last committed; clients are told only these.
    told: Explored,
    frontier: Frontier,
    marks: BTreeMap<String, Vec<u32>>,
    /// The least name of a mark for which there was no room.
    marks_cut: Option<String>,
    /// The holder of each leased piece.
    lent: BTreeMap<JobId, Lent>,
    /// Checks by worker, and leases, since this process started.
    checks: BTreeMap<String, u64>,
    leases: u64,
    watched_ms: u64,
    rests: bool,
    drawn: Drawn,
}

struct Lent {
    lease: LeaseId,
    worker: WorkerId,
    /// When it was last asked to give, if it has not given since.
    asked: Option<u64>,
}

impl SharedExploration {
    fn new(stored: Stored, now: u64) -> Self {
        Self {
            exploration: stored.exploration,
            told: stored.explored.clone(),
            explored: stored.explored,
            frontier: Frontier::of(stored.pieces),
            marks: stored.marks,
            marks_cut: None,
            lent: BTreeMap::new(),
            checks: BTreeMap::new(),
            leases: 0,
            watched_ms: now,
            rests: false,
            drawn: Drawn::default(),
        }
    }

    /// Whether there may be no room for a mark of this name, here or at a worker.
    fn is_cut(&self, name: &str) -> bool {
        let full = self.marks.len() >= wire::MARKS_MAX;
        let last = self.marks.last_key_value().filter(|_| full);
        self.marks_cut.as_deref().is_some_and(|cut| name >= cut)
            || last.is_some_and(|(last, _)| name > last.as_str())
    }

    /// Counts what was explored behind a node.
    fn count(&mut self, id: Hash, behind: &[u32], new: v1::Explored, writes: &mut Vec<Write>) {
        let sum = &mut self.explored;
        sum.complete = sum.complete.saturating_add(new.complete);
        sum.blocked = sum.blocked.saturating_add(new.blocked);
        sum.dead_ends = sum.dead_ends.saturating_add(new.dead_ends);
        sum.checks = sum.checks.saturating_add(new.checks);
        sum.digest = sum.digest.wrapping_add(new.digest);
        // Stretches do not overlap, so the limit that counts is the one of the first stretch that hit one.
        let earlier = |at: &[u32]| !at.is_empty() && (behind.is_empty() || order(behind, at).is_lt());
        if !new.bounded.is_empty() && sum.bounded.as_ref().is_none_or(|(at, _)| earlier(at)) {
            sum.bounded = Some((behind.to_vec(), new.bounded));
        }
        for (name, node) in new.marks {
            if self.marks.get(&name).is_none_or(|known| node.path < *known) {
                writes.push(Write::Mark { id, name: name.clone(), path: Some(node.path.clone()) });
                self.marks.insert(name, node.path);
            }
        }
        let mut decisions: usize = self.marks.values().map(Vec::len).sum();
        while self.marks.len() > wire::MARKS_MAX || decisions > NODES_MAX {
            let Some((name, path)) = self.marks.pop_last() else { break };
            decisions -= path.len();
            self.marks_cut = Some(self.marks_cut.take().map_or(name.clone(), |cut| cut.min(name.clone())));
            writes.push(Write::Mark { id, name, path: None });
        }
        let limit = self.exploration.executions;
        if limit > 0 && self.explored.complete.saturating_add(self.explored.blocked) >= limit {
            self.explored.bounded = Some((Vec::new(), EXECUTIONS.to_owned()));
            self.explored.over = true;
        }
    }
}

/// The name of an exploration among the campaigns of the scheduler. No campaign can have it: it contains a slash.
fn turn(id: &Hash) -> String {
    format!("explore/{id}")
}

impl Spread {
    /// No exploration yet.
    pub(crate) fn new(draws: Draw) -> Self {
        Self {
            all: BTreeMap::new(),
            jobs: BTreeMap::new(),
            again: BTreeMap::new(),
            draws,
            disputed: 0,
            dirty: BTreeSet::new(),
            bytes: 0,
            executions: 0,
        }
    }
    /// Whether a job is a piece of an exploration.
    pub(crate) fn has(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job) || self.again.contains_key(&job)
    }
    /// Executions counted since this process started.
    pub(crate) fn executions(&self) -> u64 {
        self.executions
    }
    /// All explorations, the running ones first.
    pub(crate) fn views(&self) -> Vec<View> {
        let view = |(id, shared): (&Hash, &SharedExploration)| {
            let state = STATES[if shared.told.over { 2 } else { usize::from(shared.rests) }];
            let pieces = if shared.told.over { 0 } else { shared.frontier.pieces().len() };
            View {
                id: *id,
                state,
                model: shared.exploration.model.clone(),
                executions: shared.told.complete.saturating_add(shared.told.blocked),
                waiting: pieces.saturating_sub(shared.lent.len()),
                leased: shared.lent.len(),
            }
        };
        let mut views: Vec<View> = self.all.iter().map(view).collect();
        views.sort_by_key(|v| (STATES.iter().position(|s| *s == v.state), v.id));
        views
    }
    /// Whether the batch is large enough to be committed now.
    pub(crate) fn heavy(&self) -> bool {
        self.bytes > HEAVY
    }
    /// Notes that the batch is durable.
    pub(crate) fn committed(&mut self) {
        self.bytes = 0;
        for id in std::mem::take(&mut self.dirty) {
            if let Some(shared) = self.all.get_mut(&id) {
                shared.told = shared.explored.clone();
            }
        }
    }
}

impl Spread {
    /// Takes up the explorations of the store.
    pub(crate) fn adopt_all(&mut self, base: &mut Base) -> Result<(), Error> {
        let (all, faults) = base.store.explorations()?;
        faults.iter().for_each(|fault| base.aside.note("an exploration", fault));
        for (id, stored) in all {
            match Self::taken_up(base, id, stored) {
                Ok(stored) => self.adopt(base, id, stored),
                Err(why) if why.is_about_content() => base.aside.note(&format!("exploration {id}"), &why),
                Err(why) => return Err(why.into()),
            }
        }
        Ok(())
    }

    /// An exploration of the store, with the epoch of this start.
    fn taken_up(base: &mut Base, id: Hash, mut stored: Stored) -> Result<Stored, StoreError> {
        let invalid = |why: &str| StoreError::Invalid(why.to_owned());
        if stored.exploration.id() != id {
            return Err(invalid("it is not whole in the store"));
        }
        if !stored.explored.over {
            let next = stored.explored.epoch.checked_add(1);
            stored.explored.epoch = next.ok_or_else(|| invalid("it has the last epoch there is"))?;
            let explored = Box::new(stored.explored.clone());
            base.store.commit([Write::Explored { id, explored }])?;
        }
        Ok(stored)
    }

    /// Ends an exploration whose steps the store does not take.
    pub(crate) fn not_stored(&mut self, base: &mut Base, id: Hash, why: &StoreError) {
        base.aside.note(&format!("exploration {id}"), why);
        if let Some(shared) = self.all.get_mut(&id) {
            shared.explored.failed = Some(format!("the store does not take its steps: {why}"));
            shared.explored.over = true;
            shared.told = shared.explored.clone();
        }
        self.leave(base, id);
    }

    fn adopt(&mut self, base: &mut Base, id: Hash, stored: Stored) {
        let shared = SharedExploration::new(stored, base.now());
        if !shared.explored.over {
            let (epoch, needs) = (shared.explored.epoch, BTreeSet::from([shared.exploration.tree.clone()]));
            base.fleet
                .campaign(&turn(&id), CampaignSpec { epoch, needs, batch: 1, ..CampaignSpec::default() });
        }
        let pieces: Vec<u64> = shared.frontier.pieces().keys().copied().collect();
        let over = shared.explored.over;
        self.all.insert(id, shared);
        pieces.into_iter().filter(|_| !over).for_each(|number| self.lease_piece(base, id, number));
        self.end_empty(base, id);
    }

    fn lease_piece(&mut self, base: &mut Base, id: Hash, number: u64) {
        let job = base.fleet.job(&turn(&id), Kind::Explore, None);
        self.jobs.insert(job, Piece { exploration: id, number });
    }

    /// Starts an exploration, or finds the one that is there; its id.
    pub(crate) fn explore(&mut self, base: &mut Base, asked: v1::Exploration) -> Result<Hash, Error> {
        let exploration = wire::exploration(asked).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let now = base.now();
        let id = exploration.id();
        let failed = |shared: &SharedExploration| shared.told.over && shared.told.failed.is_some();
        if self.all.get(&id).is_some_and(failed) {
            self.forget(base, id)?;
        }
        if let Some(shared) = self.all.get_mut(&id) {
            shared.watched_ms = now;
            return Ok(id);
        }
        if self.all.len() >= EXPLORATIONS_MAX {
            let idle = self.all.iter().filter(|(_, shared)| shared.told.over || shared.rests);
            let oldest = idle.min_by_key(|(_, shared)| shared.explored.created_ms).map(|(id, _)| *id);
            let full =
                || Status::resource_exhausted(format!("{EXPLORATIONS_MAX} explorations are under way"));
            self.forget(base, oldest.ok_or_else(full)?)?;
        }
        let explored = Explored { epoch: 1, created_ms: unix_ms(), ..Explored::default() };
        let pieces = Frontier::whole().pieces().clone();
        let mut writes = vec![
            Write::Exploration { id, exploration: Some(Box::new(exploration.clone())) },
            Write::Explored { id, explored: Box::new(explored.clone()) },
        ];
        let kept = |(number, piece): (&u64, &_)| Write::Piece {
            id,
            number: *number,
            piece: Some(Clone::clone(piece)),
        };
        writes.extend(pieces.iter().map(kept));
        base.store.commit(writes)?;
        self.adopt(base, id, Stored { exploration, explored, pieces, ..Stored::default() });
        Ok(id)
    }

    fn forget(&mut self, base: &mut Base, id: Hash) -> Result<(), Error> {
        let Some(shared) = self.all.remove(&id) else { return Ok(()) };
        let mut writes = vec![Write::Exploration { id, exploration: None }];
        let pieces = shared.frontier.pieces().keys();
        writes.extend(pieces.map(|number| Write::Piece { id, number: *number, piece: None }));
        writes.extend(shared.marks.into_keys().map(|name| Write::Mark { id, name, path: None }));
        self.leave(base, id);
        base.store.commit(writes)?;
        Ok(())
    }

    /// Takes its pieces out of the scheduler.
    fn leave(&mut self, base: &mut Base, id: Hash) {
        let now = base.now();
        base.fleet.drop_campaign(&turn(&id), now);
        self.jobs.retain(|_, piece| piece.exploration != id);
        self.forget_again(&id);
        if let Some(shared) = self.all.get_mut(&id) {
            shared.lent.clear();
        }
    }

    /// The message that leases a piece.
    pub(crate) fn describe(&self, job: JobId) -> Option<v1::ExploreJob> {
        if self.again.contains_key(&job) {
            return self.describe_again(job);
        }
        let leased = self.jobs.get(&job)?;
        let shared = self.all.get(&leased.exploration)?;
        let piece = wire::piece(shared.frontier.pieces().get(&leased.number)?);
        Some(v1::ExploreJob { exploration: Some(wire::message(&shared.exploration)), piece: Some(piece) })
    }

    /// Notes that a lease on a piece was sent.
    pub(crate) fn lent(&mut self, job: JobId, worker: WorkerId, lease: LeaseId) {
        let Some(piece) = self.jobs.get(&job) else { return };
        let Some(shared) = self.all.get_mut(&piece.exploration) else { return };
        shared.leases += 1;
        shared.lent.insert(job, Lent { lease, worker, asked: None });
    }

    /// Takes a step of a live lease.
    pub(crate) fn step(
        &mut self,
        base: &mut Base,
        worker: &str,
        lease: LeaseId,
        job: JobId,
        report: v1::Report,
    ) -> Result<(), &'static str> {
        let by = base.fleet.holder(lease);
        if self.again.contains_key(&job) {
            return self.step_again(base, (lease, job), by, report);
        }
        let Some(&Piece { exploration: id, number }) = self.jobs.get(&job) else {
            base.fleet.forget(lease);
            return Ok(());
        };
        let (step, new, bytes) = wire::step(report)?;
        // For want of memory a worker says nothing about the program.
        if matches!(&step, PieceStep::Unsupported { reason, .. } if is_silent(reason))
            && base.fleet.pass_on(lease)
        {
            return Ok(());
        }
        let executions = new.complete.saturating_add(new.blocked);
        let mut counted = 0;
        let Some(shared) = self.all.get_mut(&id) else { return Ok(()) };
        let Some(before) = shared.frontier.pieces().get(&number).cloned() else { return Ok(()) };
        let name = if shared.checks.len() < NAMES_MAX { worker } else { "" };
        let checks = shared.checks.entry(name.to_owned()).or_default();
        *checks = checks.saturating_add(new.checks);
        let (mut added, mut counted_to) = (None, None);
        match step {
            PieceStep::Reached(node) if shared.frontier.reached(number, &node) => {
                shared.count(id, &before.behind, new.clone(), &mut base.writes);
                (counted, counted_to) = (executions, Some(node));
                base.fleet.advanced(job);
            }
            PieceStep::Given(_) if shared.frontier.pieces().len() >= PIECES_MAX => {
                return Err("nobody asked for so many pieces");
            }
            PieceStep::Given(node) => {
                added = shared.frontier.cut(number, node);
                shared.lent.entry(job).and_modify(|lent| lent.asked = None);
            }
            // The step came before.
            PieceStep::Reached(_) => return Ok(()),
            PieceStep::Over => {
                shared.count(id, &before.behind, new.clone(), &mut base.writes);
                (counted, counted_to) = (executions, Some(before.until.clone()));
                shared.frontier.over(number);
                shared.lent.remove(&job);
                base.fleet.done(lease);
                self.jobs.remove(&job);
            }
            PieceStep::Unsupported { reason, line } => {
                shared.explored.unsupported = Some((reason, line));
                shared.explored.over = true;
            }
        }
        for number in [Some(number), added].into_iter().flatten() {
            let piece = shared.frontier.pieces().get(&number).cloned();
            base.writes.push(Write::Piece { id, number, piece });
        }
        self.executions = self.executions.saturating_add(counted);
        self.bytes = self.bytes.saturating_add(bytes);
        added.into_iter().for_each(|number| self.lease_piece(base, id, number));
        if let Some(until) = counted_to {
            let stretch = Stretch { behind: before.behind, until };
            self.counted(base, Piece { exploration: id, number }, stretch, (by, &new));
        }
        self.settled(base, id);
        Ok(())
    }

    /// Ends an exploration one of whose pieces was lost too often.
    pub(crate) fn failed(&mut self, base: &mut Base, job: JobId) {
        if self.again.contains_key(&job) {
            return self.lost_again(base, job);
        }
        let Some(Piece { exploration: id, number }) = self.jobs.remove(&job) else { return };
        let Some(shared) = self.all.get_mut(&id) else { return };
        let deep = shared.frontier.pieces().get(&number).map_or(0, |p| p.behind.len());
        shared.explored.failed = Some(format!("a piece ended its workers too often, {deep} decisions deep"));
        shared.explored.over = true;
        self.changed(base, id);
    }

    /// Adds its totals to the batch. If it is over, its leases end.
    fn changed(&mut self, base: &mut Base, id: Hash) {
        let Some(shared) = self.all.get(&id) else { return };
        let over = shared.explored.over;
        base.writes.push(Write::Explored { id, explored: Box::new(shared.explored.clone()) });
        self.dirty.insert(id);
        if over {
            self.leave(base, id);
        }
    }

    /// Lets explorations rest that no client watches. Returns the leases whose holders are to give a part away, because
    /// workers wait and no piece is free.
    pub(crate) fn settle(&mut self, base: &mut Base) -> Vec<(WorkerId, LeaseId)> {
        self.drop_again(base);
        let (now, rest_ms) = (base.now(), base.config.rest_ms);
        let mut asks = Vec::new();
        for (id, shared) in self.all.iter_mut().filter(|(_, shared)| !shared.explored.over) {
            let rests = now.saturating_sub(shared.watched_ms) > rest_ms;
            if rests != shared.rests {
                shared.rests = rests;
                base.fleet.run_campaign(&turn(id), !rests);
            }
            shared.lent.retain(|_, lent| base.fleet.holds(lent.lease));
            if rests || shared.lent.is_empty() || shared.lent.len() < shared.frontier.pieces().len() {
                continue;
            }
            let hungry = base.fleet.hungry(&turn(id));
            let recent = |lent: &&Lent| lent.asked.is_some_and(|at| now.saturating_sub(at) < GIVE_MS);
            let asked = shared.lent.values().filter(recent).count();
            let free = shared.lent.values_mut().filter(|lent| lent.asked.is_none());
            for lent in free.take((2 * hungry).saturating_sub(asked)) {
                lent.asked = Some(now);
                asks.push((lent.worker, lent.lease));
            }
        }
        asks
    }

    /// The durable progress of an exploration. Asking keeps the exploration from resting.
    pub(crate) fn status(&mut self, base: &Base, id: &Hash) -> Result<v1::ExploreStatus, Status> {
        let now = base.now();
        let overflow = |_| Status::internal("more workers than the message can count");
        let gone = || Status::not_found("the exploration was forgotten; ask for it again");
        let shared = self.all.get_mut(id).ok_or_else(gone)?;
        shared.watched_ms = now;
        let (totals, none) = (&shared.told, BTreeMap::new());
        let marks = if totals.over { &shared.marks } else { &none };
        let leased = shared.lent.len() as u64;
        let unsupported = totals.unsupported.clone().map(|(reason, line)| v1::Unsupported { reason, line });
        Ok(v1::ExploreStatus {
            id: id.to_string(),
            over: totals.over,
            explored: Some(wire::explored(totals, marks)),
            unsupported,
            failed: totals.failed.clone().unwrap_or_default(),
            waiting: (shared.frontier.pieces().len() as u64).saturating_sub(leased),
            leased,
            able: u32::try_from(base.fleet.able(&shared.exploration.tree)).map_err(overflow)?,
            checks: shared.checks.clone(),
            leases: shared.leases,
            twice: totals.twice,
        })
    }
}
