//! The readings that shipped kernels rely on: whether what is wrong is wrong under them, too (`contested(profile)`).

use crate::exit;
use crate::finding::Finding;
use crate::input::Source;
use crate::question::Question;
use crate::verdicts::{Verdicts, undecided};
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

/// A program of a kernel as it is read under the profile that is not in use.
pub(crate) struct Otherwise {
    /// The program; the reason why there is none.
    pub(crate) program: Result<Program, Verdict>,
    /// The readings of practice about lanes that make the difference.
    pub(crate) relied: Vec<Relied>,
}

/// A reading of practice about lanes, and the lines that rely on it.
#[derive(Clone)]
pub(crate) struct Relied {
    pub(crate) reading: Reading,
    pub(crate) lines: BTreeSet<u32>,
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

    /// Whether the letter is in use, and the model has a profile.
    pub(crate) fn is_letter(&self) -> bool {
        self.other.as_ref().is_some_and(|o| !o.in_use)
    }

    /// Whether another profile is asked beside the one in use.
    pub(crate) fn are_both(&self) -> bool {
        self.other.is_some()
    }

    /// The answer under the readings that are not in use, if it is worth asking.
    pub(crate) fn beside(
        &self,
        source: &Source,
        judgement: &Judgement,
        asking: &Asking<'_>,
    ) -> Option<Profile> {
        self.other.as_ref()?.beside(source, judgement, asking)
    }
}

/// A judgement of a program under a profile.
#[derive(Clone, Copy)]
struct Judged<'a> {
    /// None: the program in use.
    program: Option<&'a Program>,
    judgement: &'a Judgement,
}

impl Other {
    /// The switches with those settings of the profile.
    fn with(&self, wanted: impl Fn(usize) -> bool) -> Variants {
        let some = self.settings.iter().enumerate().filter(|(i, _)| wanted(*i));
        self.own.clone().into_iter().chain(some.map(|(_, s)| s.0.clone())).collect()
    }

    /// The answer under the profile that is not in use, if it is worth asking.
    fn beside(&self, source: &Source, judgement: &Judgement, asking: &Asking<'_>) -> Option<Profile> {
        let incomplete = judgement.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE);
        if if self.in_use { incomplete } else { judgement.findings.is_empty() } {
            return None;
        }
        let switches = self.with(|_| !self.in_use);
        let (program, there) = match source.otherwise.as_ref().map(|o| &o.program) {
            None => (None, (asking.under)(None, &switches)),
            Some(Ok(other)) => (Some(other), (asking.under)(Some(other), &switches)),
            Some(Err(why)) => (None, undecided(why.clone())),
        };
        let (here, there) = (Judged { program: None, judgement }, Judged { program, judgement: &there });
        let (letter, practice) = if self.in_use { (there, here) } else { (here, there) };
        Some(Profile {
            name: if self.in_use { LETTER.to_owned() } else { self.name.clone() },
            against: self.name.clone(),
            letter_only: is_worse(letter, practice),
            contested: self.contested(source, letter, practice, asking),
            verdicts: Verdicts(there.judgement.verdicts.clone()),
        })
    }

    /// What is wrong by the letter only: by the readings about lanes, then by those of the model.
    fn contested(
        &self,
        source: &Source,
        letter: Judged<'_>,
        practice: Judged<'_>,
        asking: &Asking<'_>,
    ) -> Vec<Unwritten> {
        let shown = |program: Option<&Program>, f: &leaf::Finding| {
            Finding::new(program.unwrap_or(&source.program), f)
        };
        let strict;
        let (mut out, model) = match &source.otherwise {
            None => (Vec::new(), letter.judgement),
            Some(_) if !is_worse(letter, practice) => return Vec::new(),
            Some(otherwise) => {
                strict = (asking.under)(practice.program, &self.with(|_| false));
                let known: BTreeSet<_> = strict.findings.iter().map(lines).collect();
                let own = letter.judgement.findings.iter().filter(|f| !known.contains(&lines(f)));
                (by_lanes(otherwise, own, &|f| shown(letter.program, f)), &strict)
            }
        };
        let under = |switches: &Variants| (asking.under)(practice.program, switches);
        for (relies, all) in unwritten(model, practice.judgement, self, (&under, asking.more)) {
            let relies = relies.into_iter().map(|i| self.settings[i].1.clone()).collect();
            let findings = all.iter().map(|f| shown(practice.program, f)).collect();
            out.push(Unwritten { relies, findings });
        }
        out
    }
}

/// Whether the letter has a finding, or is wrong in a way, that practice has not. Findings of different programs are told
/// apart by their lines.
fn is_worse(letter: Judged<'_>, practice: Judged<'_>) -> bool {
    let same = letter.program.is_none() && practice.program.is_none();
    let (letter, practice) = (letter.judgement, practice.judgement);
    let wrong = |j: &Judgement| -> BTreeSet<Verdict> {
        j.verdicts.iter().filter(|v| v.exit_code() == exit::FINDING).cloned().collect()
    };
    let found =
        |j: &Judgement| -> BTreeSet<(String, BTreeSet<u32>)> { j.findings.iter().map(lines).collect() };
    let more = match same {
        true => !letter.findings.is_subset(&practice.findings),
        false => !found(letter).is_subset(&found(practice)),
    };
    more || !wrong(letter).is_subset(&wrong(practice))
}

/// The flag of a finding and its lines: lanes may be in other threads under another reading.
fn lines(finding: &leaf::Finding) -> (String, BTreeSet<u32>) {
    (finding.flag.clone(), finding.places.iter().map(|p| p.line).collect())
}

/// Findings that rely on readings about lanes: on those whose lines they name, else on all.
fn by_lanes<'f>(
    otherwise: &Otherwise,
    findings: impl Iterator<Item = &'f leaf::Finding>,
    shown: &dyn Fn(&leaf::Finding) -> Finding,
) -> Vec<Unwritten> {
    let mut groups: BTreeMap<Vec<usize>, Vec<Finding>> = BTreeMap::new();
    let all = || 0..otherwise.relied.len();
    for finding in findings {
        let named = lines(finding).1;
        let near: Vec<usize> = all().filter(|i| !otherwise.relied[*i].lines.is_disjoint(&named)).collect();
        let near = if near.is_empty() { all().collect() } else { near };
        groups.entry(near).or_default().push(shown(finding));
    }
    let reading = |i: usize| otherwise.relied[i].reading.clone();
    let one = |(relies, findings): (Vec<usize>, _)| Unwritten {
        relies: relies.into_iter().map(reading).collect(),
        findings,
    };
    groups.into_iter().map(one).collect()
}

/// How explanations are found.
pub(crate) struct Asking<'a> {
    /// Judges a program, or the one in use, under the model with other switches.
    pub(crate) under: &'a dyn Fn(Option<&Program>, &Variants) -> Judgement,
    /// Whether there is time for one more trial.
    pub(crate) more: &'a dyn Fn() -> bool,
}

/// Letter-only findings by the readings they rely on: one that is enough, or all that cannot be left out.
fn unwritten(
    letter: &Judgement,
    practice: &Judgement,
    other: &Other,
    (under, more): (&dyn Fn(&Variants) -> Judgement, &dyn Fn() -> bool),
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
