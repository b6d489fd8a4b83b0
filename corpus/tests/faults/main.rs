//! Tests of the store that inject faults. Failpoints are global to a process: each test has them alone
//! ([`fail::FailScenario`]), and no other test runs in this one.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "the other tests of the store use the rest")]
#[path = "../suite/common/mod.rs"]
mod common;
mod full_disk;
mod model;
