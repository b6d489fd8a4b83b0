//! Claims and findings in the words that every command prints.

use anyhow::Result;
use moire_corpus::{Finding, ModelRef};
use moire_worker::job::{Claim, Side};

/// `oracle direction A B`
pub fn kind(claim: &Claim) -> String {
    format!("{} {} {}", claim.oracle, claim.direction, claim.specs().join(" "))
}

/// A side of the claim a finding keeps.
pub fn side(m: &ModelRef) -> Side {
    Side { name: m.name.clone(), variants: m.variants.clone(), fingerprint: m.fingerprint.0 }
}

/// The claim a finding keeps.
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

/// The line printed for a finding as soon as it is durable; `moire bench chaos` reads it back.
pub fn announcement(f: &Finding) -> String {
    let models: Vec<&str> = f.models.iter().map(|m| m.name.as_str()).collect();
    format!("finding {} {} {} {}", f.id.short(), f.oracle, f.rule, models.join(" "))
}
