//! Trials: a coordinator in a simulated world. It reports each of its actions as an [`Event`], and may have a planted bug.
//!
//! Contract: only [`crate::Local::on_trial`] starts a trial. A coordinator with `Trial::default()` behaves as one without
//! a trial. `moire bench cluster` checks whether the history of events satisfies the protocol.

mod history;
mod tell;

pub use history::{End, Event};

use std::fmt;
use std::sync::Arc;

/// A planted bug of the coordinator, to test that the tests find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Reports of any epoch are taken.
    AnyEpoch,
    /// Reports are taken from any worker, also from one that does not hold the lease.
    AnyOwner,
    /// An item that is reported again is counted again.
    CountsTwice,
    /// The undelivered items of a lost lease are not leased again.
    ForgetsRequeue,
    /// A lease that is cancelled is leased again before its worker has stopped.
    RequeuesEarly,
    /// A heartbeat makes a cancelled lease live again.
    RenewsRevoked,
    /// All of a lost lease is leased again, including the items that it had delivered.
    ForgetsTaken,
    /// A range that is leased stays among those to be leased.
    TwoOwners,
    /// A heartbeat does not count as a sign of life.
    HeartbeatUnheard,
    /// A lease without progress is never cancelled.
    ForgivesStuck,
    /// Acknowledgements go out before the commit.
    AcksBeforeCommit,
    /// A commit becomes durable only with the next commit.
    CommitsLate,
    /// The epoch of a start is not recorded.
    EpochNotRecorded,
    /// A campaign is done when its last item is reported, even if claims of its items are not settled yet.
    DoneEarly,
    /// The pieces of an exploration are not recorded with its totals.
    ForgetsPieces,
    /// A claim counts against its class when it is made, also if it turns out to be false.
    ChargesClaims,
    /// Each end of a worker counts in full against the item it was working on.
    BlamesItems,
    /// Two counts of a stretch agree, whatever executions they mark.
    MarksUncompared,
    /// One source that says so closes a finding.
    RetestsAlone,
    /// An answer for want of memory is taken from the first source that gives it.
    MemoryMatches,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::AnyEpoch,
        Self::AnyOwner,
        Self::CountsTwice,
        Self::ForgetsRequeue,
        Self::RequeuesEarly,
        Self::RenewsRevoked,
        Self::ForgetsTaken,
        Self::TwoOwners,
        Self::HeartbeatUnheard,
        Self::ForgivesStuck,
        Self::AcksBeforeCommit,
        Self::CommitsLate,
        Self::EpochNotRecorded,
        Self::DoneEarly,
        Self::ForgetsPieces,
        Self::ChargesClaims,
        Self::BlamesItems,
        Self::MarksUncompared,
        Self::RetestsAlone,
        Self::MemoryMatches,
    ];
}

/// The conditions of a trial: a planted bug, and a listener for events.
#[derive(Clone, Default)]
pub struct Trial {
    /// The planted bug, if any.
    pub planted: Option<Planted>,
    /// Is called with each event.
    pub tell: Option<Arc<dyn Fn(Event) + Send + Sync>>,
    /// Workers come from elsewhere, each of a source that has its name.
    pub apart: bool,
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trial({:?})", self.planted)
    }
}

impl Trial {
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(tell) = &self.tell {
            tell(event());
        }
    }
    pub(crate) fn has(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }
}
