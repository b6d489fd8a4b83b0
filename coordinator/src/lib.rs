//! The coordinator: gives out leases, judges reports, keeps findings.
//!
//! Source: design sections 7 and 9.

pub mod lease;
