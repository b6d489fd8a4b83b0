//! Rows of the evaluator as sets of events of a graph.

use super::ids::EventId;
use crate::thread::ids::Id;
use moire_cat::bits::{self, Row};

/// Whether an event is in `row`.
#[inline]
pub(crate) fn has<const W: usize>(row: &Row<W>, event: EventId) -> bool {
    bits::has(row, event.index())
}

/// Adds an event.
#[inline]
pub(crate) fn set<const W: usize>(row: &mut Row<W>, event: EventId) {
    bits::set(row, event.index());
}

/// Removes an event.
#[inline]
pub(crate) fn clear<const W: usize>(row: &mut Row<W>, event: EventId) {
    bits::clear(row, event.index());
}

/// Puts an event in or out.
#[inline]
pub(crate) fn put<const W: usize>(row: &mut Row<W>, event: EventId, value: bool) {
    bits::put(row, event.index(), value);
}

/// The events in `row`, ascending.
#[inline]
pub(crate) fn events<const W: usize>(row: &Row<W>) -> impl Iterator<Item = EventId> + use<W> {
    bits::iter(row).map(EventId::at)
}
