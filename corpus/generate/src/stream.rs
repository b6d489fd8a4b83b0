//! The streams of programs: the one registry of them, and what each draws.
//!
//! Contract: seed, stream and index determine a program, on every machine and for ever. ChaCha8, keyed by the seed and with the
//! index as stream number, gives bytes. `arbitrary` (its exact version is in the workspace manifest) turns them into
//! choices. A new version of either may change the programs. A test compares the streams with their fingerprint and
//! notices such a change. Every command draws from these streams, by their names here.

use std::fmt;
use std::str::FromStr;

use arbitrary::Unstructured;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::idle::synchronises;
use super::kernel::KernelDraw;
use super::numbers::Choose;
use super::tile::{self, TileDraw};
use super::words::reworded;
use super::{blocks, core, protocol, shapes, source, tensor};
use moire_program::ir::Program;
use moire_program::text::scan::closest;
use moire_program::validate::is_illegal;

/// Name of the streams of programs. A test compares the first programs with a recorded hash: if it fails, raise the number.
pub const GENERATOR_FINGERPRINT: &str = "ptx-10";

/// Bytes that a program may consume: three times the most that any program was observed to need.
const BYTES: usize = 4096;
/// Most programs drawn to find a valid one.
const DRAWS: usize = 16;
/// Programs in which a word of an instruction is replaced, in percent, where the family says nothing else.
pub(crate) const WORDED: usize = 25;
/// Programs that synchronise nothing and are kept, in percent.
const IDLE: usize = 20;

/// The kind of programs in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Threads that communicate through memory, see [`core`].
    Core,
    /// Loose instructions of tensor memory, copies, mbarriers and lanes, see [`tensor`].
    Tensor,
    /// Whole protocols of tensor-core kernels, see [`protocol`].
    Protocol,
    /// Modules of PTX with kernels as real code has them, see [`super::kernel`].
    Kernel,
    /// Programs of each of these.
    Mixed,
    /// Programs of tile blocks, see [`blocks`].
    Blocks,
    /// Kernels of Tile IR, see [`tile`].
    TileIr,
    /// Source programs, see [`moire_source`].
    Source,
}

/// A stream in the registry.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The stream.
    pub profile: Profile,
    /// Its name in commands, campaigns and claims.
    pub name: &'static str,
    /// What it draws, in a line.
    pub about: &'static str,
    /// Its part of a run over all streams; 0: other streams draw the same.
    pub share: u32,
    /// The models that its programs are for, the one with most rules last.
    pub models: &'static [&'static str],
    /// What an item is.
    of: Of,
}

/// What an item of a stream is.
#[derive(Clone, Copy, Debug)]
enum Of {
    Programs(&'static [Family]),
    Protocols,
    Modules,
    Kernels,
    Sources,
}

/// A way to draw programs of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// How often it is drawn, relative to the others.
    pub(crate) share: usize,
    /// Programs in which a word of an instruction is replaced, in percent.
    pub(crate) worded: usize,
    /// None where a drawn text is refused.
    pub(crate) draw: fn(&mut Unstructured<'_>) -> Option<Program>,
}

/// The models of programs of PTX threads.
const PTX: &[&str] = &["sc", "ptx-6.0", "ptx-7.5", "ptx"];
/// The model of tile blocks.
const TILES: &[&str] = &["tile-ir"];

/// The registry.
const STREAMS: [About; 8] = [
    About {
        profile: Profile::Core,
        name: "core",
        about: "threads that communicate through memory, fences and barriers",
        share: 30,
        models: PTX,
        of: Of::Programs(core::FAMILIES),
    },
    About {
        profile: Profile::Tensor,
        name: "tensor",
        about: "tensor memory, copies, mbarriers, lanes of a warp",
        share: 25,
        models: PTX,
        of: Of::Programs(tensor::FAMILIES),
    },
    About {
        profile: Profile::Protocol,
        name: "protocol",
        about: "whole protocols of tensor-core kernels",
        share: 15,
        models: PTX,
        of: Of::Protocols,
    },
    About {
        profile: Profile::Kernel,
        name: "kernel",
        about: "kernels of PTX modules: reductions, rings, barriers of the grid, pipelines",
        share: 15,
        models: &["ptx"],
        of: Of::Modules,
    },
    About {
        profile: Profile::Mixed,
        name: "mixed",
        about: "programs of core, tensor and protocol",
        share: 0,
        models: PTX,
        of: Of::Programs(MIXED),
    },
    About {
        profile: Profile::Blocks,
        name: "blocks",
        about: "programs of tile blocks, alone and beside threads of PTX",
        share: 10,
        models: TILES,
        of: Of::Programs(blocks::FAMILIES),
    },
    About {
        profile: Profile::TileIr,
        name: "tile-ir",
        about: "kernels of Tile IR",
        share: 20,
        models: TILES,
        of: Of::Kernels,
    },
    About {
        profile: Profile::Source,
        name: "source",
        about: "source programs for compilers",
        share: 50,
        models: PTX,
        of: Of::Sources,
    },
];

const MIXED: &[Family] = &[
    Family { name: "core", share: 4, worded: WORDED, draw: |u| Some(one(core::FAMILIES, u)?.1) },
    Family { name: "tensor", share: 3, worded: WORDED, draw: |u| Some(one(tensor::FAMILIES, u)?.1) },
    Family {
        name: "protocol",
        share: 1,
        worded: WORDED,
        draw: |u| protocol::Scheme::drawn(u).ok()?.program(),
    },
];

/// A program of one of the families; none where its text is refused, or the program is.
fn one(families: &[Family], u: &mut Unstructured<'_>) -> Option<(&'static str, Program)> {
    let mut at = u.below(families.iter().map(|f| f.share).sum());
    let family = families.iter().find(|f| {
        let here = at < f.share;
        at = at.saturating_sub(f.share);
        here
    })?;
    let program = (family.draw)(u)?;
    let program = if u.chance(family.worded) { reworded(program, u) } else { program };
    // Most programs that synchronise nothing are drawn again.
    let kept = |p: &Program, u: &mut Unstructured<'_>| !is_illegal(p) && (synchronises(p) || u.chance(IDLE));
    kept(&program, u).then_some((family.name, program))
}

impl Profile {
    /// All streams, in the order of the registry.
    pub const ALL: [Profile; STREAMS.len()] = {
        let mut all = [Profile::Core; STREAMS.len()];
        let mut n = 0;
        while n < STREAMS.len() {
            all[n] = STREAMS[n].profile;
            n += 1;
        }
        all
    };

    /// The streams of litmus programs of PTX threads.
    pub const PTX: [Profile; 5] =
        [Profile::Core, Profile::Tensor, Profile::Protocol, Profile::Kernel, Profile::Mixed];

    /// Its row of the registry.
    pub fn about(self) -> &'static About {
        const { &STREAMS }.iter().find(|about| about.profile == self).expect("each stream has a row")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.about().name
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No stream has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no stream `{name}`; {}there are {}", near(.name), names().join(", "))]
pub struct UnknownProfile {
    name: String,
}

fn names() -> Vec<&'static str> {
    STREAMS.iter().map(|about| about.name).collect()
}

fn near(name: &str) -> String {
    closest(name, &names()).map_or(String::new(), |near| format!("did you mean `{near}`? "))
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let named = Profile::ALL.into_iter().find(|p| p.name() == name);
        named.ok_or(UnknownProfile { name: name.to_owned() })
    }
}

/// One stream of programs.
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

    fn rng(&self, index: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(index);
        rng
    }

    /// The protocol from which the program at `index` is made. None unless the stream is `protocol`.
    pub fn protocol(&self, index: u64) -> Option<protocol::Protocol> {
        if self.profile != Profile::Protocol {
            return None;
        }
        let bytes = filled(&mut self.rng(index));
        protocol::Scheme::drawn(&mut Unstructured::new(&bytes)).ok()
    }

    /// The module from which the program at `index` is made. None unless the stream is `kernel`.
    pub fn module(&self, index: u64) -> Option<KernelDraw> {
        if self.profile != Profile::Kernel {
            return None;
        }
        self.launched(index).map(|(module, _)| module)
    }

    /// A module and the program of its launch.
    fn launched(&self, index: u64) -> Option<(KernelDraw, Program)> {
        let mut rng = self.rng(index);
        (0..DRAWS).find_map(|_| {
            let module = KernelDraw::draw(&mut Unstructured::new(&filled(&mut rng)));
            let program = module.program().filter(|program| !is_illegal(program))?;
            Some((module, program))
        })
    }

    /// The kernel from which the program at `index` is made. None unless the stream is `tile-ir`.
    pub fn kernel(&self, index: u64) -> Option<TileDraw> {
        (self.profile == Profile::TileIr).then(|| tile::tile_seed(self.seed, index))
    }

    /// The source program from which the program at `index` is made. None unless the stream is `source`.
    pub fn source(&self, index: u64) -> Option<moire_source::Source> {
        (self.profile == Profile::Source).then(|| source::source_seed(self.seed, index))
    }

    /// The program at `index`; independent of every other index.
    pub fn item(&self, index: u64) -> Program {
        self.drawn(index).1
    }

    /// The program at `index`, after the name of the family that drew it.
    pub fn drawn(&self, index: u64) -> (&'static str, Program) {
        let name = self.profile.name();
        let (family, mut program) = match self.profile.about().of {
            Of::Programs(families) => self.program(families, index),
            Of::Protocols => (name, self.protocol(index).and_then(|p| p.program())),
            Of::Modules => {
                self.launched(index).map_or((name, None), |(module, program)| (module.family, Some(program)))
            }
            Of::Kernels => (name, self.kernel(index).and_then(|k| k.program())),
            Of::Sources => {
                let lowered = self.source(index).and_then(|s| moire_source::lower::lower(&s).ok());
                (name, lowered.map(|l| l.program))
            }
        };
        // Tests check that each stream has a program at every index.
        let mut program = program.take().unwrap_or_else(shapes::message_passing);
        if !matches!(self.profile, Profile::TileIr | Profile::Source) {
            program.name = format!("{name}-{}-{index}", self.seed);
        }
        (family, program)
    }

    fn program(&self, families: &[Family], index: u64) -> (&'static str, Option<Program>) {
        let mut rng = self.rng(index);
        let mut tries = (0..DRAWS).map(|_| one(families, &mut Unstructured::new(&filled(&mut rng))));
        tries.find_map(|drawn| drawn).map_or(("", None), |(family, program)| (family, Some(program)))
    }
}

fn filled(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0u8; BYTES];
    rng.fill_bytes(&mut bytes);
    bytes
}
