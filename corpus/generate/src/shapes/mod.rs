//! Critical cycles: every shape of communication between threads that a model can forbid, with annotated edges.
//!
//! Contract: a [`Skeleton`] is a cycle of thread segments ([`moire_source::cycle`]). All skeletons of one or two accesses a thread, up
//! to a number of threads, are listed once, up to rotation. An [`Annotation`] fills in orders, scopes, dependencies, fences,
//! aliases and places. The program's `exists` condition says that the cycle happened; if a location has three or more
//! writes, it fixes only the last of them.

mod draw;
mod weave;

pub use draw::{draw, guided};
pub use weave::build;

pub use moire_source::cycle::{Dir, Segment, Skeleton};

use moire_program::ir::{FenceOrder, Program, Scope, Space, Ty};
use moire_source::cycle::is_cycle;

/// All skeletons of 2 to `threads` threads, in order of size.
pub fn skeletons(threads: usize) -> Vec<Skeleton> {
    let mut segments = Vec::new();
    for a in [Dir::R, Dir::W] {
        segments.push(Segment::One(a));
        for b in [Dir::R, Dir::W] {
            segments.extend([Segment::Two(a, b, false), Segment::Two(a, b, true)]);
        }
    }
    let mut all = Vec::new();
    for n in 2..=threads {
        let mut digits = vec![0usize; n];
        loop {
            let cycle: Skeleton = digits.iter().map(|&d| segments[d]).collect();
            if is_cycle(&cycle) && is_least_rotation(&cycle) {
                all.push(cycle);
            }
            let Some(at) = digits.iter().rposition(|&d| d + 1 < segments.len()) else { break };
            digits[at] += 1;
            digits[at + 1..].fill(0);
        }
    }
    all
}

fn is_least_rotation(cycle: &[Segment]) -> bool {
    (1..cycle.len()).all(|k| cycle[k..].iter().chain(&cycle[..k]).ge(cycle.iter()))
}

/// How an access of a shape is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `ld.weak`, `st.weak`
    Weak,
    /// `.relaxed`
    Relaxed(Scope),
    /// `ld.acquire`, `st.release` (update of 32 bits: `inc`)
    Sync(Scope),
    /// `.volatile`
    Volatile,
    /// `atom` (read: `or` with 0; write and update: `exch`), relaxed or acquiring/releasing.
    Atom(Scope, bool),
    /// Weak, through a virtual alias.
    Alias,
    /// Weak, through a surface.
    Surface,
    /// Two accesses of the location: one that is part of the cycle, and one that synchronises (a read: behind it, of the same value
    /// that the thread has written in between; a write: before it, of a value of its own).
    Twice(Scope),
    /// A loop that reads until it sees the value of the cycle, relaxed or acquiring.
    Await(Scope, bool),
    /// `red` (read: `or` with 0, which returns no value; write: `max`, which writes the value of the cycle).
    Red(Scope),
}

/// The order between the two accesses of a segment: a fence or a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing.
    Plain,
    /// A memory fence.
    Fence(FenceOrder, Scope),
    /// The second access stores the value that the first read.
    Data,
    /// The second address is computed from the value that the first read.
    Addr,
    /// The second access is guarded by the value that the first read.
    Ctrl,
    /// `fence.proxy.alias`
    ProxyAlias,
    /// A fence between the generic proxy and that of surfaces.
    ProxySurface,
    /// The second access stands behind a branch that depends on the value that the first read.
    Past,
}

impl Between {
    /// Whether it is a dependency.
    pub fn depends(self) -> bool {
        matches!(self, Between::Data | Between::Addr | Between::Ctrl | Between::Past)
    }
}

/// How the threads are placed relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// One CTA.
    Cta,
    /// One cluster.
    Cluster,
    /// One GPU.
    Gpu,
    /// One GPU each.
    Sys,
    /// Even threads in one CTA; each odd thread in a cluster of its own on the same GPU.
    Split,
}

/// A barrier in the place of a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// `bar.sync`
    Cta,
    /// `barrier.cluster`
    Cluster,
}

/// One more read of the last location of a thread, at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// Of half of it: what is torn shows.
    Half,
    /// Through a surface, without a fence.
    Surface,
}

/// Everything that a skeleton does not determine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Per segment: the mark of its first access, the order between both, the mark of its second access.
    pub segments: Vec<(Mark, Between, Mark)>,
    /// Placement of the threads.
    pub stand: Stand,
    /// The type of all accesses.
    pub ty: Ty,
    /// The state space of all locations, and the one that accesses name.
    pub spaces: (Space, Space),
    /// All threads meet at a barrier instead of accessing the location on which the first segment hands over to the second.
    pub meeting: Option<Meeting>,
    /// A thread that reads once more.
    pub peek: Option<(usize, Peek)>,
}

impl Annotation {
    /// Of 64-bit words in global memory.
    pub fn new(segments: Vec<(Mark, Between, Mark)>, stand: Stand) -> Self {
        let spaces = (Space::Global, Space::Global);
        Annotation { segments, stand, ty: Ty::U(64), spaces, meeting: None, peek: None }
    }
}

const SCOPES: [Scope; 4] = [Scope::Gpu, Scope::Sys, Scope::Cta, Scope::Cluster];

/// Sizes of the digits of a segment: 3 + 5 * 4 = 23 marks (twice), 1 + 16 + 4 = 21 orders between them.
const MARKS: u128 = 23;
const BETWEENS: u128 = 21;
const STANDS: u128 = 5;

fn mark(n: u128) -> Mark {
    let scope = SCOPES[usize::try_from(n % 4).unwrap_or(0)];
    match n {
        0..4 => Mark::Relaxed(scope),
        4..8 => Mark::Sync(scope),
        8..12 => Mark::Atom(scope, false),
        12..16 => Mark::Atom(scope, true),
        16 => Mark::Weak,
        17 => Mark::Volatile,
        18 => Mark::Alias,
        _ => Mark::Red(scope),
    }
}

fn between(n: u128) -> Between {
    let scope = SCOPES[usize::try_from(n % 4).unwrap_or(0)];
    match n {
        0..4 => Between::Fence(FenceOrder::Sc, scope),
        4..8 => Between::Fence(FenceOrder::AcqRel, scope),
        8..12 => Between::Fence(FenceOrder::Acquire, scope),
        12..16 => Between::Fence(FenceOrder::Release, scope),
        16 => Between::Data,
        17 => Between::Addr,
        18 => Between::Ctrl,
        19 => Between::ProxyAlias,
        _ => Between::Plain,
    }
}

fn stand(n: u128) -> Stand {
    match n {
        0 => Stand::Gpu,
        1 => Stand::Cta,
        2 => Stand::Sys,
        3 => Stand::Cluster,
        _ => Stand::Split,
    }
}

/// All shape programs up to a number of threads, by index.
#[derive(Clone, Debug)]
pub struct Shapes {
    skeletons: Vec<Skeleton>,
    /// Index at which each skeleton's programs end.
    ends: Vec<u128>,
}

impl Shapes {
    /// Shapes of 2 to `threads` threads (at most 5, which keeps indices within 128 bits).
    pub fn new(threads: usize) -> Self {
        let skeletons = skeletons(threads.min(5));
        let mut end = 0u128;
        let ends = skeletons
            .iter()
            .map(|s| {
                end = end.saturating_add(variants(s));
                end
            })
            .collect();
        Shapes { skeletons, ends }
    }

    /// The number of programs.
    pub fn len(&self) -> u128 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The program at `index`.
    pub fn get(&self, index: u128) -> Option<Program> {
        let which = self.ends.partition_point(|&end| end <= index);
        let skeleton = self.skeletons.get(which)?;
        let start = if which == 0 { 0 } else { self.ends[which - 1] };
        Some(build(skeleton, &decode(skeleton, index - start)))
    }
}

fn variants(skeleton: &[Segment]) -> u128 {
    skeleton.iter().fold(STANDS, |all, segment| {
        all.saturating_mul(match segment {
            Segment::One(_) | Segment::Update => MARKS,
            Segment::Two(..) => MARKS * MARKS * BETWEENS,
        })
    })
}

fn decode(skeleton: &[Segment], mut index: u128) -> Annotation {
    let mut digit = |base: u128| {
        let d = index % base;
        index /= base;
        d
    };
    let stand = stand(digit(STANDS));
    let mut segments = Vec::new();
    for segment in skeleton {
        segments.push(match segment {
            Segment::One(_) | Segment::Update => (mark(digit(MARKS)), Between::Plain, Mark::Weak),
            Segment::Two(..) => {
                // Plain comes first: the earliest programs are the barest.
                let gap = between((digit(BETWEENS) + BETWEENS - 1) % BETWEENS);
                (mark(digit(MARKS)), gap, mark(digit(MARKS)))
            }
        });
    }
    Annotation::new(segments, stand)
}

/// MP without annotations: the smallest program that communicates.
pub fn message_passing() -> Program {
    let relaxed = Mark::Relaxed(Scope::Gpu);
    let skeleton = [Segment::Two(Dir::R, Dir::R, false), Segment::Two(Dir::W, Dir::W, false)];
    build(&skeleton, &Annotation::new(vec![(relaxed, Between::Plain, relaxed); 2], Stand::Gpu))
}
