//! Kinds of records: which kind a key is of, and whether a value is a record of its key's kind.

use crate::error::StoreError;
use crate::exploration::{Exploration, Explored, Stretch};
use crate::finding::Finding;
use crate::hash::Hash;
use crate::items::Progress;
use crate::record::{Campaign, Regression};
use crate::store::keys::{Of, exploration_part, parse, read_chunk, show};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a record by its key.
pub(crate) fn kind(key: &[u8]) -> &'static str {
    match key.get(..2) {
        Some(b"b/") => "reductions",
        Some(b"c/") => "campaigns",
        Some(b"f/") => "findings",
        Some(b"i/") => "item chunks",
        Some(b"m/") => "totals",
        Some(b"p/") => "progress",
        Some(b"r/") => "regressions",
        Some(b"s/") => "sightings",
        Some(b"t/") => "snapshots",
        Some(b"x/") => "explorations",
        _ => "unknown",
    }
}

/// Whether a stored pair is a record of its kind; returns the bundles it names.
pub fn check_record(key: &[u8], value: &[u8]) -> Result<BTreeSet<Hash>, StoreError> {
    let none = |()| BTreeSet::new();
    match kind(key) {
        "campaigns" => parse::<Campaign>(key, value).map(drop).map(none),
        "progress" => parse::<Progress>(key, value).map(drop).map(none),
        "reductions" => parse::<String>(key, value).map(drop).map(none),
        "totals" => parse::<BTreeMap<String, u64>>(key, value).map(drop).map(none),
        "regressions" => parse::<Regression>(key, value).map(drop).map(none),
        "findings" => parse::<Finding>(key, value).map(|f| f.bundle.into_iter().collect()),
        "snapshots" => parse::<Hash>(key, value).map(|h| BTreeSet::from([h])),
        "explorations" => exploration(key, value).map(none),
        "sightings" if value.is_empty() => Ok(BTreeSet::new()),
        "item chunks" => {
            let prefix = key.len().saturating_sub(8);
            read_chunk(key, &key[..prefix], value).map(drop).map(none)
        }
        _ => Err(StoreError::Decode { key: show(key), reason: "unknown kind".to_owned() }),
    }
}

/// Whether a stored pair under `x/` is a record of its kind.
fn exploration(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    match exploration_part(key)?.1 {
        Of::Exploration => parse::<Exploration>(key, value).map(drop),
        Of::Totals => parse::<Explored>(key, value).map(drop),
        Of::Piece(_) => parse::<Stretch>(key, value).map(drop),
        Of::Mark(_) => parse::<Vec<u32>>(key, value).map(drop),
    }
}
