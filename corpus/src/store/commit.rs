//! Commit: one frame for the whole batch, synced, then the index, then the acknowledgement.
//!
//! A failed sync stops the store until it is reopened, because the kernel may have dropped the pages. A full
//! disk costs the reserve first, so that the batch in hand still goes through. Source: design section 9.

use super::batch::Batch;
use super::error::io_error;
use super::{Receipt, Store, StoreError, Write};
use crate::log::{self, Op};
use crate::{BATCH_BYTES_MAX, LOG_BYTES_MAX, failpoints, files};
use std::collections::BTreeMap;
use std::io;

impl Store {
    /// Makes a batch durable, whole or not at all. `Ok` is the acknowledgement.
    pub fn commit(&mut self, writes: Vec<Write>) -> Result<Receipt, StoreError> {
        let mut batch = Batch { store: self, pending: BTreeMap::new(), receipt: Receipt::default() };
        for write in writes {
            batch.add(write)?;
        }
        let Batch { pending, mut receipt, .. } = batch;
        self.commit_ops(pending.into_iter().collect())?;
        receipt.reserve_used = self.reserve_used;
        Ok(receipt)
    }

    pub(crate) fn commit_ops(&mut self, ops: Vec<Op>) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        if ops.is_empty() {
            return Ok(());
        }
        if self.reserve_used {
            files::reserve(&self.dir, self.options.reserve_bytes)
                .map_err(io_error("restoring the disk reserve"))?;
            self.reserve_used = false;
        }
        let payload = log::encode(&ops);
        if payload.len() > BATCH_BYTES_MAX {
            let (what, size) = ("a commit".to_owned(), payload.len());
            return Err(StoreError::TooLarge { what, size, limit: BATCH_BYTES_MAX });
        }
        self.make_room(payload.len() as u64)?;
        if let Err(error) = self.log.append(&payload) {
            self.after_failed_append(error, &payload)?;
        }
        let applied = (|| {
            failpoints::hit(failpoints::SYNC_AFTER).map_err(|e| e.to_string())?;
            failpoints::hit(failpoints::APPLY_BEFORE).map_err(|e| e.to_string())?;
            self.index().apply(ops)?;
            failpoints::hit(failpoints::APPLY_AFTER).map_err(|e| e.to_string())
        })();
        applied.map_err(|error| {
            self.stopped = true;
            StoreError::Index(error)
        })
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
