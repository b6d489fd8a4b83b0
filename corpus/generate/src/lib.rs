//! Making programs: random ones, critical cycles, all small ones, and the pinned stream campaigns draw from.
//!
//! Contract: pure functions of bytes or indices; every program made is valid. Seed, index, profile and
//! [`GENERATOR_FINGERPRINT`] name a program for ever; a change of the stream changes the fingerprint.

pub mod bend;
pub mod build;
pub mod config;
pub mod exhaustive;
pub mod lowering;
pub(crate) mod random;
pub mod shapes;
pub(crate) mod steps;
pub mod stream;
pub mod tensor;
pub mod tile;

pub use bend::bend;
pub use config::Knobs;
pub use random::program;
pub use stream::{GENERATOR_FINGERPRINT, Profile, Stream, UnknownProfile};
pub use tile::{TILE_FINGERPRINT, TileDraw, TileKnobs, tile, tile_seed};
