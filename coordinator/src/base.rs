//! The state that all parts of the core share: the store, the writes of the current batch, the scheduler and the clock.
//!
//! Contract: a part adds its writes to [`Base::writes`], and the core commits them as one batch. A write that a part
//! commits by itself is durable when its method returns.

use crate::aside::Aside;
use crate::clock::{millis, unix_ms};
use crate::lease::{Config, Scheduler, Source};
use crate::states::States;
use crate::suspects::Suspects;
use crate::trial::Trial;
use moire_corpus::{Finding, Store, Write};
use tokio::time::Instant;

/// The state that all parts of the core share.
pub(crate) struct Base {
    pub(crate) store: Store,
    pub(crate) fleet: Scheduler,
    /// The writes of the batch in hand.
    pub(crate) writes: Vec<Write>,
    /// Findings by state.
    pub(crate) states: States,
    /// What workers said of each other.
    pub(crate) suspects: Suspects,
    /// Records that cannot be used or stored.
    pub(crate) aside: Aside,
    pub(crate) config: Config,
    /// Findings about the fleet that are not stored yet.
    pub(crate) disputes: Vec<Finding>,
    pub(crate) trial: Trial,
    started: Instant,
}

impl Base {
    /// A store, and a scheduler that knows no worker yet.
    pub(crate) fn new(store: Store, config: Config, trial: Trial) -> Self {
        Self {
            store,
            fleet: Scheduler::new(config).planted(trial.planted),
            writes: Vec::new(),
            states: States::default(),
            suspects: Suspects::default(),
            aside: Aside::default(),
            config,
            disputes: Vec::new(),
            trial,
            started: Instant::now(),
        }
    }
    /// Milliseconds since the start of this process.
    pub(crate) fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }
    /// Notes that these sources contradict another one.
    pub(crate) fn contradicted(&mut self, right: &[Source], wrong: &Source) {
        self.suspects.right(right);
        self.suspects.wrong(wrong, &self.fleet);
    }
    /// When this process started, in Unix seconds.
    pub(crate) fn started_s(&self) -> u64 {
        unix_ms().saturating_sub(self.now()) / 1000
    }
}
