//! The pinned stream: seed, profile and index determine a program, on every machine and for ever.
//!
//! Contract: ChaCha8, keyed by the seed and with the index as stream number, gives bytes. `arbitrary` (its exact version is
//! in the workspace manifest) turns them into choices. A new version of either may change the programs. A test compares
//! the stream with its fingerprint and notices such a change.

use std::fmt;
use std::str::FromStr;

use arbitrary::{Arbitrary, Unstructured};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::config::Knobs;
use super::tile::{self, TileDraw};
use super::{random, shapes, source, tensor};
use moire_program::ir::Program;

/// Name of the stream. A test compares the first programs with a recorded hash: if it fails, raise the number.
pub const GENERATOR_FINGERPRINT: &str = "ptx-5";

/// Bytes that a program may consume: three times the most that any program was observed to need.
const BYTES: usize = 4096;

/// The kind of programs in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Random programs under random knobs.
    Random,
    /// Critical cycles with random annotations.
    Shapes,
    /// Each program is of `Random` or of `Shapes`, with equal probability.
    Mixed,
    /// Whole protocols of tensor-core kernels, see [`tensor`].
    Tensor,
    /// Kernels of Tile IR, see [`tile`].
    TileIr,
    /// Source programs, see [`moire_source`].
    Source,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 6] =
        [Profile::Random, Profile::Shapes, Profile::Mixed, Profile::Tensor, Profile::TileIr, Profile::Source];

    /// Profiles whose programs consist of PTX threads and so can be written as litmus text.
    pub const PTX: [Profile; 4] = [Profile::Random, Profile::Shapes, Profile::Mixed, Profile::Tensor];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Random => "random",
            Profile::Shapes => "shapes",
            Profile::Mixed => "mixed",
            Profile::Tensor => "tensor",
            Profile::TileIr => "tile-ir",
            Profile::Source => "source",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No profile has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`; expected random, shapes, mixed, tensor, tile-ir or source")]
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

    /// The protocol from which the program at `index` is made. None unless the profile is `Tensor`.
    pub fn protocol(&self, index: u64) -> Option<tensor::Protocol> {
        let bytes = self.bytes(index);
        let plan =
            (self.profile == Profile::Tensor).then(|| tensor::Scheme::draw(&mut Unstructured::new(&bytes)));
        Some(plan?.ok()?.protocol())
    }

    /// The kernel from which the program at `index` is made. None unless the profile is `TileIr`.
    pub fn kernel(&self, index: u64) -> Option<TileDraw> {
        (self.profile == Profile::TileIr).then(|| tile::tile_seed(self.seed, index))
    }

    /// The source program from which the program at `index` is made. None unless the profile is `Source`.
    pub fn source(&self, index: u64) -> Option<moire_source::Source> {
        (self.profile == Profile::Source).then(|| source::source_seed(self.seed, index))
    }

    /// The program at `index`; independent of every other index.
    pub fn item(&self, index: u64) -> Program {
        if let Some(program) = self.kernel(index).and_then(|k| k.program()) {
            return program;
        }
        if let Some(drawn) = self.source(index) {
            // The lowering refuses no drawn program; a test checks this.
            return moire_source::lower::lower(&drawn)
                .map_or_else(|_| shapes::message_passing(), |l| l.program);
        }
        let bytes = self.bytes(index);
        let mut u = Unstructured::new(&bytes);
        // This cannot fail: `arbitrary` returns the least value when the bytes run out.
        let mut program = self.draw(&mut u).unwrap_or_else(|_| shapes::message_passing());
        program.name = format!("{}-{}-{index}", self.profile, self.seed);
        program
    }

    fn draw(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<Program> {
        let shape = match self.profile {
            Profile::Random => false,
            Profile::Shapes => true,
            Profile::Mixed => u.arbitrary()?,
            // Reached only for a kernel that cannot be launched (see `item`).
            Profile::TileIr | Profile::Source => return Ok(shapes::message_passing()),
            Profile::Tensor => {
                // Every protocol gives a program; a test checks this.
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
