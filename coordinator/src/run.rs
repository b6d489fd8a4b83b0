//! A running campaign: which items are reported, which have claims under way, and which can be committed.
//!
//! Contract: claims are admitted in item order, once all earlier items are reported, and at most [`CLASS_MAX`] of
//! one class (oracle, direction, models, axioms) per campaign; the others are counted. An item with claims is ready
//! together with its findings, in item order, so an interrupted one runs again.

use crate::lease::{CampaignSpec, WorkerId};
use crate::{CLASS_MAX, LEASE_ITEMS};
use moire_corpus::{
    Campaign, CampaignState, Counters, EngineResult, Finding, Hash, ItemDone, Progress, item_digest,
};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Starts the name of a counter of one class of claims (oracle, then a hash), kept with a campaign's abstentions.
pub const CLASS_PREFIX: &str = "claims/";
/// Starts the name of an engine row that is about a mutant of a protocol; behind it stands the mutation.
pub const MUTANT_PREFIX: &str = "mutant/";

/// Most stretches of completed items in a campaign's record; beyond it items wait for those before them.
const STRETCHES_MAX: usize = 1200;
/// Most reasons, and most classes, in a campaign's record; further ones are counted together.
const REASONS_MAX: usize = 200;
/// One past the last item of a campaign without a budget.
const ENDLESS: u64 = u64::MAX / 2;
/// The name under which reasons beyond the limit are counted.
const OTHER_REASONS: &str = "other reasons";

/// An item with claims.
pub(crate) struct Held {
    pub(crate) done: ItemDone,
    claims: Vec<v1::Claim>,
    worker: WorkerId,
    /// Claims admitted and not yet findings; `None` before admission.
    pub(crate) open: Option<usize>,
    pub(crate) findings: Vec<Finding>,
}

/// A claim that is now run again.
pub(crate) struct Admitted {
    pub(crate) item: u64,
    /// The worker that made it.
    pub(crate) claimant: WorkerId,
    pub(crate) claim: v1::Claim,
}

/// A running campaign.
pub(crate) struct CampaignRun {
    pub(crate) campaign: Campaign,
    pub(crate) progress: Progress,
    /// All items below are reported.
    frontier: u64,
    /// One past the last item reported.
    pub(crate) reach: u64,
    pub(crate) reported: BTreeSet<u64>,
    /// Items without claims, to be committed.
    plain: BTreeMap<u64, ItemDone>,
    pub(crate) held: BTreeMap<u64, Held>,
    classes: BTreeMap<String, u64>,
    /// Names the campaign's record lists.
    reasons: BTreeSet<String>,
    /// The digest of an ended campaign, once it was asked for.
    pub(crate) digest: Option<Hash>,
}

impl CampaignRun {
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
    /// One past its last item.
    pub(crate) fn end(&self) -> u64 {
        self.campaign.limits.programs.unwrap_or(ENDLESS)
    }
    pub(crate) fn lease_spec(&self) -> CampaignSpec {
        CampaignSpec {
            epoch: self.campaign.epoch,
            weight: self.campaign.priority,
            needs: self.campaign.needs.iter().cloned().collect(),
            fingerprint: self.campaign.generator.clone(),
            missing: self.progress.missing(self.end()).into_iter().map(|(from, to)| from..to).collect(),
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
    /// `name`, or [`OTHER_REASONS`] if the record has enough names.
    fn listed(&mut self, name: String) -> String {
        if self.reasons.contains(&name) {
            return name;
        }
        let name = if self.reasons.len() < REASONS_MAX { name } else { OTHER_REASONS.to_owned() };
        self.reasons.insert(name.clone());
        name
    }
    /// Takes an item's result, whose shape is checked already. False if the item has a result already. With `twice` it is
    /// counted all the same, a planted bug.
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
    pub(crate) fn admit(&mut self) -> Vec<Admitted> {
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
                    admitted.push(Admitted { item: *item, claimant: held.worker, claim });
                }
            }
            held.open = Some(open);
        }
        admitted
    }
    /// Items that can be committed, with their findings.
    pub(crate) fn ready(&mut self) -> (Vec<ItemDone>, VecDeque<(u64, Finding)>) {
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
    pub(crate) fn idle(&self) -> bool {
        self.held.is_empty() && self.plain.is_empty() && self.progress.done() >= self.end()
    }
}

fn class(claim: &v1::Claim) -> String {
    let models = claim.models.iter().map(|m| (&m.name, &m.variants)).collect::<Vec<_>>();
    let axioms: BTreeSet<BTreeSet<&String>> = claim.axioms.iter().map(|a| a.names.iter().collect()).collect();
    let key = format!("{:?}", (&claim.oracle, &claim.direction, &claim.verdict, models, axioms));
    format!("{CLASS_PREFIX}{}/{}", claim.oracle, Hash::of(key.as_bytes()).short())
}
