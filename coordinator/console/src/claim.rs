//! Claims and findings in the words that every command prints.

use anyhow::Result;
use moire_corpus::{Finding, ModelRef};
use moire_worker::job::{Claim, Side};

/// Formats the kind of a claim: `oracle direction A B`.
pub fn kind(claim: &Claim) -> String {
    format!("{} {} {}", claim.oracle, claim.direction, claim.specs().join(" "))
}

/// Restores a side of a claim from the model reference in a finding.
pub fn side(m: &ModelRef) -> Side {
    Side { name: m.name.clone(), variants: m.variants.clone(), fingerprint: m.fingerprint.0 }
}

/// Restores the claim that a finding was made from.
///
/// # Errors
/// Its rule has a direction that this build does not know.
pub fn of(f: &Finding) -> Result<Claim> {
    Ok(Claim {
        oracle: f.oracle.clone(),
        direction: f.rule.parse()?,
        models: f.models.iter().map(side).collect(),
        verdict: f.verdict.clone(),
        program: f.reduced.clone(),
        witness: f.witness.clone(),
        axioms: f.axioms.clone(),
    })
}

/// Formats the line that is printed as soon as a finding is durable. `moire bench chaos` parses it.
pub fn announcement(f: &Finding) -> String {
    let models: Vec<&str> = f.models.iter().map(|m| m.name.as_str()).collect();
    format!("finding {} {} {} {}", f.id.short(), f.oracle, f.rule, models.join(" "))
}
