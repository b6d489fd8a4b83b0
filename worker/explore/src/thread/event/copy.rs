//! Part of an event in an asynchronous copy (PTX ISA 9.2, 9.7.9.25).

use moire_program::ir::ThreadId;

/// What an event has to do with asynchronous copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyUse {
    /// An access of one.
    Access {
        /// A write.
        writes: bool,
    },
    /// A wait for them, or what tells an mbarrier that they are complete.
    Follows {
        /// Which instructions of the thread.
        units: Vec<u16>,
        /// Only their reads.
        reads_only: bool,
        /// Only what is written in the CTA of this thread, and the reads.
        part: Option<ThreadId>,
    },
}
