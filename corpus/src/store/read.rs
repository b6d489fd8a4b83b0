//! Reading: records by key, lists by prefix, the digest of a campaign.

use super::error::io_error;
use super::keys::{
    TOTALS_KEY, best_key, campaign_key, chunk_prefix, finding_key, parse, progress_key, read_chunk, show,
    sighting_prefix,
};
use super::{Stats, Store, StoreError};
use crate::files;
use crate::items::{CHUNK_ITEMS, Progress};
use crate::life::{Change, FindingState, Retest, Suppression};
use crate::record::{Campaign, Finding, FindingId, Hash, Regression};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

impl Store {
    pub(super) fn raw(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.index()?.get(key)?)
    }

    pub(super) fn record<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.raw(key)?.map(|value| parse(key, &value)).transpose()
    }

    pub(super) fn records<T: DeserializeOwned>(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<T, StoreError>> + use<T> {
        self.scan(prefix).map(|pair| {
            let (key, value) = pair?;
            parse(&key, &value)
        })
    }

    /// The pairs under a prefix in key order; without an index one error.
    pub(crate) fn scan(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + use<> {
        let (pairs, error) = match self.index() {
            Ok(index) => (Some(index.scan(prefix)), None),
            Err(error) => (None, Some(Err(error))),
        };
        pairs.into_iter().flatten().map(|pair| Ok(pair?)).chain(error)
    }

    /// All pairs in key order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + use<> {
        self.scan(b"")
    }

    /// A campaign.
    pub fn campaign(&self, name: &str) -> Result<Option<Campaign>, StoreError> {
        self.record(&campaign_key(name))
    }
    /// All campaigns, by name.
    pub fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        self.records(b"c/").collect()
    }
    /// How far a campaign is.
    pub fn progress(&self, campaign: &str) -> Result<Progress, StoreError> {
        Ok(self.record(&progress_key(campaign))?.unwrap_or_default())
    }
    /// The least program so far of a claim that is being made smaller; see [`Write::Best`](super::Write::Best).
    pub fn best(&self, claim: &Hash) -> Result<Option<String>, StoreError> {
        self.record(&best_key(claim))
    }
    /// A finding.
    pub fn finding(&self, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        self.record(&finding_key(id))
    }
    /// All findings, by id; one that cannot be read is an error of its own.
    pub fn findings(&self) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        self.records(b"f/")
    }
    /// All findings, by id, without their texts: in a fraction of the time.
    pub fn findings_briefly(&self) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Brief {
            id: FindingId,
            oracle: String,
            rule: String,
            state: FindingState,
            first_seen_ms: u64,
            last_seen_ms: u64,
            last_tested_ms: u64,
            history: Vec<Change>,
            suppressed: Option<Suppression>,
            retest: Option<Retest>,
        }
        let brief = self.records::<Brief>(b"f/");
        brief.map(|brief| {
            let b = brief?;
            Ok(Finding {
                id: b.id,
                oracle: b.oracle,
                rule: b.rule,
                state: b.state,
                first_seen_ms: b.first_seen_ms,
                last_seen_ms: b.last_seen_ms,
                last_tested_ms: b.last_tested_ms,
                history: b.history,
                suppressed: b.suppressed,
                retest: b.retest,
                ..Finding::default()
            })
        })
    }
    /// Findings behind this id, by id; all of them without one.
    pub fn findings_behind(
        &self,
        id: Option<&FindingId>,
    ) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        self.pairs_behind(id).map(|pair| {
            let (key, value) = pair?;
            parse(&key, &value)
        })
    }
    fn pairs_behind(
        &self,
        id: Option<&FindingId>,
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + use<> {
        let (pairs, error) = match (self.index(), id) {
            (Ok(index), Some(id)) => (Some(index.scan_behind(b"f/", &finding_key(id))), None),
            (Ok(index), None) => (Some(index.scan_behind(b"f/", b"f/")), None),
            (Err(error), _) => (None, Some(Err(error))),
        };
        pairs.into_iter().flatten().map(|pair| Ok(pair?)).chain(error)
    }
    /// How many of the first `limit` findings behind this id are in each state, by the word of the state, and the last of
    /// them; reads no more of each than that.
    pub fn finding_states(
        &self,
        behind: Option<&FindingId>,
        limit: usize,
    ) -> Result<(BTreeMap<String, u64>, Option<FindingId>), StoreError> {
        #[derive(Deserialize)]
        struct OnlyState {
            id: FindingId,
            #[serde(default)]
            state: FindingState,
        }
        let (mut states, mut last) = (BTreeMap::new(), None);
        for pair in self.pairs_behind(behind).take(limit) {
            let (key, value) = pair?;
            let finding: OnlyState = parse(&key, &value)?;
            *states.entry(finding.state.word().to_owned()).or_default() += 1;
            last = Some(finding.id);
        }
        Ok((states, last))
    }
    /// What the coordinator has counted since the store was made; see [`Write::Totals`](super::Write::Totals).
    pub fn totals(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(self.record(TOTALS_KEY)?.unwrap_or_default())
    }
    /// Findings whose id starts with these hexadecimal digits: two at most, which is enough to tell that there are several.
    pub(crate) fn findings_from(&self, digits: &str) -> Result<Vec<Finding>, StoreError> {
        let whole: Vec<u8> = (0..digits.len() / 2)
            .map_while(|i| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok())
            .collect();
        let matching = self.records::<Finding>(&[&b"f/"[..], &whole].concat());
        let own = |f: &Result<Finding, StoreError>| {
            f.as_ref().map_or(true, |f| f.id.to_string().starts_with(digits))
        };
        matching.filter(own).take(2).collect()
    }
    /// All regression programs, by program id.
    pub fn regressions(&self) -> impl Iterator<Item = Result<Regression, StoreError>> + use<> {
        self.records(b"r/")
    }
    /// Sightings of a campaign: (finding, item), sorted.
    pub fn sightings(&self, campaign: &str) -> Result<Vec<(FindingId, u64)>, StoreError> {
        let prefix = sighting_prefix(campaign);
        let split = |pair: Result<(Vec<u8>, Vec<u8>), StoreError>| {
            let (key, _) = pair?;
            let parts = key[prefix.len()..].split_at_checked(32);
            let read = |(id, item): (&[u8], &[u8])| {
                Some((Hash(id.try_into().ok()?), u64::from_be_bytes(item.try_into().ok()?)))
            };
            parts
                .and_then(read)
                .ok_or_else(|| StoreError::Decode { key: show(&key), reason: "not a sighting".to_owned() })
        };
        self.scan(&prefix).map(split).collect()
    }

    /// The campaign's digest: items in order, then the sorted ids of the findings seen.
    pub fn digest(&self, campaign: &str) -> Result<Hash, StoreError> {
        let mut hasher = blake3::Hasher::new();
        let prefix = chunk_prefix(campaign);
        for pair in self.scan(&prefix) {
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
        let mut stats = Stats {
            log_bytes: self.log.len,
            commits: self.log.sequence,
            generation: self.log.generation,
            bundles: files::bundles(&self.dir).map_err(io_error("listing bundles"))?.len() as u64,
            ..Stats::default()
        };
        for pair in self.pairs() {
            let kind = crate::fsck::kind(&pair?.0);
            *stats.records.entry(kind.to_owned()).or_default() += 1;
        }
        Ok(stats)
    }
}
