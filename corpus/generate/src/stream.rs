//! The pinned stream: seed, profile and index give one program, on every machine and for ever.
//!
//! Contract: ChaCha8 keyed by the seed, its stream number the index, gives the bytes that `arbitrary` (exact version
//! in the workspace manifest) turns into choices. Both change their output between versions, hence the fingerprint.

use std::fmt;
use std::str::FromStr;

use arbitrary::{Arbitrary, Unstructured};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::config::Knobs;
use super::tile::{self, TileDraw};
use super::{random, shapes, tensor};
use moire_program::ir::Program;

/// Names the stream. A test compares the first programs with a recorded hash: when it fails, raise the number.
pub const GENERATOR_FINGERPRINT: &str = "ptx-5";

/// Bytes one program may consume: three times what the largest one was seen to need.
const BYTES: usize = 4096;

/// What a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Random programs under random knobs.
    Random,
    /// Critical cycles with random annotations.
    Shapes,
    /// Half of each.
    Mixed,
    /// Whole protocols of tensor-core kernels, see [`tensor`].
    Tensor,
    /// Kernels of Tile IR, see [`tile`].
    TileIr,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 5] =
        [Profile::Random, Profile::Shapes, Profile::Mixed, Profile::Tensor, Profile::TileIr];

    /// Those whose programs are of PTX threads, which litmus texts hold.
    pub const PTX: [Profile; 4] = [Profile::Random, Profile::Shapes, Profile::Mixed, Profile::Tensor];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Random => "random",
            Profile::Shapes => "shapes",
            Profile::Mixed => "mixed",
            Profile::Tensor => "tensor",
            Profile::TileIr => "tile-ir",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A profile name nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`; expected random, shapes, mixed, tensor or tile-ir")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Profile::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// One pinned stream of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    seed: u64,
    profile: Profile,
}

impl Stream {
    /// The stream of `seed` and `profile`.
    pub fn new(seed: u64, profile: Profile) -> Self {
        Stream { seed, profile }
    }

    fn bytes(&self, index: u64) -> Vec<u8> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(index);
        let mut bytes = vec![0u8; BYTES];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    /// The protocol that the program at `index` is; of a stream of protocols only.
    pub fn protocol(&self, index: u64) -> Option<tensor::Protocol> {
        let bytes = self.bytes(index);
        let plan =
            (self.profile == Profile::Tensor).then(|| tensor::Scheme::draw(&mut Unstructured::new(&bytes)));
        Some(plan?.ok()?.protocol())
    }

    /// The kernel that the program at `index` is; of a stream of kernels only.
    pub fn kernel(&self, index: u64) -> Option<TileDraw> {
        (self.profile == Profile::TileIr).then(|| tile::tile_seed(self.seed, index))
    }

    /// The program at `index`; independent of every other index.
    pub fn item(&self, index: u64) -> Program {
        if let Some(program) = self.kernel(index).and_then(|k| k.program()) {
            return program;
        }
        let bytes = self.bytes(index);
        let mut u = Unstructured::new(&bytes);
        // Choices are total: `arbitrary` gives the least value when bytes run out, so this cannot fail.
        let mut program = self.draw(&mut u).unwrap_or_else(|_| shapes::message_passing());
        program.name = format!("{}-{}-{index}", self.profile, self.seed);
        program
    }

    fn draw(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<Program> {
        let shape = match self.profile {
            Profile::Random => false,
            Profile::Shapes => true,
            Profile::Mixed => u.arbitrary()?,
            // A kernel that cannot be launched.
            Profile::TileIr => return Ok(shapes::message_passing()),
            Profile::Tensor => {
                // A protocol always reads; see the tests.
                let program = tensor::Scheme::draw(u)?.protocol().program();
                return Ok(program.unwrap_or_else(shapes::message_passing));
            }
        };
        if shape {
            return shapes::draw(u);
        }
        let knobs = Knobs::arbitrary(u)?;
        random::program(u, &knobs)
    }
}
