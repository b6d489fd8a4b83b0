//! The worker: takes leases from a coordinator, runs them on engines, reports.
//!
//! Source: design sections 7 and 9.

pub mod job;
pub mod oracle;
