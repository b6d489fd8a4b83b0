//! Makes findings from claims, and claims from findings.

use moire_corpus::{Campaign, Finding, Hash, ModelRef, Provenance, Verified};
use moire_program::text::{Format, parse};
use moire_proto::{needs, v1};

/// The finding of a reduced claim. What a compiler lost is one finding, with the program that showed it first.
pub(crate) fn finding(
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
    // What decides between two models is one difference between them, whatever the programs.
    let differs = claim.direction == "difference" && !axioms.is_empty();
    let bug = match differs {
        _ if needs::one_bug(&claim.oracle, &axioms) => Hash::default(),
        true => Hash::of(sides(claim).as_bytes()),
        false => id,
    };
    let hash = |bytes: &[u8]| bytes.try_into().map(Hash).unwrap_or_default();
    let model = |m: &v1::Side| ModelRef {
        name: m.name.clone(),
        variants: m.variants.clone(),
        fingerprint: hash(&m.fingerprint),
    };
    Finding {
        id: Finding::dedupe_id(&claim.oracle, &axioms, &bug),
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

/// The models of a claim, in one word.
fn sides(claim: &v1::Claim) -> String {
    claim.models.iter().map(|m| format!("{} {:?}\n", m.name, m.variants)).collect()
}

/// The claim of a finding, to be run again.
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

/// Merges a finding with the one of the same identity.
pub(crate) fn merge(known: Option<Finding>, found: Finding) -> Finding {
    let Some(mut known) = known else { return found };
    known.count += 1;
    known.shown(found.last_seen_ms, "coordinator");
    known
}
