//! The store: records by kind, kept as durable pairs (`crate::pairs`).
//!
//! Files by idea: `write` (what is written), `batch` (writes to operations on pairs), `read`, `findings`, `bundles` (content
//! in files beside the log), `keys`.

mod batch;
mod bundles;
mod findings;
pub(crate) mod keys;
mod read;
mod write;

pub use keys::MARK_BYTES_MAX;
pub use read::Stats;
pub use write::{Conflict, Receipt, Write};

use crate::error::{OpenError, StoreError, io_error};
use crate::loss::Loss;
use crate::pairs::open::Recovery;
use crate::pairs::{Options, Pairs};
use std::path::Path;

/// The open store. One per directory; dropping it closes it.
pub struct Store {
    pairs: Pairs,
}

impl Store {
    /// Opens or creates the store in `dir`, repairing what a crash left.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        let (pairs, recovery) = Pairs::open(dir, options)?;
        Ok((Self { pairs }, recovery))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.pairs.dir()
    }

    /// Bytes of the log, and the number of its last commit.
    pub fn log_size(&self) -> (u64, u64) {
        let log = self.pairs.log();
        (log.len, log.sequence)
    }

    /// Whether the disk was full at the last commit, so that its reserve is used up.
    pub fn reserve_used(&self) -> bool {
        self.pairs.reserve_used()
    }

    /// What the store had, and has no more: losses that nobody has acknowledged, oldest first.
    pub fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.pairs.losses().iter().filter(|loss| loss.acknowledged.is_none())
    }

    /// Notes that `who` knows of all losses; returns how many there were. They stay in the store as history.
    ///
    /// # Errors
    /// The list of losses cannot be written.
    pub fn acknowledge(&mut self, who: &str, why: &str) -> Result<usize, StoreError> {
        self.pairs.acknowledge(who, why).map_err(io_error("acknowledging losses"))
    }

    /// Makes a batch durable, whole or not at all. `Ok` is the acknowledgement.
    ///
    /// # Errors
    /// The store failed, or refuses the batch for its content ([`StoreError::is_about_content`]): then the next one may
    /// be taken.
    pub fn commit(&mut self, writes: impl AsRef<[Write]>) -> Result<Receipt, StoreError> {
        let writes = writes.as_ref();
        if !writes.is_empty() {
            self.pairs.ready()?;
        }
        let (ops, mut receipt) = match batch::prepare(&self.pairs, writes) {
            Err(StoreError::IndexFull) => {
                self.pairs.rebuild_index()?;
                batch::prepare(&self.pairs, writes)?
            }
            prepared => prepared?,
        };
        self.pairs.write(ops)?;
        receipt.reserve_used = self.pairs.reserve_used();
        Ok(receipt)
    }

    /// Rewrites the log so that it holds each live record once. Returns bytes before and after.
    pub fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        self.pairs.compact()
    }

    /// The pairs, as they are stored.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The pairs, to write some as they were stored elsewhere.
    pub(crate) fn pairs_mut(&mut self) -> &mut Pairs {
        &mut self.pairs
    }
}
