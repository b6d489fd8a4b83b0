//! Per-item results of a campaign, kept so that its digest does not depend on who ran what when.
//!
//! An item is recorded once: a second report of it is counted as a duplicate (or as a conflict when it says
//! something else) and changes neither digest nor counters. Digests are kept in chunks of [`CHUNK_ITEMS`]
//! items: (slot u8, epoch u32, digest 32 bytes), sorted by slot.

use crate::hash::Hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Items in one stored chunk.
pub(crate) const CHUNK_ITEMS: u64 = 64;
const ENTRY_BYTES: usize = 1 + 4 + 32;

/// Counts of a campaign, or of one item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Programs run.
    pub programs: u64,
    /// Executions explored.
    pub executions: u64,
    /// Abstentions by reason.
    pub abstentions: BTreeMap<String, u64>,
    /// Broken oracle rules before dedupe.
    pub discrepancies: u64,
    /// Canaries planted.
    pub canaries_planted: u64,
    /// Canaries caught.
    pub canaries_caught: u64,
    /// Items on which each canary was caught, by its name.
    pub canaries: BTreeMap<String, u64>,
    /// Mutants of protocols by `MUTATION/VERDICT`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mutants: BTreeMap<String, u64>,
}

impl Counters {
    /// Adds `other`; saturates.
    pub fn add(&mut self, other: &Self) {
        self.programs = self.programs.saturating_add(other.programs);
        self.executions = self.executions.saturating_add(other.executions);
        self.discrepancies = self.discrepancies.saturating_add(other.discrepancies);
        self.canaries_planted = self.canaries_planted.saturating_add(other.canaries_planted);
        self.canaries_caught = self.canaries_caught.saturating_add(other.canaries_caught);
        for (sum, part) in [
            (&mut self.abstentions, &other.abstentions),
            (&mut self.canaries, &other.canaries),
            (&mut self.mutants, &other.mutants),
        ] {
            for (name, count) in part {
                let slot = sum.entry(name.clone()).or_default();
                *slot = slot.saturating_add(*count);
            }
        }
    }
}

/// The answer of one engine for one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineResult {
    /// Engine and model, as one stable name.
    pub engine: String,
    /// Verdict word.
    pub verdict: String,
    /// Hash of the outcomes.
    pub outcomes: Hash,
    /// Hash of the leaf keys.
    pub leaves: Hash,
}

/// The digest of one item: independent of the order of `results`.
pub fn item_digest(item: u64, program: &Hash, results: &[EngineResult]) -> Hash {
    let mut rows: Vec<_> = results.iter().map(|r| (&r.engine, &r.verdict, r.outcomes, r.leaves)).collect();
    rows.sort();
    Hash::of(&serde_json::to_vec(&(item, program, rows)).expect("strings and hashes always serialise"))
}

/// One finished item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemDone {
    /// Index in the campaign's stream.
    pub item: u64,
    /// Lease epoch of the report.
    pub epoch: u32,
    /// From [`item_digest`].
    pub digest: Hash,
    /// The item's share of the campaign's counters.
    pub counters: Counters,
}

/// A progress record as read, before its ranges are checked.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Unchecked {
    completed: Vec<(u64, u64)>,
    counters: Counters,
}

/// Ranges of a progress record that are no set of items.
#[derive(Debug, thiserror::Error)]
#[error("the completed ranges are not sorted, disjoint and apart")]
struct RangesError;

impl TryFrom<Unchecked> for Progress {
    type Error = RangesError;
    fn try_from(read: Unchecked) -> Result<Self, RangesError> {
        let full = read.completed.iter().all(|(from, to)| from < to);
        let apart = read.completed.windows(2).all(|pair| pair[0].1 < pair[1].0);
        if !full || !apart {
            return Err(RangesError);
        }
        Ok(Self { completed: read.completed, counters: read.counters })
    }
}

/// How far a campaign is: kept by the store from the items committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Progress {
    /// Completed items as half-open ranges: sorted, disjoint, not adjacent.
    pub completed: Vec<(u64, u64)>,
    /// Sums over the completed items.
    pub counters: Counters,
}

impl Progress {
    /// Number of completed items.
    pub fn done(&self) -> u64 {
        self.completed.iter().map(|(from, to)| to - from).sum()
    }
    /// The first item not completed.
    pub fn next(&self) -> u64 {
        self.completed.first().filter(|r| r.0 == 0).map_or(0, |r| r.1)
    }
    /// Whether `item` is completed.
    pub fn contains(&self, item: u64) -> bool {
        let after = self.completed.partition_point(|r| r.0 <= item);
        after > 0 && item < self.completed[after - 1].1
    }
    /// Gaps below `end`, as half-open ranges: what is still to be leased.
    pub fn missing(&self, end: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for &(from, to) in &self.completed {
            if at < from.min(end) {
                gaps.push((at, from.min(end)));
            }
            at = to;
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }
    /// Adds an item; one that is completed already changes nothing.
    pub(crate) fn insert(&mut self, item: u64) {
        if self.contains(item) {
            return;
        }
        let after = self.completed.partition_point(|r| r.0 <= item);
        let end = item + 1;
        let left = after > 0 && self.completed[after - 1].1 == item;
        let right = after < self.completed.len() && self.completed[after].0 == end;
        match (left, right) {
            (true, true) => {
                self.completed[after - 1].1 = self.completed[after].1;
                self.completed.remove(after);
            }
            (true, false) => self.completed[after - 1].1 = end,
            (false, true) => self.completed[after].0 = item,
            (false, false) => self.completed.insert(after, (item, end)),
        }
    }
}

/// Digests of up to [`CHUNK_ITEMS`] items, by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk(pub(crate) BTreeMap<u8, (u32, Hash)>);

impl Chunk {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * ENTRY_BYTES);
        for (slot, (epoch, digest)) in &self.0 {
            out.push(*slot);
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&digest.0);
        }
        out
    }
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut out = BTreeMap::new();
        let entries = bytes.chunks_exact(ENTRY_BYTES);
        if !entries.remainder().is_empty() {
            return None;
        }
        for entry in entries {
            let (slot, epoch) = (entry[0], u32::from_le_bytes(entry[1..5].try_into().ok()?));
            let fresh = out.insert(slot, (epoch, Hash(entry[5..].try_into().ok()?))).is_none();
            if !fresh || u64::from(slot) >= CHUNK_ITEMS {
                return None;
            }
        }
        Some(Self(out))
    }
}
