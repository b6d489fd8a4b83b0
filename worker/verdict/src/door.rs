//! The front door: two engines are asked about each program.
//!
//! Contract: the operational engine is asked first. It needs milliseconds, or abstains by name. Then the explorer is asked,
//! within less work if the other one found nothing: there, one run stands for all, and the explorer may have to visit
//! very many executions. Where both answer, they agree, or the difference is told; only what has an execution stands then. Where the explorer
//! does not finish, the other one answers. What the explorer abstains from by name stays abstained. Conditions are the explorer's alone.

use crate::exit;
use crate::input::Source;
use crate::judging::{Explored, Judge};
use crate::launches::wide_price;
use crate::proof::{self, Mistake};
use crate::verdicts::Verdicts;
use anyhow::Result;
use moire_cat::Model;
use moire_explore::judge::{About, Judgement, Questions, Verdict};
use moire_explore::search::Sample;
use moire_explore::{Limits, TOO_WIDE};
use moire_operate::Outcome;
use schemars::JsonSchema;
use serde::Serialize;

/// The work of the explorer where the operational engine finds nothing: some seconds at most.
const CONFIRMING_WORK: u64 = 1 << 27;
/// The least work of a check.
const LEAST_PRICE: u64 = 1 << 10;

/// What the operational engine says of a program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Second {
    /// Its verdicts, or why it abstains.
    pub verdicts: Verdicts,
    /// Instructions that it executed.
    pub steps: u64,
    /// What it finds.
    pub findings: Vec<Mistake>,
    /// Which engine answered.
    pub answered: Answered,
}

/// The engines that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// Both, and they agree.
    Both,
    /// The explorer alone.
    Explorer,
    /// The operational engine alone.
    Operational,
    /// Neither, because they differ.
    Neither,
}

impl Second {
    fn new(said: Result<Outcome, String>) -> Self {
        let (verdicts, outcome) = match said {
            Ok(outcome) => (proof::verdicts_of(&outcome), outcome),
            Err(why) => (vec![Verdict::Abstained(why)], Outcome::default()),
        };
        Second {
            verdicts: Verdicts(verdicts),
            steps: outcome.steps,
            findings: proof::mistakes(&outcome),
            answered: Answered::Explorer,
        }
    }

    fn is_clean(&self) -> bool {
        matches!(self.verdicts.0[..], [Verdict::Clean(_)])
    }

    /// Which engine answers a program with this judgement of the explorer.
    fn answers(&self, explorer: &Judgement) -> Answered {
        let explorer_said = Verdicts(explorer.verdicts.clone());
        let wrong = |verdicts: &Verdicts| verdicts.0.iter().any(of_both);
        if self.verdicts.is_incomplete() && !wrong(&self.verdicts) {
            return Answered::Explorer;
        }
        if explorer.verdicts.iter().any(names_a_construct) {
            return Answered::Explorer;
        }
        match (wrong(&self.verdicts), wrong(&explorer_said), explorer_said.is_incomplete()) {
            (true, true, _) | (false, false, false) => Answered::Both,
            (true, false, true) => Answered::Operational,
            (false, false, true) if explorer.conditions.is_empty() && !explorer_said.has_finding() => {
                Answered::Operational
            }
            (false, false, true) => Answered::Explorer,
            // What has no meaning has no run that stands for all.
            (true, false, false) if explorer_said.has_finding() => Answered::Explorer,
            (true, false, false) | (false, true, _) => Answered::Neither,
        }
    }
}

/// Whether both engines know this kind of mistake.
fn of_both(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Race | Verdict::Hang | Verdict::Lifetime | Verdict::Protocol)
}

/// Whether the explorer abstains from something that stands in the program, and not from its size.
fn names_a_construct(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Abstained(why) if !why.contains(TOO_WIDE))
}

impl Judge<'_> {
    /// Asks both engines about a program without free loops; with `telling`, what is found may be told at once.
    pub(crate) fn offered(&self, source: Source, limits: &Limits, telling: bool) -> Result<Explored> {
        let questions = Questions { witnesses: true, about: About::All };
        let (judgement, sample, second) =
            self.both(&source, &self.asked.model, limits, questions, telling)?;
        Ok(Explored { source, judgement, sample, second })
    }

    /// What both engines say of a program under a model. None of the operational engine beside random descents.
    pub(crate) fn both(
        &self,
        source: &Source,
        model: &Model,
        limits: &Limits,
        questions: Questions,
        telling: bool,
    ) -> Result<(Judgement, Option<Sample>, Option<Second>)> {
        let name = self.asked.name.as_str();
        let said = proof::run(&source.program, name, model).map(|(outcome, _)| outcome);
        let mut second = Second::new(said);
        // A check of a large program has wide rows, and many of them.
        let confirming = (CONFIRMING_WORK / wide_price(source).max(LEAST_PRICE)).max(1);
        let checks = if second.is_clean() { limits.checks.min(confirming) } else { limits.checks };
        let limits = Limits { checks, ..*limits };
        let (mut judgement, sample) = self.host.judge(source, (name, model), &limits, questions, telling)?;
        if sample.is_some() {
            return Ok((judgement, sample, None));
        }
        second.answered = second.answers(&judgement);
        let own = &mut judgement.verdicts;
        match second.answered {
            Answered::Both | Answered::Explorer => {}
            Answered::Operational => own.clone_from(&second.verdicts.0),
            Answered::Neither => {
                let (theirs, words) = (second.verdicts.words().join(", "), Verdicts(own.clone()).words());
                let words = words.join(", ");
                let why = format!(
                    "the engines differ: {theirs} for the operational engine, {words} for the explorer"
                );
                // What the explorer finds has an execution that shows it.
                own.retain(|v| v.exit_code() == exit::FINDING);
                own.push(Verdict::Abstained(why));
            }
        }
        Ok((judgement, None, Some(second)))
    }
}
