//! A campaign in this process: threads run the oracles, one thread keeps the store.
//!
//! Contract: what an item gives depends on the item alone, and items are recorded with their findings in one commit,
//! so a campaign stopped anywhere and continued ends with the same digest. Differences between model versions are
//! common; only items at a multiple of [`REDUCE_EVERY`] have theirs reduced and stored. Broken rules always are.

use crate::line;
use anyhow::{Context, Result};
use moire_corpus::{
    Campaign, Counters, EngineResult, Finding, Hash, ItemDone, ModelRef, Options, Progress, Provenance, Store, Verified, Write,
    item_digest,
};
use moire_program::canon::canonical;
use moire_program::generate::GENERATOR_FINGERPRINT;
use moire_program::text::{Format, parse};
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Plan, Source, Verification};
use moire_worker::oracle::Oracles;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// One item in so many has its model differences reduced: a reduction costs as much as some hundred items.
const REDUCE_EVERY: u64 = 100;
/// Candidates one reduction may try.
const CANDIDATES: u64 = 2_000;
/// Items of one commit, at most; a commit waits for the disk.
const BATCH: usize = 256;

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) profile: String,
    pub(crate) oracles: Vec<String>,
    pub(crate) models: Vec<String>,
    /// Stop after this item; none: only the clock stops.
    pub(crate) programs: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) workers: usize,
    pub(crate) store: PathBuf,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) campaign: String,
    pub(crate) counters: Counters,
    /// Planted and caught, by canary.
    pub(crate) canaries: BTreeMap<String, (u64, u64)>,
    /// Claims by oracle, direction and models.
    pub(crate) claims: BTreeMap<String, u64>,
    pub(crate) findings: BTreeMap<Hash, Finding>,
    pub(crate) refuted: u64,
    pub(crate) already: u64,
    pub(crate) seconds: f64,
    pub(crate) digest: String,
    pub(crate) interrupted: bool,
}

struct Done {
    index: u64,
    report: ItemReport,
    reduced: Vec<Claim>,
    refuted: u64,
}

impl Settings {
    fn campaign(&self) -> String {
        let mut name = format!("fuzz-{}-{}", self.profile, self.seed);
        if !self.oracles.is_empty() || !self.models.is_empty() {
            let what = format!("{:?}{:?}", self.oracles, self.models);
            name.push_str(&format!("-{}", &Hash::of(what.as_bytes()).short()[..6]));
        }
        name
    }
}

/// Runs the campaign until its limit, its time or `stop`. `progress` is told the totals about once a second.
pub(crate) fn run(settings: &Settings, stop: &Cancel, progress: &mut dyn FnMut(&Totals)) -> Result<Totals> {
    let (mut store, recovery) = Store::open(&settings.store, Options::default())?;
    tracing::debug!(?recovery, "store open");
    let name = settings.campaign();
    let before = store.progress(&name)?;
    if store.campaign(&name)?.is_none() {
        let record = Campaign {
            name: name.clone(),
            seed: settings.seed,
            generator: GENERATOR_FINGERPRINT.into(),
            profile: settings.profile.clone(),
            oracles: settings.oracles.clone(),
            created_ms: now_ms(),
            ..Campaign::default()
        };
        store.commit(vec![Write::Campaign(Box::new(record))])?;
    }
    let plan = Plan { campaign: name.clone(), oracles: settings.oracles.clone(), models: settings.models.clone(), canaries: true };
    let mut totals = Totals { campaign: name.clone(), already: before.done(), ..Totals::default() };
    let start = Instant::now();
    work(settings, &plan, &before, stop, &mut |batch| {
        record(&mut store, settings, &name, batch, &mut totals)?;
        totals.seconds = start.elapsed().as_secs_f64();
        progress(&totals);
        Ok(())
    })?;
    totals.seconds = start.elapsed().as_secs_f64();
    totals.interrupted = stop.is_cancelled();
    totals.digest = store.digest(&name)?.to_string();
    Ok(totals)
}

/// Feeds items to threads and batches of results to `sink`.
fn work(
    settings: &Settings,
    plan: &Plan,
    before: &Progress,
    stop: &Cancel,
    sink: &mut dyn FnMut(Vec<Done>) -> Result<()>,
) -> Result<()> {
    let engine = Oracles::new();
    let plan = Arc::new(plan.clone());
    let next = AtomicU64::new(0);
    let end = settings.programs.unwrap_or(u64::MAX);
    let deadline = settings.time.map(|t| Instant::now() + t);
    let over = || stop.is_cancelled() || deadline.is_some_and(|d| Instant::now() >= d);
    let halt = Cancel::new();
    let (sender, results) = mpsc::sync_channel::<Done>(BATCH);
    std::thread::scope(|scope| {
        for _ in 0..settings.workers.max(1) {
            let (sender, plan) = (sender.clone(), Arc::clone(&plan));
            let (engine, next, over, halt) = (&engine, &next, &over, &halt);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= end || halt.is_cancelled() || over() {
                        return;
                    }
                    if before.contains(index) {
                        continue;
                    }
                    let source = Source::Generated { seed: settings.seed, profile: settings.profile.clone(), index };
                    let done = one(engine, Item { plan: Arc::clone(&plan), index, source });
                    if sender.send(done).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        while let Ok(first) = results.recv() {
            let mut batch = vec![first];
            let until = Instant::now() + Duration::from_millis(500);
            while batch.len() < BATCH {
                match results.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(done) => batch.push(done),
                    Err(_) => break,
                }
            }
            if let Err(error) = sink(batch) {
                halt.cancel();
                // Let blocked senders go before the scope waits for them.
                while results.recv().is_ok() {}
                return Err(error);
            }
        }
        Ok(())
    })
}

/// One item, its broken rules confirmed and reduced.
fn one(engine: &Oracles, item: Item) -> Done {
    let cancel = Cancel::new();
    let report = engine.run(&item, &cancel);
    let (mut reduced, mut refuted) = (Vec::new(), 0);
    for claim in &report.claims {
        if claim.direction == "difference" && !item.index.is_multiple_of(REDUCE_EVERY) {
            continue;
        }
        match engine.verify(claim, &cancel) {
            Verification::Confirmed => {
                reduced.push(engine.minimise(claim, Budget { candidates: CANDIDATES }, &cancel, &mut |_| {}).claim);
            }
            _ => refuted += 1,
        }
    }
    Done { index: item.index, report, reduced, refuted }
}

/// One commit: the items and the findings they showed.
fn record(store: &mut Store, settings: &Settings, name: &str, batch: Vec<Done>, totals: &mut Totals) -> Result<()> {
    let mut writes = Vec::new();
    let mut items = Vec::new();
    let mut touched = BTreeSet::new();
    for done in batch {
        let counters = count(&done, totals);
        totals.counters.add(&counters);
        totals.refuted += done.refuted;
        for claim in &done.reduced {
            let finding = sight(store, settings, name, done.index, claim, totals)?;
            touched.insert(finding);
            writes.push(Write::Sighting { campaign: name.to_owned(), item: done.index, finding });
        }
        let results: Vec<EngineResult> = done
            .report
            .engines
            .iter()
            .map(|e| EngineResult {
                engine: e.engine.clone(),
                verdict: e.verdict.clone(),
                outcomes: Hash(e.outcomes),
                leaves: Hash(e.leaves),
            })
            .collect();
        let digest = item_digest(done.index, &Hash(done.report.program), &results);
        items.push(ItemDone { item: done.index, epoch: 0, digest, counters });
    }
    writes.extend(touched.iter().map(|id| Write::Finding(Box::new(totals.findings[id].clone()))));
    writes.push(Write::Items { campaign: name.to_owned(), items });
    store.commit(writes).context("cannot record results")?;
    Ok(())
}

fn count(done: &Done, totals: &mut Totals) -> Counters {
    for claim in &done.report.claims {
        *totals.claims.entry(kind(claim)).or_default() += 1;
    }
    for canary in &done.report.canaries {
        let (planted, caught) = totals.canaries.entry(canary.name.clone()).or_default();
        *planted += 1;
        *caught += u64::from(canary.caught);
    }
    Counters {
        programs: 1,
        executions: done.report.engines.iter().map(|e| e.executions).sum(),
        abstentions: done.report.abstentions.clone(),
        discrepancies: done.report.claims.iter().filter(|c| c.direction != "difference").count() as u64,
        canaries_planted: done.report.canaries.len() as u64,
        canaries_caught: done.report.canaries.iter().filter(|c| c.caught).count() as u64,
    }
}

/// `oracle direction A B`
pub(crate) fn kind(claim: &Claim) -> String {
    let side = |s: &moire_worker::job::Side| {
        let variants: Vec<String> = s.variants.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if variants.is_empty() { s.name.clone() } else { format!("{}:{}", s.name, variants.join(",")) }
    };
    let models: Vec<String> = claim.models.iter().map(side).collect();
    format!("{} {} {}", claim.oracle, claim.direction, models.join(" "))
}

/// Adds a sighting to a new or known finding; gives its id.
fn sight(store: &Store, settings: &Settings, name: &str, index: u64, claim: &Claim, totals: &mut Totals) -> Result<Hash> {
    let program = parse(&claim.program, Format::Native).context("a reduced program does not parse")?;
    let id = Finding::dedupe_id(&claim.oracle, &claim.axioms, &Hash(canonical(&program).id.0));
    if !totals.findings.contains_key(&id) {
        let models = claim.models.iter().map(|s| ModelRef {
            name: s.name.clone(),
            variants: s.variants.clone(),
            fingerprint: Hash(s.fingerprint),
        });
        let fresh = Finding {
            id,
            campaign: name.to_owned(),
            oracle: claim.oracle.clone(),
            rule: claim.direction.clone(),
            models: models.collect(),
            reduced: claim.program.clone(),
            provenance: Provenance { generator: GENERATOR_FINGERPRINT.into(), seed: settings.seed, index },
            witness: claim.witness.clone(),
            axioms: claim.axioms.clone(),
            verdict: claim.verdict.clone(),
            verified: Verified::Itself,
            first_seen_ms: now_ms(),
            replay: format!("moire replay {}", line::encode(claim)),
            ..Finding::default()
        };
        let known = store.finding(&id)?;
        totals.findings.insert(id, known.unwrap_or(fresh));
    }
    if let Some(finding) = totals.findings.get_mut(&id) {
        finding.count += 1;
        finding.last_seen_ms = now_ms();
        finding.last_tested_ms = finding.last_seen_ms;
    }
    Ok(id)
}

/// Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
