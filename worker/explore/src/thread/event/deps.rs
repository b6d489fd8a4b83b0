//! Dependencies of events and registers: sets of reads of the same thread.
//!
//! One position of the set is no read: it marks unknown data, which comes out of tensor memory or was moved by an
//! asynchronous copy ([`Deps::UNKNOWN`]).

/// Events one thread may emit: the width of [`Deps`].
pub(crate) const THREAD_EVENTS: usize = 64 * WORDS;

/// Words of a set: as many as leave the end of a run a small error.
const WORDS: usize = 14;

/// The position that marks unknown data; no event has this index.
const UNKNOWN: u16 = 895;

const _: () = assert!(UNKNOWN as usize == THREAD_EVENTS - 1, "the last position of a set");

/// Reads of a thread, by event index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deps([u64; WORDS]);

impl Deps {
    pub(crate) const NONE: Deps = Deps([0; WORDS]);

    /// The mark of unknown data alone.
    pub(crate) const UNKNOWN: Deps = {
        let mut words = [0; WORDS];
        words[WORDS - 1] = 1 << (UNKNOWN % 64);
        Deps(words)
    };

    /// One read.
    pub(crate) fn of(index: u16) -> Deps {
        let mut out = Deps::NONE;
        debug_assert!(index < UNKNOWN, "a thread has fewer events than there are positions");
        out.0[usize::from(index) / 64] |= 1 << (index % 64);
        out
    }

    #[must_use]
    pub(crate) fn with(self, other: Deps) -> Deps {
        Deps(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    pub(crate) fn has(&self, index: u16) -> bool {
        self.0[usize::from(index) / 64] >> (index % 64) & 1 == 1
    }

    /// Whether data that depends on these is unknown.
    pub(crate) fn unknown(&self) -> bool {
        self.has(UNKNOWN)
    }
}
