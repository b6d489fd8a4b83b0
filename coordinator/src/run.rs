//! A running campaign: which items are reported, which have claims under way, and which can be committed.
//!
//! Contract: claims are admitted in item order, once all earlier items are reported. The first [`CLASS_MAX`] of one class
//! (oracle, direction, models, axioms) that are confirmed become findings, and later ones are only counted. What a compiler
//! lost is one finding ([`needs::one_bug`]), so of its class, whatever the models, one claim is enough. A claim that
//! is not confirmed costs its class nothing: the next one takes its place. Of a class one claim at a time is run again and
//! reduced, so the first of every class comes before the second of any, and the findings do not depend on the order of
//! answers. An item with claims is ready together with its findings, in item order, so an interrupted one runs again.

use crate::finding::claim_of;
use crate::lease::{CampaignSpec, Source};
use crate::stored::{List, NAMES_BYTES_MAX, Names};
use crate::{CLASS_MAX, HELD_MAX, LEASE_ITEMS};
use moire_corpus::{
    Campaign, CampaignState, Counters, EngineResult, Finding, Hash, ItemDone, Progress, VALUE_BYTES_MAX,
    item_digest,
};
use moire_program::canon::spell::hash;
use moire_proto::{needs, v1};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Starts the name of a counter of one class of claims (oracle, then a hash), kept with a campaign's abstentions.
pub const CLASS_PREFIX: &str = "claims/";
/// Starts the name of an engine row that is about a mutant of a protocol; behind it stands the mutation.
pub const MUTANT_PREFIX: &str = "mutant/";

/// Most stretches of completed items in a campaign's record; beyond it items wait for those before them.
const STRETCHES_MAX: usize = 880;
/// Bytes of a stretch: two numbers of 20 digits, brackets and commas.
const STRETCH_BYTES: usize = 44;
/// Bytes of a campaign's record beside stretches and names: its fields, its sums, and the reasons that are always listed.
const RECORD_BYTES: usize = 2048;
/// Most reasons, canaries or mutants in a campaign's record; further ones are counted together.
const REASONS_MAX: usize = 200;
// The record fits, whatever is reported.
const _: () =
    assert!((STRETCHES_MAX + 1) * STRETCH_BYTES + NAMES_BYTES_MAX + RECORD_BYTES <= VALUE_BYTES_MAX);
/// One past the last item of a campaign without a budget.
const ENDLESS: u64 = u64::MAX / 2;
/// The name under which reasons beyond the limit are counted.
const OTHER_REASONS: &str = "other reasons";
/// The reason of an item that was given up.
pub(crate) const QUARANTINED: &str = "quarantined";
/// The reason of a claim that was not confirmed when it was run again.
pub(crate) const REFUTED: &str = "refuted";
/// The reason of a claim about which the worker that ran it again could not say anything.
pub(crate) const NOT_VERIFIED: &str = "not verified";
/// The same of a claim about a device: samples never refute.
pub(crate) const NOT_SEEN_AGAIN: &str = "seen on a device, and not seen again";
/// The reason of a claim that was run again too often without an answer.
pub(crate) const LOST: &str = "verification lost";
/// The reason of an item about which no engine said anything.
pub(crate) const NOT_JUDGED: &str = "not judged by any engine";
/// The reason of an item whose record the store did not take; only its digest was kept.
pub(crate) const NOT_STORED: &str = "record refused by the store";
/// Reasons that the coordinator counts, and no worker.
const OWN_REASONS: [&str; 8] =
    [QUARANTINED, REFUTED, NOT_VERIFIED, NOT_SEEN_AGAIN, LOST, NOT_JUDGED, NOT_STORED, OTHER_REASONS];

/// An item with claims.
pub(crate) struct Held {
    pub(crate) done: ItemDone,
    /// Claims that wait for admission, with their classes.
    claims: VecDeque<(String, v1::Claim)>,
    claimant: Source,
    /// Claims admitted and not yet findings.
    pub(crate) open: usize,
    /// Claims that were confirmed and are being reduced, by class.
    confirmed: BTreeMap<String, Finding>,
    pub(crate) findings: Vec<Finding>,
}

impl Held {
    /// Nothing more comes of its claims.
    fn settled(&self) -> bool {
        self.open == 0 && self.claims.is_empty()
    }
}

/// The claims of one class.
#[derive(Debug, Default)]
struct Class {
    /// Those that were confirmed, and those that came after the last that may become a finding.
    confirmed: u64,
    /// Those that are being run again.
    open: u64,
    /// Those that were confirmed and are being reduced.
    reducing: u64,
}

/// A claim that is now run again.
pub(crate) struct Admitted {
    pub(crate) item: u64,
    /// Where the worker comes from that made it.
    pub(crate) claimant: Source,
    pub(crate) class: String,
    pub(crate) claim: v1::Claim,
}

/// A running campaign.
pub(crate) struct CampaignRun {
    pub(crate) campaign: Campaign,
    pub(crate) progress: Progress,
    /// All items below are reported.
    frontier: u64,
    /// One past the last item reported.
    reach: u64,
    pub(crate) reported: BTreeSet<u64>,
    /// Items without claims, to be committed.
    plain: BTreeMap<u64, ItemDone>,
    pub(crate) held: BTreeMap<u64, Held>,
    classes: BTreeMap<String, Class>,
    /// Whether claims may be admitted that could not be before.
    admits: bool,
    /// Whether nothing is leased but what its claims need ([`crate::core::Core::drain`]).
    pub(crate) drains: bool,
    /// Names the campaign's record lists.
    names: Names,
    /// The digest of an ended campaign, once it was asked for.
    pub(crate) digest: Option<Hash>,
}

impl CampaignRun {
    pub(crate) fn new(mut campaign: Campaign, progress: Progress) -> Self {
        campaign.oracles = needs::oracles(&campaign.profile, campaign.oracles);
        let tools: Vec<String> = needs::needs(campaign.oracles.iter().map(String::as_str)).collect();
        let more = tools.into_iter().filter(|tool| !campaign.needs.contains(tool)).collect::<Vec<_>>();
        campaign.needs.extend(more);
        let classes = progress.counters.abstentions.iter().filter(|(k, _)| k.starts_with(CLASS_PREFIX));
        let classes =
            classes.map(|(k, v)| (k.clone(), Class { confirmed: *v, ..Class::default() })).collect();
        let (counters, mut names) = (&progress.counters, Names::default());
        for name in counters.abstentions.keys() {
            let list = if name.starts_with(CLASS_PREFIX) { List::Classes } else { List::Reasons };
            names.known(list, name);
        }
        counters.canaries.keys().for_each(|name| names.known(List::Canaries, name));
        counters.mutants.keys().for_each(|name| names.known(List::Mutants, name));
        Self {
            campaign,
            progress,
            frontier: 0,
            reach: 0,
            reported: BTreeSet::new(),
            plain: BTreeMap::new(),
            held: BTreeMap::new(),
            classes,
            admits: true,
            drains: false,
            names,
            digest: None,
        }
    }
    pub(crate) fn open(&self) -> bool {
        matches!(self.campaign.state, CampaignState::Running | CampaignState::Paused)
    }
    /// The item from which on nothing is leased for now.
    pub(crate) fn limit(&self) -> u64 {
        match () {
            // Claims are admitted once all earlier items are reported.
            () if self.drains => self.held.last_key_value().map_or(0, |(item, _)| item + 1),
            () if self.held.len() < HELD_MAX => u64::MAX,
            () => self.reach,
        }
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
    /// `name`, or [`OTHER_REASONS`] if the record has no room for it.
    fn listed(&mut self, list: List, name: String) -> String {
        match self.names.list(list, &name, REASONS_MAX) {
            true => name,
            false => OTHER_REASONS.to_owned(),
        }
    }
    /// The reason of a worker as the record lists it. The coordinator's own words are not a worker's to say.
    fn reason(&mut self, reason: String) -> String {
        match reason.starts_with(CLASS_PREFIX) || OWN_REASONS.contains(&reason.as_str()) {
            true => OTHER_REASONS.to_owned(),
            false => self.listed(List::Reasons, reason),
        }
    }
    /// Takes an item's result, whose shape is checked already. False if the item has a result already. With `twice` it is
    /// counted all the same, a planted bug.
    pub(crate) fn reported(&mut self, result: v1::ItemResult, claimant: Source, twice: bool) -> bool {
        let item = result.item;
        if (self.progress.contains(item) || !self.reported.insert(item)) && !twice {
            return false;
        }
        self.reach = self.reach.max(item + 1);
        let mut abstentions = BTreeMap::new();
        for (reason, n) in result.abstentions {
            let sum = abstentions.entry(self.reason(reason)).or_insert(0_u64);
            *sum = sum.saturating_add(n);
        }
        if result.engines.is_empty() && result.claims.is_empty() {
            abstentions.insert(NOT_JUDGED.to_owned(), 1);
        }
        let caught: Vec<_> = result.canaries.iter().filter(|c| c.caught).map(|c| c.name.clone()).collect();
        let caught: BTreeSet<_> = caught.into_iter().map(|name| self.listed(List::Canaries, name)).collect();
        let mut mutants = BTreeMap::new();
        for row in &result.engines {
            if let Some(mutation) = row.engine.strip_prefix(MUTANT_PREFIX) {
                let name = self.listed(List::Mutants, format!("{mutation}/{}", row.verdict));
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
        // Samples differ from run to run.
        let rows: Vec<_> = result.engines.iter().filter(|e| !needs::is_sampled(&e.engine)).map(row).collect();
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
            let claims = result.claims.into_iter().map(|claim| (class(&claim), claim)).collect();
            self.held.insert(
                item,
                Held { done, claims, claimant, open: 0, confirmed: BTreeMap::new(), findings: Vec::new() },
            );
        }
        self.admits = true;
        true
    }
    /// Records an item that cannot be run.
    pub(crate) fn quarantined(&mut self, item: u64) {
        if self.reported.insert(item) {
            let mut counters = Counters { programs: 1, ..Counters::default() };
            counters.abstentions.insert(QUARANTINED.to_owned(), 1);
            let digest = item_digest(item, &Hash::default(), &[]);
            self.reach = self.reach.max(item + 1);
            self.plain.insert(item, ItemDone { item, epoch: self.campaign.epoch, digest, counters });
        }
    }
    /// Claims of the next held items that may now be admitted. With `at_once` a class is charged when a claim is admitted,
    /// a planted bug.
    pub(crate) fn admit(&mut self, at_once: bool) -> Vec<Admitted> {
        while self.progress.contains(self.frontier) || self.reported.contains(&self.frontier) {
            self.frontier += 1;
        }
        let mut admitted = Vec::new();
        if !std::mem::take(&mut self.admits) {
            return admitted;
        }
        for (item, held) in self.held.range_mut(..=self.frontier) {
            for (class, claim) in std::mem::take(&mut held.claims) {
                let of = self.classes.entry(class.clone()).or_default();
                let most = if is_one_bug(&claim) { 1 } else { CLASS_MAX };
                if of.confirmed >= most {
                    of.confirmed += 1;
                    let name = self.names.class(&class);
                    *held.done.counters.abstentions.entry(name).or_default() += 1;
                } else if of.open + of.reducing == 0 {
                    of.confirmed += u64::from(at_once);
                    of.open += u64::from(!at_once);
                    held.open += 1;
                    admitted.push(Admitted { item: *item, claimant: held.claimant.clone(), class, claim });
                } else {
                    held.claims.push_back((class, claim));
                }
            }
        }
        admitted
    }
    /// Notes that a claim of this class was confirmed, and what becomes of it if it is not reduced.
    pub(crate) fn confirmed(&mut self, item: u64, class: &str, found: Finding) {
        let of = self.classes.entry(class.to_owned()).or_default();
        of.open = of.open.saturating_sub(1);
        (of.confirmed, of.reducing) = (of.confirmed + 1, of.reducing + 1);
        self.admits = true;
        let name = self.names.class(class);
        if let Some(held) = self.held.get_mut(&item) {
            *held.done.counters.abstentions.entry(name).or_default() += 1;
            held.confirmed.insert(class.to_owned(), found);
        }
    }
    /// Takes what became of a claim that was confirmed.
    pub(crate) fn found(&mut self, item: u64, class: &str, found: Finding) {
        self.classes.entry(class.to_owned()).and_modify(|of| of.reducing = of.reducing.saturating_sub(1));
        self.admits = true;
        if let Some(held) = self.held.get_mut(&item) {
            held.open = held.open.saturating_sub(1);
            held.confirmed.remove(class);
            held.findings.push(found);
        }
    }
    /// What was confirmed and is no finding of the store yet: with `true` what is reduced and waits for earlier items.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (&Finding, bool)> {
        self.held.values().flat_map(|held| {
            held.findings.iter().map(|f| (f, true)).chain(held.confirmed.values().map(|f| (f, false)))
        })
    }
    /// Notes that a claim of this class was not confirmed, and why.
    pub(crate) fn refused(&mut self, item: u64, class: &str, why: &str) {
        if let Some(of) = self.classes.get_mut(class) {
            of.open = of.open.saturating_sub(1);
            if of.open == 0 && of.confirmed == 0 {
                self.classes.remove(class);
            }
        }
        self.admits = true;
        if let Some(held) = self.held.get_mut(&item) {
            held.open = held.open.saturating_sub(1);
            *held.done.counters.abstentions.entry(why.to_owned()).or_default() += 1;
        }
    }
    /// Items that can be committed, with their findings: items without claims, and those with claims in their order. An item
    /// that would break the record into too many stretches waits.
    pub(crate) fn ready(&mut self) -> (Vec<ItemDone>, VecDeque<(u64, Finding)>) {
        let settled = self.held.range(..=self.frontier).take_while(|(_, held)| held.settled());
        let settled = settled.map(|(item, _)| *item);
        let mut candidates: Vec<(u64, bool)> = settled.map(|item| (item, true)).collect();
        candidates.extend(self.plain.keys().map(|item| (*item, false)));
        candidates.sort_unstable();
        let (mut items, mut findings) = (Vec::new(), VecDeque::new());
        let (mut stretches, mut last, mut in_order) = (self.progress.completed.len(), None, true);
        for (item, is_held) in candidates {
            let behind = item.checked_sub(1);
            let left = behind.is_some_and(|b| last == Some(b) || self.progress.contains(b));
            let joined = usize::from(left) + usize::from(self.progress.contains(item + 1));
            let room = joined > 0 || item == 0 || stretches < STRETCHES_MAX;
            in_order &= room || !is_held;
            if !room || is_held && !in_order {
                continue;
            }
            stretches = (stretches + 1).saturating_sub(joined);
            last = Some(item);
            if !is_held {
                items.extend(self.plain.remove(&item));
            } else if let Some(held) = self.held.remove(&item) {
                findings.extend(held.findings.into_iter().map(|f| (item, f)));
                items.push(held.done);
            }
        }
        (items, findings)
    }
    pub(crate) fn idle(&self) -> bool {
        self.held.is_empty() && self.plain.is_empty() && self.progress.done() >= self.end()
    }
}

/// An item without what it said beside its digest.
pub(crate) fn bare(done: ItemDone) -> ItemDone {
    let abstentions = BTreeMap::from([(NOT_STORED.to_owned(), 1)]);
    let executions = done.counters.executions;
    ItemDone { counters: Counters { programs: 1, executions, abstentions, ..Counters::default() }, ..done }
}

/// The programs of a campaign that some engine judged.
pub fn judged(status: &v1::CampaignStatus) -> u64 {
    let of = |reason: &str| status.abstentions.get(reason).copied().unwrap_or(0);
    status.programs.saturating_sub(of(NOT_JUDGED)).saturating_sub(of(QUARANTINED))
}

/// Whether all claims of its class are one bug.
fn is_one_bug(claim: &v1::Claim) -> bool {
    let axioms: Vec<Vec<String>> = claim.axioms.iter().map(|a| a.names.clone()).collect();
    needs::one_bug(&claim.oracle, &axioms)
}

/// The class of a claim.
pub(crate) fn class(claim: &v1::Claim) -> String {
    // How and in which models one bug shows is no other bug.
    let shown = !is_one_bug(claim);
    let models = claim.models.iter().filter(|_| shown);
    let models = models.map(|m| (&m.name, &m.variants)).collect::<Vec<_>>();
    let axioms: BTreeSet<BTreeSet<&String>> = claim.axioms.iter().map(|a| a.names.iter().collect()).collect();
    let word = |word: &String| if shown { word.clone() } else { String::new() };
    let key = (&claim.oracle, &word(&claim.direction), &word(&claim.verdict), models, axioms);
    format!("{CLASS_PREFIX}{}/{}", claim.oracle, Hash(hash(&key)).short())
}

/// The class of the claims that became a finding, as a campaign counts them.
pub fn class_of(found: &Finding) -> String {
    class(&claim_of(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::WorkerId;

    const CLASSES: &str = "6eeae1e3 e5501cf8 00b8d8fa 1a3feb8d 764884ee 2a94b78d 68d41bcf 8b12fc5a c962b4f9 4521a2ca 7d805c7f 4aa47bfb e9e0a622 98c393ba cd42ebe4 b581fc8f 418e9f77 2cca2daf 925a10cf 90fca8bd";

    #[test]
    fn twenty_classes_keep_their_names() {
        let side = |n: u32, name: &str| {
            let variants =
                BTreeMap::from([(format!("Q{n}"), "B".to_owned()), ("quote".to_owned(), "\"".to_owned())]);
            v1::Side { name: format!("{name}{n}"), variants, fingerprint: vec![1] }
        };
        let checks = |n: u32| v1::Checks { names: vec![format!("SC{n}"), "Causality".to_owned()] };
        let claim = |n: u32| v1::Claim {
            oracle: "self".into(),
            direction: "equal".into(),
            models: vec![side(n, "ptx"), side(n, "ptx-6.0")],
            verdict: format!("discrepancy\n{n}"),
            axioms: vec![checks(n), checks(0)],
            ..v1::Claim::default()
        };
        let names = (0..20).map(|n| class(&claim(n)).replace("claims/self/", "")[..8].to_owned());
        assert_eq!(names.collect::<Vec<_>>().join(" "), CLASSES);
    }

    /// A claim that `llvm` loses an order by a fence, found with this compiler.
    fn lost(compiler: &str) -> v1::Claim {
        let checks = |name: &str| v1::Checks { names: vec![name.to_owned()] };
        v1::Claim {
            oracle: "llvm".into(),
            direction: "subset".into(),
            models: vec![v1::Side { name: compiler.into(), ..v1::Side::default() }],
            axioms: vec![checks("order-lost"), checks("fence")],
            ..v1::Claim::default()
        }
    }

    #[test]
    fn of_a_class_one_claim_at_a_time_is_run_again() {
        let campaign = Campaign { name: "c".into(), state: CampaignState::Running, ..Campaign::default() };
        let mut run = CampaignRun::new(campaign, Progress::default());
        for item in 0..6 {
            let claims = vec![v1::Claim { oracle: "self".into(), ..v1::Claim::default() }];
            let result = v1::ItemResult { item, claims, ..v1::ItemResult::default() };
            assert!(run.reported(result, Source::Stream(WorkerId(1)), false));
        }
        for item in 0..CLASS_MAX {
            let admitted = run.admit(false);
            assert_eq!(admitted.iter().map(|a| a.item).collect::<Vec<_>>(), [item]);
            run.confirmed(item, &admitted[0].class, Finding::default());
            assert!(run.admit(false).is_empty(), "it is being reduced");
            run.found(item, &admitted[0].class, Finding::default());
        }
        assert!(run.admit(false).is_empty(), "the others are counted");
        assert_eq!(run.ready().0.len(), 6);
    }

    #[test]
    fn of_one_bug_one_claim_is_run_again() {
        let campaign = Campaign { name: "c".into(), state: CampaignState::Running, ..Campaign::default() };
        let mut run = CampaignRun::new(campaign, Progress::default());
        for item in 0..2 {
            let race = v1::Claim { direction: "property".into(), ..lost("llvm:release=19") };
            let claims = vec![lost("llvm:release=15"), race];
            let result = v1::ItemResult { item, claims, ..v1::ItemResult::default() };
            assert!(run.reported(result, Source::Stream(WorkerId(1)), false));
        }
        let admitted = run.admit(false);
        assert_eq!(admitted.len(), 1, "both releases show one bug, each in its way");
        run.confirmed(0, &admitted[0].class, Finding::default());
        assert_eq!(run.under_way().count(), 1);
        assert!(run.admit(false).is_empty(), "the others are counted");
        run.found(0, &admitted[0].class, Finding::default());
        assert_eq!(run.ready().0.len(), 2);
        assert_eq!(run.under_way().count(), 0);
    }
}
