//! The worker: takes leases from a coordinator, runs them on engines, reports the answers.

pub mod agreement;
mod client;
pub mod confine;
pub mod difference;
pub mod direction;
pub mod failpoints;
pub mod job;
mod lease;
pub mod link;
pub mod oracle;
pub mod piece;
pub mod trial;
pub mod wire;

pub use client::{Options, WorkError, stay, stay_confined, stay_on_trial, work};
