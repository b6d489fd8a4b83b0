//! Positions in a graph as types of their own: an event is no cell, and no thread.
//!
//! What is stored is typed; functions take and hand on plain positions, which index rows. The conversion to an id is
//! checked, because a number that wraps would be another event.

/// An event of a graph, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventId(u16);

impl EventId {
    pub(crate) fn new(event: usize) -> Self {
        EventId(u16::try_from(event).expect("a graph has at most 1024 events"))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The position as the evaluator numbers it.
    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

/// A cell of memory, by position in [`crate::thread::layout::Layout::cells`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CellId(u16);

impl CellId {
    pub(crate) fn new(cell: usize) -> Self {
        CellId(u16::try_from(cell).expect("a layout has at most 65535 cells"))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The position as the evaluator numbers it.
    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

/// A cell of a read that has no source yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenRead {
    pub(crate) read: EventId,
    pub(crate) cell: CellId,
}

impl OpenRead {
    pub(crate) fn new(read: usize, cell: usize) -> Self {
        OpenRead { read: EventId::new(read), cell: CellId::new(cell) }
    }
}
