//! The store: findings, campaigns, per-item digests, shared explorations, regression programs, report snapshots and bundles.
//!
//! Contract: a write is acknowledged only when it is durable. The truth is an append-only, checksummed log
//! (`findings.log`), synced before the acknowledgement; sled is an index that can always be rebuilt from it.
//! One process at a time. Damaged files are moved or copied aside, never deleted. No clock, no async: times
//! are passed in.

pub mod bundle;
mod check;
mod error;
mod exploration;
pub mod failpoints;
mod files;
mod finding;
pub mod fsck;
mod hash;
mod index;
mod items;
mod life;
mod log;
mod loss;
mod mark;
mod night;
mod op;
mod pairs;
mod record;
mod restore;
mod store;
mod transfer;

pub use check::check_record;
pub use error::{OpenError, StoreError};
pub use exploration::{Exploration, Explored, Stored, Stretch};
pub use finding::{Finding, LIFE_BYTES_MAX, Verified};
pub use fsck::{Report, fsck};
pub use hash::{FindingId, Hash, HashError};
pub use items::{Counters, EngineResult, ItemDone, Progress, item_digest};
pub use life::{Change, FindingState, REASON_BYTES_MAX, Retest, Suppression};
pub use log::{BATCH_BYTES_MAX, FORMAT, LOG_BYTES_MAX, scan_log};
pub use loss::Loss;
pub use mark::{Mark, MarkError};
pub use night::{Since, Snapshot, compare};
pub use op::VALUE_BYTES_MAX;
pub use pairs::Options;
pub use pairs::open::Recovery;
pub use record::{Campaign, CampaignLimits, CampaignState, ModelRef, Provenance, Regression};
pub use restore::{Restored, restore};
pub use store::{Conflict, MARK_BYTES_MAX, Receipt, Stats, Store, Write};
pub use transfer::{backup, check_export, export, import};
