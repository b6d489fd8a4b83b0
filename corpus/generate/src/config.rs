//! Knobs of the random generator: the features it may use, how often, and the size of a program.
//!
//! Contract: knobs are data. They can be drawn from the same bytes as programs, which switches whole features off for
//! some of the programs (swarm testing). Percentages are per decision, not per program.

use arbitrary::{Arbitrary, Result, Unstructured};

/// How the threads of a program are placed relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spread {
    /// All in one CTA, one thread a warp.
    SameCta,
    /// One cluster, different CTAs.
    SameCluster,
    /// One grid, different clusters.
    SameGpu,
    /// One GPU each.
    OtherGpu,
    /// Each thread's place is drawn independently.
    Any,
}

/// Knobs of the random generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Fewest and most threads, 1..=8: more cannot be enumerated.
    pub threads: (u8, u8),
    /// Most steps of one thread. A step is a fence, or one access with the instructions it depends on.
    pub steps_max: u8,
    /// Most locations.
    pub locations_max: u8,
    /// Relation of the threads' places.
    pub spread: Spread,
    /// Threads that run on the host.
    pub host_percent: u8,
    /// Locations in `.shared`.
    pub shared_percent: u8,
    /// Weak accesses.
    pub weak_percent: u8,
    /// Volatile or mmio accesses.
    pub volatile_percent: u8,
    /// Accesses that acquire or release.
    pub sync_percent: u8,
    /// Steps that are a memory fence.
    pub fence_percent: u8,
    /// Accesses that are an RMW.
    pub rmw_percent: u8,
    /// Accesses that depend on an earlier read.
    pub dependency_percent: u8,
    /// Steps that are an await.
    pub await_percent: u8,
    /// Steps that are a proxy fence, or an access through an alias, a texture, a surface or a constant bank.
    pub proxy_percent: u8,
    /// Programs in which threads of one CTA or cluster meet at a barrier.
    pub barrier_percent: u8,
    /// Accesses of different sizes to one location.
    pub mixed_sizes: bool,
    /// Vector accesses.
    pub vectors: bool,
    /// 64-bit words (needed for address dependencies); 32 otherwise.
    pub wide: bool,
    /// Most candidates: the generator adds no access that would raise `estimate_candidates` above this.
    pub candidates_max: u128,
}

/// Most candidates (`rf` choices times `co` choices) that the enumerator must try for one program.
pub const CANDIDATES_MAX: u128 = 20_000;

impl Default for Knobs {
    fn default() -> Self {
        Knobs {
            threads: (2, 3),
            steps_max: 4,
            locations_max: 3,
            spread: Spread::Any,
            host_percent: 5,
            shared_percent: 15,
            weak_percent: 20,
            volatile_percent: 4,
            sync_percent: 25,
            fence_percent: 12,
            rmw_percent: 15,
            dependency_percent: 25,
            await_percent: 5,
            proxy_percent: 5,
            barrier_percent: 10,
            mixed_sizes: false,
            vectors: false,
            wide: false,
            candidates_max: CANDIDATES_MAX,
        }
    }
}

impl<'a> Arbitrary<'a> for Knobs {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Knobs {
            threads: (2, *u.choose(&[2, 3, 3, 4])?),
            steps_max: *u.choose(&[3, 4, 4, 5])?,
            locations_max: *u.choose(&[1, 2, 2, 2, 3, 3])?,
            spread: *u.choose(&[
                Spread::SameCta,
                Spread::SameCta,
                Spread::SameCluster,
                Spread::SameGpu,
                Spread::OtherGpu,
                Spread::Any,
                Spread::Any,
            ])?,
            host_percent: *u.choose(&[0, 0, 0, 20])?,
            shared_percent: *u.choose(&[0, 0, 30])?,
            weak_percent: *u.choose(&[0, 0, 10, 40, 90])?,
            volatile_percent: *u.choose(&[0, 0, 0, 10])?,
            sync_percent: *u.choose(&[0, 10, 30, 60])?,
            fence_percent: *u.choose(&[0, 0, 15, 30])?,
            rmw_percent: *u.choose(&[0, 0, 20, 45])?,
            dependency_percent: *u.choose(&[0, 0, 30, 60])?,
            await_percent: *u.choose(&[0, 10, 10, 25])?,
            proxy_percent: *u.choose(&[0, 0, 0, 0, 30])?,
            barrier_percent: *u.choose(&[0, 0, 60, 90])?,
            mixed_sizes: u.ratio(1u8, 16u8)?,
            vectors: u.ratio(1u8, 24u8)?,
            wide: u.arbitrary()?,
            candidates_max: CANDIDATES_MAX,
        })
    }
}
