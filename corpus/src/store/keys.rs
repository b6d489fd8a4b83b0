//! Keys of the log and the index, and reading what lies under them.
//!
//! | key | record |
//! |---|---|
//! | `b/CLAIM` | smallest program so far of a claim that is being minimised |
//! | `c/NAME` | campaign |
//! | `f/ID` | finding |
//! | `i/NAME\0CHUNK` | digests of a chunk of items |
//! | `m/totals` | counters of the coordinator |
//! | `p/NAME` | progress of a campaign |
//! | `r/PROGRAM` | regression program |
//! | `s/NAME\0FINDING ITEM` | sighting |
//! | `t/TIME` | snapshot |
//! | `x/ID` | exploration; behind its id `t` its totals, `p NUMBER` a piece, `m NAME` a mark |
//!
//! Numbers are big endian, so the order of keys is the order of numbers.

use crate::error::StoreError;
use crate::hash::{FindingId, Hash};
use crate::items::{CHUNK_ITEMS, Chunk};
use crate::op::KEY_BYTES_MAX;
use serde::de::DeserializeOwned;

pub(super) const TOTALS_KEY: &[u8] = b"m/totals";

pub(super) fn best_key(claim: &Hash) -> Vec<u8> {
    [&b"b/"[..], &claim.0].concat()
}
/// Starts the key of everything that belongs to an exploration.
pub(crate) const EXPLORATIONS: &[u8] = b"x/";

/// Bytes of the key of a mark before its name: the prefix, the id and a letter.
const MARK_PREFIX_BYTES: usize = 2 + 32 + 1;
/// Longest name of a mark: with what stands before it, it is a key.
pub const MARK_BYTES_MAX: usize = KEY_BYTES_MAX - MARK_PREFIX_BYTES;
/// Largest number of a piece. No exploration has so many, so a larger one is damage.
const PIECE_MAX: u64 = 1 << 48;

pub(super) fn exploration_key(id: &Hash) -> Vec<u8> {
    [EXPLORATIONS, &id.0].concat()
}
pub(super) fn explored_key(id: &Hash) -> Vec<u8> {
    [&exploration_key(id)[..], b"t"].concat()
}
pub(super) fn piece_key(id: &Hash, number: u64) -> Vec<u8> {
    [&exploration_key(id)[..], b"p", &number.to_be_bytes()].concat()
}
pub(super) fn mark_key(id: &Hash, name: &str) -> Vec<u8> {
    [&exploration_key(id)[..], b"m", name.as_bytes()].concat()
}

/// The subject of an exploration's key.
pub(crate) enum Of<'a> {
    Exploration,
    Totals,
    Piece(u64),
    Mark(&'a str),
}

/// The exploration that a key starting with `x/` belongs to, whatever stands behind its id.
pub(crate) fn exploration_id(key: &[u8]) -> Option<Hash> {
    let (id, _) = key.strip_prefix(EXPLORATIONS)?.split_at_checked(32)?;
    Some(Hash(id.try_into().ok()?))
}

/// Reads a key that starts with `x/`.
///
/// # Errors
/// It is the key of nothing that belongs to an exploration.
pub(crate) fn exploration_part(key: &[u8]) -> Result<(Hash, Of<'_>), StoreError> {
    let read = || {
        let (id, rest) = key.strip_prefix(EXPLORATIONS)?.split_at_checked(32)?;
        let of = match rest.split_first() {
            None => Of::Exploration,
            Some((b't', [])) => Of::Totals,
            Some((b'p', number)) => {
                let number = u64::from_be_bytes(number.try_into().ok()?);
                if number > PIECE_MAX {
                    return None;
                }
                Of::Piece(number)
            }
            Some((b'm', name)) => Of::Mark(std::str::from_utf8(name).ok()?),
            Some(_) => return None,
        };
        Some((Hash(id.try_into().ok()?), of))
    };
    read().ok_or_else(|| StoreError::Decode { key: show(key), reason: "not of an exploration".to_owned() })
}

pub(super) fn campaign_key(name: &str) -> Vec<u8> {
    [b"c/", name.as_bytes()].concat()
}
pub(super) fn progress_key(name: &str) -> Vec<u8> {
    [b"p/", name.as_bytes()].concat()
}
/// Starts the key of a finding.
pub(super) const FINDINGS: &[u8] = b"f/";

pub(super) fn finding_key(id: &FindingId) -> Vec<u8> {
    [FINDINGS, &id.0].concat()
}
pub(super) fn chunk_prefix(name: &str) -> Vec<u8> {
    [b"i/", name.as_bytes(), b"\0"].concat()
}
/// The prefix of the chunks of the campaign whose progress has this key.
pub(crate) fn chunks_of_progress(progress: &[u8]) -> Vec<u8> {
    [b"i/", progress.get(2..).unwrap_or_default(), b"\0"].concat()
}
pub(super) fn sighting_prefix(name: &str) -> Vec<u8> {
    [b"s/", name.as_bytes(), b"\0"].concat()
}

/// A key for people: text, or escaped bytes.
pub(crate) fn show(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

pub(crate) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|e| StoreError::Decode { key: show(key), reason: e.to_string() })
}

pub(super) fn valid_name(name: &str) -> bool {
    (1..=100).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

pub(crate) fn read_chunk(key: &[u8], prefix: &[u8], value: &[u8]) -> Result<(u64, Chunk), StoreError> {
    let number = key.get(prefix.len()..).and_then(|n| Some(u64::from_be_bytes(n.try_into().ok()?)));
    let number = number.filter(|n| *n <= u64::MAX / CHUNK_ITEMS);
    match (number, Chunk::decode(value)) {
        (Some(number), Some(chunk)) => Ok((number, chunk)),
        _ => Err(StoreError::Decode { key: show(key), reason: "not a chunk of item digests".to_owned() }),
    }
}
