//! Generates programs: the streams that all commands draw from, their drawers, and all small programs.
//!
//! Contract: every function is a pure function of what it chooses from, bytes or a seed. Seed, index, stream and
//! [`GENERATOR_FINGERPRINT`] identify a program for ever; a change of the streams changes the fingerprint.

pub mod bend;
pub mod blocks;
pub mod build;
pub mod config;
pub mod core;
pub mod exhaustive;
pub mod families;
pub mod idle;
pub mod kernel;
pub mod lowering;
pub mod numbers;
pub mod protocol;
pub(crate) mod random;
pub mod shapes;
pub mod source;
pub(crate) mod steps;
pub mod stream;
pub mod tensor;
pub mod tile;
pub mod words;

pub use bend::bend;
pub use config::Knobs;
pub use idle::synchronises;
pub use kernel::KernelDraw;
pub use random::program;
pub use source::SOURCE_FINGERPRINT;
pub use stream::{About, GENERATOR_FINGERPRINT, Profile, Stream, UnknownProfile};
pub use tile::{TILE_FINGERPRINT, TileDraw, TileKnobs, tile, tile_seed};
