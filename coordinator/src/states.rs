//! Counts of findings by state.
//!
//! Contract: counting starts with the first request. Findings are counted in id order, one slice whenever the core
//! settles, because a store with a million of them must not hold up a worker. A change is counted once. Before the count
//! is [`States::whole`] the sums are of the findings seen so far.

use crate::Error;
use moire_corpus::{FindingId, FindingState, Store};
use std::collections::BTreeMap;

/// Findings counted at a request. Small stores are counted completely by the first one.
const ASKED: usize = 4_096;
/// Findings counted each time the core settles.
const SETTLED: usize = 1_024;

/// Numbers of findings by state.
#[derive(Debug, Default)]
pub(crate) struct States {
    counts: BTreeMap<String, u64>,
    /// All findings up to this one are counted.
    behind: Option<FindingId>,
    /// All findings are counted.
    pub(crate) whole: bool,
    /// Whether there was a request. Before the first one nothing is counted.
    asked: bool,
}

impl States {
    /// Counts by the word of the state.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }
}

impl States {
    /// The counts, which are kept from the first call on.
    pub(crate) fn look(&mut self, store: &Store) -> Result<&Self, Error> {
        self.asked = true;
        self.count(store, ASKED)?;
        Ok(self)
    }

    /// Counts one more slice, if there was a request.
    pub(crate) fn count_more(&mut self, store: &Store) -> Result<(), Error> {
        self.count(store, SETTLED)
    }

    fn count(&mut self, store: &Store, limit: usize) -> Result<(), Error> {
        if !self.asked || self.whole {
            return Ok(());
        }
        let (counts, last) = store.finding_states(self.behind.as_ref(), limit)?;
        self.whole = counts.values().sum::<u64>() < limit as u64;
        self.behind = last.or(self.behind);
        for (word, n) in counts {
            *self.counts.entry(word).or_default() += n;
        }
        Ok(())
    }

    /// Takes a finding from one state, or from not being there, to another.
    pub(crate) fn changed(&mut self, id: &FindingId, from: Option<&FindingState>, to: &FindingState) {
        if !self.whole && self.behind.is_none_or(|behind| *id > behind) {
            return;
        }
        if let Some(count) = from.and_then(|from| self.counts.get_mut(from.word())) {
            *count = count.saturating_sub(1);
        }
        *self.counts.entry(to.word().to_owned()).or_default() += 1;
    }
}
