//! Tests of the GPU lane on its stand-in and on records.

mod lane;
#[path = "../../../tests/suite/outside.rs"]
#[expect(dead_code, reason = "these tests need no files from beside the checkout")]
mod outside;
