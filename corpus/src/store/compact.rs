//! Compaction: the log written anew, each live record once.

use super::error::io_error;
use super::{Store, StoreError};
use crate::files::LOG;
use crate::log::{self, Log};

impl Store {
    /// Rewrites the log so that it holds each live record once. Returns bytes before and after.
    pub fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        let before = self.log.len;
        let pairs: Vec<_> = self.pairs().collect::<Result<_, _>>()?;
        let payloads = pairs.chunks(64).map(|chunk| {
            log::encode(&chunk.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect::<Vec<_>>())
        });
        let path = self.dir.join(LOG);
        let generation = self.log.generation + 1;
        let (len, sequence) = log::replace(&path, generation, payloads).map_err(io_error("compacting"))?;
        // The old handle points at the replaced file: if this fails nothing more may be written through it.
        self.stopped = true;
        self.log = Log::open(&path, generation, sequence, len).map_err(io_error("reopening the log"))?;
        self.stopped = false;
        Ok((before, len))
    }
}
