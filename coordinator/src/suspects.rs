//! The record of each source of workers: how often others agreed with it, and how often they did not.
//!
//! Contract: a claim that one worker makes and another refutes is decided by a third. The one that stands alone was wrong.
//! Workers of a source that was wrong at least [`WRONG_MAX`] times, and three times as often as right, are sent away and
//! refused until this process ends; bad memory and lies look the same from here. At least two other sources stay, because
//! two alone cannot tell which of them is wrong.

use crate::lease::{Scheduler, Source};
use std::collections::BTreeMap;

/// How often a source is wrong before it is sent away.
const WRONG_MAX: u64 = 8;
/// How much more often it is wrong than right then.
const RATIO: u64 = 3;
/// Sources that have to remain.
const REMAIN: usize = 2;
/// Most sources with a record; those that were never wrong are forgotten first.
const RECORDS_MAX: usize = 4_096;

/// What others said of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    right: u64,
    wrong: u64,
    refused: bool,
}

/// The records of this process.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    records: BTreeMap<Source, Standing>,
    /// Sources whose workers are to be sent away now.
    leaving: Vec<Source>,
    /// Claims about which two workers disagreed.
    pub(crate) disputed: u64,
}

impl Suspects {
    fn of(&mut self, source: &Source) -> &mut Standing {
        if self.records.len() >= RECORDS_MAX && !self.records.contains_key(source) {
            self.records.retain(|_, standing| standing.wrong > 0);
            if self.records.len() >= RECORDS_MAX {
                self.records.retain(|_, standing| standing.refused);
            }
        }
        self.records.entry(source.clone()).or_default()
    }
    /// Notes that another source said the same as these.
    pub(crate) fn right<'a>(&mut self, sources: impl IntoIterator<Item = &'a Source>) {
        sources.into_iter().for_each(|source| self.of(source).right += 1);
    }
    /// Notes that two others contradicted this one.
    pub(crate) fn wrong(&mut self, source: &Source, fleet: &Scheduler) {
        let standing = self.of(source);
        standing.wrong += 1;
        tracing::warn!(%source, wrong = standing.wrong, right = standing.right, "two workers contradict a third");
        let bad = standing.wrong >= WRONG_MAX && standing.wrong >= RATIO * standing.right;
        if standing.refused || !bad {
            return;
        }
        let others = |s: &&&Source| **s != source && !self.refuses(s);
        if fleet.sources().iter().filter(others).count() >= REMAIN {
            self.of(source).refused = true;
            self.leaving.push(source.clone());
        }
    }
    /// Whether workers of this source are refused.
    pub(crate) fn refuses(&self, source: &Source) -> bool {
        self.records.get(source).is_some_and(|standing| standing.refused)
    }
    /// Sources whose workers are to be sent away, each named once.
    pub(crate) fn leaving(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.leaving)
    }
    /// Sources that are refused.
    pub(crate) fn refused(&self) -> usize {
        self.records.values().filter(|standing| standing.refused).count()
    }
    /// What is known of a source that was ever wrong, one sentence.
    pub(crate) fn says(&self, source: &Source) -> Option<String> {
        let Standing { right, wrong, refused } = self.records.get(source).filter(|s| s.wrong > 0)?;
        let end = if *refused { "; refused from now on" } else { "" };
        Some(format!("{source}: contradicted by two others {wrong} times, confirmed {right} times{end}"))
    }
    /// The sentences of all sources that were ever wrong.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> {
        self.records.keys().filter_map(|source| self.says(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::{Config, WorkerId};
    use std::collections::BTreeSet;

    fn fleet(sources: usize) -> (Scheduler, Vec<Source>) {
        let mut fleet = Scheduler::new(Config::default());
        let join = |n: usize| {
            let id: WorkerId = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
            let source = Source::Known(format!("w{n}"));
            fleet.comes_from(id, source.clone());
            source
        };
        let all = (0..sources).map(join).collect();
        (fleet, all)
    }

    #[test]
    fn who_is_wrong_again_and_again_is_refused() {
        let (fleet, all) = fleet(3);
        let mut suspects = Suspects::default();
        for n in 1..=WRONG_MAX {
            assert!(!suspects.refuses(&all[0]), "{n}");
            suspects.wrong(&all[0], &fleet);
        }
        assert!(suspects.refuses(&all[0]) && suspects.leaving() == [all[0].clone()]);
        assert!(
            suspects
                .says(&all[0])
                .unwrap()
                .ends_with("w0: contradicted by two others 8 times, confirmed 0 times; refused from now on")
        );
        // Two are left, and cannot tell which of them is wrong.
        (0..100).for_each(|_| suspects.wrong(&all[1], &fleet));
        assert_eq!((suspects.refused(), suspects.leaving().len()), (1, 0));
    }

    #[test]
    fn who_is_mostly_right_stays() {
        let (fleet, all) = fleet(5);
        let mut suspects = Suspects::default();
        for _ in 0..1000 {
            suspects.right([&all[0]]);
            suspects.wrong(&all[0], &fleet);
        }
        assert_eq!(suspects.refused(), 0);
    }

    #[test]
    fn records_are_bounded() {
        let (fleet, _) = fleet(5);
        let mut suspects = Suspects::default();
        for n in 0..3 * RECORDS_MAX {
            suspects.wrong(&Source::Known(n.to_string()), &fleet);
            suspects.right([&Source::Known(format!("r{n}"))]);
        }
        assert!(suspects.records.len() <= RECORDS_MAX);
    }
}
