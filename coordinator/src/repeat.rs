//! Ranges that another source does again, and the comparison of both answers.
//!
//! Contract: the coordinator draws a share of the ranges when it gives them out ([`crate::draw`]), and tells nobody. When a
//! drawn range is reported, a worker of another source that has the same capabilities gets the same range. If both give
//! the same answers, the range was seen twice. If not, a third source decides, and the source that stands alone was wrong
//! ([`crate::suspects`]). An item without an answer, for want of memory, agrees with none: it is not seen twice, and yet
//! another source is asked for its range. Each disagreement is kept as a finding about the fleet. A campaign ends after the ranges that wait
//! for a second source, unless no such worker is there, or none comes for the range in time.

use crate::base::Base;
use crate::belief::is_silent;
use crate::clock::unix_ms;
use crate::draw::Draw;
use crate::intake;
use crate::lease::{JobId, Kind, LeaseId, PATIENCE, Source, WorkerId};
use crate::run::class;
use moire_corpus::{Campaign, Finding, Hash, Provenance, Verified};
use moire_proto::{needs, v1};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most ranges that wait to be done again. No more are drawn then.
const REPEATS_MAX: usize = 1_024;
/// Sources without an answer after which a range is not given to more.
const SILENT_MAX: usize = 2;
/// The oracle of findings about the fleet.
pub(crate) const FLEET: &str = "fleet";

/// Items by number, each with the hash of its answer. `None`: it has no answer there, for want of memory.
type Items = BTreeMap<u64, Option<Hash>>;

/// The answers of one source to a range.
#[derive(Clone, Debug)]
struct Said {
    by: Source,
    items: Items,
}

/// A range of a campaign.
#[derive(Clone, Debug)]
struct DrawnRange {
    campaign: String,
    range: Range<u64>,
}

/// A drawn range that its first worker is doing.
#[derive(Debug)]
struct Drawn {
    part: DrawnRange,
    worker: WorkerId,
    items: Items,
}

/// A range that is done again.
#[derive(Clone, Debug)]
struct Repeat {
    part: DrawnRange,
    needs: BTreeSet<String>,
    first: Said,
    /// The second answer, if it differs: a third decides.
    second: Option<Said>,
    /// The sources that had no answer to some of its items.
    silent: Vec<Source>,
    /// The answers of the current worker so far, and its lease.
    now: (Option<LeaseId>, Items),
    since_ms: u64,
}

impl Repeat {
    /// The end of its dispute, if nobody decides it.
    fn open(&self) -> Option<Verdict> {
        self.second.as_ref().map(|second| Verdict::Open(self.first.by.clone(), second.by.clone()))
    }
}

/// The end of a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// This source stands alone against two.
    Wrong(Source),
    /// These differ, and no third agrees with one of them.
    Open(Source, Source),
}

/// The ranges that are done again.
#[derive(Debug)]
pub(crate) struct Repeats {
    draw: Draw,
    drawn: BTreeMap<LeaseId, Drawn>,
    jobs: BTreeMap<JobId, Repeat>,
    /// Items about which two sources said the same.
    pub(crate) twice: u64,
    /// Ranges about which two sources disagreed.
    pub(crate) disputed: u64,
}

/// The part of an answer that depends on the item alone: samples do not.
fn digest(item: &v1::ItemResult) -> Option<Hash> {
    if item.abstentions.keys().any(|why| is_silent(why)) {
        return None;
    }
    let row = |e: &v1::EngineResult| {
        (e.engine.clone(), e.verdict.clone(), e.outcomes.clone(), e.leaves.clone(), e.executions)
    };
    let rows: Vec<_> = item.engines.iter().filter(|e| !needs::is_sampled(&e.engine)).map(row).collect();
    let certain = item.claims.iter().filter(|claim| !needs::is_sampled(&claim.oracle));
    let mut claims: Vec<_> = certain.map(class).collect();
    claims.sort();
    let canaries: Vec<_> = item.canaries.iter().map(|c| (&c.name, c.caught)).collect();
    let all = serde_json::to_vec(&(item.item, &item.program, rows, claims, canaries));
    all.ok().map(|bytes| Hash::of(&bytes))
}

/// How one answer to a range stands to another one: items by what both say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Compared {
    same: u64,
    differ: u64,
    /// The other answer has them, and this one does not.
    silent: u64,
}

impl Compared {
    fn of(items: &Items, other: &Items) -> Self {
        let mut all = Self::default();
        for (item, said) in other {
            match (items.get(item).copied().flatten(), said) {
                (Some(own), Some(said)) if own == *said => all.same += 1,
                (Some(_), Some(_)) => all.differ += 1,
                (None, Some(_)) => all.silent += 1,
                (_, None) => {}
            }
        }
        all
    }
}

impl Repeats {
    pub(crate) fn new(draw: Draw) -> Self {
        Self { draw, drawn: BTreeMap::new(), jobs: BTreeMap::new(), twice: 0, disputed: 0 }
    }
    /// Whether a job is a range that is done again.
    pub(crate) fn has(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }
    /// Whether ranges of a campaign wait for their second answer.
    pub(crate) fn busy(&self, campaign: &str) -> bool {
        self.jobs.values().any(|repeat| repeat.part.campaign == campaign)
    }
    /// Notes that a range was given out, and perhaps draws it.
    pub(crate) fn granted(&mut self, worker: WorkerId, lease: LeaseId, campaign: &str, range: Range<u64>) {
        if self.jobs.len() + self.drawn.len() < REPEATS_MAX
            && self.draw.picks(&format!("{campaign} {} {}", range.start, range.end))
        {
            let part = DrawnRange { campaign: campaign.to_owned(), range };
            self.drawn.insert(lease, Drawn { part, worker, items: Items::new() });
        }
    }
    /// Notes the answer to an item of a range that its first worker is doing.
    pub(crate) fn heard(&mut self, lease: LeaseId, item: &v1::ItemResult) {
        if let Some(drawn) = self.drawn.get_mut(&lease) {
            drawn.items.insert(item.item, digest(item));
        }
    }
    /// Has a drawn range done again, once its first worker has done all of it.
    pub(crate) fn finished(&mut self, base: &mut Base, lease: LeaseId) {
        let Some(Drawn { part, worker, items }) = self.drawn.remove(&lease) else { return };
        let by = base.fleet.source(worker);
        let needs = base.fleet.each_worker().find(|w| w.id == worker).map(|w| w.capabilities.clone());
        if items.len() as u64 == part.range.end - part.range.start {
            let since_ms = base.now();
            let (first, needs) = (Said { by, items }, needs.unwrap_or_default());
            let now = (None, Items::new());
            let silent = Vec::new();
            self.queue(base, Repeat { part, needs, first, second: None, silent, now, since_ms });
        }
    }
    /// Queues a range for a source that has not answered yet; false: there is none.
    fn queue(&mut self, base: &mut Base, repeat: Repeat) -> bool {
        let id = base.fleet.job(&repeat.part.campaign, Kind::Verify, None);
        base.fleet.needs(id, repeat.needs.clone());
        let sources = [Some(&repeat.first), repeat.second.as_ref()].into_iter().flatten();
        let sources = sources.map(|said| &said.by).chain(&repeat.silent).cloned();
        base.fleet.avoid(id, sources.collect::<Vec<_>>(), true);
        let there = base.fleet.has_others(id);
        match there {
            true => _ = self.jobs.insert(id, repeat),
            false => _ = base.fleet.drop_job(id),
        }
        there
    }
    /// The campaign and the range of a job.
    pub(crate) fn describe(&self, job: JobId) -> Option<(&str, Range<u64>)> {
        self.jobs.get(&job).map(|repeat| (repeat.part.campaign.as_str(), repeat.part.range.clone()))
    }
    /// Forgets a job that was lost too often; the campaign it was of.
    pub(crate) fn failed(&mut self, job: JobId) -> Option<String> {
        self.jobs.remove(&job).map(|repeat| repeat.part.campaign)
    }
    /// Takes a report on a range that is done again. Returns whether it was the last one.
    pub(crate) fn report(
        &mut self,
        base: &mut Base,
        of: impl Fn(&str) -> Option<Campaign>,
        (worker, lease, job): (WorkerId, LeaseId, JobId),
        report: v1::Report,
    ) -> Result<bool, &'static str> {
        let done = report.done;
        let Some(repeat) = self.jobs.get_mut(&job) else { return Ok(true) };
        let items = intake::items(&repeat.part.range, report)?;
        if repeat.now.0 != Some(lease) {
            repeat.now = (Some(lease), Items::new());
        }
        repeat.now.1.extend(items.iter().map(|item| (item.item, digest(item))));
        if !done {
            return Ok(false);
        }
        if repeat.now.1.len() as u64 != repeat.part.range.end - repeat.part.range.start {
            return Err("a range lease is over when all its items are reported");
        }
        base.fleet.done(lease);
        let source = base.fleet.source(worker);
        if let Some(repeat) = self.jobs.remove(&job) {
            self.compare(base, of, repeat, source);
        }
        Ok(true)
    }
    /// Compares the answers to a range.
    fn compare(
        &mut self,
        base: &mut Base,
        of: impl Fn(&str) -> Option<Campaign>,
        mut repeat: Repeat,
        by: Source,
    ) {
        let items = std::mem::take(&mut repeat.now.1);
        repeat.now.0 = None;
        repeat.since_ms = base.now();
        let first = Compared::of(&items, &repeat.first.items);
        let second = repeat.second.as_ref().map(|said| Compared::of(&items, &said.items));
        let verdict = match (&repeat.second, second) {
            (None, _) if first.differ > 0 => {
                self.disputed += 1;
                repeat.second = Some(Said { by, items });
                let open = repeat.open();
                if self.queue(base, repeat.clone()) { None } else { open }
            }
            (None, _) => {
                self.seen(base, &repeat.first.by, &by, first);
                if first.silent > 0 {
                    self.ask_another(base, repeat.clone(), by);
                }
                None
            }
            (Some(said), Some(second)) if first.differ == 0 && second.differ > 0 => {
                self.seen(base, &repeat.first.by, &by, first);
                Some(Verdict::Wrong(said.by.clone()))
            }
            (Some(said), Some(second)) if first.differ > 0 && second.differ == 0 => {
                base.suspects.right([&said.by, &by]);
                Some(Verdict::Wrong(repeat.first.by.clone()))
            }
            // It has no answer to the items in dispute.
            _ if first.differ == 0 && self.ask_another(base, repeat.clone(), by) => None,
            _ => repeat.open(),
        };
        verdict.into_iter().for_each(|verdict| end(base, &of, &repeat.part, &verdict));
    }
    /// Notes that two sources said the same of some items.
    fn seen(&mut self, base: &mut Base, first: &Source, by: &Source, items: Compared) {
        if items.same > 0 {
            base.suspects.right([first, by]);
            self.twice += items.same;
        }
    }
    /// Has a range done once more, because this source had no answer to some of it; false: nobody else is there, or two had
    /// none.
    fn ask_another(&mut self, base: &mut Base, mut repeat: Repeat, by: Source) -> bool {
        repeat.silent.push(by);
        repeat.silent.len() < SILENT_MAX && self.queue(base, repeat)
    }
    /// Gives up ranges for which no other source comes. Returns the campaigns they are of.
    pub(crate) fn tick(
        &mut self,
        base: &mut Base,
        of: impl Fn(&str) -> Option<Campaign>,
    ) -> BTreeSet<String> {
        self.drawn.retain(|lease, _| base.fleet.holds(*lease));
        let (now, longest) = (base.now(), base.config.avoid_ms.saturating_mul(PATIENCE));
        let late = |repeat: &Repeat| now.saturating_sub(repeat.since_ms) > longest;
        let over = |(id, repeat): (&JobId, &Repeat)| {
            let vain = !base.fleet.knows_job(*id) || !base.fleet.has_others(*id) || late(repeat);
            vain.then_some(*id)
        };
        let vain: Vec<JobId> = self.jobs.iter().filter_map(over).collect();
        let mut campaigns = BTreeSet::new();
        for id in vain {
            if base.fleet.knows_job(id) && !base.fleet.drop_job(id) {
                // A worker has it now.
                continue;
            }
            let Some(repeat) = self.jobs.remove(&id) else { continue };
            repeat.open().iter().for_each(|open| end(base, &of, &repeat.part, open));
            campaigns.insert(repeat.part.campaign);
        }
        campaigns
    }
}

/// Notes the end of a dispute, and keeps it as a finding.
fn end(base: &mut Base, of: &impl Fn(&str) -> Option<Campaign>, part: &DrawnRange, verdict: &Verdict) {
    if let Verdict::Wrong(source) = verdict {
        base.suspects.wrong(source, &base.fleet);
    }
    let Some(campaign) = of(&part.campaign) else { return };
    let Range { start, end } = part.range;
    let what = format!("items {start} to {} of campaign {}", end - 1, part.campaign);
    let provenance = Provenance { generator: campaign.generator, seed: campaign.seed, index: start };
    let found = disagreement(&part.campaign, &what, verdict);
    base.disputes.push(Finding { provenance, ..found });
}

/// A finding about the fleet. There is one of each pair of a campaign and a source that stands alone.
fn disagreement(campaign: &str, what: &str, verdict: &Verdict) -> Finding {
    let (who, words) = match verdict {
        Verdict::Wrong(source) => (source.to_string(), format!("{source} stands alone against two others")),
        Verdict::Open(a, b) => {
            (format!("{a} and {b}"), format!("{a} and {b} differ, and no third worker decides"))
        }
    };
    fleet_finding(campaign, &who, &format!("{what}: {words}"))
}

/// A finding about the fleet, which is the same for equal `campaign` and `who`.
pub(crate) fn fleet_finding(campaign: &str, who: &str, words: &str) -> Finding {
    let now = unix_ms();
    let name = Hash::of(format!("{campaign}\n{who}").as_bytes());
    Finding {
        id: Finding::dedupe_id(FLEET, &[], &name),
        campaign: campaign.to_owned(),
        oracle: FLEET.to_owned(),
        rule: "equal".to_owned(),
        verdict: "disagreement".to_owned(),
        reduced: words.to_owned(),
        verified: Verified::Other,
        first_seen_ms: now,
        last_seen_ms: now,
        last_tested_ms: now,
        count: 1,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LEASE_ITEMS;
    use crate::lease::{Action, Config, Work};
    use crate::trial::Trial;
    use moire_corpus::{Options, Store};

    /// A coordinator with a draw, and workers of a source each.
    struct World {
        base: Base,
        repeats: Repeats,
        workers: Vec<WorkerId>,
        _folder: tempfile::TempDir,
    }

    /// The campaign of all tests.
    fn of(name: &str) -> Option<Campaign> {
        Some(Campaign { name: name.to_owned(), ..Campaign::default() })
    }

    fn item(item: u64, executions: u64) -> v1::ItemResult {
        let engine = v1::EngineResult {
            engine: "explorer".to_owned(),
            outcomes: vec![0; 32],
            leaves: vec![0; 32],
            executions,
            ..v1::EngineResult::default()
        };
        v1::ItemResult { item, program: vec![1; 32], engines: vec![engine], ..v1::ItemResult::default() }
    }

    /// The answer of a worker that counts so many executions, or has no memory to count them.
    fn said(number: u64, executions: u64) -> v1::ItemResult {
        if executions == u64::MAX { bounded(number) } else { item(number, executions) }
    }

    impl World {
        fn new(sources: &[&str], draw: Draw) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
            let mut base = Base::new(store, Config::default(), Trial::default());
            let join = |source: &&str| {
                let id = base.fleet.hello(BTreeSet::new(), "f", 0).unwrap();
                base.fleet.comes_from(id, Source::Known((*source).to_owned()));
                base.fleet.credit(id, 8, 0);
                id
            };
            let workers = sources.iter().map(join).collect();
            Self { base, repeats: Repeats::new(draw), workers, _folder: folder }
        }

        /// The worker of this number does a range and says so of its items; others do it again if it was drawn. `says`: the
        /// executions that a worker counts at an item.
        fn range(&mut self, number: u64, worker: usize, says: &dyn Fn(usize, u64) -> u64) {
            let range = number * LEASE_ITEMS..(number + 1) * LEASE_ITEMS;
            let lease = LeaseId(u64::MAX - number);
            self.repeats.granted(self.workers[worker], lease, "c", range.clone());
            if !self.repeats.drawn.contains_key(&lease) {
                return;
            }
            range.for_each(|i| self.repeats.heard(lease, &said(i, says(worker, i))));
            self.repeats.finished(&mut self.base, lease);
            while !self.repeats.jobs.is_empty() {
                let granted = self.base.fleet.poll(0).into_iter().find_map(|action| match action {
                    Action::Grant { worker, lease, grant, .. } => Some((worker, lease, grant.work)),
                    _ => None,
                });
                let Some((by, lease, Work::Job(job))) = granted else { panic!("nobody does it again") };
                let number = self.workers.iter().position(|w| *w == by).unwrap();
                let (_, range) = self.repeats.describe(job).unwrap();
                let items = range.map(|i| said(i, says(number, i))).collect();
                let report = v1::Report { items, done: true, ..v1::Report::default() };
                let over = self.repeats.report(&mut self.base, of, (by, lease, job), report);
                assert_eq!(over, Ok(true));
                self.base.fleet.credit(by, 1, 0);
            }
        }
    }

    /// A number of these parts that looks drawn.
    fn noise(seed: u64, item: u64) -> u64 {
        let hash = blake3::hash(&[seed.to_le_bytes(), item.to_le_bytes()].concat());
        hash.as_bytes()[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    /// One execution in a thousand is dropped by the first worker. Its ranges have one execution an item, the fewest there
    /// are, so that most of them are whole.
    #[test]
    fn a_worker_that_drops_one_execution_in_a_thousand_is_found() {
        let (mut found, mut first, mut repeated) = (0, Vec::new(), 0);
        for seed in 0..100 {
            let share = Config::default().repeat_per_mille;
            let mut world = World::new(&["liar", "a", "b"], Draw::new(share, Some(seed)));
            let says =
                |worker: usize, item: u64| u64::from(worker != 0 || !noise(seed, item).is_multiple_of(1000));
            let caught = (0..5_000).find(|number| {
                world.range(*number, 0, &says);
                !world.base.disputes.is_empty()
            });
            if let Some(number) = caught {
                found += 1;
                first.push(number);
                let words = &world.base.disputes[0].reduced;
                assert!(words.contains("liar stands alone against two others"), "{words}");
                assert_eq!(world.base.disputes[0].oracle, FLEET);
            }
            repeated += world.repeats.twice;
        }
        first.sort_unstable();
        println!(
            "{found} of 100 found, half of them within {} ranges, {repeated} items seen twice",
            first[50]
        );
        assert!(found >= 99, "{found} of 100");
    }

    #[test]
    fn honest_workers_are_never_at_odds() {
        let mut world = World::new(&["a", "b", "c"], Draw::new(200, Some(3)));
        for number in 0..500 {
            world.range(number, usize::try_from(number % 3).unwrap(), &|_, item| 1 + item % 7);
        }
        assert!(world.base.disputes.is_empty() && world.repeats.disputed == 0);
        assert!(world.repeats.twice > 50 * LEASE_ITEMS, "{}", world.repeats.twice);
        assert_eq!(world.base.suspects.all().count(), 0);
    }

    #[test]
    fn two_alone_cannot_tell_who_is_wrong() {
        let mut world = World::new(&["a", "b"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| worker as u64);
        let words = &world.base.disputes[0].reduced;
        assert!(words.contains("a and b differ"), "{words}");
        assert_eq!(world.base.suspects.all().count(), 0, "nobody was contradicted by two");
        // One source on two connections is one source: nobody does its ranges again.
        let mut world = World::new(&["a", "a"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| worker as u64);
        assert!(world.base.disputes.is_empty() && !world.repeats.busy("c"));
    }

    #[test]
    fn a_second_worker_that_is_wrong_harms_nobody_else() {
        let mut world = World::new(&["a", "liar", "b"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| u64::from(worker == 1));
        let wrong: Vec<String> = world.base.disputes.iter().map(|f| f.reduced.clone()).collect();
        assert!(wrong.iter().all(|w| w.contains("liar stands alone")), "{wrong:?}");
        assert_eq!(world.repeats.twice, LEASE_ITEMS);
    }

    fn bounded(number: u64) -> v1::ItemResult {
        let abstentions = BTreeMap::from([(moire_proto::MEMORY.to_owned(), 1)]);
        v1::ItemResult { item: number, program: vec![0; 32], abstentions, ..v1::ItemResult::default() }
    }

    #[test]
    fn an_item_without_memory_for_it_agrees_with_none_and_contradicts_none() {
        let one = |item: v1::ItemResult| Items::from([(7, digest(&item))]);
        let compared = |a, b| Compared::of(&one(a), &one(b));
        let none = Compared::default();
        assert_eq!(compared(bounded(7), item(7, 3)), Compared { silent: 1, ..none });
        assert_eq!([compared(item(7, 3), bounded(7)), compared(bounded(7), bounded(7))], [none; 2]);
        assert_eq!(compared(item(7, 3), item(7, 3)), Compared { same: 1, ..none });
        assert_eq!(compared(item(7, 2), item(7, 3)), Compared { differ: 1, ..none });
        assert_eq!(Compared::of(&Items::new(), &one(item(7, 3))), Compared { silent: 1, ..none });
    }

    /// A source that has no memory for anything counts for nothing: another one is asked, and decides.
    #[test]
    fn a_source_without_answers_is_no_second_one() {
        const NOTHING: u64 = u64::MAX;
        let mut world = World::new(&["a", "mute", "b"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| if worker == 1 { NOTHING } else { 1 });
        assert_eq!((world.repeats.twice, world.repeats.disputed), (LEASE_ITEMS, 0));
        let mut world = World::new(&["liar", "mute", "b"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| if worker == 1 { NOTHING } else { worker as u64 });
        assert_eq!((world.repeats.twice, world.repeats.disputed), (0, 1));
        assert!(world.base.disputes[0].reduced.contains("liar and b differ"), "{:?}", world.base.disputes);
        let mut world = World::new(&["a", "mute"], Draw::new(1000, Some(3)));
        world.range(0, 0, &|worker, _| if worker == 1 { NOTHING } else { 1 });
        assert!(world.repeats.twice == 0 && world.base.disputes.is_empty() && !world.repeats.busy("c"));
    }

    #[test]
    fn a_range_that_nobody_comes_for_is_given_up() {
        let mut world = World::new(&["a", "b"], Draw::new(1000, Some(3)));
        let lease = LeaseId(9);
        world.repeats.granted(world.workers[0], lease, "c", 0..2);
        (0..2).for_each(|i| world.repeats.heard(lease, &item(i, 1)));
        world.repeats.finished(&mut world.base, lease);
        assert!(world.repeats.busy("c"));
        let away = world.workers[1];
        world.base.fleet.disconnect(away);
        assert_eq!(world.repeats.tick(&mut world.base, of), BTreeSet::from(["c".to_owned()]));
        assert!(!world.repeats.busy("c") && world.base.disputes.is_empty());
    }
}
