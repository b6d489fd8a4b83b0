//! Tests of running programs on a GPU, with a stand-in for the device and with records of earlier runs.

mod lane;
#[path = "../../../tests/suite/outside.rs"]
#[expect(dead_code, reason = "these tests need no files from beside the checkout")]
mod outside;
