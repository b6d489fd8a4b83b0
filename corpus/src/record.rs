//! Campaigns and regression programs, and the models and origins that records name.
//!
//! Records are JSON under stable names; unknown fields are ignored on reading, so a later version may add
//! optional ones within one format.

use crate::hash::{FindingId, Hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A model as an engine used it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// Name, such as `ptx`.
    pub name: String,
    /// Variants that differ from the defaults.
    #[serde(default)]
    pub variants: BTreeMap<String, String>,
    /// Hash of the model's canonical text.
    pub fingerprint: Hash,
}

/// Origin of a generated program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Fingerprint of the generator.
    pub generator: String,
    /// Seed of the stream.
    pub seed: u64,
    /// Index in the stream.
    pub index: u64,
}

/// The state of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CampaignState {
    /// Leases are given out.
    #[default]
    Running,
    /// Held by a person.
    Paused,
    /// Ended by a person.
    Cancelled,
    /// All its programs are done.
    Done,
}

/// Limits of a campaign, as counts; absent means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CampaignLimits {
    /// Programs.
    pub programs: Option<u64>,
    /// Findings.
    pub findings: Option<u64>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

/// A named, seeded stream of programs. Its completed items and counters are in [`crate::Progress`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Campaign {
    /// Name: letters, digits, `.`, `_`, `-`; at most 100.
    pub name: String,
    /// Seed of the stream.
    pub seed: u64,
    /// Generator fingerprint; a mismatch is refused by the coordinator.
    pub generator: String,
    /// Profile of the generator.
    pub profile: String,
    /// Models compared.
    pub models: Vec<ModelRef>,
    /// Oracles run.
    pub oracles: Vec<String>,
    /// Capabilities a worker needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Whether canaries run; true if the record does not say.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub canaries: bool,
    /// Limits.
    pub limits: CampaignLimits,
    /// Share among campaigns.
    pub priority: u32,
    /// State.
    pub state: CampaignState,
    /// Fencing epoch: raised by each coordinator start.
    pub epoch: u32,
    /// Creation, Unix milliseconds.
    pub created_ms: u64,
}

/// A program kept to be run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regression {
    /// Canonical id of the program.
    pub program: Hash,
    /// Native litmus text.
    pub text: String,
    /// The finding it guards, if any.
    pub finding: Option<FindingId>,
    /// The expected answer.
    pub expected: String,
}
