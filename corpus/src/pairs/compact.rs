//! Compaction: the log written anew, each live record once; at once, or beside commits.
//!
//! The records come from the log, not from the index: a fault of the index loses nothing.
//!
//! Contract of the log beside commits: when the log has [`super::Options::tidy_bytes`] and twice the bytes that it had when
//! all of it was live, a thread writes the live records of its commits so far to a file beside it. The first commit after
//! that appends the commits that came meanwhile, and puts the file in the place of the log. So a commit waits for as many
//! bytes as were committed meanwhile, not for those of the log. A crash leaves the old log or the new one. A failure leaves
//! the old one, and the next attempt comes when the log has twice its size.

use super::Pairs;
use crate::error::{StoreError, io_error};
use crate::failpoints;
use crate::files::{LOG, sync_dir};
use crate::log::{self, Live, Log, Place};
use crate::op::Op;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Records in one frame of a compacted log: with values of at most 64 KiB a frame stays within its limit.
const RECORDS: usize = 64;

/// The payloads of a log that holds each of these records once.
pub(super) fn payloads(
    mut records: impl Iterator<Item = io::Result<Op>>,
) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    std::iter::from_fn(move || {
        let ops: io::Result<Vec<Op>> = records.by_ref().take(RECORDS).collect();
        match ops {
            Ok(ops) if ops.is_empty() => None,
            ops => Some(ops.map(|ops| log::encode(&ops))),
        }
    })
}

/// A new log under way.
pub(super) struct Fresh {
    /// Bytes of the old log that it covers.
    covers: u64,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Written>>,
}

/// The new log, synced.
struct Written {
    file: File,
    sequence: u64,
    len: u64,
}

/// Where the new log is written.
fn beside(log: &Path) -> PathBuf {
    log.with_extension("fresh")
}

/// Removes what a process that was killed left of a new log.
pub(super) fn clear(dir: &Path) -> io::Result<()> {
    match fs::remove_file(beside(&dir.join(LOG))) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Writes the live records of the first `covers` bytes of the log.
fn write(path: &Path, covers: u64, generation: u64, stop: &AtomicBool) -> io::Result<Written> {
    let changed = || io::Error::other("the log is not as it was written");
    let (read, live) = Live::of_first(path, covers)?.ok_or_else(changed)?;
    if read.len != covers {
        return Err(changed());
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(beside(path))?;
    let mut out = BufWriter::new(file);
    out.write_all(&log::header_bytes(generation))?;
    let (mut sequence, mut len) = (0, log::HEADER_BYTES as u64);
    for payload in payloads(live.records()) {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        sequence += 1;
        let bytes = log::frame_bytes(sequence, &payload?);
        out.write_all(&bytes)?;
        len += bytes.len() as u64;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(Written { file, sequence, len })
}

impl Pairs {
    /// Rewrites the log so that it holds each live record once. Returns bytes before and after.
    pub(crate) fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.abandon();
        let before = self.log.len;
        let path = self.dir.join(LOG);
        // If the log is damaged nothing more is appended to it: opening again repairs it.
        let live = self.live().inspect_err(|_| self.stopped = true)?;
        let payloads = payloads(live.records());
        let generation = self.log.generation.wrapping_add(1);
        let (len, sequence) = log::replace(&path, generation, payloads).map_err(io_error("compacting"))?;
        // The old handle points at the replaced file: if this fails nothing more may be written through it.
        self.stopped = true;
        self.log = Log::open(&path, generation, sequence, len).map_err(io_error("reopening the log"))?;
        self.stopped = false;
        self.live_bytes = len;
        self.note_tip();
        Ok((before, len))
    }

    /// Starts a new log if the old one has grown enough, or puts one that is ready in its place.
    pub(super) fn tend(&mut self) {
        if self.fresh.as_ref().is_some_and(|fresh| fresh.thread.is_finished()) {
            if self.take_over().is_err() {
                // The old log is as good as it was, unless its successor could not be opened: then `stopped` is set.
                let _ = fs::remove_file(beside(&self.dir.join(LOG)));
                self.live_bytes = self.log.len;
            }
            return;
        }
        let grown = self.log.len >= self.options.tidy_bytes.max(self.live_bytes.saturating_mul(2));
        if self.fresh.is_none() && !self.stopped && grown {
            let (path, covers) = (self.dir.join(LOG), self.log.len);
            let generation = self.log.generation.wrapping_add(1);
            let stop = Arc::new(AtomicBool::new(false));
            let asked = Arc::clone(&stop);
            let thread = std::thread::spawn(move || write(&path, covers, generation, &asked));
            self.fresh = Some(Fresh { covers, stop, thread });
        }
    }

    /// Ends a new log under way; the old one stays.
    pub(super) fn abandon(&mut self) {
        if let Some(fresh) = self.fresh.take() {
            fresh.stop.store(true, Ordering::Relaxed);
            // The cause of its failure does not matter now.
            let _ = fresh.thread.join();
            let _ = fs::remove_file(beside(&self.dir.join(LOG)));
        }
    }

    /// Appends the commits that came meanwhile to the new log, and puts it in the place of the old one.
    fn take_over(&mut self) -> io::Result<()> {
        let Some(Fresh { covers, thread, .. }) = self.fresh.take() else { return Ok(()) };
        let path = self.dir.join(LOG);
        let ended = thread.join().map_err(|_| io::Error::other("the new log was not finished"))?;
        let Written { mut file, mut sequence, mut len } = ended?;
        let mut rest = Vec::new();
        let mut old = File::open(&path)?;
        old.seek(SeekFrom::Start(covers))?;
        old.take(self.log.len - covers).read_to_end(&mut rest)?;
        file.seek(SeekFrom::Start(len))?;
        for payload in log::frames(&rest).ok_or_else(|| io::Error::other("the log is damaged"))? {
            sequence += 1;
            let bytes = log::frame_bytes(sequence, &rest[payload]);
            file.write_all(&bytes)?;
            len += bytes.len() as u64;
        }
        file.sync_all()?;
        let generation = self.log.generation.wrapping_add(1);
        let new = Log::locked(&path, file, Place { generation, sequence, len })?;
        failpoints::hit(failpoints::COMPACT_RENAME)?;
        fs::rename(beside(&path), &path)?;
        // From here on the old handle points at a file that is gone.
        self.log = new;
        self.live_bytes = len;
        self.note_tip();
        if sync_dir(&self.dir).is_err() {
            // After a power loss the old log might be back, without the commits from here on.
            self.stopped = true;
        }
        Ok(())
    }
}
