//! Trials: a coordinator in a simulated world. It tells all it does, and may have a bug planted.
//!
//! Contract: nothing of this is reached but through [`crate::Local::on_trial`]; with `Trial::default()` a coordinator is
//! what it always is. [`Event`] is what is told; `moire bench cluster` decides whether a history of them may have happened.

mod history;
mod tell;

pub use history::{End, Event};

use std::fmt;
use std::sync::Arc;

/// A bug of the coordinator, for tests of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Reports are taken whatever their epoch.
    AnyEpoch,
    /// Reports are taken whoever sends them.
    AnyOwner,
    /// An item that is reported again is counted again.
    CountsTwice,
    /// The undelivered items of a lost lease are not leased again.
    ForgetsRequeue,
    /// A lease that is cancelled is leased again before its worker has stopped.
    RequeuesEarly,
    /// A sign of life makes a cancelled lease live again.
    RenewsRevoked,
    /// All of a lost lease is leased again, what it had delivered too.
    ForgetsTaken,
    /// A range stays among those to be leased.
    TwoOwners,
    /// A heartbeat is no sign of life.
    HeartbeatUnheard,
    /// A lease without progress is left alone.
    ForgivesStuck,
    /// Acknowledgements go out before the commit.
    AcksBeforeCommit,
    /// A commit is durable only when the next one is.
    CommitsLate,
    /// The epoch of a start is not recorded.
    EpochNotRecorded,
    /// A campaign is done when its last item is reported, whatever is still under way.
    DoneEarly,
    /// The pieces of an exploration are not recorded with its totals.
    ForgetsPieces,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 15] = [
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
    ];
}

/// See the module header.
#[derive(Clone, Default)]
pub struct Trial {
    /// A bug.
    pub planted: Option<Planted>,
    /// Is told what the coordinator does.
    pub tell: Option<Arc<dyn Fn(Event) + Send + Sync>>,
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
