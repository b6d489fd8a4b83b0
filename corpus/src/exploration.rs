//! The state of an exploration that many workers share, as the store keeps it.
//!
//! Under `x/ID`: the exploration; behind it `t` its totals, `p NUMBER` the pieces that are not explored yet, `m NAME` the
//! executions that decide its judgement. A change of pieces and totals is one commit, so the store is
//! always consistent: the totals count exactly what the pieces leave out.

use crate::record::Hash;
use crate::store::keys::{EXPLORATIONS, Of, exploration_part, parse, show};
use crate::store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A program to explore, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exploration {
    /// Litmus text.
    pub program: String,
    /// A shipped model, or the name of a file of `files`.
    pub model: String,
    /// Its switches.
    pub switches: BTreeMap<String, String>,
    /// Files of models that are not shipped, by name.
    pub files: BTreeMap<String, String>,
    /// Hash of the model's canonical text.
    pub fingerprint: Hash,
    /// Capability that names the tree of decisions.
    pub tree: String,
    /// Iterations of a loop that changes state.
    pub loop_bound: u32,
    /// Executions after which it ends; 0: no limit.
    pub executions: u64,
}

impl Exploration {
    /// Its name: everything it is.
    pub fn id(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).expect("strings and numbers always serialise"))
    }
}

/// How far an exploration is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explored {
    /// Fencing epoch of its leases.
    pub epoch: u32,
    /// When it was asked for first, Unix milliseconds.
    pub created_ms: u64,
    /// Complete executions.
    pub complete: u64,
    /// Executions that end blocked.
    pub blocked: u64,
    /// States that led to no execution.
    pub dead_ends: u64,
    /// Consistency checks.
    pub checks: u64,
    /// Sum of the numbers of the executions, modulo 2^64.
    pub digest: u64,
    /// The limit that was hit first in the order of the tree: behind which node, and its words.
    pub bounded: Option<(Vec<u32>, String)>,
    /// The construct that is not supported, and its line.
    pub unsupported: Option<(String, u32)>,
    /// Another reason for its end.
    pub failed: Option<String>,
    /// It has ended.
    pub over: bool,
}

/// A stretch of the executions, in the order of the tree of decisions; both nodes as decisions that lead there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// It begins behind this node; empty: with the first execution.
    pub behind: Vec<u32>,
    /// It ends with this node; empty: with the last execution.
    pub until: Vec<u32>,
}

/// Everything stored of one exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// What it is.
    pub exploration: Exploration,
    /// How far it is.
    pub explored: Explored,
    /// Pieces not explored, by number.
    pub pieces: BTreeMap<u64, Stretch>,
    /// Path of the first execution of each thing, by its name.
    pub marks: BTreeMap<String, Vec<u32>>,
}

/// Whether a stored pair under `x/` is a record of its kind.
pub(crate) fn check(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let nameless = || StoreError::Decode { key: show(key), reason: "not of an exploration".to_owned() };
    match exploration_part(key).ok_or_else(nameless)?.1 {
        Of::Exploration => parse::<Exploration>(key, value).map(drop),
        Of::Totals => parse::<Explored>(key, value).map(drop),
        Of::Piece(_) => parse::<Stretch>(key, value).map(drop),
        Of::Mark(_) => parse::<Vec<u32>>(key, value).map(drop),
    }
}

impl Store {
    /// All explorations, by id.
    pub fn explorations(&self) -> Result<BTreeMap<Hash, Stored>, StoreError> {
        let mut out: BTreeMap<Hash, Stored> = BTreeMap::new();
        for pair in self.scan(EXPLORATIONS) {
            let (key, value) = pair?;
            check(&key, &value)?;
            let Some((id, of)) = exploration_part(&key) else { continue };
            let stored = out.entry(id).or_default();
            match of {
                Of::Exploration => stored.exploration = parse(&key, &value)?,
                Of::Totals => stored.explored = parse(&key, &value)?,
                Of::Piece(number) => _ = stored.pieces.insert(number, parse(&key, &value)?),
                Of::Mark(name) => _ = stored.marks.insert(name.to_owned(), parse(&key, &value)?),
            }
        }
        Ok(out)
    }
}
