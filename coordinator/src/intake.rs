//! Checks reports, claims and plans before they are used.
//!
//! Contract: it is a fault of the worker if an answer does not fit the kind of its lease, names items of other leases, or
//! has hashes of a wrong size. An answer that is only too large is cut: claims that do not fit a record are dropped and
//! counted, and long reasons are shortened, so that no record exceeds the store's limit.

use crate::job::{Answer, Job, JobKind};
use crate::stored;
use moire_corpus::{Finding, LIFE_BYTES_MAX, VALUE_BYTES_MAX};
use moire_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Largest claim, in bytes of JSON: with its original and its life cycle it fits a record.
const CLAIM_BYTES_MAX: usize = 24 * 1024;
/// Bytes of a finding's record that its claim does not have: the names of its fields, ids, the campaign, its origin.
const FIELDS_BYTES: usize = 2 * 1024;
const _: () = assert!(CLAIM_BYTES_MAX + FIELDS_BYTES + LIFE_BYTES_MAX <= VALUE_BYTES_MAX);
/// Longest name of an oracle, a model, a check, a canary or a reason, in bytes of JSON.
const NAME_BYTES_MAX: usize = 100;
/// Most oracles, models or capabilities in a list of a campaign or a plan.
const LIST_MAX: usize = 64;
/// Longest name in such a list, in bytes.
const WORD_BYTES_MAX: usize = 500;
/// Most reasons of one item that are kept.
const REASONS_MAX: usize = 32;
/// Most claims of one item that are kept.
const CLAIMS_MAX: usize = 32;
/// Reason under which dropped claims are counted.
const TOO_LARGE: &str = "claim too large to keep";

fn named(text: &str) -> bool {
    stored::bytes(text) <= NAME_BYTES_MAX
}

/// Checks a claim of a worker or of a client.
pub(crate) fn claim(claim: &v1::Claim) -> Result<(), &'static str> {
    let names = [&claim.oracle, &claim.direction, &claim.verdict];
    let sides = claim.models.iter().all(|m| {
        named(&m.name) && m.fingerprint.len() == 32 && m.variants.iter().all(|(k, v)| named(k) && named(v))
    });
    let checks = claim.axioms.iter().all(|a| a.names.iter().all(|n| named(n)));
    match sides && checks && names.into_iter().all(|n| named(n)) {
        true => Ok(()),
        false => Err("a claim has names of at most 100 bytes and fingerprints of 32"),
    }
}

/// Checks the lists of a plan.
fn lists(lists: [&[String]; 3]) -> Result<(), &'static str> {
    let short = |list: &[String]| {
        list.len() <= LIST_MAX && list.iter().all(|text| stored::bytes(text) <= WORD_BYTES_MAX)
    };
    match lists.into_iter().all(short) {
        true => Ok(()),
        false => Err("at most 64 oracles, models and capabilities, of at most 500 bytes each"),
    }
}

/// Checks the specification of a campaign, apart from its name.
pub(crate) fn spec(spec: &v1::CampaignSpec) -> Result<(), &'static str> {
    lists([&spec.oracles, &spec.models, &spec.needs])?;
    match named(&spec.profile) && stored::bytes(&spec.fingerprint) <= WORD_BYTES_MAX {
        true => Ok(()),
        false => Err("a profile has at most 100 bytes, a fingerprint at most 500"),
    }
}

/// Checks the plan of a job.
pub(crate) fn plan(plan: Option<&v1::Plan>) -> Result<(), &'static str> {
    let Some(plan) = plan else { return Ok(()) };
    lists([&plan.oracles, &plan.models, std::slice::from_ref(&plan.campaign)])
}

/// Approximate size of the claim as JSON, in bytes.
fn bytes(claim: &v1::Claim) -> usize {
    let json = |text: &str| stored::bytes(text) + 8;
    let sides = claim
        .models
        .iter()
        .map(|m| json(&m.name) + 80 + m.variants.iter().map(|(k, v)| json(k) + json(v)).sum::<usize>());
    let checks = claim.axioms.iter().map(|a| 8 + a.names.iter().map(|n| json(n)).sum::<usize>());
    let names = [&claim.oracle, &claim.direction, &claim.verdict].map(|name| json(name));
    json(&claim.program)
        + json(&claim.witness)
        + names.iter().sum::<usize>()
        + sides.sum::<usize>()
        + checks.sum::<usize>()
}

/// Makes a claim fit a record, at the cost of its witness; false: it does not fit.
pub(crate) fn fit(claim: &mut v1::Claim) -> bool {
    if bytes(claim) > CLAIM_BYTES_MAX {
        claim.witness.clear();
    }
    bytes(claim) <= CLAIM_BYTES_MAX
}

/// Makes a finding fit its record. The generated text is dropped first, because its provenance reproduces it. Its canonical
/// text may be longer than that of its claim: then it keeps `program`, the text of the claim.
pub(crate) fn fit_finding(finding: &mut Finding, program: &str) {
    let over = |f: &Finding| serde_json::to_vec(f).map_or(0, |v| v.len()) > VALUE_BYTES_MAX - LIFE_BYTES_MAX;
    if over(finding) {
        finding.original.clear();
    }
    if over(finding) {
        finding.witness.clear();
    }
    if over(finding) {
        program.clone_into(&mut finding.reduced);
    }
}

/// Checks the answer to one item.
fn item(item: &v1::ItemResult) -> Result<(), &'static str> {
    let rows = item
        .engines
        .iter()
        .all(|e| named(&e.engine) && named(&e.verdict) && e.outcomes.len() == 32 && e.leaves.len() == 32);
    if item.program.len() != 32 || !rows {
        return Err("an item has hashes of 32 bytes and names of at most 100");
    }
    if item.engines.iter().any(|e| e.verdict.starts_with("clean") && e.executions == 0) {
        return Err("nothing is clean without an execution");
    }
    item.claims.iter().try_for_each(claim)
}

/// Cuts what is too large in the answer to one item.
fn cut(item: &mut v1::ItemResult) {
    let before = item.claims.len();
    item.claims.retain_mut(fit);
    item.claims.truncate(CLAIMS_MAX);
    let dropped = (before - item.claims.len()) as u64;
    let mut reasons = BTreeMap::new();
    for (reason, n) in std::mem::take(&mut item.abstentions).into_iter().take(REASONS_MAX) {
        let reason = stored::beginning(&reason, NAME_BYTES_MAX).to_owned();
        *reasons.entry(reason).or_insert(0_u64) += n.min(1 << 32);
    }
    if dropped > 0 {
        *reasons.entry(TOO_LARGE.to_owned()).or_insert(0) += dropped;
    }
    item.abstentions = reasons;
    item.canaries.retain(|c| named(&c.name));
}

/// Reads the items of a report on a range lease.
pub(crate) fn items(range: &Range<u64>, report: v1::Report) -> Result<Vec<v1::ItemResult>, &'static str> {
    if report.verify.is_some() || report.minimise.is_some() || report.explore.is_some() {
        return Err("a range lease is answered with items");
    }
    let mut items = report.items;
    let mut seen = BTreeSet::new();
    for one in &mut items {
        if !range.contains(&one.item) {
            return Err("a report names an item of another lease");
        }
        if !seen.insert(one.item) {
            return Err("a report names an item twice");
        }
        item(one)?;
        cut(one);
    }
    Ok(items)
}

/// Checks the answer to a minimisation.
fn smaller(reduced: &mut v1::Claim, asked: &v1::Claim) -> Result<(), &'static str> {
    let rule = |c: &v1::Claim| (c.oracle.clone(), c.direction.clone(), c.models.clone());
    match rule(reduced) == rule(asked) && fit(reduced) {
        true => Ok(()),
        false => Err("a minimisation keeps the rule that is broken and makes its program smaller"),
    }
}

/// Checks the answer to a part of a minimisation.
fn part(job: &Job, result: &mut v1::MinimiseResult) -> Result<(), &'static str> {
    let Some(batch) = &job.batch else { return Err("this lease is no part of a minimisation") };
    if !result.holds.iter().all(|cut| batch.cuts.contains(cut))
        || (result.claim.is_some() && batch.join.is_empty())
    {
        return Err("a part of a minimisation names cuts of its lease");
    }
    let Some(reduced) = result.claim.as_mut() else { return Ok(()) };
    claim(reduced)?;
    smaller(reduced, &job.claim)
}

/// Reads the answer of a report on a lease with text.
pub(crate) fn answer(job: &Job, mut report: v1::Report) -> Result<Answer, &'static str> {
    let (kind, asked) = (job.kind, &job.claim);
    let only = report.items.pop();
    if !report.items.is_empty() || report.explore.is_some() {
        return Err("a lease with text has one answer");
    }
    match (kind, report.verify, report.minimise, only) {
        (JobKind::Verify | JobKind::Confirm, Some(result), None, None)
            if result.answer() != v1::verify_result::Answer::Unspecified =>
        {
            Ok(Answer::Verified(result))
        }
        (JobKind::Part, None, Some(mut result), None) if result.part => {
            part(job, &mut result)?;
            Ok(Answer::Minimised(result))
        }
        (JobKind::Minimise | JobKind::Part, None, Some(mut result), None) if !result.part => {
            let reduced = result.claim.as_mut().ok_or("a minimisation is answered with a claim")?;
            claim(reduced)?;
            smaller(reduced, asked)?;
            Ok(Answer::Minimised(result))
        }
        (JobKind::Replay, None, None, Some(mut one)) => {
            item(&one)?;
            cut(&mut one);
            Ok(Answer::Replayed(one))
        }
        _ => Err("the answer is not of the lease's kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side() -> v1::Side {
        v1::Side { name: "ptx".into(), fingerprint: vec![0; 32], ..v1::Side::default() }
    }

    #[test]
    fn a_claim_that_is_too_large_loses_its_witness_or_is_dropped() {
        let mut large =
            v1::Claim { witness: "w".repeat(30_000), models: vec![side()], ..v1::Claim::default() };
        assert!(fit(&mut large) && large.witness.is_empty());
        let controls = v1::Claim { program: "\u{1}".repeat(5_000), ..v1::Claim::default() };
        assert!(!fit(&mut controls.clone()), "escaped it is six times as long");
        let mut item = v1::ItemResult {
            claims: vec![controls, v1::Claim::default()],
            abstentions: (0..100).map(|n| (format!("{n}{}", "é".repeat(100)), u64::MAX)).collect(),
            ..v1::ItemResult::default()
        };
        cut(&mut item);
        assert_eq!((item.claims.len(), item.abstentions.len()), (1, REASONS_MAX + 1));
        assert_eq!(item.abstentions[TOO_LARGE], 1);
        assert!(item.abstentions.keys().all(|k| named(k)));
    }

    #[test]
    fn nothing_is_clean_without_an_execution() {
        let told = |verdict: &str, executions| {
            let (verdict, hash) = (verdict.to_owned(), vec![0; 32]);
            let (outcomes, leaves) = (hash.clone(), hash.clone());
            let row =
                v1::EngineResult { engine: "explorer/ptx".into(), verdict, outcomes, leaves, executions };
            item(&v1::ItemResult { program: hash, engines: vec![row], ..v1::ItemResult::default() })
        };
        assert!(told("clean", 1).is_ok() && told("agrees", 0).is_ok());
        assert!(told("clean", 0).is_err() && told("clean, silent", 0).is_err());
    }

    #[test]
    fn the_largest_claims_make_a_finding_that_fits() {
        let text = "\"".repeat(11_000);
        let mut claim = v1::Claim { program: text.clone(), ..v1::Claim::default() };
        assert!(fit(&mut claim));
        let mut finding =
            Finding { reduced: text.clone(), original: text.clone(), witness: text, ..Finding::default() };
        fit_finding(&mut finding, "");
        let size = serde_json::to_vec(&finding).unwrap().len();
        assert!(size <= VALUE_BYTES_MAX - LIFE_BYTES_MAX && !finding.reduced.is_empty(), "{size}");
        // A canonical text that is longer than the claim's.
        finding.reduced = "x".repeat(50_000);
        fit_finding(&mut finding, "short");
        assert_eq!(finding.reduced, "short");
    }
}
