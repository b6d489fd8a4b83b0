//! Compaction: the log written anew, each live record once.
//!
//! The records come from the log, not from the index: a fault of the index loses nothing.

use super::Pairs;
use crate::error::{StoreError, io_error};
use crate::files::LOG;
use crate::log::{self, Log};
use crate::op::Op;
use std::io;

/// Records in one frame of a compacted log: with values of at most 64 KiB a frame stays within its limit.
const RECORDS: usize = 64;

impl Pairs {
    /// Rewrites the log so that it holds each live record once. Returns bytes before and after.
    pub(crate) fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        let before = self.log.len;
        let path = self.dir.join(LOG);
        // If the log is damaged nothing more is appended to it: opening again repairs it.
        let live = self.live().inspect_err(|_| self.stopped = true)?;
        let mut records = live.records();
        let payloads = std::iter::from_fn(|| {
            let ops: io::Result<Vec<Op>> = records.by_ref().take(RECORDS).collect();
            match ops {
                Ok(ops) if ops.is_empty() => None,
                ops => Some(ops.map(|ops| log::encode(&ops))),
            }
        });
        let generation = self.log.generation.wrapping_add(1);
        let (len, sequence) = log::replace(&path, generation, payloads).map_err(io_error("compacting"))?;
        // The old handle points at the replaced file: if this fails nothing more may be written through it.
        self.stopped = true;
        self.log = Log::open(&path, generation, sequence, len).map_err(io_error("reopening the log"))?;
        self.stopped = false;
        self.note_tip();
        Ok((before, len))
    }
}
