//! sled as a rebuildable index: the only module that names it.
//!
//! sled's flush does not promise a file sync, and version 0.34 may panic on damaged files. So its files are
//! used again only if a marker, written at a clean close, matches their checksum and the log's generation and
//! length; otherwise they are rebuilt from the log. Calls are fenced against panics.

use crate::failpoints;
use crate::files::{INDEX, MARKER, read_bounded, sync_dir, wait_for, write_atomically};
use crate::hash::Hash;
use crate::log::Live;
use crate::op::Op;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Longest marker that is read.
const MARKER_BYTES_MAX: u64 = 256;

pub(crate) struct Index {
    db: sled::Db,
}

/// Why the index failed. The log is still intact.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// No space for it.
    Full,
    /// Anything else.
    Other(String),
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<sled::Error> for IndexError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => error.into(),
            other => Self::Other(other.to_string()),
        }
    }
}

fn fenced<T>(call: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, IndexError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Ok(result?),
        Err(_) => Err(IndexError::Other("sled stopped with a panic".to_owned())),
    }
}

/// Most operations in one batch while the index is built.
const BATCH: usize = 1000;

/// Removes the index: derived data, the log holds all of it.
fn clear(dir: &Path) -> io::Result<()> {
    let path = dir.join(INDEX);
    if path.exists() { fs::remove_dir_all(path) } else { Ok(()) }
}

/// The marker's claim about the files on disk.
pub(crate) enum Trust {
    /// The files are those of a clean close at this log.
    Clean,
    /// No marker: the last close was not clean.
    Stale,
    /// A marker that does not fit.
    Mismatch,
}

fn checksum(dir: &Path) -> io::Result<Hash> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() { walk(&path, out)? } else { out.push(path) }
        }
        Ok(())
    }
    let mut paths = Vec::new();
    walk(dir, &mut paths)?;
    paths.sort();
    let mut hasher = blake3::Hasher::new();
    for path in paths {
        let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
        hasher.update(name.as_bytes()).update(&[0]);
        hasher.update(&fs::metadata(&path)?.len().to_le_bytes());
        hasher.update_reader(File::open(&path)?)?;
    }
    Ok(Hash(*hasher.finalize().as_bytes()))
}

fn marker(dir: &Path, generation: u64, len: u64) -> io::Result<String> {
    Ok(format!("moire-index 1 {generation} {len} {}\n", checksum(&dir.join(INDEX))?))
}

/// Generation and length of the log that the marker names.
pub(crate) fn marked(dir: &Path) -> Option<(u64, u64)> {
    let bytes = read_bounded(&dir.join(MARKER), MARKER_BYTES_MAX).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let mut words = text.strip_prefix("moire-index 1 ")?.split(' ').map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

pub(crate) fn trust(dir: &Path, generation: u64, len: u64) -> Trust {
    if !dir.join(MARKER).exists() {
        return Trust::Stale;
    }
    match (read_bounded(&dir.join(MARKER), MARKER_BYTES_MAX), marker(dir, generation, len)) {
        (Ok(found), Ok(expected)) if found == expected.as_bytes() => Trust::Clean,
        _ => Trust::Mismatch,
    }
}

/// Declares the index files trustworthy; only after they are closed.
pub(crate) fn mark_clean(dir: &Path, generation: u64, len: u64) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(INDEX))? {
        let path = entry?.path();
        if path.is_file() {
            File::open(path)?.sync_all()?;
        }
    }
    sync_dir(&dir.join(INDEX))?;
    write_atomically(&dir.join(MARKER), marker(dir, generation, len)?.as_bytes())
}

/// Waits until sled's own lock on its file is free. sled itself tries only once, and an index that does not open would be
/// moved aside.
fn await_release(db: &Path) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).write(true).open(db) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    match wait_for(|| file.try_lock())? {
        true => file.unlock(),
        // sled says what is wrong.
        false => Ok(()),
    }
}

impl Index {
    pub(crate) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        Self::at(&dir.join(INDEX), cache_bytes)
    }
    /// The index whose files are in the folder `path`.
    pub(crate) fn at(path: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        let config = sled::Config::new()
            .path(path)
            .cache_capacity(cache_bytes)
            .flush_every_ms(None)
            .mode(sled::Mode::HighThroughput);
        await_release(&path.join("db"))?;
        Ok(Self { db: fenced(|| config.open())? })
    }
    /// A new index of these records, in place of whatever is there.
    pub(crate) fn build(dir: &Path, cache_bytes: u64, live: &Live) -> Result<Self, IndexError> {
        let build = || {
            clear(dir)?;
            let index = Self::open(dir, cache_bytes)?;
            let mut records = live.records().peekable();
            while records.peek().is_some() {
                let batch = records.by_ref().take(BATCH);
                index.apply(batch.collect::<io::Result<Vec<_>>>()?)?;
            }
            fenced(|| index.db.flush())?;
            Ok(index)
        };
        build().inspect_err(|_| {
            let _ = clear(dir);
        })
    }
    pub(crate) fn apply(&self, ops: impl IntoIterator<Item = Op>) -> Result<(), IndexError> {
        let mut batch = sled::Batch::default();
        for op in ops {
            let (key, value) = op.into_parts();
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        fenced(|| self.db.apply_batch(batch))
    }
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(fenced(|| self.db.get(key))?.map(|v| v.to_vec()))
    }
    /// All pairs under a prefix, in key order.
    pub(crate) fn scan(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), IndexError>> + use<> {
        let mut pairs = self.db.scan_prefix(prefix);
        std::iter::from_fn(move || fenced(|| pairs.next().transpose()).transpose())
            .map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())))
    }
    /// The pairs under a prefix behind a key, in key order.
    pub(crate) fn scan_behind(
        &self,
        prefix: &[u8],
        key: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), IndexError>> + use<> {
        let (prefix, from) = (prefix.to_vec(), std::ops::Bound::Excluded(key.to_vec()));
        let mut pairs = self.db.range((from, std::ops::Bound::Unbounded));
        std::iter::from_fn(move || fenced(|| pairs.next().transpose()).transpose())
            .take_while(move |pair| pair.as_ref().map_or(true, |(k, _)| k.starts_with(&prefix)))
            .map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())))
    }
    /// Writes everything to the files and closes them.
    pub(crate) fn close(self) -> Result<(), IndexError> {
        failpoints::hit(failpoints::FLUSH)?;
        fenced(|| self.db.flush())?;
        fenced(|| {
            drop(self.db);
            Ok(())
        })
    }
}
