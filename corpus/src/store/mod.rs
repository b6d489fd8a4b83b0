//! The store: what is open, what is written to it, what it answers.
//!
//! Files by idea: `open` (lock, format, recovery), `commit` (durable before acknowledged), `batch` (writes to
//! operations), `read`, `bundles`, `compact`, `keys`, `error`.

mod batch;
mod bundles;
mod commit;
mod compact;
mod error;
pub(crate) mod keys;
pub(crate) mod open;
mod read;

pub use error::{OpenError, StoreError};

use crate::LOG_BYTES_MAX;
use crate::exploration::{Exploration, Explored, Stretch};
use crate::index::{self, Index};
use crate::items::{ItemDone, Progress};
use crate::log::Log;
use crate::record::{Campaign, Finding, FindingId, Hash, Regression};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Create the store if the directory is absent or empty.
    pub create: bool,
    /// Disk reserve, released when the disk is full.
    pub reserve_bytes: u64,
    /// Cache of the index.
    pub cache_bytes: u64,
    /// Size over which the log is compacted; a commit that does not fit even then is refused.
    pub log_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: true, reserve_bytes: 4 << 20, cache_bytes: 64 << 20, log_bytes: LOG_BYTES_MAX }
    }
}

/// The result of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The store is new.
    pub created: bool,
    /// Intact commits in the log.
    pub commits: u64,
    /// Bytes of an unfinished commit, cut off.
    pub torn_bytes: u64,
    /// Damaged stretches inside the log.
    pub damaged: u64,
    /// The index was rebuilt from the log.
    pub rebuilt: bool,
    /// Damaged files, where they now are.
    pub moved_aside: Vec<PathBuf>,
    /// The disk reserve could not be made.
    pub no_reserve: bool,
}

/// One change to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// Creates or replaces a campaign (not its progress).
    Campaign(Box<Campaign>),
    /// Creates or replaces a finding.
    Finding(Box<Finding>),
    /// Item `item` of `campaign` showed `finding`; idempotent, part of the campaign's digest.
    Sighting {
        /// The campaign.
        campaign: String,
        /// The item.
        item: u64,
        /// The finding.
        finding: FindingId,
    },
    /// Finished items of a campaign; those already recorded change nothing.
    Items {
        /// The campaign.
        campaign: String,
        /// The items.
        items: Vec<ItemDone>,
    },
    /// The least program so far of a claim that is being made smaller, by the hash of the claim; `None` forgets it.
    Best {
        /// Hash of the claim.
        claim: Hash,
        /// Its program.
        program: Option<String>,
    },
    /// Creates an exploration; `None` forgets it and its totals.
    Exploration {
        /// Its id.
        id: Hash,
        /// What it is.
        exploration: Option<Box<Exploration>>,
    },
    /// How far an exploration is.
    Explored {
        /// Its id.
        id: Hash,
        /// Its totals.
        explored: Box<Explored>,
    },
    /// A piece of an exploration that is not explored; `None`: it is, or is forgotten.
    Piece {
        /// Id of the exploration.
        id: Hash,
        /// Number of the piece.
        number: u64,
        /// The piece.
        piece: Option<Stretch>,
    },
    /// The first execution that shows something; `None` forgets it.
    Mark {
        /// Id of the exploration.
        id: Hash,
        /// What it shows.
        name: String,
        /// Its path.
        path: Option<Vec<u32>>,
    },
    /// Keeps a program.
    Regression(Box<Regression>),
    /// Replaces what the coordinator has counted since the store was made, by name.
    Totals(BTreeMap<String, u64>),
}

/// Two reports of one item that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The campaign.
    pub campaign: String,
    /// The item.
    pub item: u64,
    /// The digest kept.
    pub kept: Hash,
    /// The digest refused.
    pub refused: Hash,
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Items recorded.
    pub items: u64,
    /// Items that were already recorded.
    pub duplicates: u64,
    /// Of these, those that said something else.
    pub conflicts: Vec<Conflict>,
    /// How far the campaigns are whose items were named.
    pub progress: BTreeMap<String, Progress>,
    /// The disk was full and the reserve is used up: free space now.
    pub reserve_used: bool,
}

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

/// The open store. One per directory; dropping it closes it.
pub struct Store {
    dir: PathBuf,
    options: Options,
    log: Log,
    /// Present until the store is dropped, or stopped because there is no space for it.
    index: Option<Index>,
    reserve_used: bool,
    stopped: bool,
    lock: File,
}

impl Store {
    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes of the log, and the number of its last commit.
    pub fn log_size(&self) -> (u64, u64) {
        (self.log.len, self.log.sequence)
    }
    /// Whether the disk was full at the last commit, so that its reserve is used up.
    pub fn reserve_used(&self) -> bool {
        self.reserve_used
    }

    fn index(&self) -> Result<&Index, StoreError> {
        self.index.as_ref().ok_or(StoreError::IndexFull)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let closed = self.index.take().is_some_and(|index| index.close().is_ok());
        if closed && !self.stopped {
            // Without the marker the next open rebuilds the index: slower, not wrong.
            let _ = index::mark_clean(&self.dir, self.log.generation, self.log.len);
        }
        // The pid serves the message of a second process only.
        let _ = self.lock.set_len(0);
        // Closing the file alone leaves the lock to a process forked from this one until its exec.
        let _ = self.lock.unlock();
    }
}
