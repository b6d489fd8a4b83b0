//! Reading: records by key, lists by prefix, the digest of a campaign.

use super::Store;
use super::keys::{
    EXPLORATIONS, Of, TOTALS_KEY, best_key, campaign_key, chunk_prefix, exploration_id, exploration_part,
    parse, progress_key, read_chunk, show, sighting_prefix,
};
use crate::check::kind;
use crate::error::{StoreError, io_error};
use crate::exploration::Stored;
use crate::files;
use crate::hash::{FindingId, Hash};
use crate::items::{CHUNK_ITEMS, Progress};
use crate::pairs::Pair;
use crate::record::{Campaign, Regression};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes, for `moire store`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Commits in the log.
    pub commits: u64,
    /// Bundle files.
    pub bundles: u64,
    /// Times the log was rewritten.
    pub generation: u64,
}

impl Store {
    pub(super) fn record<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.pairs.get(key)?.map(|value| parse(key, &value)).transpose()
    }

    pub(super) fn records<T: DeserializeOwned>(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<T, StoreError>> + use<T> {
        self.pairs.scan(prefix).map(|pair| {
            let (key, value) = pair?;
            parse(&key, &value)
        })
    }

    /// A campaign.
    pub fn campaign(&self, name: &str) -> Result<Option<Campaign>, StoreError> {
        self.record(&campaign_key(name))
    }
    /// All campaigns, by name.
    pub fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        self.each_campaign().collect()
    }
    /// All campaigns, by name; one that cannot be read is an error of its own.
    pub fn each_campaign(&self) -> impl Iterator<Item = Result<Campaign, StoreError>> + use<> {
        self.pairs.scan(b"c/").map(|pair| {
            let (key, value) = pair?;
            let campaign: Campaign = parse(&key, &value)?;
            if campaign_key(&campaign.name) != key {
                let reason = "the name in it is not that of its key".to_owned();
                return Err(StoreError::Decode { key: show(&key), reason });
            }
            Ok(campaign)
        })
    }
    /// Progress of a campaign.
    pub fn progress(&self, campaign: &str) -> Result<Progress, StoreError> {
        Ok(self.record(&progress_key(campaign))?.unwrap_or_default())
    }
    /// The smallest program found so far for a claim that is being minimised; see [`Write::Best`](super::Write::Best).
    pub fn best(&self, claim: &Hash) -> Result<Option<String>, StoreError> {
        self.record(&best_key(claim))
    }
    /// The coordinator's counters since the store was made; see [`Write::Totals`](super::Write::Totals).
    pub fn totals(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(self.record(TOTALS_KEY)?.unwrap_or_default())
    }
    /// All regression programs, by program id.
    pub fn regressions(&self) -> impl Iterator<Item = Result<Regression, StoreError>> + use<> {
        self.records(b"r/")
    }
    /// All explorations, by id, and the faults of records that cannot be read. An exploration with such a record is left
    /// out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn explorations(&self) -> Result<(BTreeMap<Hash, Stored>, Vec<StoreError>), StoreError> {
        let (mut out, mut faults) = (BTreeMap::<Hash, Stored>::new(), Vec::new());
        let mut damaged = BTreeSet::new();
        for pair in self.pairs.scan(EXPLORATIONS) {
            let (key, value) = pair?;
            let (id, of) = match exploration_part(&key) {
                Ok(part) => part,
                Err(fault) => {
                    damaged.extend(exploration_id(&key));
                    faults.push(fault);
                    continue;
                }
            };
            let stored = out.entry(id).or_default();
            let read = match of {
                Of::Exploration => parse(&key, &value).map(|e| stored.exploration = e),
                Of::Totals => parse(&key, &value).map(|e| stored.explored = e),
                Of::Piece(number) => parse(&key, &value).map(|p| _ = stored.pieces.insert(number, p)),
                Of::Mark(name) => parse(&key, &value).map(|m| _ = stored.marks.insert(name.to_owned(), m)),
            };
            if let Err(fault) = read {
                damaged.insert(id);
                faults.push(fault);
            }
        }
        out.retain(|id, _| !damaged.contains(id));
        Ok((out, faults))
    }
    /// Sightings of a campaign: (finding, item), sorted.
    pub fn sightings(&self, campaign: &str) -> Result<Vec<(FindingId, u64)>, StoreError> {
        let prefix = sighting_prefix(campaign);
        let split = |pair: Result<Pair, StoreError>| {
            let (key, _) = pair?;
            let parts = key[prefix.len()..].split_at_checked(32);
            let read = |(id, item): (&[u8], &[u8])| {
                Some((Hash(id.try_into().ok()?), u64::from_be_bytes(item.try_into().ok()?)))
            };
            parts
                .and_then(read)
                .ok_or_else(|| StoreError::Decode { key: show(&key), reason: "not a sighting".to_owned() })
        };
        self.pairs.scan(&prefix).map(split).collect()
    }

    /// The campaign's digest: items in order, then the sorted ids of the findings seen.
    pub fn digest(&self, campaign: &str) -> Result<Hash, StoreError> {
        let mut hasher = blake3::Hasher::new();
        let prefix = chunk_prefix(campaign);
        for pair in self.pairs.scan(&prefix) {
            let (key, value) = pair?;
            let (number, chunk) = read_chunk(&key, &prefix, &value)?;
            for (slot, (_, digest)) in chunk.0 {
                hasher.update(&(number * CHUNK_ITEMS + u64::from(slot)).to_le_bytes()).update(&digest.0);
            }
        }
        let mut findings: Vec<_> = self.sightings(campaign)?.into_iter().map(|s| s.0).collect();
        findings.dedup();
        for id in findings {
            hasher.update(&id.0);
        }
        Ok(Hash(*hasher.finalize().as_bytes()))
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let log = self.pairs.log();
        let mut stats = Stats {
            log_bytes: log.len,
            commits: log.sequence,
            generation: log.generation,
            bundles: files::bundles(self.dir()).map_err(io_error("listing bundles"))?.len() as u64,
            ..Stats::default()
        };
        for pair in self.pairs.scan(b"") {
            *stats.records.entry(kind(&pair?.0).to_owned()).or_default() += 1;
        }
        Ok(stats)
    }
}
