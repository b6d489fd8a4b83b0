//! Verdicts in words, and a judgement without an exploration.

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

/// The verdicts as people and scripts read them: `condition(name)`, `bounded(reason)`, ..
pub(super) fn words(judgement: &Judgement) -> Vec<String> {
    let word = |v: &Verdict| match v {
        Verdict::Condition(name) if !name.is_empty() => format!("condition({name})"),
        Verdict::Bounded(reason) => format!("bounded({reason})"),
        Verdict::Abstained(reason) => format!("abstained({reason})"),
        other => other.word().to_owned(),
    };
    judgement.verdicts.iter().map(word).collect()
}
