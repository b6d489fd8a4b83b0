//! An exploration that many workers share, as it is stored.
//!
//! Under `x/ID`: the exploration; behind it `t` its totals, `p NUMBER` the pieces that are not explored yet, `m NAME` the
//! executions that decide its judgement. Pieces and totals that change together are written in one commit. So the totals
//! always count exactly the executions that lie in no stored piece.

use crate::hash::Hash;
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
    /// Its id: the hash of all its fields.
    pub fn id(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).expect("strings and numbers always serialise"))
    }
}

/// Totals of an exploration so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explored {
    /// Fencing epoch of its leases.
    pub epoch: u32,
    /// When it was first asked for, Unix milliseconds.
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
    /// The limit that was reached first in the order of the tree: the node behind which it was reached, and its words.
    pub bounded: Option<(Vec<u32>, String)>,
    /// The construct that is not supported, and its line.
    pub unsupported: Option<(String, u32)>,
    /// Another reason for its end.
    pub failed: Option<String>,
    /// Executions that two independent workers counted.
    pub twice: u64,
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
    /// Its program, model and limits.
    pub exploration: Exploration,
    /// Its totals.
    pub explored: Explored,
    /// Pieces not explored, by number.
    pub pieces: BTreeMap<u64, Stretch>,
    /// Path of the first execution that shows each thing, by the name of the thing.
    pub marks: BTreeMap<String, Vec<u32>>,
}
