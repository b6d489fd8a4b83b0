//! Failpoints: named points at which a test stops the process without unwinding.
//!
//! Active only with the feature `failpoints`; configured through the `FAILPOINTS` variable in the syntax of the
//! `fail` crate: `coordinator.commit.after=3*off->return(abort)` stops at the fourth pass.

/// Every failpoint of the coordinator.
pub const ALL: &[&str] = &[GRANT, COMMIT_BEFORE, COMMIT_AFTER, VERIFY, MINIMISED, CAMPAIGN_DONE];
/// Before a lease is sent.
pub const GRANT: &str = "coordinator.lease.grant";
/// Before a batch is committed.
pub const COMMIT_BEFORE: &str = "coordinator.commit.before";
/// After the commit, before its acknowledgements.
pub const COMMIT_AFTER: &str = "coordinator.commit.after";
/// When a claim is admitted, before it is run again.
pub const VERIFY: &str = "coordinator.claim.verify";
/// When a claim is reduced, before it is a finding.
pub const MINIMISED: &str = "coordinator.claim.minimised";
/// When a campaign has all its items, before that is recorded.
pub const CAMPAIGN_DONE: &str = "coordinator.campaign.done";

/// Passes the point `name`.
pub(crate) fn hit(name: &str) {
    let _ = name;
    fail::fail_point!(name, |_| std::process::abort());
}
