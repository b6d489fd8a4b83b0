//! From claims to findings, in an order that does not depend on who reports first.
//!
//! Contract: claims are admitted in item order, once all earlier items are reported, and at most [`CLASS_MAX`] of
//! one class (oracle, direction, models, axioms) per campaign; the others are counted. An admitted claim is run
//! again by another worker, reduced, run again as reduced, brought to canonical form, and merged with the finding of the
//! same key. A claim that nobody could run again is no finding; a reduction that does not show the same rule broken is
//! made again by another worker. An item with claims is committed together with its findings, in item order, so an
//! interrupted one runs again.
//! Source: design sections 4, 7 and 9.

use crate::core::Core;
use crate::intake::{self, Answer};
use crate::lease::{CampaignSpec, JobId, Kind, Scheduler, WorkerId};
use crate::reduction::Batch;
use crate::trial::{Event as Told, Planted};
use crate::{CLASS_MAX, HELD_MAX, LEASE_ITEMS, failpoints};
use moire_corpus::{
    Campaign, CampaignState, Counters, EngineResult, Finding, Hash, ItemDone, ModelRef, Progress, Provenance,
    Verified, Write, item_digest,
};
use moire_program::text::{Format, parse};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Starts the name of a counter of one class of claims (oracle, then a hash), kept with a campaign's abstentions.
pub const CLASS_PREFIX: &str = "claims/";
/// Starts the name of an engine row that is about a mutant of a protocol; behind it stands the mutation.
pub const MUTANT_PREFIX: &str = "mutant/";

/// Reductions of one claim that may turn out wrong; then it is kept as it was.
const REDUCTIONS_MAX: u32 = 3;
/// Stretches of completed items a campaign's record may list; beyond it items wait for those before them.
const STRETCHES_MAX: usize = 1200;
/// Reasons, and classes, a campaign's record may list; beyond it they are counted together.
const REASONS_MAX: usize = 200;
/// What reasons beyond the limit are counted as.
const OTHER_REASONS: &str = "other reasons";

/// What a job with text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Verify,
    Minimise,
    /// A part of a minimisation, for [`crate::reduction`].
    Part,
    /// Verify what a minimisation answered.
    Confirm,
    Replay,
}

/// A job with text.
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    pub(crate) claim: v1::Claim,
    /// Who claims it.
    claimant: Option<WorkerId>,
    /// The claim on the reduced program, and who reduced it.
    reduced: Option<(v1::Claim, WorkerId)>,
    /// The claim on the least program so far.
    pub(crate) best: Option<v1::Claim>,
    /// Candidates tried for that.
    pub(crate) tried: u64,
    /// Of a part.
    pub(crate) batch: Option<Batch>,
    /// Reductions that turned out wrong.
    wrong: u32,
    /// Campaign and item, unless a client submitted it.
    pub(crate) origin: Option<(String, u64)>,
    pub(crate) plan: Option<v1::Plan>,
    verified: Verified,
    pub(crate) reply: Option<tokio::sync::oneshot::Sender<Option<Answer>>>,
}

impl Job {
    pub(crate) fn new(kind: JobKind, claim: v1::Claim) -> Self {
        Self {
            kind,
            claim,
            claimant: None,
            reduced: None,
            best: None,
            tried: 0,
            batch: None,
            wrong: 0,
            origin: None,
            plan: None,
            verified: Verified::Unverified,
            reply: None,
        }
    }
    /// The claim that is to be made smaller.
    pub(crate) fn at_hand(&self) -> &v1::Claim {
        self.best.as_ref().unwrap_or(&self.claim)
    }
    /// The claim a verifying worker is asked about.
    pub(crate) fn asked(&self) -> &v1::Claim {
        self.reduced.as_ref().filter(|_| self.kind == JobKind::Confirm).map_or(&self.claim, |r| &r.0)
    }
}

/// An item with claims.
struct Held {
    done: ItemDone,
    claims: Vec<v1::Claim>,
    worker: WorkerId,
    /// Claims admitted and not yet findings; `None` before admission.
    open: Option<usize>,
    findings: Vec<Finding>,
}

/// A campaign at work.
pub(crate) struct Run {
    pub(crate) campaign: Campaign,
    pub(crate) progress: Progress,
    /// All items below are reported.
    frontier: u64,
    /// One past the last item reported.
    reach: u64,
    reported: BTreeSet<u64>,
    /// Items without claims, to be committed.
    plain: BTreeMap<u64, ItemDone>,
    held: BTreeMap<u64, Held>,
    classes: BTreeMap<String, u64>,
    /// Names the campaign's record lists.
    reasons: BTreeSet<String>,
    /// Of an ended campaign, from the first time it is asked for.
    pub(crate) digest: Option<Hash>,
}

impl Run {
    pub(crate) fn new(campaign: Campaign, progress: Progress) -> Self {
        let classes = progress.counters.abstentions.iter().filter(|(k, _)| k.starts_with(CLASS_PREFIX));
        let classes = classes.map(|(k, v)| (k.clone(), *v)).collect();
        let counters = &progress.counters;
        let reasons = counters.abstentions.keys().filter(|k| !k.starts_with(CLASS_PREFIX));
        let reasons =
            reasons.chain(counters.canaries.keys()).chain(counters.mutants.keys()).cloned().collect();
        Self {
            campaign,
            progress,
            frontier: 0,
            reach: 0,
            reported: BTreeSet::new(),
            plain: BTreeMap::new(),
            held: BTreeMap::new(),
            classes,
            reasons,
            digest: None,
        }
    }
    pub(crate) fn open(&self) -> bool {
        matches!(self.campaign.state, CampaignState::Running | CampaignState::Paused)
    }
    /// Items whose claims are under way.
    pub(crate) fn claims_open(&self) -> usize {
        self.held.len()
    }
    pub(crate) fn end(&self) -> u64 {
        self.campaign.limits.programs.unwrap_or(u64::MAX / 2)
    }
    pub(crate) fn lease_spec(&self) -> CampaignSpec {
        CampaignSpec {
            epoch: self.campaign.epoch,
            weight: self.campaign.priority,
            needs: self.campaign.needs.iter().cloned().collect(),
            fingerprint: self.campaign.generator.clone(),
            missing: self.progress.missing(self.end()),
            batch: LEASE_ITEMS,
        }
    }
    pub(crate) fn plan(&self) -> v1::Plan {
        v1::Plan {
            campaign: self.campaign.name.clone(),
            oracles: self.campaign.oracles.clone(),
            models: self.campaign.models.iter().map(|m| m.name.clone()).collect(),
            canaries: self.campaign.canaries,
        }
    }
    /// `name`, or what it is counted as when the record lists enough names.
    fn listed(&mut self, name: String) -> String {
        if self.reasons.contains(&name) {
            return name;
        }
        let name = if self.reasons.len() < REASONS_MAX { name } else { OTHER_REASONS.to_owned() };
        self.reasons.insert(name.clone());
        name
    }
    /// Takes an item's result; it has been checked for shape. False: it is known (`twice`: and counted all the same, a
    /// bug for tests of the tests).
    pub(crate) fn reported(&mut self, result: v1::ItemResult, worker: WorkerId, twice: bool) -> bool {
        let item = result.item;
        if (self.progress.contains(item) || !self.reported.insert(item)) && !twice {
            return false;
        }
        self.reach = self.reach.max(item + 1);
        let mut abstentions = BTreeMap::new();
        for (reason, n) in result.abstentions {
            *abstentions.entry(self.listed(reason)).or_insert(0_u64) += n;
        }
        let caught: Vec<_> = result.canaries.iter().filter(|c| c.caught).map(|c| c.name.clone()).collect();
        let caught: BTreeSet<_> = caught.into_iter().map(|name| self.listed(name)).collect();
        let mut mutants = BTreeMap::new();
        for row in &result.engines {
            if let Some(mutation) = row.engine.strip_prefix(MUTANT_PREFIX) {
                let name = self.listed(format!("{mutation}/{}", row.verdict));
                *mutants.entry(name).or_insert(0_u64) += 1;
            }
        }
        let hash = |bytes: &[u8]| bytes.try_into().map(Hash).unwrap_or_default();
        let row = |e: &v1::EngineResult| EngineResult {
            engine: e.engine.clone(),
            verdict: e.verdict.clone(),
            outcomes: hash(&e.outcomes),
            leaves: hash(&e.leaves),
        };
        let rows: Vec<_> = result.engines.iter().map(row).collect();
        let counters = Counters {
            programs: 1,
            executions: result.engines.iter().fold(0, |sum, e| sum.saturating_add(e.executions)),
            discrepancies: result.claims.len() as u64,
            canaries_planted: result.canaries.len() as u64,
            canaries_caught: result.canaries.iter().filter(|c| c.caught).count() as u64,
            canaries: caught.into_iter().map(|name| (name, 1)).collect(),
            mutants,
            abstentions,
        };
        let digest = item_digest(item, &hash(&result.program), &rows);
        let done = ItemDone { item, epoch: self.campaign.epoch, digest, counters };
        if result.claims.is_empty() {
            self.plain.insert(item, done);
        } else {
            let (claims, findings) = (result.claims, Vec::new());
            self.held.insert(item, Held { done, claims, worker, open: None, findings });
        }
        true
    }
    /// Records an item that cannot be run.
    pub(crate) fn quarantined(&mut self, item: u64) {
        if self.reported.insert(item) {
            let mut counters = Counters { programs: 1, ..Counters::default() };
            counters.abstentions.insert("quarantined".to_owned(), 1);
            let digest = item_digest(item, &Hash::default(), &[]);
            self.reach = self.reach.max(item + 1);
            self.plain.insert(item, ItemDone { item, epoch: self.campaign.epoch, digest, counters });
        }
    }
    /// Claims of the next held items that may now be admitted.
    fn admit(&mut self) -> Vec<(u64, WorkerId, v1::Claim)> {
        while self.progress.contains(self.frontier) || self.reported.contains(&self.frontier) {
            self.frontier += 1;
        }
        let mut admitted = Vec::new();
        for (item, held) in self.held.range_mut(..=self.frontier).filter(|(_, h)| h.open.is_none()) {
            let mut open = 0;
            for claim in std::mem::take(&mut held.claims) {
                let mut class = class(&claim);
                if !self.classes.contains_key(&class) && self.classes.len() >= REASONS_MAX {
                    class = format!("{CLASS_PREFIX}other");
                }
                let count = self.classes.entry(class.clone()).or_default();
                *count += 1;
                *held.done.counters.abstentions.entry(class).or_default() += 1;
                if *count <= CLASS_MAX {
                    open += 1;
                    admitted.push((*item, held.worker, claim));
                }
            }
            held.open = Some(open);
        }
        admitted
    }
    /// Items that can be committed, with their findings.
    fn ready(&mut self) -> (Vec<ItemDone>, VecDeque<(u64, Finding)>) {
        let (mut items, mut findings) = (self.ready_plain(), VecDeque::new());
        while let Some(first) = self.held.first_entry().filter(|h| h.get().open == Some(0)) {
            let (item, held) = first.remove_entry();
            findings.extend(held.findings.into_iter().map(|f| (item, f)));
            items.push(held.done);
        }
        (items, findings)
    }
    /// Items without claims that can be committed without breaking the record into too many stretches.
    fn ready_plain(&mut self) -> Vec<ItemDone> {
        let (mut stretches, mut next) = (self.progress.completed.len(), self.progress.next());
        let mut ready = Vec::new();
        for (item, done) in std::mem::take(&mut self.plain) {
            stretches += usize::from(item != next);
            if item == next || stretches <= STRETCHES_MAX {
                ready.push(done);
                next = item + 1;
            } else {
                self.plain.insert(item, done);
            }
        }
        ready
    }
    fn idle(&self) -> bool {
        self.held.is_empty() && self.plain.is_empty() && self.progress.done() >= self.end()
    }
}

fn class(claim: &v1::Claim) -> String {
    let models = claim.models.iter().map(|m| (&m.name, &m.variants)).collect::<Vec<_>>();
    let axioms: BTreeSet<BTreeSet<&String>> = claim.axioms.iter().map(|a| a.names.iter().collect()).collect();
    let key = format!("{:?}", (&claim.oracle, &claim.direction, &claim.verdict, models, axioms));
    format!("{CLASS_PREFIX}{}/{}", claim.oracle, Hash::of(key.as_bytes()).short())
}

/// The finding of a reduced claim.
fn finding(
    run: &Campaign,
    item: u64,
    original: &v1::Claim,
    claim: &v1::Claim,
    verified: Verified,
    now: u64,
) -> Finding {
    let parsed = parse(&claim.program, Format::Native).ok().map(|p| moire_program::canon::canonical(&p));
    // Text that is not canonical never merges with other text: its own hash is its identity.
    let (reduced, id) = match parsed {
        Some(c) if c.exact => (c.text, Hash(c.id.0)),
        _ => (claim.program.clone(), Hash::of(claim.program.as_bytes())),
    };
    let axioms: Vec<Vec<String>> = claim.axioms.iter().map(|a| a.names.clone()).collect();
    let hash = |bytes: &[u8]| bytes.try_into().map(Hash).unwrap_or_default();
    let model = |m: &v1::Side| ModelRef {
        name: m.name.clone(),
        variants: m.variants.clone(),
        fingerprint: hash(&m.fingerprint),
    };
    Finding {
        id: Finding::dedupe_id(&claim.oracle, &axioms, &id),
        campaign: run.name.clone(),
        oracle: claim.oracle.clone(),
        rule: claim.direction.clone(),
        models: claim.models.iter().map(model).collect(),
        reduced,
        original: original.program.clone(),
        provenance: Provenance { generator: run.generator.clone(), seed: run.seed, index: item },
        witness: claim.witness.clone(),
        axioms,
        verdict: claim.verdict.clone(),
        verified,
        first_seen_ms: now,
        last_seen_ms: now,
        last_tested_ms: now,
        count: 1,
        ..Finding::default()
    }
}

/// The claim a finding keeps, to be run again.
pub(crate) fn claim_of(f: &Finding) -> v1::Claim {
    let side = |m: &ModelRef| v1::Side {
        name: m.name.clone(),
        variants: m.variants.clone(),
        fingerprint: m.fingerprint.0.to_vec(),
    };
    v1::Claim {
        oracle: f.oracle.clone(),
        direction: f.rule.clone(),
        models: f.models.iter().map(side).collect(),
        verdict: f.verdict.clone(),
        program: f.reduced.clone(),
        witness: f.witness.clone(),
        axioms: f.axioms.iter().map(|names| v1::Checks { names: names.clone() }).collect(),
    }
}

/// Queues a job about a claim, for workers that have the tools it is about: such a side is named as the capability is.
pub(crate) fn lease(
    fleet: &mut Scheduler,
    campaign: &str,
    kind: Kind,
    avoid: Option<WorkerId>,
    claim: &v1::Claim,
) -> JobId {
    let id = fleet.job(campaign, kind, avoid);
    fleet.takes(id, claim.models.iter().map(|side| side.name.clone()));
    id
}

impl Core {
    /// Admits claims and prepares the writes of what is complete.
    pub(crate) fn advance(&mut self, name: &str) {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return };
        for (item, worker, claim) in run.admit() {
            failpoints::hit(failpoints::VERIFY);
            let id = lease(&mut self.fleet, name, Kind::Verify, Some(worker), &claim);
            let origin = Some((name.to_owned(), item));
            let new = Job::new(JobKind::Verify, claim);
            self.jobs.insert(id, Job { claimant: Some(worker), origin, ..new });
        }
        self.fleet.limit(name, if run.held.len() < HELD_MAX { u64::MAX } else { run.reach });
        let (items, findings) = run.ready();
        for (item, found) in findings {
            let id = found.id;
            let stored = || self.store.finding(&id).ok().flatten().map(|f| (f, false));
            let (known, new) =
                self.fresh.remove(&id).or_else(stored).map_or((None, true), |(f, n)| (Some(f), n));
            let before = known.as_ref().map(|f| f.state.clone());
            let merged = merge(known, found);
            self.finding_changed(&id, before.as_ref(), &merged.state);
            self.fresh.insert(id, (merged.clone(), new));
            self.writes.push(Write::Finding(Box::new(merged)));
            self.writes.push(Write::Sighting { campaign: name.to_owned(), item, finding: id });
        }
        if !items.is_empty() {
            self.writes.push(Write::Items { campaign: name.to_owned(), items });
            if let Some(run) = self.runs.get_mut(name) {
                run.digest = None;
            }
        }
    }

    /// After a commit: closes a campaign that has all its items.
    pub(crate) fn finish(&mut self, name: &str) -> Result<(), crate::Error> {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return Ok(()) };
        let below =
            run.reported.iter().take_while(|i| run.progress.contains(**i)).copied().collect::<Vec<_>>();
        below.iter().for_each(|i| _ = run.reported.remove(i));
        let early = self.trial.has(Planted::DoneEarly)
            && run.reported.len() as u64 + run.progress.done() >= run.end();
        if early || run.idle() {
            failpoints::hit(failpoints::CAMPAIGN_DONE);
            run.campaign.state = CampaignState::Done;
            self.store.commit(vec![Write::Campaign(Box::new(run.campaign.clone()))])?;
            let digest = self.store.digest(name)?;
            run.digest = Some(digest);
            self.trial.tell(|| Told::Ended { campaign: name.to_owned(), digest: digest.to_string() });
            let now = self.now();
            self.fleet.drop_campaign(name, now);
        }
        Ok(())
    }

    /// Goes on after a job's answer and its worker; `None`: it was given up.
    pub(crate) fn job_over(&mut self, id: JobId, answer: Option<(WorkerId, Answer)>) {
        use v1::verify_result::Answer as Said;
        let Some(mut job) = self.jobs.remove(&id) else { return };
        if job.kind == JobKind::Part {
            return self.batch_over(job.batch, answer.map(|a| a.1));
        }
        if let Some(reply) = job.reply.take() {
            let mut answer = answer.map(|a| a.1);
            if let Some(Answer::Minimised(result)) = &mut answer {
                result.tried = result.tried.saturating_add(job.tried);
            }
            // The client may have gone.
            let _ = reply.send(answer);
            return;
        }
        match (job.kind, answer) {
            (JobKind::Verify, Some((by, Answer::Verified(result)))) => match result.answer() {
                Said::Confirmed => {
                    let other = job.claimant != Some(by);
                    job.verified = if other { Verified::Other } else { Verified::Itself };
                    self.minimise(job);
                }
                Said::Abstained => self.refuse(&job, "not verified"),
                Said::Refuted | Said::Unspecified => self.refuse(&job, "refuted"),
            },
            (JobKind::Minimise, Some((by, Answer::Minimised(result)))) => {
                let same = result.claim.as_ref().is_none_or(|c| c.program == job.claim.program);
                job.reduced = result.claim.map(|claim| (claim, by));
                match same {
                    true => self.found(&job),
                    false => self.again(job, JobKind::Confirm, Some(by)),
                }
            }
            (JobKind::Confirm, Some((_, Answer::Verified(result)))) if result.answer() == Said::Refuted => {
                let by = job.reduced.take().map(|r| r.1);
                job.wrong += 1;
                // One worker does all of it, from the start.
                self.forget_best(&job);
                job.best = None;
                match job.wrong < REDUCTIONS_MAX {
                    true => self.again(job, JobKind::Minimise, by),
                    false => self.found(&job),
                }
            }
            (JobKind::Confirm, Some(_)) => self.found(&job),
            (JobKind::Minimise | JobKind::Confirm, _) => {
                job.reduced = None;
                self.found(&job);
            }
            (JobKind::Verify | JobKind::Replay | JobKind::Part, _) => self.refuse(&job, "verification lost"),
        }
    }

    /// Queues the next step of a claim.
    pub(crate) fn again(&mut self, job: Job, kind: JobKind, avoid: Option<WorkerId>) {
        let campaign = job.origin.as_ref().map_or("", |o| o.0.as_str());
        let turn = if kind == JobKind::Minimise { Kind::Minimise } else { Kind::Verify };
        let id = lease(&mut self.fleet, campaign, turn, avoid, &job.claim);
        self.jobs.insert(id, Job { kind, ..job });
    }

    /// The claim is a finding; it waits for its item.
    fn found(&mut self, job: &Job) {
        failpoints::hit(failpoints::MINIMISED);
        self.forget_best(job);
        let Some((name, item)) = &job.origin else { return };
        let Some(run) = self.runs.get_mut(name) else { return };
        let reduced = job.reduced.as_ref().map_or(&job.claim, |r| &r.0);
        let mut found = finding(&run.campaign, *item, &job.claim, reduced, job.verified, Self::unix_ms());
        intake::fit_finding(&mut found);
        if let Some(held) = run.held.get_mut(item) {
            held.open = held.open.map(|n| n.saturating_sub(1));
            held.findings.push(found);
            self.touched.insert(name.clone());
        }
    }

    /// The claim is no finding; `why` is counted.
    fn refuse(&mut self, job: &Job, why: &str) {
        let Some((name, item)) = &job.origin else { return };
        if let Some(held) = self.runs.get_mut(name).and_then(|r| r.held.get_mut(item)) {
            held.open = held.open.map(|n| n.saturating_sub(1));
            *held.done.counters.abstentions.entry(why.to_owned()).or_default() += 1;
            self.touched.insert(name.clone());
        }
    }
}

fn merge(known: Option<Finding>, found: Finding) -> Finding {
    let Some(mut known) = known else { return found };
    known.count += 1;
    known.shown(found.last_seen_ms, "coordinator");
    known
}
