//! What the store keeps: findings, campaigns, regression programs.
//!
//! Records are JSON under stable names; unknown fields are ignored on reading, so a later version may add
//! optional ones within one format.

use crate::life::{Change, FindingState, Retest, Suppression};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A BLAKE3 hash, written as 64 hex digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
    /// The digits, without a formatter: a report of an item has nine hashes.
    fn digits(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (pair, byte) in out.chunks_exact_mut(2).zip(self.0) {
            let digit = |n: u8| b"0123456789abcdef"[usize::from(n)];
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        out
    }
    /// First 16 hex digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..16].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
        if bytes.len() != 64 {
            return Err(format!("expected 64 hex digits, found {} bytes", bytes.len()));
        }
        let mut out = [0; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *slot = high << 4 | low,
                _ => return Err("expected 64 hex digits".to_owned()),
            }
        }
        Ok(Self(out))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(std::str::from_utf8(&self.digits()).expect("hexadecimal digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Identity of a finding: BLAKE3 of its dedupe key.
pub type FindingId = Hash;

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

/// Where an original program came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Fingerprint of the generator.
    pub generator: String,
    /// Seed of the stream.
    pub seed: u64,
    /// Index in the stream.
    pub index: u64,
}

/// The worker that confirmed a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verified {
    /// Nobody yet.
    #[default]
    Unverified,
    /// The worker that claimed it (there was only one).
    #[serde(rename = "self")]
    Itself,
    /// Another worker.
    Other,
}

/// A stored, deduplicated discrepancy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// BLAKE3 of the dedupe key ([`Finding::dedupe_id`]).
    pub id: FindingId,
    /// Campaign that saw it first.
    pub campaign: String,
    /// Oracle whose rule is broken.
    pub oracle: String,
    /// The rule's direction: `equal`, `subset`, ...
    pub rule: String,
    /// The engines' models.
    pub models: Vec<ModelRef>,
    /// Reduced program, native litmus text.
    pub reduced: String,
    /// Program as generated.
    pub original: String,
    /// Where the original came from.
    pub provenance: Provenance,
    /// Witness, as text.
    pub witness: String,
    /// Minimal sets of checks whose removal admits the outcome.
    pub axioms: Vec<Vec<String>>,
    /// Verdict word.
    pub verdict: String,
    /// Life cycle.
    pub state: FindingState,
    /// The worker that confirmed it.
    pub verified: Verified,
    /// First sighting, Unix milliseconds.
    pub first_seen_ms: u64,
    /// Last sighting, Unix milliseconds.
    pub last_seen_ms: u64,
    /// Last time it was looked for, seen or not; Unix milliseconds.
    pub last_tested_ms: u64,
    /// Number of sightings.
    pub count: u64,
    /// All changes of state, oldest first.
    pub history: Vec<Change>,
    /// Its bundle file.
    pub bundle: Option<Hash>,
    /// The line that replays it.
    pub replay: String,
    /// Left out of what fails a night, for a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppression>,
    /// The result of the last re-test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retest: Option<Retest>,
}

impl Finding {
    /// Identity from the oracle, the minimal check sets (order does not matter) and the canonical program.
    pub fn dedupe_id(oracle: &str, axioms: &[Vec<String>], program: &Hash) -> FindingId {
        let mut sets: Vec<Vec<&str>> =
            axioms.iter().map(|s| s.iter().map(String::as_str).collect()).collect();
        sets.iter_mut().for_each(|s| s.sort_unstable());
        sets.sort();
        let key = serde_json::to_vec(&(oracle, sets, program)).expect("strings and hashes always serialise");
        Hash::of(&key)
    }
    /// `once`, `twice`, `3 times`, ...
    pub fn sightings(&self) -> String {
        match self.count {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            n => format!("{n} times"),
        }
    }
    /// Which model allows what, as the witness says it.
    pub fn allowed(&self) -> Option<String> {
        let witness: serde_json::Value = serde_json::from_str(&self.witness).ok()?;
        Some(format!("{} allows {}", witness.get("model")?.as_str()?, witness.get("outcome")?.as_str()?))
    }
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
    /// Whether canaries run; they do where the record does not say.
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
