//! The answer of the operational engine for a litmus text with free loops: the proof for every trip count, or the mistake and
//! the trip counts that show it.

use crate::exit;
use crate::question::Question;
use crate::verdicts::Verdicts;
use anyhow::{Result, bail};
use moire_cat::{LETTER, Model, PROFILE};
use moire_explore::judge::Verdict;
use moire_operate::{
    ASSUMPTIONS, Counterexample, Finding, Kind, Limits, Outcome, SCHEDULES, Settings, counterexample,
    least_trips, operate,
};
use moire_program::ir::{Program, Trips};
use moire_program::limits::REPEATS;
use moire_program::loops::{free, loops};
use moire_program::text::print;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// The model whose rules the operational engine executes.
const MODEL: &str = "ptx";
/// How far trip counts are raised beyond the least ones, until the explorer confirms a finding.
const RAISED: u32 = 3;

/// Trip counts by name: one for each time that a thread enters such a loop.
pub type Counts = BTreeMap<String, Vec<u32>>;

/// What the operational engine finds, and what the explorer says of it.
pub(crate) struct Proof {
    outcome: Outcome,
    /// The least trip counts with a finding of the same kind.
    least: Option<Counterexample>,
    /// The trip counts for which the explorer was asked about a finding, and whether it finds something. For a proof: those
    /// that refute it.
    asked: Option<(Counts, bool)>,
    /// For a proof: the least trip counts, and what the explorer says of each that it was asked about.
    least_trips: Vec<(Counts, Option<Vec<Verdict>>)>,
    /// The lines of the loops by name.
    lines: BTreeMap<String, BTreeSet<u32>>,
    /// The profile and the switches of the command line.
    readings: String,
}

/// The answer of the operational engine for a text with free loops.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Operational {
    /// Whether nothing is wrong for any trip count.
    pub proved: bool,
    /// The free loops.
    pub classes: Vec<Free>,
    /// The profile and the switches.
    pub readings: String,
    /// What a proof takes for granted.
    pub assumptions: Vec<&'static str>,
    /// States that were stored.
    pub states: usize,
    /// Instructions that were executed.
    pub steps: u64,
    /// The limit that was hit, and how far every run was followed.
    pub bounded: Option<String>,
    /// What is wrong.
    pub findings: Vec<Mistake>,
    /// Under how many other schedules a clean run is repeated.
    pub schedules: usize,
    /// What another schedule says instead: the engine contradicts itself.
    pub differs: Option<String>,
    /// Of a proof: the least trip counts, and what the explorer says of each.
    pub confirmations: Vec<Confirmation>,
    /// The trip counts for which the explorer was asked about a finding, or those that refute a proof.
    pub explored: Option<Confirmed>,
    /// The least trip counts with a finding of the same kind.
    pub least: Option<Least>,
}

/// A loop without a number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Free {
    /// Its name.
    pub name: String,
    /// Its least trip count.
    pub least: u32,
    /// The lines of the loops of that name.
    pub lines: BTreeSet<u32>,
}

/// Something that the operational engine finds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Mistake {
    /// `race`, `hang`, `lifetime` or `protocol`.
    pub kind: &'static str,
    /// The condition of the proof that is broken.
    pub condition: Option<String>,
    /// One sentence.
    pub text: String,
    /// The instructions.
    pub places: Vec<Instruction>,
}

/// An instruction of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Instruction {
    /// The position of its thread.
    pub thread: usize,
    /// Its line.
    pub line: u32,
}

/// What the explorer says of trip counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Confirmation {
    /// The trip counts.
    pub trips: Counts,
    /// None if there was no budget for them.
    pub verdicts: Option<Verdicts>,
}

/// What the explorer says of a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Confirmed {
    /// The trip counts.
    pub trips: Counts,
    /// Whether it finds something, too.
    pub confirmed: bool,
    /// The command that repeats it.
    pub again: String,
}

/// The least trip counts with a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Least {
    /// The trip counts.
    pub trips: Counts,
    /// The program with copies of its loops.
    pub program: String,
}

/// The verdicts of the operational engine under a model.
///
/// # Errors
/// The reason why it does not decide the program.
pub(crate) fn run(program: &Program, name: &str, model: &Model) -> Result<(Outcome, Settings), String> {
    run_within(program, name, model, &Limits::default())
}

/// The same within limits.
pub(crate) fn run_within(
    program: &Program,
    name: &str,
    model: &Model,
    limits: &Limits,
) -> Result<(Outcome, Settings), String> {
    if name != MODEL {
        return Err(format!(
            "the operational engine has no transitions for the model {name}, only for {MODEL}"
        ));
    }
    let settings = Settings::of(|switch| model.variant(switch))
        .map_err(|setting| format!("the operational engine has no transitions for {setting}"))?;
    let outcome = operate(program, &settings, limits).map_err(|e| e.to_string())?;
    Ok((outcome, settings))
}

/// The verdicts of the operational engine under a model of that name, where nothing else is asked.
pub(crate) fn verdicts(program: &Program, name: &str, model: &Model) -> Vec<Verdict> {
    match run(program, name, model) {
        Ok((outcome, _)) => verdicts_of(&outcome),
        Err(why) => vec![Verdict::Abstained(why)],
    }
}

/// The verdicts of a run. A run that only breaks a condition is no proof and no mistake.
pub(crate) fn verdicts_of(outcome: &Outcome) -> Vec<Verdict> {
    let one = |kind: Kind| match kind {
        Kind::Race => Verdict::Race,
        Kind::Hang => Verdict::Hang,
        Kind::Lifetime => Verdict::Lifetime,
        Kind::Protocol => Verdict::Protocol,
    };
    let mut out: Vec<Verdict> = outcome.kinds().into_iter().map(one).collect();
    out.extend(outcome.bounded.as_ref().map(|bound| Verdict::Bounded(covered(outcome, bound))));
    if out.is_empty() && !outcome.findings.is_empty() {
        out.push(Verdict::Abstained(unproved(outcome)));
    }
    out.extend(outcome.differs.as_ref().map(|other| Verdict::Abstained(contradicted(other))));
    if out.is_empty() {
        out.push(match NonZeroU64::new(outcome.runs) {
            Some(runs) => Verdict::Clean(runs),
            None => Verdict::Bounded("no run came to its end".to_owned()),
        });
    }
    out.sort();
    out
}

/// `states: 200000 states, every run followed through 41 iterations and decisions about trip counts`
fn covered(outcome: &Outcome, bound: &str) -> String {
    format!(
        "{bound}: {} states, every run followed through {} iterations and decisions about trip counts",
        outcome.states, outcome.covered
    )
}

/// Two runs of the operational engine that should say the same.
fn contradicted(other: &str) -> String {
    format!("the operational engine contradicts itself, {other}")
}

/// The condition that keeps one run from standing for all.
fn unproved(outcome: &Outcome) -> String {
    let broken = outcome.findings.iter().find_map(|f| f.condition.map(|c| (c, f)));
    let what = match outcome.classes.is_empty() {
        true => "one run does not stand for all",
        false => "no proof for every trip count",
    };
    broken.map_or(String::new(), |(condition, f)| format!("{what}: {} ({})", condition.text(), f.text))
}

impl Proof {
    /// Asks the operational engine.
    ///
    /// # Errors
    /// The reason why it does not decide the program.
    pub(crate) fn new(
        program: &Program,
        name: &str,
        model: &Model,
        question: &Question,
    ) -> Result<Self, String> {
        let (outcome, settings) = run(program, name, model)?;
        let least = match outcome.findings.is_empty() {
            true => None,
            false => counterexample(program, &settings, &Limits::default(), &outcome).ok().flatten(),
        };
        let mut lines: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for thread in &program.threads {
            for found in loops(thread).unwrap_or_default() {
                if let Trips::Free { name, .. } = &found.trips {
                    lines.entry(name.clone()).or_default().insert(thread.body[found.start].line);
                }
            }
        }
        let profile = question.profile.as_deref().or(model.variant(PROFILE)).unwrap_or(LETTER);
        let switches = question.switches.iter().map(|(switch, value)| format!("{switch}={value}"));
        let readings: Vec<String> = [profile.to_owned()].into_iter().chain(switches).collect();
        let least_trips = least_trips(&outcome.classes).into_iter().map(|counts| (counts, None)).collect();
        Ok(Proof { outcome, least, asked: None, least_trips, lines, readings: readings.join(", ") })
    }

    /// Whether nothing is wrong, as far as the run went.
    pub(crate) fn is_clean(&self) -> bool {
        self.outcome.findings.is_empty()
    }

    /// The trip counts that must confirm a proof, the least first.
    pub(crate) fn confirming(&self) -> Vec<Counts> {
        self.least_trips.iter().map(|(counts, _)| counts.clone()).collect()
    }

    /// Notes what the explorer says of trip counts that must confirm a proof. Returns whether they refute it.
    pub(crate) fn confirmed(&mut self, counts: &Counts, verdicts: Vec<Verdict>) -> bool {
        let refuted = exit::worst(verdicts.iter().map(Verdict::exit_code)) == exit::FINDING;
        if refuted {
            self.asked = Some((counts.clone(), true));
        }
        let tried = self.least_trips.iter_mut().find(|tried| tried.0 == *counts);
        tried.into_iter().for_each(|tried| tried.1 = Some(verdicts.clone()));
        refuted
    }

    /// The trip counts for which the explorer is asked about a finding, the least first.
    pub(crate) fn trials(&self) -> Vec<Counts> {
        let mut out: Vec<Counts> = Vec::new();
        let least = self.least.as_ref().map_or(&self.outcome.numbers, |l| &l.numbers);
        let raised = (1..=RAISED).map(|more| {
            let raise = |all: &Vec<u32>| all.iter().map(|n| (n + more).min(REPEATS)).collect();
            least.iter().map(|(name, all)| (name.clone(), raise(all))).collect()
        });
        for counts in [least.clone(), self.outcome.numbers.clone()].into_iter().chain(raised) {
            if !out.contains(&counts) {
                out.push(counts);
            }
        }
        out
    }

    /// Notes the answer of the explorer for these trip counts.
    pub(crate) fn explored(&mut self, counts: Counts, confirmed: bool) {
        self.asked = Some((counts, confirmed));
    }

    /// The verdicts of both engines, given those of the explorer where it was asked.
    ///
    /// A finding of only one engine is no verdict: the engines differ, or the run breaks a condition and proves nothing. If
    /// the explorer gave up, the findings of the operational engine stand, because its run is a run of the program.
    pub(crate) fn verdicts(&self, explorer: &[Verdict]) -> Vec<Verdict> {
        let own = verdicts_of(&self.outcome);
        let Some((counts, confirmed)) = &self.asked else { return own };
        if *confirmed {
            return explorer.to_vec();
        }
        if !matches!(explorer, [Verdict::Clean(_)]) {
            let mut out = explorer.to_vec();
            out.extend(own.into_iter().filter(|v| v.exit_code() == exit::FINDING));
            out.sort();
            return out;
        }
        let shown = shown(counts);
        let kinds: Vec<&str> = self.outcome.kinds().into_iter().map(Kind::word).collect();
        vec![Verdict::Abstained(if kinds.is_empty() {
            format!("{}; the explorer finds nothing for {shown}", unproved(&self.outcome))
        } else {
            format!(
                "the engines differ: {} for the operational engine, nothing for the explorer, {shown}",
                kinds.join(", ")
            )
        })]
    }

    /// The answer for people and tools. `file` and `options` are those of the command.
    pub(crate) fn told(&self, file: &str, options: &str) -> Operational {
        let o = &self.outcome;
        let class = |(name, least): &(String, u32)| Free {
            name: name.clone(),
            least: *least,
            lines: self.lines.get(name).cloned().unwrap_or_default(),
        };
        let confirmation = |(trips, verdicts): &(Counts, Option<Vec<Verdict>>)| Confirmation {
            trips: trips.clone(),
            verdicts: verdicts.clone().map(Verdicts),
        };
        let explored = |(counts, confirmed): &(Counts, bool)| Confirmed {
            trips: counts.clone(),
            confirmed: *confirmed,
            again: format!("moire check {file}{options}{}", trips(counts)),
        };
        let confirmations = self.least_trips.iter().filter(|_| self.is_clean()).map(confirmation);
        Operational {
            proved: matches!(verdicts_of(o)[..], [Verdict::Clean(_)]) && self.asked.is_none(),
            classes: o.classes.iter().map(class).collect(),
            readings: self.readings.clone(),
            assumptions: ASSUMPTIONS.to_vec(),
            states: o.states,
            steps: o.steps,
            bounded: o.bounded.as_ref().map(|bound| covered(o, bound)),
            findings: mistakes(o),
            schedules: SCHEDULES,
            differs: o.differs.clone(),
            confirmations: confirmations.collect(),
            explored: self.asked.as_ref().map(explored),
            least: self
                .least
                .as_ref()
                .map(|l| Least { trips: l.numbers.clone(), program: print(&l.program) }),
        }
    }
}

/// What a run finds.
pub(crate) fn mistakes(outcome: &Outcome) -> Vec<Mistake> {
    let place = |(thread, line): &(usize, u32)| Instruction { thread: *thread, line: *line };
    let one = |f: &Finding| Mistake {
        kind: f.kind.word(),
        condition: f.condition.map(|c| c.text().to_owned()),
        text: f.text.clone(),
        places: f.places.iter().map(place).collect(),
    };
    outcome.findings.iter().map(one).collect()
}

/// `K = 2, T = 1 then 0`
pub fn shown(counts: &Counts) -> String {
    let one = |(name, all): (&String, &Vec<u32>)| {
        let all: Vec<String> = all.iter().map(u32::to_string).collect();
        format!("{name} = {}", all.join(" then "))
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `--trips K=2 --trips T=1,0`
fn trips(counts: &Counts) -> String {
    let one = |(name, all): (&String, &Vec<u32>)| {
        let all: Vec<String> = all.iter().map(u32::to_string).collect();
        format!(" --trips {name}={}", all.join(","))
    };
    counts.iter().map(one).collect()
}

/// The trip counts that the command line gives to the loops of a program.
///
/// # Errors
/// A word that is no trip count, or the name of no loop.
pub fn given(words: &[String], program: &Program) -> Result<Counts> {
    let names = free(program);
    let mut out = Counts::new();
    for word in words {
        let Some((name, numbers)) = word.split_once('=') else {
            bail!("`{word}`: write --trips NAME=N[,N..]")
        };
        let Some((_, least)) = names.iter().find(|known| known.0 == name) else {
            let known: Vec<&str> = names.iter().map(|n| n.0.as_str()).collect();
            bail!("`{word}`: there is no loop `{name}`; the free loops are {}", known.join(", "));
        };
        let number = |n: &str| n.parse().ok().filter(|n| (*least..=REPEATS).contains(n));
        let Some(numbers) = numbers.split(',').map(number).collect::<Option<Vec<u32>>>() else {
            bail!("`{word}`: a trip count of `{name}` is a number from {least} to {REPEATS}");
        };
        out.insert(name.to_owned(), numbers);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::text::{Format, parse};

    #[test]
    fn trip_counts_are_read_and_printed() {
        let text = "moire \"x\"\nP0 (gpu 0, cta 0) { repeat K >= 1 { repeat T { exit; } } }\n";
        let program = parse(text, Format::Native).unwrap();
        let words = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let counts = given(&words(&["K=2", "T=1,0"]), &program).unwrap();
        assert_eq!(shown(&counts), "K = 2, T = 1 then 0");
        assert_eq!(trips(&counts), " --trips K=2 --trips T=1,0");
        for wrong in ["K", "K=0", "K=x", "K=", "N=1", "K=1,99999999999"] {
            assert!(given(&words(&[wrong]), &program).is_err(), "{wrong}");
        }
    }

    /// What the explorer finds for a small trip count is the answer, whatever was proved.
    #[test]
    fn a_refutation_wins_over_a_proof() {
        let text = "moire \"x\"\nP0 (gpu 0, cta 0) { repeat K { bar.sync 0; } }\n";
        let program = parse(text, Format::Native).unwrap();
        let model = moire_models::load(MODEL, &Default::default()).unwrap();
        let (outcome, _) = run(&program, MODEL, &model).unwrap();
        let least_trips = least_trips(&outcome.classes).into_iter().map(|counts| (counts, None)).collect();
        let (lines, readings) = (BTreeMap::new(), String::new());
        let mut proof = Proof { outcome, least: None, asked: None, least_trips, lines, readings };
        let [zero, one, two] = proof.confirming().try_into().unwrap();
        assert!(!proof.confirmed(&zero, vec![Verdict::Clean(NonZeroU64::MIN)]));
        assert!(!proof.confirmed(&one, vec![Verdict::Bounded("checks".to_owned())]));
        assert!(matches!(proof.verdicts(&[])[..], [Verdict::Clean(_)]));
        let told = proof.told("l.litmus", "");
        let said: Vec<_> =
            told.confirmations.iter().map(|c| c.verdicts.as_ref().map(Verdicts::words)).collect();
        assert_eq!(said, [Some(vec!["clean".into()]), Some(vec!["bounded(checks)".into()]), None]);
        assert!(told.proved);
        assert!(proof.confirmed(&two, vec![Verdict::Race]));
        assert_eq!(proof.verdicts(&[Verdict::Race]), [Verdict::Race]);
        let told = proof.told("l.litmus", "");
        assert!(!told.proved);
        assert_eq!(told.explored.unwrap().again, "moire check l.litmus --trips K=2");
    }
}
