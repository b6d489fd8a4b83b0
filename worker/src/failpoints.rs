//! Named points at which a test stops the process without unwinding.
//!
//! Active only with the feature `failpoints`; configured through the `FAILPOINTS` variable in the syntax of the
//! `fail` crate: `worker.report.after=3*off->return(abort)` stops at the fourth pass.

/// Every failpoint that the process of a worker passes, also where leases have processes of their own.
pub const ALL: &[&str] = &[LEASE, REPORT_BEFORE, REPORT_AFTER];
/// When a lease starts.
pub const LEASE: &str = "worker.lease.start";
/// Before an item of a range runs, in the process of its lease.
pub const ITEM: &str = "worker.item";
/// Before a report is sent.
pub const REPORT_BEFORE: &str = "worker.report.before";
/// After a report is handed to the stream.
pub const REPORT_AFTER: &str = "worker.report.after";

/// Passes the point `name`.
pub(crate) fn hit(name: &str) {
    let _ = name;
    fail::fail_point!(name, |how| match how.as_deref() {
        // As where there is no memory left.
        Some("memory") => std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u64; 1 << 20]>()),
        // As somebody else does.
        Some("kill") => {
            let _ = std::process::Command::new("sh").args(["-c", "kill -KILL $PPID"]).status();
            std::process::abort()
        }
        _ => std::process::abort(),
    });
}
