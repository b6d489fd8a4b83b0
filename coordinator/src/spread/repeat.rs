//! Stretches of an exploration that another source explores again, and the comparison of both counts.
//!
//! Contract: the coordinator draws a share of the stretches when they are counted ([`crate::draw`]), and the last one if
//! none was drawn before. A worker of another source explores the stretch again. If both found as many executions with the
//! same sum of numbers and mark the same ones, its executions were seen twice. If not, a third source decides; without one
//! the dispute stays open. The holder of a piece tells each mark once, so one that it told before may be missing.
//! An exploration with a count that was contradicted, or with an open dispute, has failed. It ends after the stretches
//! that wait for a second source, unless none is there, or none comes in time once nothing else is left.

use super::wire::{self, MARKS_MAX, PieceStep};
use super::{Piece, Spread, order, turn};
use crate::base::Base;
use crate::lease::{JobId, Kind, LeaseId, Source};
use crate::repeat::fleet_finding;
use crate::trial::Planted;
use crate::v1;
use moire_corpus::{Finding, Hash, Stretch, Write};
use std::collections::BTreeMap;

/// Most stretches of all explorations that wait for a second source. No more are drawn then.
const REPEATS_MAX: usize = 256;

/// The count of one source in a stretch, and what it marked there.
#[derive(Clone, Debug, Default)]
struct Sum {
    complete: u64,
    blocked: u64,
    digest: u64,
    /// Whether it hit a limit, there or earlier in its piece.
    bounded: bool,
    /// Hashes of the paths of its marks, by the names of the marks.
    marks: BTreeMap<String, Hash>,
}

impl Sum {
    fn add(&mut self, new: &v1::Explored) {
        self.complete = self.complete.saturating_add(new.complete);
        self.blocked = self.blocked.saturating_add(new.blocked);
        self.digest = self.digest.wrapping_add(new.digest);
        self.bounded |= !new.bounded.is_empty();
        let path = |node: &v1::Node| Hash::of(format!("{:?}", node.path).as_bytes());
        for (name, node) in &new.marks {
            self.marks.entry(name.clone()).or_insert_with(|| path(node));
        }
        while self.marks.len() > MARKS_MAX {
            self.marks.pop_last();
        }
    }
    fn executions(&self) -> u64 {
        self.complete.saturating_add(self.blocked)
    }
    fn counts_as(&self, other: &Self) -> bool {
        let counts = |sum: &Self| (sum.complete, sum.blocked, sum.digest);
        counts(self) == counts(other)
    }
    /// Whether it marks what `other` does. `told` has the names of marks that may be missing here, `cut` of those that may
    /// be missing anywhere.
    fn marks_as(&self, other: &Self, told: impl Fn(&str) -> bool, cut: impl Fn(&str) -> bool) -> bool {
        let mut own = self.marks.iter().filter(|(name, _)| !cut(name));
        let mut others = other.marks.iter().filter(|(name, _)| !cut(name));
        own.all(|(name, path)| other.marks.get(name) == Some(path))
            && others.all(|(name, _)| self.marks.contains_key(name) || told(name))
            && (self.bounded || !other.bounded)
    }
}

/// A stretch that is explored again.
#[derive(Clone, Debug)]
pub(super) struct Repeat {
    exploration: Hash,
    stretch: Stretch,
    first: (Source, Sum),
    /// The second count, if it differs.
    second: Option<(Source, Sum)>,
    /// The count of the current worker so far, and its lease.
    now: (Option<LeaseId>, Sum),
}

/// The state of an exploration that its stretches need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drawn {
    /// Stretches drawn so far.
    count: u64,
    /// When nothing else was left to explore.
    pub(super) last_ms: Option<u64>,
}

impl Spread {
    /// Whether stretches of an exploration wait for their second count.
    pub(super) fn repeats(&self, id: &Hash) -> bool {
        self.again.values().any(|repeat| repeat.exploration == *id)
    }

    /// Draws a stretch that was counted. `last`: nothing else is left.
    pub(super) fn draw(
        &mut self,
        base: &mut Base,
        id: Hash,
        stretch: Stretch,
        (by, new): (Source, &v1::Explored),
        last: bool,
    ) {
        let Some(shared) = self.all.get_mut(&id).filter(|_| self.draws.draws()) else { return };
        let name = format!("{id} {:?} {:?}", stretch.behind, stretch.until);
        if !(self.draws.picks(&name) || last && shared.drawn.count == 0) || self.again.len() >= REPEATS_MAX {
            return;
        }
        shared.drawn.count += 1;
        let mut sum = Sum::default();
        sum.add(new);
        let now = (None, Sum::default());
        self.repeat(base, Repeat { exploration: id, stretch, first: (by, sum), second: None, now });
    }

    /// Queues a stretch for a source that has not counted it yet; false: there is none.
    fn repeat(&mut self, base: &mut Base, repeat: Repeat) -> bool {
        let job = base.fleet.job(&turn(&repeat.exploration), Kind::Explore, None);
        let sources = [Some(&repeat.first), repeat.second.as_ref()].into_iter().flatten();
        base.fleet.avoid(job, sources.map(|(by, _)| by.clone()).collect::<Vec<_>>(), true);
        let there = base.fleet.has_others(job);
        match there {
            true => _ = self.again.insert(job, repeat),
            false => _ = base.fleet.drop_job(job),
        }
        there
    }

    /// The message that leases a stretch again.
    pub(super) fn describe_again(&self, job: JobId) -> Option<v1::ExploreJob> {
        let repeat = self.again.get(&job)?;
        let shared = self.all.get(&repeat.exploration)?;
        let piece = Some(wire::piece(&repeat.stretch));
        Some(v1::ExploreJob { exploration: Some(wire::message(&shared.exploration)), piece })
    }

    /// Takes a step of a stretch that is explored again.
    pub(super) fn step_again(
        &mut self,
        base: &mut Base,
        (lease, job): (LeaseId, JobId),
        by: Source,
        report: v1::Report,
    ) -> Result<(), &'static str> {
        let Some(repeat) = self.again.get_mut(&job) else { return Ok(()) };
        let (step, new, _) = wire::step(report)?;
        if repeat.now.0 != Some(lease) {
            repeat.now = (Some(lease), Sum::default());
        }
        match step {
            PieceStep::Reached(_) => {
                repeat.now.1.add(&new);
                base.fleet.advanced(job);
            }
            PieceStep::Over => {
                repeat.now.1.add(&new);
                base.fleet.done(lease);
                if let Some(repeat) = self.again.remove(&job) {
                    self.compare(base, repeat, by);
                }
            }
            // A part of it is missing, or there is no answer: it was not seen twice.
            PieceStep::Given(_) | PieceStep::Unsupported { .. } => {
                base.fleet.forget(lease);
                base.fleet.drop_job(job);
                self.lost_again(base, job);
            }
        }
        Ok(())
    }

    /// Whether the first count of a stretch says what another one says.
    fn agree(
        &self,
        base: &Base,
        Repeat { exploration: id, stretch, first, .. }: &Repeat,
        other: &Sum,
    ) -> bool {
        let Some(shared) = self.all.get(id) else { return false };
        let behind = &stretch.behind;
        let before = |path: &Vec<u32>| !behind.is_empty() && order(path, behind).is_le();
        let told = |name: &str| shared.marks.get(name).is_some_and(before);
        let marks = || first.1.marks_as(other, told, |name| shared.is_cut(name));
        first.1.counts_as(other) && (base.trial.has(Planted::MarksUncompared) || marks())
    }

    /// Compares the counts of a stretch.
    fn compare(&mut self, base: &mut Base, mut repeat: Repeat, by: Source) {
        let (id, sum) = (repeat.exploration, std::mem::take(&mut repeat.now.1));
        let executions = repeat.first.1.executions();
        match repeat.second.take() {
            second if self.agree(base, &repeat, &sum) => {
                base.suspects.right([&repeat.first.0, &by]);
                if let Some(shared) = self.all.get_mut(&id) {
                    shared.explored.twice = shared.explored.twice.saturating_add(executions);
                }
                if let Some((alone, _)) = second {
                    base.suspects.wrong(&alone, &base.fleet);
                    base.disputes.push(finding(&id, &alone.to_string(), "stands alone against two others"));
                }
            }
            None => {
                self.disputed += 1;
                repeat.now = (None, Sum::default());
                repeat.second = Some((by, sum));
                if !self.repeat(base, repeat.clone()) {
                    self.open(base, &repeat);
                }
            }
            Some(second) if sum.counts_as(&second.1) && sum.marks_as(&second.1, |_| false, |_| false) => {
                base.suspects.right([&second.0, &by]);
                base.suspects.wrong(&repeat.first.0, &base.fleet);
                let who = repeat.first.0.to_string();
                base.disputes.push(finding(&id, &who, "stands alone against two others"));
                self.contradicted(&id, &format!("two workers contradict the count of {who}"));
            }
            Some(second) => {
                repeat.second = Some(second);
                self.open(base, &repeat);
            }
        }
        self.settled(base, id);
    }

    /// Ends a dispute that no third source decides.
    fn open(&mut self, base: &mut Base, repeat: &Repeat) {
        let Some((second, _)) = &repeat.second else { return };
        let who = format!("{} and {second}", repeat.first.0);
        base.disputes.push(finding(&repeat.exploration, &who, "differ, and no third worker decides"));
        self.contradicted(&repeat.exploration, &format!("the counts of {who} differ"));
    }

    fn contradicted(&mut self, id: &Hash, why: &str) {
        if let Some(shared) = self.all.get_mut(id) {
            shared.explored.failed = Some(why.to_owned());
            shared.explored.over = true;
        }
    }

    /// Goes on after a stretch was compared or given up.
    pub(super) fn settled(&mut self, base: &mut Base, id: Hash) {
        let repeats = self.repeats(&id);
        if let Some(shared) = self.all.get_mut(&id) {
            shared.explored.over |= shared.frontier.pieces().is_empty() && !repeats;
            self.changed(base, id);
        }
    }

    /// Forgets a stretch that nobody explores again.
    pub(super) fn lost_again(&mut self, base: &mut Base, job: JobId) {
        let Some(repeat) = self.again.remove(&job) else { return };
        self.open(base, &repeat);
        self.settled(base, repeat.exploration);
    }

    /// Gives up stretches for which no other source comes.
    pub(super) fn drop_again(&mut self, base: &mut Base) {
        let (now, longest) = (base.now(), base.config.avoid_ms);
        let late = |repeat: &Repeat| {
            let last = self.all.get(&repeat.exploration).and_then(|shared| shared.drawn.last_ms);
            last.is_some_and(|at| now.saturating_sub(at) > longest)
        };
        let vain = |(job, repeat): (&JobId, &Repeat)| {
            let vain = !base.fleet.knows_job(*job) || !base.fleet.has_others(*job) || late(repeat);
            vain.then_some(*job)
        };
        let vain: Vec<JobId> = self.again.iter().filter_map(vain).collect();
        for job in vain {
            // A job that a worker has now is not dropped.
            if !base.fleet.knows_job(job) || base.fleet.drop_job(job) {
                self.lost_again(base, job);
            }
        }
    }

    /// Ends an exploration of the store of which nothing is left: the comparisons that were under way are lost.
    pub(super) fn end_empty(&mut self, base: &mut Base, id: Hash) {
        let Some(shared) = self.all.get_mut(&id) else { return };
        if shared.explored.over || !shared.frontier.pieces().is_empty() {
            return;
        }
        shared.explored.over = true;
        base.writes.push(Write::Explored { id, explored: Box::new(shared.explored.clone()) });
        self.dirty.insert(id);
        self.leave(base, id);
    }

    /// Forgets the stretches of an exploration.
    pub(super) fn forget_again(&mut self, id: &Hash) {
        self.again.retain(|_, repeat| repeat.exploration != *id);
    }

    /// Disputes so far.
    pub(crate) fn disputed(&self) -> u64 {
        self.disputed
    }

    /// Counts what a live lease on a piece says, and draws the stretch.
    pub(super) fn counted(
        &mut self,
        base: &mut Base,
        Piece { exploration: id, .. }: Piece,
        stretch: Stretch,
        (by, new): (Source, &v1::Explored),
    ) {
        let last = self.all.get(&id).is_some_and(|shared| shared.frontier.pieces().is_empty());
        if last && let Some(shared) = self.all.get_mut(&id) {
            shared.drawn.last_ms = Some(base.now());
        }
        if self.all.get(&id).is_some_and(|shared| !shared.explored.over) {
            self.draw(base, id, stretch, (by, new), last);
        }
    }
}

/// A finding about a count of an exploration.
fn finding(id: &Hash, who: &str, what: &str) -> Finding {
    let name = format!("exploration {}", id.short());
    fleet_finding(&name, who, &format!("a stretch of {name}: {who} {what}"))
}
