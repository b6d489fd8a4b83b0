//! Verdicts in words, verdicts of several programs together, and a judgement without an exploration.

use moire_explore::judge::{Judgement, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The judgement that has one verdict and nothing more.
pub(super) fn undecided(verdict: Verdict) -> Judgement {
    Judgement {
        verdicts: vec![verdict],
        conditions: Vec::new(),
        hang: None,
        stalls: Vec::new(),
        column_stalls: Vec::new(),
        race: None,
        broken: BTreeMap::new(),
        findings: BTreeSet::new(),
        summary: moire_explore::Summary::default(),
    }
}

/// The verdicts of programs that are independent of each other: `clean` if all are, else all other ones.
pub(super) fn union<'j>(judgements: impl IntoIterator<Item = &'j Judgement>) -> Vec<Verdict> {
    let all: BTreeSet<Verdict> = judgements.into_iter().flat_map(|j| j.verdicts.iter().cloned()).collect();
    let wrong: Vec<Verdict> = all.into_iter().filter(|v| *v != Verdict::Clean).collect();
    if wrong.is_empty() { vec![Verdict::Clean] } else { wrong }
}

/// Verdicts as people and scripts read them: `condition(name)`, `bounded(reason)`, ..
pub(super) fn words_of(verdicts: &[Verdict]) -> Vec<String> {
    let word = |v: &Verdict| match v {
        Verdict::Condition(name) if !name.is_empty() => format!("condition({name})"),
        Verdict::Bounded(reason) => format!("bounded({reason})"),
        Verdict::Abstained(reason) => format!("abstained({reason})"),
        other => other.word().to_owned(),
    };
    verdicts.iter().map(word).collect()
}

/// Those of a judgement.
pub(super) fn words(judgement: &Judgement) -> Vec<String> {
    words_of(&judgement.verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_part_is_enough() {
        let of = |all: &[Verdict]| {
            let judgements: Vec<Judgement> = all.iter().cloned().map(undecided).collect();
            words_of(&union(&judgements))
        };
        assert_eq!(of(&[Verdict::Clean, Verdict::Clean]), ["clean"]);
        assert_eq!(of(&[Verdict::Clean, Verdict::Race]), ["race"]);
        assert_eq!(of(&[Verdict::Bounded("x".into()), Verdict::Race]), ["race", "bounded(x)"]);
    }
}
