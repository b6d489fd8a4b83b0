//! Footprints of instructions: which bytes of which memory they touch, how, and which lane touches which.

use super::known::line::{Cone, Line};
use super::known::value::{Lanes, lanes};
use moire_program::limits::THREADS;

/// Bits of the number of a CTA in its grid: there are no more CTAs than warps.
pub(super) const CTA_BITS: u32 = THREADS.ilog2();

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mem {
    /// Shared memory of a CTA, by its number (`Here::cta`).
    Shared(u32),
    /// Global memory at a numeric address.
    Absolute,
    /// Global memory behind a parameter.
    Param(u16),
    /// Global memory behind a parameter, at addresses that grow with the rounds of a loop: the offsets are those of the first
    /// round. `along` puts it into the memory of the parameter.
    Along(u16, Line, Cone),
    /// A global variable.
    Variable(u16),
    /// Boxes of a tensor map.
    Boxes(u64),
    /// A further copy of words of a CTA (`agree`): the CTA and the number of the copy.
    Copy(u32, u32),
    /// A word that decides for data: the warp, by its number in the launch, and the number of the choice.
    Choice(u32, u32),
    /// Places of the lanes of a CTA that touch the same bytes unordered (`lanes::twin`).
    Lanes(u32),
    /// Marks that stores of a CTA leave (`agree`): the CTA and the number of the store.
    Mark(u32, u32),
}

impl Mem {
    /// The memory whose layout this one shares: all CTAs of a grid have the layout of the first.
    pub(crate) fn domain(self) -> Mem {
        let first = |cta: u32| cta >> CTA_BITS << CTA_BITS;
        match self {
            Mem::Shared(cta) => Mem::Shared(first(cta)),
            Mem::Copy(cta, n) => Mem::Copy(first(cta), n),
            Mem::Lanes(cta) => Mem::Lanes(first(cta)),
            Mem::Mark(cta, n) => Mem::Mark(first(cta), n),
            other => other,
        }
    }

    /// The number of the grid whose CTA owns this memory; 0 if none does.
    pub(crate) fn grid(self) -> usize {
        (self.cta().unwrap_or(0) >> CTA_BITS) as usize
    }

    /// The CTA that owns this memory.
    pub(crate) fn cta(self) -> Option<u32> {
        match self {
            Mem::Shared(cta) | Mem::Copy(cta, _) | Mem::Lanes(cta) | Mem::Mark(cta, _) => Some(cta),
            _ => None,
        }
    }
}

/// How bytes are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An mbarrier.
    Barrier,
    /// A word whose value matters.
    Word,
    /// A word in which several warps store the same number by the same line.
    Agreed,
    /// Data of ordinary accesses.
    Data,
    /// Data of asynchronous copies.
    Async,
    /// Data that a product reads, or a copy to tensor memory.
    Matrix,
    /// Data of copies by single lanes (`cp.async`).
    Small {
        /// Whether it is written.
        writes: bool,
    },
    /// A tensor map that is read.
    Map,
    /// Data of copies of a size that is not known yet.
    Box {
        /// The barrier that the copy reports to.
        reported: Option<(Mem, u64)>,
    },
}

impl Kind {
    /// Whether the bytes keep their place and size in the layout.
    pub(crate) fn fixed(self) -> bool {
        matches!(self, Kind::Barrier | Kind::Word | Kind::Agreed)
    }

    /// Whether the bytes stay consecutive, because a copy or a product names them as one run.
    pub(crate) fn together(self) -> bool {
        matches!(self, Kind::Async | Kind::Matrix | Kind::Map | Kind::Box { .. })
    }

    /// Whether an instruction may write these bytes.
    pub(crate) fn may_write(self) -> bool {
        !matches!(self, Kind::Map | Kind::Matrix | Kind::Small { writes: false })
    }

    /// Whether the access may outlast its instruction, so that even one warp can race with itself.
    pub(crate) fn asynchronous(self) -> bool {
        self.together() || matches!(self, Kind::Small { .. })
    }
}

/// The bytes that an item touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) mem: Mem,
    /// The first byte and the end of each run, ascending.
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) kind: Kind,
    /// Which lanes touch which of them. Empty if each lane that executes the item touches all.
    pub(crate) by: Vec<Spread>,
}

/// The same number of bytes for each lane of a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// The first byte of each lane.
    pub(crate) at: Lanes,
    pub(crate) bytes: u64,
    pub(crate) mask: u32,
}

impl Spread {
    /// Runs of bytes (first, end) with the lanes that touch them.
    fn runs(&self) -> Vec<(u64, u64, u32)> {
        let run = |at: u64, mask: u32| (at, at.saturating_add(self.bytes), mask);
        match self.at.one(self.mask) {
            Some(at) => vec![run(at, self.mask)],
            None => lanes(self.mask).map(|l| run(self.at.get(l), 1 << l)).collect(),
        }
    }
}

impl Touch {
    pub(crate) fn one(mem: Mem, at: u64, bytes: u32, kind: Kind) -> Self {
        let ranges = vec![(at, at.saturating_add(u64::from(bytes)))];
        Touch { mem, ranges, kind, by: Vec::new() }
    }

    /// The touch of lanes at addresses of their own.
    pub(crate) fn spread(mem: Mem, kind: Kind, by: Vec<Spread>) -> Self {
        let runs = by.iter().flat_map(Spread::runs).map(|(start, end, _)| (start, end));
        let ranges = runs.filter(|r| r.0 < r.1).collect();
        let mut touch = Touch { mem, ranges, kind, by };
        touch.join();
        touch
    }

    /// Runs of bytes (first, end) with the lanes that touch them, of an item that the lanes of `all` execute.
    pub(crate) fn by_lanes(&self, all: u32) -> Vec<(u64, u64, u32)> {
        match self.by.is_empty() {
            true => self.ranges.iter().map(|r| (r.0, r.1, all)).collect(),
            false => self.by.iter().flat_map(Spread::runs).collect(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.1 - r.0).sum()
    }

    /// Sorts the runs and joins neighbours.
    pub(crate) fn join(&mut self) {
        self.ranges.sort_unstable();
        let mut out: Vec<(u64, u64)> = Vec::new();
        for (start, end) in self.ranges.drain(..) {
            match out.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => out.push((start, end)),
            }
        }
        self.ranges = out;
    }
}
