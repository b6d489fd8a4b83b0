//! Events by position.

use crate::thread::ids::{CellId, InstanceId, id};

id!(
    /// An event of a graph, by position.
    EventId,
    "a graph has at most 1024 events"
);

impl EventId {
    /// The event of a position as the evaluator numbers it.
    #[inline]
    pub(crate) fn numbered(number: u16) -> Self {
        EventId(number)
    }

    /// The initial write of an instance: these come first, in the order of the instances.
    #[inline]
    pub(crate) fn initial(instance: InstanceId) -> Self {
        EventId(instance.number())
    }
}

/// A cell of a read that has no source yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenRead {
    pub(crate) read: EventId,
    pub(crate) cell: CellId,
}
