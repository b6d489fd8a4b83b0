//! The worker: takes leases from a coordinator, runs them on engines, reports.
//!
//! Source: design sections 7 and 9.

mod client;
pub mod difference;
pub mod failpoints;
pub mod job;
pub mod link;
pub mod oracle;
pub mod piece;
pub mod trial;
pub mod wire;

pub use client::{Options, WorkError, stay, work};
