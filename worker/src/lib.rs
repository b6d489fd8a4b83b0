//! The worker: takes leases from a coordinator, runs them on engines, reports the answers.

mod client;
pub mod difference;
pub mod direction;
pub mod failpoints;
pub mod job;
pub mod link;
pub mod oracle;
pub mod piece;
pub mod trial;
pub mod wire;

pub use client::{Options, WorkError, stay, work};
