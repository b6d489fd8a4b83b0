//! Touches: which bytes of which memory an instruction touches, and how.

/// A memory, by what names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mem {
    /// Of a CTA, by its number in the grid.
    Shared(u32),
    /// Global memory at a numeric address.
    Absolute,
    /// Global memory behind a parameter.
    Param(u16),
    /// A global variable.
    Variable(u16),
    /// Boxes of a tensor map.
    Boxes(u64),
    /// A further copy of words of a CTA (`agree`), by number.
    Copy(u32, u32),
    /// Marks that accesses of a CTA leave (`agree`), by number.
    Mark(u32, u32),
}

impl Mem {
    /// The memory whose layout this one has: that of one CTA for all.
    pub(crate) fn domain(self) -> Mem {
        match self {
            Mem::Shared(_) => Mem::Shared(0),
            Mem::Copy(_, n) => Mem::Copy(0, n),
            Mem::Mark(_, n) => Mem::Mark(0, n),
            other => other,
        }
    }

    /// The CTA whose shared memory it is.
    pub(crate) fn cta(self) -> Option<u32> {
        match self {
            Mem::Shared(cta) | Mem::Copy(cta, _) | Mem::Mark(cta, _) => Some(cta),
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
    /// A word in which several warps store one number by one line.
    Agreed,
    /// Data, by ordinary accesses.
    Data,
    /// Data, by copies and products.
    Async,
    /// Data, by copies of single lanes (`cp.async`).
    Small {
        /// It is written.
        writes: bool,
    },
    /// A tensor map that is read.
    Map,
    /// Data by copies, of unknown size: as much as the barrier is told to expect.
    Box {
        /// The barrier it reports to.
        reported: Option<(Mem, u64)>,
    },
}

impl Kind {
    /// Whether the bytes keep their place.
    pub(crate) fn fixed(self) -> bool {
        matches!(self, Kind::Barrier | Kind::Word | Kind::Agreed)
    }

    /// Whether the bytes stay together, as the one run that a copy or a product names.
    pub(crate) fn together(self) -> bool {
        matches!(self, Kind::Async | Kind::Map | Kind::Box { .. })
    }

    /// Whether an instruction with such an access may write there.
    pub(crate) fn may_write(self) -> bool {
        !matches!(self, Kind::Map | Kind::Small { writes: false })
    }

    /// Whether the access goes on behind its instruction: even one warp can be in a race with itself.
    pub(crate) fn asynchronous(self) -> bool {
        self.together() || matches!(self, Kind::Small { .. })
    }
}

/// Bytes an item touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) mem: Mem,
    /// First byte and end of each run, ascending.
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) kind: Kind,
}

impl Touch {
    pub(crate) fn one(mem: Mem, at: u64, bytes: u32, kind: Kind) -> Self {
        Touch { mem, ranges: vec![(at, at.saturating_add(u64::from(bytes)))], kind }
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
