//! The pairs of a store: keys and values, durable once they are written.
//!
//! The log holds the truth, the index answers reads. Files by idea: `open` (lock, format, recovery), `commit` (durable
//! before acknowledged), `compact` (the log written anew). What a key or a value means is not known here.

mod commit;
mod compact;
pub(crate) mod open;

use crate::error::StoreError;
use crate::index::{self, Index};
use crate::log::{LOG_BYTES_MAX, Log, Place};
use crate::loss::{Loss, Losses, Tip};
use compact::Fresh;
use std::fs::File;
use std::io;
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
    /// Size over which the log is written anew while it is in use, once it has twice the bytes it had when all of it was
    /// live.
    pub tidy_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            reserve_bytes: 4 << 20,
            cache_bytes: 64 << 20,
            log_bytes: LOG_BYTES_MAX,
            tidy_bytes: 4 << 20,
        }
    }
}

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The open pairs of a directory. One per directory; dropping it closes it.
pub(crate) struct Pairs {
    dir: PathBuf,
    options: Options,
    log: Log,
    tip: Tip,
    /// Present until the pairs are dropped, or stopped because there is no space for it.
    index: Option<Index>,
    /// The disk was full at the last commit, so that the reserve is used up.
    reserve_used: bool,
    /// Nothing more is written after a failure that leaves log or index in doubt.
    stopped: bool,
    losses: Losses,
    /// Bytes of the log after the last compaction; all of it was live then.
    live_bytes: u64,
    /// A new log that is being written beside the old one.
    fresh: Option<Fresh>,
    lock: File,
}

impl Pairs {
    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// What the store has lost.
    pub(crate) fn losses(&self) -> &[Loss] {
        self.losses.all()
    }

    /// Notes that all losses were told to somebody.
    pub(crate) fn acknowledge(&mut self, who: &str, why: &str) -> io::Result<usize> {
        self.losses.acknowledge(&self.dir, who, why)
    }

    /// Copies the list of losses to another store.
    pub(crate) fn copy_losses(&self, to: &Path) -> io::Result<()> {
        self.losses.copy(to)
    }

    /// Notes the end of the log beside it.
    pub(super) fn note_tip(&mut self) {
        let Log { generation, sequence, len, .. } = self.log;
        self.tip.set(Place { generation, sequence, len });
    }

    /// Whether the disk was full at the last commit, so that its reserve is used up.
    pub(crate) fn reserve_used(&self) -> bool {
        self.reserve_used
    }

    fn index(&self) -> Result<&Index, StoreError> {
        self.index.as_ref().ok_or(StoreError::IndexFull)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.index()?.get(key)?)
    }

    /// The pairs under a prefix, in key order. Without an index, one error.
    pub(crate) fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<Pair, StoreError>> + use<> {
        let (pairs, error) = match self.index() {
            Ok(index) => (Some(index.scan(prefix)), None),
            Err(error) => (None, Some(Err(error))),
        };
        pairs.into_iter().flatten().map(|pair| Ok(pair?)).chain(error)
    }

    /// The pairs under a prefix that follow a key, in key order. Without an index, one error.
    pub(crate) fn scan_behind(
        &self,
        prefix: &[u8],
        key: &[u8],
    ) -> impl Iterator<Item = Result<Pair, StoreError>> + use<> {
        let (pairs, error) = match self.index() {
            Ok(index) => (Some(index.scan_behind(prefix, key)), None),
            Err(error) => (None, Some(Err(error))),
        };
        pairs.into_iter().flatten().map(|pair| Ok(pair?)).chain(error)
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.abandon();
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
