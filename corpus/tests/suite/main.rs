//! Tests of the store from outside.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;
mod crash;
mod fixture;
mod hostile;
mod loss;
mod pinned;
mod protect;
mod real_disk;
mod shared;
mod store;
mod tidied;
