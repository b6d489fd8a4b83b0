//! Findings by state, without a look at all of them at one time.
//!
//! Contract: from the first time somebody asks, the findings of the store are counted in id order, a slice whenever the
//! core settles, so that a store with a million of them holds up no worker; what changes meanwhile is counted once. Until
//! it is [`States::whole`] the sums are of the findings looked at so far.

use crate::Error;
use crate::core::Core;
use moire_corpus::{FindingId, FindingState};
use std::collections::BTreeMap;

/// Findings looked at when somebody asks: small stores are whole at once.
const ASKED: usize = 4_096;
/// Findings looked at whenever the core settles.
const SETTLED: usize = 1_024;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct States {
    counts: BTreeMap<String, u64>,
    /// All findings up to this one are counted.
    behind: Option<FindingId>,
    /// All findings are counted.
    pub(crate) whole: bool,
}

impl States {
    /// Counts by the word of the state.
    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }
}

impl Core {
    /// The counts, from now on kept.
    pub(crate) fn finding_states(&mut self) -> Result<&States, Error> {
        self.states.get_or_insert_default();
        self.count_states(ASKED)?;
        Ok(self.states.get_or_insert_default())
    }

    /// Goes on counting, if anybody ever asked.
    pub(crate) fn count_more_states(&mut self) -> Result<(), Error> {
        self.count_states(SETTLED)
    }

    fn count_states(&mut self, limit: usize) -> Result<(), Error> {
        let Some(states) = self.states.as_mut().filter(|s| !s.whole) else { return Ok(()) };
        let (counts, last) = self.store.finding_states(states.behind.as_ref(), limit)?;
        states.whole = counts.values().sum::<u64>() < limit as u64;
        states.behind = last.or(states.behind);
        for (word, n) in counts {
            *states.counts.entry(word).or_default() += n;
        }
        Ok(())
    }

    /// A finding goes from one state, or from not being there, to another.
    pub(crate) fn finding_changed(&mut self, id: &FindingId, from: Option<&FindingState>, to: &FindingState) {
        let counted = |s: &&mut States| s.whole || s.behind.is_some_and(|behind| *id <= behind);
        let Some(states) = self.states.as_mut().filter(counted) else { return };
        if let Some(count) = from.and_then(|from| states.counts.get_mut(from.word())) {
            *count = count.saturating_sub(1);
        }
        *states.counts.entry(to.word().to_owned()).or_default() += 1;
    }
}
