//! Trials: a worker in a simulated world. It reports its events, takes its time from the world's clock, may send reports
//! again, and may have a planted bug.
//!
//! Contract: trials are reached only through [`crate::stay_on_trial`]; with `Trial::default()` a worker works as usual. Leases are tasks in
//! a trial, not threads, because a run must be a function of its seed.

use crate::job::{Cancel, Engine};
use crate::piece::{Exploration, Explored, Step};
use moire_explore::Abstain;
use moire_explore::search::share::Piece;
use moire_proto::v1;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A bug of the worker that the simulation must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A cancelled lease continues and is reported.
    ReportsRevoked,
    /// A cancellation is acknowledged while its lease still runs and reports.
    AcksKillEarly,
    /// A part of a piece that was given away is explored nevertheless.
    KeepsGiven,
}

impl Planted {
    /// Every planted bug.
    pub const ALL: [Self; 3] = [Self::ReportsRevoked, Self::AcksKillEarly, Self::KeepsGiven];
}

/// An event of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The coordinator welcomed the worker under this identity.
    Welcome(u64),
    /// A lease came.
    Lease {
        /// Its identity.
        lease: u64,
        /// Its epoch.
        epoch: u32,
    },
    /// A cancellation came.
    Cancel(u64),
    /// A report went out.
    Report {
        /// Its lease.
        lease: u64,
        /// Its epoch.
        epoch: u32,
    },
    /// The acknowledgement of a cancellation went out.
    KillAck(u64),
    /// The connection is over.
    Lost,
}

/// Whether a report is sent once more, as a network or a worker that missed the acknowledgement may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// No.
    Never,
    /// At once.
    Now,
    /// On the next connection, when the first lease has come.
    Later,
}

/// The conditions of a trial.
#[derive(Clone, Default)]
pub struct Trial {
    /// A bug.
    pub planted: Option<Planted>,
    /// Gets the events of the worker.
    pub tell: Option<Arc<dyn Fn(Seen) + Send + Sync>>,
    /// Time that an item takes, by its index, or any other job (`u64::MAX`). With it, leases are tasks of the runtime.
    pub pace: Option<Arc<dyn Fn(u64) -> Duration + Send + Sync>>,
    /// Decides for each report whether it is sent once more.
    pub again: Option<Arc<dyn Fn() -> Again + Send + Sync>>,
    /// Factor by which the clock of its heartbeats is slower; 0 means 1.
    pub drift: f64,
    /// The report kept for the next connection.
    pub kept: Kept,
}

/// Room for one report.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Option<v1::FromWorker>>>);

impl Trial {
    pub(crate) fn tell(&self, seen: impl FnOnce() -> Seen) {
        if let Some(tell) = &self.tell {
            tell(seen());
        }
    }
    pub(crate) fn has(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }
    pub(crate) fn again(&self) -> Again {
        self.again.as_ref().map_or(Again::Never, |again| again())
    }
    /// Keeps a report for the next connection, unless one is kept already: the identities of early leases are soon used
    /// again, so an early report is the better test.
    pub(crate) fn keep(&self, report: v1::FromWorker) {
        self.kept.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(report);
    }
    /// Takes the report that an earlier connection kept for this one.
    pub(crate) fn late(&self) -> Option<v1::FromWorker> {
        self.kept.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// Time between two heartbeats.
    pub(crate) fn beat(&self, plain: Duration) -> Duration {
        if self.drift > 0.0 { plain.mul_f64(self.drift) } else { plain }
    }
}

/// A piece that is explored one change at a time; the clock of the world advances between two changes.
pub(crate) struct Slowly {
    engine: Arc<dyn Engine>,
    asked: Exploration,
    piece: Piece,
    /// Whether it has kept a part that it gave away: [`Planted::KeepsGiven`].
    kept: bool,
}

impl Slowly {
    pub(crate) fn new(engine: Arc<dyn Engine>, asked: Exploration, piece: Piece) -> Self {
        Self { engine, asked, piece, kept: false }
    }
    /// The next change, or the end. `cancel` holds the requests.
    pub(crate) fn next(
        &mut self,
        cancel: &Cancel,
        trial: &Trial,
    ) -> ControlFlow<Result<Explored, Abstain>, Step> {
        let (once, told) = (Cancel::new(), Mutex::new(None));
        if cancel.is_wanted() && !self.kept {
            once.want();
        }
        let tell = |step: Step| {
            told.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(step);
            once.cancel();
        };
        let answer = self.engine.explore(&self.asked, &self.piece, &once, &tell);
        let Some(step) = told.into_inner().unwrap_or_else(PoisonError::into_inner) else {
            return ControlFlow::Break(answer);
        };
        match &step {
            Step::Reached(node, _) => self.piece.behind.clone_from(node),
            Step::Given(_) if trial.has(Planted::KeepsGiven) => self.kept = true,
            Step::Given(node) => self.piece.until.clone_from(node),
        }
        if matches!(step, Step::Given(_)) {
            cancel.gave();
        }
        ControlFlow::Continue(step)
    }
}
