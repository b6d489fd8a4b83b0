//! Lanes of a warp that take part in an event, where a thread stands for several.

use std::rc::Rc;

/// The lanes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneInfo {
    /// Those that take part, a bit a lane.
    pub(crate) active: u32,
    /// The arms of branches it stands in, where lanes parted.
    pub(crate) arms: Arms,
}

impl LaneInfo {
    /// An event of no thread. It has no lanes.
    pub(crate) const ALL: LaneInfo = LaneInfo { active: u32::MAX, arms: None };

    /// How many take part.
    pub(crate) fn count(&self) -> u32 {
        self.active.count_ones()
    }

    /// Whether all lanes of the thread take part, so that the event is ordered with all others of it.
    pub(crate) fn whole(&self) -> bool {
        self.arms.is_none()
    }
}

/// The arms of branches an event stands in, outermost first: a number for each time lanes parted, and whether the
/// branch was taken. `None` where all lanes are together.
pub(crate) type Arms = Option<Rc<[(u16, bool)]>>;

/// Whether two events of a thread stand in different arms of one branch.
pub(crate) fn parted(a: &Arms, b: &Arms) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.iter().zip(b.iter()).find(|(x, y)| x != y).is_some_and(|(x, y)| x.0 == y.0)
}
