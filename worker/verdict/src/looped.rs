//! Litmus texts with loops: the operational engine answers for every trip count, and the explorer confirms what it says.
//!
//! Contract: loops with a number, and free loops whose trip counts the command line gives, are unrolled and explored like any
//! other text. With a free trip count the operational engine is asked. If it finds a mistake, the text is unrolled with
//! the trip counts of that mistake and explored, so that the answer has its executions. If it finds none, the least trip
//! counts are explored within a budget. What the explorer finds there is the answer. Lines are those of the text.

use crate::answer::{Answer, Contest};
use crate::exit;
use crate::input::Source;
use crate::judging::{Explored, Judge};
use crate::kernel::quoted;
use crate::proof::{self, Counts, Proof};
use crate::verdicts::{Verdicts, told, undecided, union};
use anyhow::Result;
use moire_explore::Limits;
use moire_explore::judge::Verdict;
use moire_program::loops::{free, unroll};
use std::collections::BTreeMap;

/// Most checks of an exploration with trip counts above the least ones.
const RAISED_CHECKS: u64 = 200_000;
/// Most checks of all explorations that confirm a proof.
const CONFIRMING_CHECKS: u64 = 50_000;

impl Judge<'_> {
    /// The answer for a litmus text with loops.
    pub(crate) fn looped(&self, source: Source) -> Result<Answer> {
        let counts = proof::given(&self.question.trips, &source.program)?;
        let unasked = |source: &Source, verdict| self.untried(source, &undecided(verdict));
        if free(&source.program).is_empty() || !counts.is_empty() {
            return match unrolled(&source, &counts) {
                Ok(source) => self.program(source),
                Err(verdict) => Ok(unasked(&source, verdict)),
            };
        }
        let (name, model) = (self.asked.name.as_str(), &self.asked.model);
        match Proof::new(&source.program, name, model, self.question) {
            Ok(proof) => self.proved(&source, proof),
            Err(why) => Ok(unasked(&source, Verdict::Abstained(why))),
        }
    }

    fn proved(&self, source: &Source, mut proof: Proof) -> Result<Answer> {
        let mut answer = match self.confirmed(source, &mut proof)? {
            Some(explored) => self.noted(explored, None, self.limits(), None),
            None => self.unexplored(source, &proof),
        };
        for part in &mut answer.parts {
            part.verdicts.0 = proof.verdicts(&part.verdicts.0);
            let unsure = part.conditions.iter_mut().filter(|c| c.execution.is_none());
            unsure.filter(|_| part.verdicts.is_incomplete()).for_each(|c| c.holds = None);
        }
        let operational = Some(proof.told(&quoted(&answer.file), &self.question.options()));
        Ok(Answer { operational, ..answer })
    }

    /// Explores the text with the trip counts of a finding, the least first, until the explorer finds something too. The
    /// exploration with the least ones is the answer if it never does.
    fn confirmed(&self, source: &Source, proof: &mut Proof) -> Result<Option<Vec<Explored>>> {
        if proof.is_clean() {
            return self.refuted(source, proof);
        }
        let mut first: Option<(Counts, Vec<Explored>)> = None;
        for counts in proof.trials() {
            let Ok(unrolled) = unrolled(source, &counts) else { continue };
            let limits = match first {
                None => *self.limits(),
                Some(_) => Limits { checks: self.limits().checks.min(RAISED_CHECKS), ..*self.limits() },
            };
            let explored = vec![self.explored(unrolled, &limits, true)?];
            if worst(&explored) == exit::FINDING {
                proof.explored(counts, true);
                return Ok(Some(explored));
            }
            let first = first.get_or_insert((counts, explored));
            if worst(&first.1) != exit::CLEAN {
                break;
            }
        }
        let Some((counts, explored)) = first else { return Ok(None) };
        proof.explored(counts, false);
        Ok(Some(explored))
    }

    /// Explores the text with the least trip counts, until the explorer finds something or the budget is spent.
    fn refuted(&self, source: &Source, proof: &mut Proof) -> Result<Option<Vec<Explored>>> {
        let mut left = self.limits().checks.min(CONFIRMING_CHECKS);
        for counts in proof.confirming() {
            let Ok(unrolled) = unrolled(source, &counts) else { continue };
            let limits = Limits { checks: left, ..*self.limits() };
            let explored = vec![self.explored(unrolled, &limits, false)?];
            if proof.confirmed(&counts, union(explored.iter().map(|e| &e.judgement.verdicts))) {
                return Ok(Some(explored));
            }
            left = left.saturating_sub(explored.iter().map(|e| e.judgement.summary.checks).sum());
            if left == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// The answer of the operational engine alone, with its verdicts under those contesting switches that it decides.
    fn unexplored(&self, source: &Source, proof: &Proof) -> Answer {
        let own = proof.verdicts(&[]);
        let contest = |(setting, model): &(String, moire_cat::Model)| {
            let verdicts = Verdicts(proof::verdicts(&source.program, &self.asked.name, model));
            let differs = !verdicts.is_incomplete() && verdicts.words() != Verdicts(own.clone()).words();
            differs.then(|| Contest { setting: setting.clone(), verdicts })
        };
        let contested = self.asked.others.iter().filter_map(contest).collect();
        Answer { contested, ..self.untried(source, &told(own.clone())) }
    }
}

/// The exit code of the worst verdict.
fn worst(explored: &[Explored]) -> u8 {
    exit::worst(explored.iter().flat_map(|e| &e.judgement.verdicts).map(Verdict::exit_code))
}

/// The text with copies of the loop bodies, as many as the trip counts say.
fn unrolled(source: &Source, counts: &BTreeMap<String, Vec<u32>>) -> Result<Source, Verdict> {
    let program = unroll(source.written(), counts).map_err(|why| Verdict::Abstained(why.to_string()))?;
    Ok(Source::new(&source.name, program, &source.text))
}
