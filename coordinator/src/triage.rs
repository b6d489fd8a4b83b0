//! From claims to findings, in an order that does not depend on who reports first.
//!
//! Contract: claims are admitted in item order, once all earlier items are reported, and at most [`CLASS_MAX`] of
//! one class (oracle, direction, models, axioms) per campaign; the others are counted. An admitted claim is run
//! again by another worker, reduced, brought to canonical form, and merged with the finding of the same key. An
//! item with claims is committed together with its findings, in item order, so an interrupted one runs again.
//! Source: design sections 4, 7 and 9.

use crate::core::Core;
use crate::lease::{CampaignSpec, JobId, Kind, WorkerId};
use crate::{CLASS_MAX, LEASE_ITEMS, failpoints};
use moire_corpus::{
    Campaign, CampaignState, Counters, EngineResult, Finding, FindingState, Hash, ItemDone, ModelRef,
    Progress, Provenance, Verified, Write, item_digest,
};
use moire_program::text::{Format, parse};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Counter of a class of claims, kept with the campaign's other counts.
pub(crate) const CLASS_PREFIX: &str = "claims/";

/// What a job with text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Verify,
    Minimise,
    Replay,
}

/// An answer of a job: one of the three.
pub(crate) type Answer = (Option<v1::VerifyResult>, Option<v1::MinimiseResult>, Option<v1::ItemResult>);

/// A job with text.
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    pub(crate) claim: v1::Claim,
    /// Campaign and item, unless a client submitted it.
    pub(crate) origin: Option<(String, u64)>,
    pub(crate) plan: Option<v1::Plan>,
    pub(crate) verified: Verified,
    pub(crate) reply: Option<tokio::sync::oneshot::Sender<Option<Answer>>>,
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
    pub(crate) needs: BTreeSet<String>,
    pub(crate) progress: Progress,
    /// All items below are reported.
    frontier: u64,
    reported: BTreeSet<u64>,
    /// Items without claims, to be committed.
    plain: Vec<ItemDone>,
    held: BTreeMap<u64, Held>,
    classes: BTreeMap<String, u64>,
    pub(crate) digest: Option<Hash>,
}

impl Run {
    pub(crate) fn new(campaign: Campaign, progress: Progress, needs: BTreeSet<String>) -> Self {
        let classes = progress.counters.abstentions.iter().filter(|(k, _)| k.starts_with(CLASS_PREFIX));
        let classes = classes.map(|(k, v)| (k.clone(), *v)).collect();
        let (reported, plain, held) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
        Self { campaign, needs, progress, frontier: 0, reported, plain, held, classes, digest: None }
    }
    pub(crate) fn open(&self) -> bool {
        matches!(self.campaign.state, CampaignState::Running | CampaignState::Paused)
    }
    pub(crate) fn end(&self) -> u64 {
        self.campaign.limits.programs.unwrap_or(u64::MAX / 2)
    }
    pub(crate) fn lease_spec(&self) -> CampaignSpec {
        CampaignSpec {
            epoch: self.campaign.epoch,
            weight: self.campaign.priority,
            needs: self.needs.clone(),
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
            canaries: true,
        }
    }
    /// Takes an item's result; it has been checked for shape.
    pub(crate) fn reported(&mut self, result: v1::ItemResult, worker: WorkerId) {
        let item = result.item;
        if self.progress.contains(item) || !self.reported.insert(item) {
            return;
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
            canaries: result.canaries.iter().filter(|c| c.caught).map(|c| (c.name.clone(), 1)).collect(),
            abstentions: result.abstentions,
        };
        let digest = item_digest(item, &hash(&result.program), &rows);
        let done = ItemDone { item, epoch: self.campaign.epoch, digest, counters };
        if result.claims.is_empty() {
            self.plain.push(done);
        } else {
            let (claims, findings) = (result.claims, Vec::new());
            self.held.insert(item, Held { done, claims, worker, open: None, findings });
        }
    }
    /// Records an item that cannot be run.
    pub(crate) fn quarantined(&mut self, item: u64) {
        if self.reported.insert(item) {
            let mut counters = Counters { programs: 1, ..Counters::default() };
            counters.abstentions.insert("quarantined".to_owned(), 1);
            let digest = item_digest(item, &Hash::default(), &[]);
            self.plain.push(ItemDone { item, epoch: self.campaign.epoch, digest, counters });
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
                let class = class(&claim);
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
        let (mut items, mut findings) = (std::mem::take(&mut self.plain), VecDeque::new());
        while let Some(first) = self.held.first_entry().filter(|h| h.get().open == Some(0)) {
            let (item, held) = first.remove_entry();
            findings.extend(held.findings.into_iter().map(|f| (item, f)));
            items.push(held.done);
        }
        (items, findings)
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

impl Core {
    /// Admits claims and prepares the writes of what is complete.
    pub(crate) fn advance(&mut self, name: &str) {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return };
        for (item, worker, claim) in run.admit() {
            failpoints::hit(failpoints::VERIFY);
            let id = self.fleet.job(name, Kind::Verify, Some(worker));
            let origin = Some((name.to_owned(), item));
            let verified = Verified::Unverified;
            self.jobs
                .insert(id, Job { kind: JobKind::Verify, claim, origin, plan: None, verified, reply: None });
        }
        let (items, findings) = run.ready();
        for (item, found) in findings {
            let id = found.id;
            let stored = || self.store.finding(&id).ok().flatten().map(|f| (f, false));
            let (known, new) =
                self.fresh.remove(&id).or_else(stored).map_or((None, true), |(f, n)| (Some(f), n));
            let merged = merge(known, found);
            self.fresh.insert(id, (merged.clone(), new));
            self.writes.push(Write::Finding(Box::new(merged)));
            self.writes.push(Write::Sighting { campaign: name.to_owned(), item, finding: id });
        }
        if !items.is_empty() {
            self.writes.push(Write::Items { campaign: name.to_owned(), items });
            run.digest = None;
        }
    }

    /// After a commit: reads the progress back and closes a campaign that has all its items.
    pub(crate) fn finish(&mut self, name: &str) -> Result<(), crate::Error> {
        let Some(run) = self.runs.get_mut(name).filter(|r| r.open()) else { return Ok(()) };
        run.progress = self.store.progress(name)?;
        let below =
            run.reported.iter().take_while(|i| run.progress.contains(**i)).copied().collect::<Vec<_>>();
        below.iter().for_each(|i| _ = run.reported.remove(i));
        if run.idle() {
            failpoints::hit(failpoints::CAMPAIGN_DONE);
            run.campaign.state = CampaignState::Done;
            self.store.commit(vec![Write::Campaign(Box::new(run.campaign.clone()))])?;
            run.digest = Some(self.store.digest(name)?);
            let now = self.now();
            self.fleet.drop_campaign(name, now);
        }
        Ok(())
    }

    /// Goes on after a job's answer; `None`: it was given up.
    pub(crate) fn job_over(&mut self, id: JobId, answer: Option<Answer>) {
        let Some(job) = self.jobs.remove(&id) else { return };
        if let Some(reply) = job.reply {
            // The client may have gone.
            let _ = reply.send(answer);
            return;
        }
        let Some((name, item)) = job.origin.clone() else { return };
        let other = self.fleet.workers() > 1;
        match (job.kind, answer) {
            (JobKind::Verify, Some((Some(result), ..))) => {
                if result.answer() == v1::verify_result::Answer::Confirmed {
                    self.minimise(job, if other { Verified::Other } else { Verified::Itself });
                } else {
                    self.refuse(&name, item);
                }
            }
            (JobKind::Verify, _) => self.minimise(job, Verified::Unverified),
            (_, answer) => {
                let reduced =
                    answer.and_then(|a| a.1).and_then(|m| m.claim).unwrap_or_else(|| job.claim.clone());
                failpoints::hit(failpoints::MINIMISED);
                let now = Self::unix_ms();
                let Some(run) = self.runs.get_mut(&name) else { return };
                let found = finding(&run.campaign, item, &job.claim, &reduced, job.verified, now);
                if let Some(held) = run.held.get_mut(&item) {
                    held.open = held.open.map(|n| n.saturating_sub(1));
                    held.findings.push(found);
                }
            }
        }
    }

    fn minimise(&mut self, job: Job, verified: Verified) {
        let campaign = job.origin.as_ref().map_or("", |o| o.0.as_str());
        let id = self.fleet.job(campaign, Kind::Minimise, None);
        self.jobs.insert(id, Job { kind: JobKind::Minimise, verified, ..job });
    }

    fn refuse(&mut self, name: &str, item: u64) {
        if let Some(held) = self.runs.get_mut(name).and_then(|r| r.held.get_mut(&item)) {
            held.open = held.open.map(|n| n.saturating_sub(1));
            *held.done.counters.abstentions.entry("refuted".to_owned()).or_default() += 1;
        }
    }
}

fn merge(known: Option<Finding>, found: Finding) -> Finding {
    let Some(mut known) = known else { return found };
    known.count += 1;
    known.last_seen_ms = known.last_seen_ms.max(found.last_seen_ms);
    known.last_tested_ms = known.last_tested_ms.max(found.last_tested_ms);
    if known.state == FindingState::Fixed {
        known.change(found.last_seen_ms, FindingState::Reopened, "coordinator", "seen again");
    }
    known
}
