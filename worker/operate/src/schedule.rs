//! In which order threads go on, and when asynchronous operations complete.
//!
//! By the theorem no schedule changes what a clean run says (see the crate's page). So a run that is clean is repeated under
//! those in [`OTHERS`]. One that is not clean then shows a mistake in the transitions, in a condition or in the theorem.

use std::fmt;

/// A schedule. The default one is the canonical one: each thread goes on until it blocks, and what it issues is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Later threads of the text come first where earlier ones did.
    pub(crate) reversed: bool,
    /// Threads take turns, an instruction each.
    pub(crate) in_turns: bool,
    /// Asynchronous operations complete when no thread can go on.
    pub(crate) late: bool,
}

const CANONICAL: Schedule = Schedule { reversed: false, in_turns: false, late: false };

/// The schedules under which a clean run is repeated.
pub(crate) const OTHERS: [Schedule; 4] = [
    Schedule { reversed: true, ..CANONICAL },
    Schedule { in_turns: true, ..CANONICAL },
    Schedule { late: true, ..CANONICAL },
    Schedule { reversed: true, in_turns: true, late: true },
];

impl Schedule {
    /// The position of a thread among `count` that are ready alike, after thread `last` has moved.
    pub(crate) fn rank(self, thread: usize, count: usize, last: Option<usize>) -> usize {
        let place = |t: usize| if self.reversed { count - 1 - t } else { t };
        match last {
            Some(last) => (place(thread) + count - place(last) - 1) % count,
            None => place(thread),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.reversed { "threads in reverse order" } else { "threads in order" };
        let turns = if self.in_turns { ", an instruction each" } else { "" };
        let late = if self.late { ", late completions" } else { "" };
        write!(f, "{order}{turns}{late}")
    }
}
