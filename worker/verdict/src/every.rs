//! Loops of a kernel that a parameter decides, for every value of it.
//!
//! Contract: the sizes of the launch are split into single values and classes (`moire_kernel::specialise::every`). The
//! operational engine is asked about each program of each of them: those of a class have a `repeat`, and its answer holds for
//! every number of periods. There is a proof if it finds nothing anywhere, and the explorer, within a budget, finds nothing
//! for the least values, nor for the classes with no period and with one. A mistake of the operational engine is no
//! finding yet: the launch with the value that it names is judged like any other, if the value that was judged was chosen here, this
//! one is larger, but not by far, and no address is computed from it.

use crate::exit;
use crate::kernel::{Covering, Every, EveryConfirmed, Run, taken};
use crate::proof;
use crate::verdicts::Verdicts;
use anyhow::Result;
use moire_cat::Model;
use moire_explore::judge::Verdict;
use moire_kernel::Refusal;
use moire_kernel::specialise::{self, Apart, Launch, PERIODS, lower_apart};
use moire_operate::Outcome;
use moire_program::ir::{LoadOrder, Op, Program, Proxy, Reg};
use moire_program::loops::unroll;
use moire_program::registers;
use std::collections::{BTreeMap, BTreeSet};

/// The work of all explorations that confirm a proof: a fraction of a second.
const CONFIRMING_WORK: u64 = 1 << 24;
/// Bounds of a run of the operational engine, and of all instructions that it executes for one parameter.
const LIMITS: moire_operate::Limits =
    moire_operate::Limits { steps: 400_000, states: 4_000, records: 1 << 13 };
/// Most parameters that decide loops of which a proof is tried: each may take some seconds.
const MOST: usize = 4;
/// How many times the value of a launch that was judged another one may be that is judged for a mistake.
const LARGER: u64 = 4;

/// What is said of one parameter, and a value with which something may be wrong.
type Said = (Every, Option<u64>);

/// The program with weak loads in the place of strong ones whose data nothing uses. What is clean with them is clean: such a load
/// only orders and allows more, and the operational engine has no strong ones.
fn weakened(program: &Program) -> Program {
    let mut out = program.clone();
    for thread in &mut out.threads {
        let mut used: BTreeSet<Reg> = thread.body.iter().filter_map(|i| i.guard).map(|g| g.reg).collect();
        for instr in &thread.body {
            registers::used(&instr.op, &mut |reg| {
                used.insert(reg);
            });
        }
        for instr in &mut thread.body {
            if let Op::Load { order, proxy: Proxy::Generic, dst, .. } = &mut instr.op
                && dst.iter().all(|reg| !used.contains(reg))
            {
                *order = LoadOrder::Weak;
            }
        }
    }
    out
}

/// What is said of each parameter of a launch that decides how often loops run, and the first launch with which something may
/// be wrong.
pub(crate) fn every(asking: &Asking<'_>) -> Result<(Vec<Every>, Option<Launch>)> {
    asking.every()
}

/// Explores a program with so much work at most. Returns its verdicts, and the work.
pub(crate) type Explore<'a> = dyn Fn(Program, u64) -> Result<(Vec<Verdict>, u64)> + 'a;

/// A launch that was judged, and how the engines are asked.
pub(crate) struct Asking<'a> {
    pub(crate) covering: &'a Covering,
    pub(crate) run: &'a Run,
    /// The model and its name.
    pub(crate) model: (&'a str, &'a Model),
    pub(crate) explore: &'a Explore<'a>,
}

impl Asking<'_> {
    fn every(&self) -> Result<(Vec<Every>, Option<Launch>)> {
        let (covering, run) = (self.covering, self.run);
        let (mut out, mut wrong) = (Vec::new(), None);
        let whole = run.launch.params.keys().map(|index| (*index, 0));
        let places: Vec<(u16, u32)> = whole.chain(run.launch.fields.keys().copied()).collect();
        for place in places {
            if out.len() == MOST {
                break;
            }
            // Values that are excluded would be judged, too.
            if run.launch.assumes(place) {
                continue;
            }
            let found = specialise::every(covering.kernel(), &run.launch, place);
            let Some((said, value)) = found.transpose().map(|found| self.said(place, found)).transpose()?
            else {
                continue;
            };
            out.push(said);
            let judged = run.launch.value(covering.kernel(), place).unwrap_or(0);
            let near = |v: &u64| *v > judged && *v <= judged.saturating_mul(LARGER) && covering.chose(place);
            wrong = wrong.or(value.filter(near).map(|v| self.with(place, v)));
        }
        Ok((out, wrong))
    }

    fn with(&self, place: (u16, u32), value: u64) -> Launch {
        self.run.launch.with(self.covering.kernel(), place, value)
    }

    fn said(&self, place: (u16, u32), found: Result<specialise::Every, Refusal>) -> Result<Said> {
        let mut said = Every::new(place);
        let found = match found {
            Ok(found) => found,
            Err(why) => return Ok((Every { why: Some(why.to_string()), ..said }, None)),
        };
        said.about(&found);
        let mut wrong = self.single(&found, &mut said);
        for (base, apart) in &found.classes {
            if said.why.is_some() {
                break;
            }
            said.why = apart.reserve.as_ref().map(ToString::to_string);
            wrong = wrong.or(self.class(&found, (*base, apart), &mut said));
        }
        if said.why.is_none() {
            self.explored_too(&found, &mut said)?;
        }
        said.proved = said.why.is_none();
        if said.proved {
            let notes = found.classes.iter().flat_map(|class| &class.1.notes);
            said.taken = taken(notes.cloned().collect());
        }
        Ok((said, wrong))
    }

    /// Asks the operational engine. Says why a program is not clean.
    fn asked_about(&self, program: &Program, value: u64, said: &mut Every) -> Option<Outcome> {
        let steps = LIMITS.steps.saturating_sub(said.steps);
        let limits = moire_operate::Limits { steps, ..LIMITS };
        match proof::run_within(&weakened(program), self.model.0, self.model.1, &limits) {
            Ok((outcome, _)) => {
                said.steps += outcome.steps;
                said.states += outcome.states;
                let verdicts = proof::verdicts_of(&outcome);
                if matches!(verdicts[..], [Verdict::Clean(_)]) {
                    return None;
                }
                let words = Verdicts(verdicts).words().join(", ");
                let line = outcome.findings.iter().flat_map(|f| &f.places).map(|p| p.1).max();
                let line = line.map_or(String::new(), |line| format!(" (line {line})"));
                said.why = Some(format!("{words}{line} with {} = {value}", said.parameter));
                (!outcome.findings.is_empty()).then_some(outcome)
            }
            Err(why) => {
                said.why = Some(why);
                None
            }
        }
    }

    /// The single values. Returns one with a mistake. The proof is about what is larger than those that cannot be run ahead.
    fn single(&self, found: &specialise::Every, said: &mut Every) -> Option<u64> {
        for value in &found.singles {
            let launch = self.with(found.place, *value);
            let apart = match lower_apart(self.covering.kernel(), &launch) {
                Ok(apart) => apart,
                Err(_) => {
                    said.least = value + found.grain;
                    continue;
                }
            };
            said.why = apart.reserve.as_ref().map(ToString::to_string);
            for part in &apart.parts {
                said.programs[1] += 1;
                let wrong = self.asked_about(&part.program, *value, said);
                if said.why.is_some() {
                    return wrong.map(|_| *value);
                }
            }
        }
        None
    }

    /// The programs of a class. Returns a value with a mistake.
    fn class(&self, found: &specialise::Every, of: (u64, &Apart), said: &mut Every) -> Option<u64> {
        let (base, apart) = of;
        for part in &apart.parts {
            said.programs[0] += 1;
            let wrong = self.asked_about(&part.program, base, said);
            let Some(why) = &mut said.why else { continue };
            let most = |wrong: &Outcome| wrong.numbers.values().flatten().copied().max().unwrap_or(0);
            let value = wrong.map(|wrong| base + found.step * u64::from(most(&wrong)));
            let value = value.map(|value| self.wrong_at_once(found).unwrap_or(value).min(value));
            if let Some(value) = value {
                *why = why.replace(&format!("= {base}"), &format!("= {value}"));
            }
            return value;
        }
        None
    }

    /// The least value of a class with a mistake if there is no period.
    fn wrong_at_once(&self, found: &specialise::Every) -> Option<u64> {
        let none = BTreeMap::from([(PERIODS.to_owned(), vec![0])]);
        let wrong = |program: &Program| {
            let found = proof::run_within(&weakened(program), self.model.0, self.model.1, &LIMITS);
            found.is_ok_and(|(outcome, _)| !outcome.findings.is_empty())
        };
        let part =
            |part: &specialise::Part| unroll(&part.program, &none).is_ok_and(|program| wrong(&program));
        found.classes.iter().find(|(_, apart)| apart.parts.iter().any(part)).map(|class| class.0)
    }

    /// Asks the explorer about the least values, and about the classes with no period and with one.
    fn explored_too(&self, found: &specialise::Every, said: &mut Every) -> Result<()> {
        let mut all: Vec<(u64, Program)> = Vec::new();
        for value in found.singles.iter().take(3) {
            let launch = self.with(found.place, *value);
            let parts = lower_apart(self.covering.kernel(), &launch).map_or(Vec::new(), |apart| apart.parts);
            all.extend(parts.into_iter().map(|part| (*value, part.program)));
        }
        for periods in [0, 1] {
            for (base, apart) in found.classes.iter().take(1) {
                let value = base + found.step * u64::from(periods);
                let counts = BTreeMap::from([(PERIODS.to_owned(), vec![periods])]);
                let programs = apart.parts.iter().filter_map(|part| unroll(&part.program, &counts).ok());
                all.extend(programs.map(|program| (value, program)));
            }
        }
        let mut left = CONFIRMING_WORK;
        for (value, program) in all {
            let (verdicts, work) = (self.explore)(program, left)?;
            left = left.saturating_sub(work);
            if verdicts.is_empty() {
                continue;
            }
            if exit::worst(verdicts.iter().map(Verdict::exit_code)) == exit::FINDING {
                let words = Verdicts(verdicts.clone()).words().join(", ");
                said.why = Some(format!(
                    "the engines differ: {words} for the explorer with {} = {value}",
                    said.parameter
                ));
            }
            said.confirmations.push(EveryConfirmed { value, verdicts: Verdicts(verdicts) });
        }
        Ok(())
    }
}
