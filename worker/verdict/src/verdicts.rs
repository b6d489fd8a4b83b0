//! Verdicts in words, verdicts of several programs together, and a judgement without an exploration.

use crate::exit;
use moire_explore::Bound;
use moire_explore::judge::{Judgement, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// Verdicts, sorted; none of what is rejected. Written in words: `condition(name)`, `bounded(reason)`, ..
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub struct Verdicts(pub Vec<Verdict>);

impl Verdicts {
    /// The verdicts as people and scripts read them.
    pub fn words(&self) -> Vec<String> {
        let word = |v: &Verdict| match v {
            Verdict::Condition(name) if !name.is_empty() => format!("condition({name})"),
            Verdict::Bounded(reason) => format!("bounded({reason})"),
            Verdict::Abstained(reason) => format!("abstained({reason})"),
            other => other.word().to_owned(),
        };
        if self.0.is_empty() { vec!["rejected".to_owned()] } else { self.0.iter().map(word).collect() }
    }

    /// The verdicts in one line for people: `race, hang`, or `race (not explored to the end)`.
    pub fn line(&self) -> String {
        let ended = Verdict::Bounded(Bound::Ended.to_string());
        if !self.has_finding() || !self.0.contains(&ended) {
            return self.words().join(", ");
        }
        let others = Verdicts(self.0.iter().filter(|v| **v != ended).cloned().collect());
        format!("{} ({})", others.words().join(", "), Bound::Ended)
    }

    /// The verdicts without reasons.
    pub fn kinds(&self) -> Vec<&'static str> {
        if self.0.is_empty() { vec!["rejected"] } else { self.0.iter().map(Verdict::word).collect() }
    }

    /// The exit code of each.
    pub fn codes(&self) -> Vec<u8> {
        if self.0.is_empty() { vec![exit::USAGE] } else { self.0.iter().map(Verdict::exit_code).collect() }
    }

    /// Whether something is wrong.
    pub fn has_finding(&self) -> bool {
        self.codes().contains(&exit::FINDING)
    }

    /// Whether something is not decided.
    pub fn is_incomplete(&self) -> bool {
        self.codes().contains(&exit::INCOMPLETE)
    }
}

impl From<Verdicts> for Vec<String> {
    fn from(verdicts: Verdicts) -> Self {
        verdicts.words()
    }
}

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
pub fn union<'j>(verdicts: impl IntoIterator<Item = &'j Vec<Verdict>>) -> Vec<Verdict> {
    let (mut wrong, mut executions) = (BTreeSet::new(), None);
    for verdict in verdicts.into_iter().flatten() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_part_is_enough() {
        let of = |all: &[Verdict]| {
            let parts: Vec<Vec<Verdict>> = all.iter().map(|v| vec![v.clone()]).collect();
            Verdicts(union(&parts)).words()
        };
        let clean = Verdict::Clean(NonZeroU64::MIN);
        assert_eq!(of(&[clean.clone(), clean.clone()]), ["clean"]);
        assert_eq!(of(&[clean, Verdict::Race]), ["race"]);
        assert_eq!(of(&[]), ["bounded(nothing was explored)"]);
        assert_eq!(of(&[Verdict::Bounded("x".into()), Verdict::Race]), ["race", "bounded(x)"]);
    }

    #[test]
    fn what_ends_after_a_finding_is_told_beside_it() {
        let ended = Verdict::Bounded(Bound::Ended.to_string());
        assert_eq!(Verdicts(vec![Verdict::Race, ended.clone()]).line(), "race (not explored to the end)");
        assert_eq!(Verdicts(vec![ended]).line(), "bounded(not explored to the end)");
    }
}
