//! Generates programs: random ones, critical cycles, all small ones, and the pinned stream that campaigns draw from.
//!
//! Contract: every function is a pure function of bytes or indices, and every program it returns is valid. Seed, index,
//! profile and [`GENERATOR_FINGERPRINT`] identify a program for ever; a change of the stream changes the fingerprint.

pub mod bend;
pub mod build;
pub mod config;
pub mod exhaustive;
pub mod families;
pub mod lowering;
pub mod numbers;
pub(crate) mod random;
pub mod shapes;
pub mod source;
pub(crate) mod steps;
pub mod stream;
pub mod tensor;
pub mod tile;

pub use bend::bend;
pub use config::Knobs;
pub use random::program;
pub use source::SOURCE_FINGERPRINT;
pub use stream::{GENERATOR_FINGERPRINT, Profile, Stream, UnknownProfile};
pub use tile::{TILE_FINGERPRINT, TileDraw, TileKnobs, tile, tile_seed};
