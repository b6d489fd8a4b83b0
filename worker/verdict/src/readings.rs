//! The readings that shipped kernels rely on: whether what is wrong is wrong under them, too (`contested(profile)`).

use crate::exit;
use crate::finding::Finding;
use crate::question::Question;
use crate::verdicts::Verdicts;
use moire_cat::{LETTER, Model, PROFILE, Variants};
use moire_execution::leaf;
use moire_explore::judge::{Judgement, Verdict};
use moire_program::ir::Program;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The profile of a model that stands against its letter. No other model is loaded before a program needs it.
pub(crate) struct Profiles {
    other: Option<Other>,
}

struct Other {
    name: String,
    /// The switches of all its models.
    own: Variants,
    settings: Vec<((String, String), Reading)>,
    /// The profile is in use, and the letter is asked beside it.
    in_use: bool,
}

/// Findings under the letter only that rely on the same readings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Unwritten {
    /// The readings. None where they were not told apart.
    pub relies: Vec<Reading>,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// A reading that shipped kernels rely on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Reading {
    /// For example `TQ30=B`.
    pub setting: String,
    /// What it says.
    pub says: String,
}

/// The answer under the readings that are not in use.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Profile {
    /// `letter`, or the profile where the letter is in use.
    pub name: String,
    /// The profile that stands against the letter.
    pub against: String,
    /// The verdicts.
    pub verdicts: Verdicts,
    /// Whether there is a finding under the letter, or a hang, that the profile does not have.
    pub letter_only: bool,
    /// What is wrong by the letter only.
    pub contested: Vec<Unwritten>,
}

impl Profile {
    /// Whether a profile is in use, and something is wrong by the letter only.
    pub fn is_worse(&self) -> bool {
        self.name == LETTER && self.letter_only
    }
}

impl Profiles {
    /// The first profile of the model, when the letter is in use, or when `both` are asked and the model has it in use.
    pub(crate) fn new(question: &Question, model: &Model, both: bool) -> Self {
        let letter = question.profile.as_deref().unwrap_or(LETTER) == LETTER;
        let Some(profile) = model.profiles().first().filter(|_| letter) else {
            return Profiles { other: None };
        };
        let mut own = question.switches.clone();
        own.remove(PROFILE);
        let doc = |name: &str| {
            model.switches().iter().find(|s| s.name == name).map_or(String::new(), |s| s.doc.clone())
        };
        let setting = |s: &(String, String)| {
            (s.clone(), Reading { setting: format!("{}={}", s.0, s.1), says: doc(&s.0) })
        };
        let settings = profile.settings.iter().map(setting).collect();
        Profiles { other: Some(Other { name: profile.name.clone(), own, settings, in_use: both }) }
    }

    /// The answer under the readings that are not in use, if it is worth asking.
    pub(crate) fn beside(
        &self,
        program: &Program,
        judgement: &Judgement,
        asking: &Asking<'_>,
    ) -> Option<Profile> {
        self.other.as_ref()?.beside(program, judgement, asking)
    }
}

impl Other {
    /// The switches with those settings of the profile.
    fn with(&self, wanted: impl Fn(usize) -> bool) -> Variants {
        let some = self.settings.iter().enumerate().filter(|(i, _)| wanted(*i));
        self.own.clone().into_iter().chain(some.map(|(_, s)| s.0.clone())).collect()
    }

    /// The answer under the profile that is not in use, if it is worth asking.
    fn beside(&self, program: &Program, judgement: &Judgement, asking: &Asking<'_>) -> Option<Profile> {
        let incomplete = judgement.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE);
        if if self.in_use { incomplete } else { judgement.findings.is_empty() } {
            return None;
        }
        let there = (asking.under)(&self.with(|_| !self.in_use));
        let (letter, practice) = if self.in_use { (&there, judgement) } else { (judgement, &there) };
        let wrong = |j: &Judgement| -> BTreeSet<Verdict> {
            j.verdicts.iter().filter(|v| v.exit_code() == exit::FINDING).cloned().collect()
        };
        let letter_only = letter.findings.difference(&practice.findings).next().is_some()
            || wrong(letter).difference(&wrong(practice)).next().is_some();
        let contested = unwritten(letter, practice, self, asking).into_iter();
        Some(Profile {
            name: if self.in_use { LETTER.to_owned() } else { self.name.clone() },
            against: self.name.clone(),
            letter_only,
            contested: contested
                .map(|(relies, all)| Unwritten {
                    relies: relies.into_iter().map(|i| self.settings[i].1.clone()).collect(),
                    findings: all.iter().map(|f| Finding::new(program, f)).collect(),
                })
                .collect(),
            verdicts: Verdicts(there.verdicts),
        })
    }
}

/// How explanations are found.
pub(crate) struct Asking<'a> {
    /// Judges the program under the model with other switches.
    pub(crate) under: &'a dyn Fn(&Variants) -> Judgement,
    /// Whether there is time for one more trial.
    pub(crate) more: &'a dyn Fn() -> bool,
}

/// Letter-only findings by the readings they rely on: one that is enough, or all that cannot be left out.
fn unwritten(
    letter: &Judgement,
    practice: &Judgement,
    other: &Other,
    Asking { under, more }: &Asking<'_>,
) -> Vec<(Vec<usize>, Vec<leaf::Finding>)> {
    let left: Vec<&leaf::Finding> = letter.findings.difference(&practice.findings).collect();
    if left.is_empty() || practice.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE) {
        return Vec::new();
    }
    // Each is an exploration, and most findings rely on one of the first settings. Without time for it, findings stay together.
    let count = other.settings.len();
    let (alone, without) = (vec![OnceCell::new(); count], vec![OnceCell::new(); count]);
    let mut groups: BTreeMap<Vec<usize>, Vec<leaf::Finding>> = BTreeMap::new();
    for finding in left {
        let gone = |j: &Judgement| !j.findings.contains(finding);
        let known = |cell: &OnceCell<Judgement>| cell.get().is_some() || more();
        let with =
            |i: &usize| known(&alone[*i]) && gone(alone[*i].get_or_init(|| under(&other.with(|s| s == *i))));
        let lacks = |i: &usize| {
            known(&without[*i]) && !gone(without[*i].get_or_init(|| under(&other.with(|s| s != *i))))
        };
        let one = (0..count).find(with).map(|i| vec![i]);
        let needed = || -> Vec<usize> {
            let found = (0..count).filter(lacks).collect();
            if without.iter().all(|w| w.get().is_some()) { found } else { Vec::new() }
        };
        groups.entry(one.unwrap_or_else(needed)).or_default().push(finding.clone());
    }
    groups.into_iter().collect()
}
