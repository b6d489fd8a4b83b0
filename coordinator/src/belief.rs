//! What is believed of the answers of workers to one question.
//!
//! Contract: sources count, not answers: what a source says twice, it says once. A source without an answer (for want of
//! memory, say) agrees with nobody and contradicts nobody. Two sources that say the same are believed, and one that stands
//! alone against two is wrong. One source is enough only at home, where all workers are of one owner on this machine
//! ([`crate::lease::Scheduler::at_home`]). Otherwise another source has to be asked.

use crate::lease::Source;
use moire_proto::{MEMORY, STACK};
use std::collections::{BTreeMap, BTreeSet};

/// Whether this is the reason of an answer that says nothing about its question: another source may have one.
pub(crate) fn is_silent(reason: &str) -> bool {
    [MEMORY, STACK].contains(&reason)
}

/// What sources said to one question.
#[derive(Clone, Debug)]
pub(crate) struct Words<A>(BTreeMap<Source, BTreeSet<A>>);

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ruling<A> {
    /// This is believed; the source stands alone against it.
    Believed(A, Option<Source>),
    /// Another source has to be asked.
    Another,
    /// Sources differ from each other, or one from itself, and no further one decides.
    Open,
}

impl<A: Clone + Ord> Words<A> {
    /// The words of answers: where each comes from, and what it says, if it says anything.
    pub(crate) fn of(answers: impl IntoIterator<Item = (Source, Option<A>)>) -> Self {
        let mut words: BTreeMap<Source, BTreeSet<A>> = BTreeMap::new();
        for (by, said) in answers {
            words.entry(by).or_default().extend(said);
        }
        Self(words)
    }
    /// The sources that were asked.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Source> {
        self.0.keys()
    }
    /// The sources that say so.
    pub(crate) fn by<'a>(&'a self, said: &'a A) -> impl Iterator<Item = &'a Source> {
        self.0.iter().filter(move |(_, own)| own.contains(said)).map(|(by, _)| by)
    }
    /// What is believed where workers come from elsewhere.
    pub(crate) fn ruling(&self) -> Ruling<A> {
        if self.0.values().any(|own| own.len() > 1) {
            return Ruling::Open;
        }
        let said: BTreeSet<&A> = self.0.values().flatten().collect();
        let mut sides: Vec<(usize, &A)> = said.into_iter().map(|a| (self.by(a).count(), a)).collect();
        sides.sort_by_key(|(sources, _)| std::cmp::Reverse(*sources));
        match sides[..] {
            [] | [(1, _)] | [(1, _), (1, _)] => Ruling::Another,
            [(_, said)] => Ruling::Believed(said.clone(), None),
            [(_, said), (1, other)] => Ruling::Believed(said.clone(), self.by(other).next().cloned()),
            _ => Ruling::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ruling on what sources of one letter say: `a+` says yes, `b-` no, `c?` nothing.
    fn ruling(words: &str) -> Ruling<bool> {
        let word = |word: &str| {
            let said = match &word[1..] {
                "+" => Some(true),
                "-" => Some(false),
                _ => None,
            };
            (Source::Known(word[..1].to_owned()), said)
        };
        Words::of(words.split(' ').filter(|w| !w.is_empty()).map(word)).ruling()
    }

    #[test]
    fn two_sources_are_believed_and_one_never_is() {
        let alone = |name: &str| Some(Source::Known(name.to_owned()));
        for unsettled in ["", "a+", "a+ a+ a+", "a+ b?", "a? b?", "a+ b-", "a- b? c+"] {
            assert_eq!(ruling(unsettled), Ruling::Another, "{unsettled}");
        }
        assert_eq!(ruling("a+ b+"), Ruling::Believed(true, None));
        assert_eq!(ruling("a- b? c-"), Ruling::Believed(false, None));
        assert_eq!(ruling("a+ a+ a+ b- c-"), Ruling::Believed(false, alone("a")));
        assert_eq!(ruling("a+ b- c+"), Ruling::Believed(true, alone("b")));
        for open in ["a+ a-", "a+ b+ c+ c-", "a+ b+ c- d-"] {
            assert_eq!(ruling(open), Ruling::Open, "{open}");
        }
    }
}
