//! Counts of the coordinator since its store was created.
//!
//! Contract: only durable counts are shown, so a shown count never decreases, not even after a restart or a kill. Counts that
//! are lost with the process, between two commits of the totals, were never shown.

use moire_corpus::Write;
use std::collections::BTreeMap;

/// Time between two commits of the totals.
const EVERY_MS: u64 = 5_000;

/// Every total: its name in the store, and its meaning.
pub(crate) const TOTALS: &[(&str, &str)] = &[
    ("leases_granted", "Leases given out"),
    ("leases_lost", "Leases that ended without all their results"),
    ("clocks_expired", "Clocks of leases and workers that ran out"),
    ("reports_stale", "Reports for an unknown, foreign or cancelled lease, or of another epoch"),
    ("items_duplicate", "Items reported twice, or outside their lease"),
    ("items_quarantined", "Items given up because they ended their workers too often"),
    ("messages_bad", "Messages of workers that made no sense"),
    ("workers_refused", "Workers refused because their build does not fit"),
    ("claims_disputed", "Claims about which two workers disagreed"),
    ("connections_refused", "Connections over a bound, or without TLS of this CA"),
    ("calls_denied", "Calls without a token, with an unknown one, or one of another role"),
    ("calls_limited", "Calls over the bounds of their peer"),
    ("explorations_executions", "Executions of explorations that the fleet shares"),
    ("items_twice", "Items about which two sources said the same"),
    ("answers_disputed", "Ranges and pieces about which two sources disagreed"),
    ("leases_aborted", "Leases that workers gave back because their process was killed"),
    ("items_elsewhere", "Items that another source was asked for, because one had no memory for them"),
];

/// The totals, as found and as stored.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// As they were when this process started.
    before: BTreeMap<String, u64>,
    /// As last committed.
    stored: BTreeMap<String, u64>,
    /// In the current batch.
    pending: Option<BTreeMap<String, u64>>,
    due_ms: u64,
}

impl Totals {
    /// Continues from the totals of the store.
    pub(crate) fn new(stored: BTreeMap<String, u64>) -> Self {
        Self { before: stored.clone(), stored, pending: None, due_ms: EVERY_MS }
    }
    /// The total of this name, as stored.
    pub(crate) fn stored(&self, name: &str) -> u64 {
        self.stored.get(name).copied().unwrap_or(0)
    }
    /// Adds the totals to the batch if they have changed and it is time, or this is the `last` batch. `counted`:
    /// since the start of this process, in the order of [`TOTALS`].
    pub(crate) fn note(
        &mut self,
        counted: [u64; TOTALS.len()],
        now: u64,
        last: bool,
        writes: &mut Vec<Write>,
    ) {
        if now < self.due_ms && !last {
            return;
        }
        self.due_ms = now + EVERY_MS;
        let mut sums = self.before.clone();
        for ((name, _), count) in TOTALS.iter().zip(counted) {
            let sum = sums.entry((*name).to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
        if sums != self.stored {
            writes.push(Write::Totals(sums.clone()));
            self.pending = Some(sums);
        }
    }
    /// Notes that the batch is durable.
    pub(crate) fn committed(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.stored = pending;
        }
    }
}
