//! Loops of a kernel that a parameter decides, for every value of it.
//!
//! Contract: the sizes of the launch are split into single values and classes (`moire_kernel::specialise::every`). The
//! operational engine is asked about each program of each of them: those of a class have a `repeat`, and its answer holds for
//! every number of periods. There is a proof if it finds nothing anywhere, and the explorer, within a budget, finds nothing
//! for the least values, nor for the classes with no period and with one. A mistake of the operational engine is no
//! finding yet: the launch with the value that it names is judged like any other.

use crate::exit;
use crate::judging::Judge;
use crate::kernel::{Covering, Every, EveryConfirmed, Run};
use crate::launches::price;
use crate::proof;
use crate::verdicts::{Verdicts, union};
use anyhow::Result;
use moire_explore::Limits;
use moire_explore::judge::Verdict;
use moire_kernel::Refusal;
use moire_kernel::specialise::{self, Apart, Launch, PERIODS, lower_apart};
use moire_operate::Outcome;
use moire_program::ir::Program;
use moire_program::loops::unroll;
use std::collections::BTreeMap;

/// The work of all explorations that confirm a proof: a fraction of a second.
const CONFIRMING_WORK: u64 = 1 << 24;

/// What is said of one parameter, and a value with which something may be wrong.
type Said = (Every, Option<u64>);

impl Judge<'_> {
    /// What is said of each parameter of a launch that decides how often loops run, and the first launch with which something
    /// may be wrong.
    pub(crate) fn every(&self, covering: &Covering, run: &Run) -> Result<(Vec<Every>, Option<Launch>)> {
        let (mut out, mut wrong) = (Vec::new(), None);
        let whole = run.launch.params.keys().map(|index| (*index, 0));
        let places: Vec<(u16, u32)> = whole.chain(run.launch.fields.keys().copied()).collect();
        for place in places {
            let found = specialise::every(covering.kernel(), &run.launch, place);
            let Some((said, value)) =
                found.transpose().map(|found| self.said(covering, run, place, found)).transpose()?
            else {
                continue;
            };
            out.push(said);
            wrong = wrong.or(value.map(|v| run.launch.with(covering.kernel(), place, v)));
        }
        Ok((out, wrong))
    }

    fn said(
        &self,
        covering: &Covering,
        run: &Run,
        place: (u16, u32),
        found: Result<specialise::Every, Refusal>,
    ) -> Result<Said> {
        let mut said = Every::new(place);
        let found = match found {
            Ok(found) => found,
            Err(why) => return Ok((Every { why: Some(why.to_string()), ..said }, None)),
        };
        said.about(&found);
        let mut wrong = self.single(covering, run, &found, &mut said);
        for (base, apart) in &found.classes {
            if said.why.is_some() {
                break;
            }
            said.why = apart.reserve.as_ref().map(ToString::to_string);
            wrong = wrong.or(self.class(found.step, *base, apart, &mut said));
        }
        if said.why.is_none() {
            self.explored_too(covering, run, &found, &mut said)?;
        }
        said.proved = said.why.is_none();
        Ok((said, wrong))
    }

    /// Asks the operational engine. Says why a program is not clean.
    fn asked_about(&self, program: &Program, value: u64, said: &mut Every) -> Option<Outcome> {
        match proof::run(program, &self.asked.name, &self.asked.model) {
            Ok((outcome, _)) => {
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

    /// The single values. Returns one with a mistake.
    fn single(
        &self,
        covering: &Covering,
        run: &Run,
        found: &specialise::Every,
        said: &mut Every,
    ) -> Option<u64> {
        for value in &found.singles {
            let launch = run.launch.with(covering.kernel(), found.place, *value);
            let apart = match lower_apart(covering.kernel(), &launch) {
                Ok(apart) => apart,
                Err(why) => {
                    said.why = Some(format!("{why} with {} = {value}", said.parameter));
                    return None;
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
    fn class(&self, step: u64, base: u64, apart: &Apart, said: &mut Every) -> Option<u64> {
        for part in &apart.parts {
            said.programs[0] += 1;
            let wrong = self.asked_about(&part.program, base, said);
            let Some(why) = &mut said.why else { continue };
            let most = |wrong: &Outcome| wrong.numbers.values().flatten().copied().max().unwrap_or(0);
            let value = wrong.map(|wrong| base + step * u64::from(most(&wrong)));
            if let Some(value) = value {
                *why = why.replace(&format!("= {base}"), &format!("= {value}"));
            }
            return value;
        }
        None
    }

    /// Asks the explorer about the least values, and about the classes with no period and with one.
    fn explored_too(
        &self,
        covering: &Covering,
        run: &Run,
        found: &specialise::Every,
        said: &mut Every,
    ) -> Result<()> {
        let mut all: Vec<(u64, Program)> = Vec::new();
        for value in found.singles.iter().take(3) {
            let launch = run.launch.with(covering.kernel(), found.place, *value);
            let parts = lower_apart(covering.kernel(), &launch).map_or(Vec::new(), |apart| apart.parts);
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
            let source = covering.source(program);
            let price = price(&source);
            let limits = Limits { checks: (left / price).min(self.limits().checks), ..*self.limits() };
            if limits.checks == 0 {
                continue;
            }
            let explored = self.explored(source, &limits, false)?;
            left = left.saturating_sub(explored.judgement.summary.checks.saturating_mul(price));
            let verdicts = union([&explored.judgement.verdicts].into_iter());
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
