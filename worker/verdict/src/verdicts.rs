//! Verdicts in words, verdicts of several programs together, and a judgement without an exploration.

use moire_explore::judge::{Judgement, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// The judgement that has these verdicts and nothing more.
pub fn told(verdicts: Vec<Verdict>) -> Judgement {
    Judgement {
        verdicts,
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

/// The judgement that has one verdict, of what was not explored.
pub fn undecided(verdict: Verdict) -> Judgement {
    told(vec![verdict])
}

/// The verdicts of programs that are independent of each other: `clean` if all are, with the executions of all, else all
/// other ones. What holds no program is bounded.
pub fn union<'j>(judgements: impl IntoIterator<Item = &'j Judgement>) -> Vec<Verdict> {
    let (mut wrong, mut executions) = (BTreeSet::new(), None);
    for verdict in judgements.into_iter().flat_map(|j| &j.verdicts) {
        match verdict {
            Verdict::Clean(all) => {
                executions = Some(executions.map_or(*all, |n: NonZeroU64| n.saturating_add(all.get())));
            }
            other => drop(wrong.insert(other.clone())),
        }
    }
    match executions {
        Some(all) if wrong.is_empty() => vec![Verdict::Clean(all)],
        None if wrong.is_empty() => vec![Verdict::Bounded("nothing was explored".to_owned())],
        _ => wrong.into_iter().collect(),
    }
}

/// Verdicts as people and scripts read them: `condition(name)`, `bounded(reason)`, ..
pub fn words_of(verdicts: &[Verdict]) -> Vec<String> {
    let word = |v: &Verdict| match v {
        Verdict::Condition(name) if !name.is_empty() => format!("condition({name})"),
        Verdict::Bounded(reason) => format!("bounded({reason})"),
        Verdict::Abstained(reason) => format!("abstained({reason})"),
        other => other.word().to_owned(),
    };
    verdicts.iter().map(word).collect()
}

/// Those of a judgement.
pub fn words(judgement: &Judgement) -> Vec<String> {
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
        let clean = Verdict::Clean(NonZeroU64::MIN);
        assert_eq!(of(&[clean.clone(), clean.clone()]), ["clean"]);
        assert_eq!(of(&[clean, Verdict::Race]), ["race"]);
        assert_eq!(of(&[]), ["bounded(nothing was explored)"]);
        assert_eq!(of(&[Verdict::Bounded("x".into()), Verdict::Race]), ["race", "bounded(x)"]);
    }
}
