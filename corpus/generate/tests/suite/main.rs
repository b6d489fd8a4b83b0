//! What is drawn: valid, reproducible, of the shapes promised; and canonical form, reducer and rules tried on it.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod canon;
mod cuts;
mod exhaustive;
mod litmus;
mod reduce;
mod tile;
mod tile_text;
mod validate;
