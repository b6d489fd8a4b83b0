//! Commit: one frame for the whole batch, synced, then the index, then the acknowledgement.
//!
//! A failed sync stops the store until it is reopened, because the kernel may have dropped the pages. On a full disk the
//! reserve is given up first, so that log and index have room for the batch in hand. The next commit restores the reserve,
//! or is refused.

use super::Pairs;
use crate::error::{StoreError, io_error};
use crate::failpoints;
use crate::files::{self, LOG};
use crate::index::{Index, IndexError};
use crate::log::{self, BATCH_BYTES_MAX, LOG_BYTES_MAX, Live};
use crate::op::Op;
use std::io;

impl Pairs {
    /// Makes operations durable, all or none. `Ok` is the acknowledgement.
    pub(crate) fn commit(&mut self, ops: Vec<Op>) -> Result<(), StoreError> {
        self.ready()?;
        self.write(ops)
    }

    /// Restores the reserve: no commit starts without it.
    pub(crate) fn ready(&mut self) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        if self.reserve_used {
            files::reserve(&self.dir, self.options.reserve_bytes)
                .map_err(io_error("restoring the disk reserve"))?;
            self.reserve_used = false;
        }
        Ok(())
    }

    /// [`Pairs::commit`] after [`Pairs::ready`].
    pub(crate) fn write(&mut self, ops: Vec<Op>) -> Result<(), StoreError> {
        if ops.is_empty() {
            return Ok(());
        }
        let payload = log::encode(&ops);
        if payload.len() > BATCH_BYTES_MAX {
            let (what, size) = ("a commit".to_owned(), payload.len());
            return Err(StoreError::TooLarge { what, size, limit: BATCH_BYTES_MAX });
        }
        if !self.log.is_ours().map_err(io_error("looking at the log"))? {
            // Nothing is undone: what is there belongs to somebody else now.
            self.stopped = true;
            return Err(StoreError::TakenOver);
        }
        self.make_room(payload.len() as u64)?;
        if let Err(error) = self.log.append(&payload) {
            self.after_failed_append(error, &payload)?;
        }
        self.note_tip();
        match self.apply(ops) {
            Ok(()) => {
                self.tend();
                Ok(())
            }
            // The batch is in the log and so durable: the index must take it, with the reserve given up.
            Err(StoreError::IndexFull) => self.rebuild_index(),
            Err(error) => {
                self.stopped = true;
                Err(error)
            }
        }
    }

    fn apply(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        let failed = |error: io::Error| StoreError::from(IndexError::from(error));
        failpoints::hit(failpoints::SYNC_AFTER).map_err(failed)?;
        failpoints::hit(failpoints::APPLY_BEFORE).map_err(failed)?;
        self.index()?.apply(ops)?;
        failpoints::hit(failpoints::APPLY_AFTER).map_err(failed)
    }

    /// After the index hit a full disk: gives up the reserve and builds it anew from the log. Stops if that fails.
    pub(crate) fn rebuild_index(&mut self) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        self.stopped = true;
        drop(self.index.take().map(Index::close));
        // May be gone already; what counts is whether the index can be built now.
        let _ = files::release(&self.dir);
        self.reserve_used = true;
        let live = self.live()?;
        self.index = Some(Index::build(&self.dir, self.options.cache_bytes, &live)?);
        self.stopped = false;
        Ok(())
    }

    /// The records of the log as it is on disk; an error if that is not what was written.
    pub(super) fn live(&self) -> Result<Live, StoreError> {
        let read = Live::of(&self.dir.join(LOG)).map_err(io_error("reading the log"))?;
        if let Some((_, live)) = read.filter(|(read, _)| read.len == self.log.len) {
            return Ok(live);
        }
        Err(StoreError::Decode { key: LOG.to_owned(), reason: "damaged since it was opened".to_owned() })
    }

    /// Keeps the log within its limit, by compaction if it has to be.
    fn make_room(&mut self, payload: u64) -> Result<(), StoreError> {
        let limit = self.options.log_bytes.min(LOG_BYTES_MAX);
        let fits = |len: u64| len + payload + log::FRAME_BYTES as u64 <= limit;
        if fits(self.log.len) {
            return Ok(());
        }
        let (_, len) = self.compact()?;
        if fits(len) { Ok(()) } else { Err(StoreError::LogFull { len, limit }) }
    }

    /// Undoes a failed append; on a full disk gives up the reserve and tries once more.
    fn after_failed_append(&mut self, error: io::Error, payload: &[u8]) -> Result<(), StoreError> {
        // It must not take the room of commits.
        self.abandon();
        let undone = self.log.rewind();
        let failed = io_error("appending to the log")(error);
        // Stopped unless the log is known to be as it was.
        self.stopped = true;
        if undone.is_err() || !matches!(failed, StoreError::DiskFull) {
            return Err(failed);
        }
        let retried = files::release(&self.dir).and_then(|()| self.log.append(payload));
        self.reserve_used = true;
        if retried.is_err() && self.log.rewind().is_err() {
            return Err(failed);
        }
        self.stopped = false;
        retried.map_err(|_| failed)
    }
}
