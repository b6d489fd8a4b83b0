//! Tests against NVIDIA's own tools. Where a tool or an outside suite is missing, a test says so and passes.

mod common;
#[path = "../../../tests/suite/outside.rs"]
mod outside;
mod probes;
mod ptxas;
mod sass;
mod tile_compiler;
mod tile_generated;
mod tile_verifier;
