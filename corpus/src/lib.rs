//! The store: findings, campaigns, per-item digests, shared explorations, regression programs, report snapshots and bundles.
//!
//! Contract: a write is acknowledged only when it is durable. The truth is an append-only, checksummed log
//! (`findings.log`), synced before the acknowledgement; sled is an index that can always be rebuilt from it.
//! One process at a time. Damaged files are moved or copied aside, never deleted. No clock, no async: times
//! are passed in.

pub mod bundle;
mod exploration;
pub mod failpoints;
mod files;
pub mod fsck;
mod index;
mod items;
mod life;
mod log;
mod night;
mod record;
mod store;
mod transfer;

pub use exploration::{Exploration, Explored, Stored, Stretch};
pub use fsck::{Report, check_record, fsck};
pub use items::{Counters, EngineResult, ItemDone, Progress, item_digest};
pub use life::{Change, FindingState, Mark, MarkError, REASON_BYTES_MAX, Retest, Suppression};
pub use night::{Since, Snapshot, compare};
pub use record::{
    Campaign, CampaignLimits, CampaignState, Finding, FindingId, Hash, ModelRef, Provenance, Regression,
    Verified,
};
pub use store::{Conflict, OpenError, Options, Receipt, Recovery, Stats, Store, StoreError, Write};
pub use transfer::{check_export, import};

/// Format version of the store directory, its log and its exports.
pub const FORMAT: u32 = 1;
/// Largest value of one record; larger parts go to bundle files.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Largest batch of one commit.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Largest log, room for about two million findings: it is compacted before it grows over this, and a larger file is not
/// read.
pub const LOG_BYTES_MAX: u64 = 4 << 30;

/// Reads a log image as recovery would and returns how many frames are intact (entry point of the fuzz target).
pub fn scan_log(bytes: &[u8]) -> usize {
    log::scan(bytes).frames.iter().filter(|f| log::decode(&bytes[f.payload.clone()]).is_some()).count()
}
