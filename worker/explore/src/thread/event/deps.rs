//! Dependencies of events and registers: sets of reads of the same thread.
//!
//! One position of the set is no read: it marks unknown data, which comes out of tensor memory or was moved by an
//! asynchronous copy ([`Deps::UNKNOWN`]).

/// Events one thread may emit: the width of [`Deps`].
pub(crate) const THREAD_EVENTS: usize = 256;

/// The position that marks unknown data; no event has this index.
const UNKNOWN: u16 = 255;

/// Reads of a thread, by event index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deps([u64; 4]);

impl Deps {
    pub(crate) const NONE: Deps = Deps([0; 4]);

    /// The mark of unknown data alone.
    pub(crate) const UNKNOWN: Deps = Deps([0, 0, 0, 1 << (UNKNOWN % 64)]);

    /// One read.
    pub(crate) fn of(index: u16) -> Deps {
        let mut out = Deps::NONE;
        out.0[usize::from(index) / 64] |= 1 << (index % 64);
        out
    }

    #[must_use]
    pub(crate) fn with(self, other: Deps) -> Deps {
        let (a, b) = (self.0, other.0);
        Deps([a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]])
    }

    pub(crate) fn has(&self, index: u16) -> bool {
        self.0[usize::from(index) / 64] >> (index % 64) & 1 == 1
    }

    /// Whether data that depends on these is unknown.
    pub(crate) fn unknown(&self) -> bool {
        self.has(UNKNOWN)
    }
}
