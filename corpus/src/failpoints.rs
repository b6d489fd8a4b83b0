//! Named points at which a test stops the process or makes an I/O call fail.
//!
//! Active only with the feature `failpoints` (always on in this crate's tests). Actions, in the syntax of the
//! `fail` crate: `return(abort)` kills the process without unwinding, `return(ENOSPC)` is a full disk,
//! `return` any other I/O error; `3*off->return(abort)` fires at the fourth pass.

use std::io;

/// Every failpoint of the store, so that a test can visit all of them.
pub const ALL: &[&str] = &[
    LOCK,
    APPEND_BEFORE,
    APPEND_HALF,
    APPEND_AFTER,
    SYNC_AFTER,
    APPLY_BEFORE,
    APPLY_AFTER,
    FLUSH,
    BUNDLE_TEMP,
    BUNDLE_RENAME,
    BUNDLE_AFTER,
    SNAPSHOT,
    COMPACT_TEMP,
    COMPACT_RENAME,
    FILE_RENAME,
    TRUNCATE,
    REBUILD,
];
/// After the lock file is held, before its content is written.
pub const LOCK: &str = "store.lock";
/// Before a batch is written to the log.
pub const APPEND_BEFORE: &str = "store.append.before";
/// After half of a batch's bytes are in the log.
pub const APPEND_HALF: &str = "store.append.half";
/// After the batch is written, before the sync.
pub const APPEND_AFTER: &str = "store.append.after";
/// After the log is synced, before anything else.
pub const SYNC_AFTER: &str = "store.sync.after";
/// Before the batch goes into the index.
pub const APPLY_BEFORE: &str = "store.apply.before";
/// After the batch is in the index, before the acknowledgement.
pub const APPLY_AFTER: &str = "store.apply.after";
/// Before the index is flushed when the store closes.
pub const FLUSH: &str = "store.flush";
/// Before a bundle's temporary file is written.
pub const BUNDLE_TEMP: &str = "store.bundle.temp";
/// After the temporary file is synced, before its rename.
pub const BUNDLE_RENAME: &str = "store.bundle.rename";
/// After the rename, before the directory is synced.
pub const BUNDLE_AFTER: &str = "store.bundle.after";
/// After a report snapshot's content is stored, before its record.
pub const SNAPSHOT: &str = "store.snapshot";
/// Before compaction writes the new log.
pub const COMPACT_TEMP: &str = "store.compact.temp";
/// After the new log is synced, before it replaces the old one.
pub const COMPACT_RENAME: &str = "store.compact.rename";
/// After a small file (format, marker, a damaged part kept) is synced, before its rename.
pub const FILE_RENAME: &str = "store.file.rename";
/// After a torn tail is copied aside, before it is cut off.
pub const TRUNCATE: &str = "store.truncate";
/// Before the index is rebuilt from the log.
pub const REBUILD: &str = "store.rebuild";

/// Passes the point `name`; does nothing unless a test configured it.
pub(crate) fn hit(name: &str) -> io::Result<()> {
    let _ = name;
    fail::fail_point!(name, |action: Option<String>| match action.as_deref() {
        Some("abort") => std::process::abort(),
        Some("ENOSPC") => Err(io::Error::from(io::ErrorKind::StorageFull)),
        _ => Err(io::Error::other(format!("failpoint {name}"))),
    });
    Ok(())
}
