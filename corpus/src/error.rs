//! Why a store did not open, or refused a read or a write: each message says what to do.

use crate::index::IndexError;
use crate::log::FORMAT;
use crate::op::OverLimit;
use std::io;
use std::path::PathBuf;

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("store {} is in use by {}; stop it, or use another --store", path.display(), holder(pid))]
    Locked {
        /// The store.
        path: PathBuf,
        /// Process id of the holder; empty if the lock file has none.
        pid: String,
    },
    /// Written by a later version.
    #[error(
        "store has format {found}, this version knows {FORMAT}; nothing was changed: use the moire that wrote it or a later one, or another --store"
    )]
    Newer {
        /// Its format.
        found: String,
    },
    /// Not a store.
    #[error("{} is not a store: {why}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// No space for the index.
    #[error("disk full: the log is intact, but there is no space for the index; free space and open again")]
    DiskFull,
    /// The index could not be built.
    #[error("index: {0}")]
    Index(String),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

fn holder(pid: &str) -> String {
    if pid.is_empty() { "another process".to_owned() } else { format!("process {pid}") }
}

pub(crate) fn opening(what: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}

/// Why a read or write failed. After any error nothing acknowledged is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No space: nothing of this batch is stored, all before it is.
    #[error("disk full: this batch is not stored, everything acknowledged is; free space and retry")]
    DiskFull,
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A record or a batch is too large.
    #[error("{what} has {size} bytes, the limit is {limit}; put large parts into a bundle")]
    TooLarge {
        /// The record or part.
        what: String,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// No room even after compaction.
    #[error("the log has {len} bytes of live records, the limit is {limit}: go on in a new store")]
    LogFull {
        /// Bytes of the compacted log.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// A request that cannot be carried out, such as a write for a campaign that is not there.
    #[error("{0}")]
    Invalid(String),
    /// A stored record that cannot be read.
    #[error("record {key} cannot be read: {reason}; run `moire store fsck`")]
    Decode {
        /// Its key.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The index failed; reopening rebuilds it.
    #[error("index: {0}; reopen the store to rebuild it")]
    Index(String),
    /// No space for the index, even without the reserve.
    #[error(
        "disk full: everything acknowledged is in the log, but the index cannot grow; free space and reopen"
    )]
    IndexFull,
    /// The log is not the one that was opened any more: another process wrote it, or put another in its place.
    #[error(
        "another process has taken the store over: this batch is not stored, and nothing more is written; two processes must not share a store"
    )]
    TakenOver,
    /// An earlier sync or index failure.
    #[error("store stopped after an earlier failure; reopen it")]
    Stopped,
}

pub(crate) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::Io { what, source },
    }
}

impl From<IndexError> for StoreError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Full => Self::IndexFull,
            IndexError::Other(text) => Self::Index(text),
        }
    }
}

impl From<OverLimit> for StoreError {
    fn from(OverLimit { what, size, limit }: OverLimit) -> Self {
        Self::TooLarge { what, size, limit }
    }
}

impl StoreError {
    /// Whether the fault lies with the records at hand. Nothing of their batch is stored then, and other records can still
    /// be written.
    pub fn is_about_content(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Invalid(_) | Self::Decode { .. })
    }
}
