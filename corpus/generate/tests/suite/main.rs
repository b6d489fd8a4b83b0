//! Drawn programs are valid, reproducible and of the promised shapes. Canonical form, reducer and rules are tried on them.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod canon;
mod cuts;
mod exhaustive;
mod kernels;
mod litmus;
mod reduce;
mod source;
mod streams;
mod tile;
mod tile_text;
mod validate;
