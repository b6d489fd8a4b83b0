//! Named points at which a test stops the process without unwinding.
//!
//! Active only with the feature `failpoints`; configured through the `FAILPOINTS` variable in the syntax of the
//! `fail` crate: `worker.report.after=3*off->return(abort)` stops at the fourth pass.

/// Every failpoint of the worker.
pub const ALL: &[&str] = &[LEASE, REPORT_BEFORE, REPORT_AFTER];
/// When a lease starts.
pub const LEASE: &str = "worker.lease.start";
/// Before a report is sent.
pub const REPORT_BEFORE: &str = "worker.report.before";
/// After a report is handed to the stream.
pub const REPORT_AFTER: &str = "worker.report.after";

/// Passes the point `name`.
pub(crate) fn hit(name: &str) {
    let _ = name;
    fail::fail_point!(name, |_| std::process::abort());
}
