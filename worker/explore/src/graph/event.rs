//! Events of a graph: those of threads, and initial writes.

use crate::thread::event::allocator::AllocUse;
use crate::thread::event::barrier::BarrierUse;
use crate::thread::event::mbarrier::MbarUse;
use crate::thread::event::{Emitted, Kind};
use moire_cat::vocabulary::sets;
use moire_execution::leaf::Place;
use moire_program::ir::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

/// An event of the universe: a thread's, or an initial write (no thread).
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// `None` for initial writes.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) emitted: Emitted,
}

/// Flags that the engine raises itself, and the instructions that they are about.
pub(crate) type Faults = BTreeMap<String, BTreeSet<Place>>;

/// Raises a flag about an instruction, if it is one of the program.
pub(crate) fn raise(out: &mut Faults, flag: &str, place: Option<Place>) {
    out.entry(flag.to_owned()).or_default().extend(place);
}

impl Event {
    /// Its instruction.
    pub(crate) fn place(&self) -> Option<Place> {
        self.thread.map(|thread| Place { thread: thread.0, line: self.emitted.line })
    }

    pub(crate) fn is_write(&self) -> bool {
        self.emitted.kind == Kind::Write
    }

    pub(crate) fn is_barrier(&self) -> bool {
        matches!(self.emitted.kind, Kind::Barrier(_))
    }

    /// Whether it is half of an `atom` or a `red`.
    pub(crate) fn is_rmw(&self) -> bool {
        self.emitted.labels & (1 << sets::ATOM | 1 << sets::RED) != 0
    }

    pub(crate) fn barrier(&self) -> Option<BarrierUse> {
        if let Kind::Barrier(used) = self.emitted.kind { Some(used) } else { None }
    }

    pub(crate) fn mbarrier(&self) -> Option<MbarUse> {
        if let Kind::Mbarrier(used) = self.emitted.kind { Some(used) } else { None }
    }

    pub(crate) fn allocator(&self) -> Option<AllocUse> {
        if let Kind::Allocator(used) = self.emitted.kind { Some(used) } else { None }
    }
}
