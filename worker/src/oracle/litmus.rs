//! Rules about litmus programs. They share how a claim is made, verified and reduced.
//!
//! A claim is made from the program and the broken rule alone. To verify it, its text is read and the rule tried again.
//! To reduce it, the reducer of `moire_program::reduce` removes parts while the rule stays broken in the same way; the
//! claim on what is left says which sets of checks forbid the outcome (see [`super::blame`]).

use super::about::About;
use super::abstention::Abstention;
use super::case::{Case, Context};
use super::evidence::Evidence;
use super::{CRASH, Oracle, answer, blame, unread, verification};
use crate::direction::Direction;
use crate::job::{Budget, Claim, Part, Parted, Reduced, Side, Verification};
use moire_execution::leaf::Outcome;
use moire_program::ir::Program;
use moire_program::reduce::{Limits, minimise};
use moire_program::text::{Format, parse, print};
use std::sync::Arc;

/// A rule about litmus programs.
pub(super) trait Rule: std::fmt::Debug + Send + Sync {
    /// Facts about the oracle.
    const ABOUT: &'static About;

    /// Tries the rule on an item; returns how it is broken, each time with the program that shows it.
    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)>;

    /// Tries the rule of a claim on a program; returns how it is broken if that is the claim's way.
    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention>;

    /// Whether parts of the claim's program are worth a try.
    fn is_reducible(&self, _claim: &Claim) -> bool {
        true
    }

    /// See [`Oracle::evidence`].
    fn shown(&self, _claim: &Claim) -> Option<Result<Evidence, Abstention>> {
        None
    }

    /// See [`Oracle::is_here`].
    fn has_tool(&self) -> bool {
        true
    }

    /// See [`Oracle::capabilities`].
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`Oracle::tool_version`].
    fn version_of(&self, _spec: &str) -> Option<Result<String, Abstention>> {
        None
    }
}

/// A broken rule, before it becomes a claim.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) direction: Direction,
    /// Model specifications, in the order in which the rule names them.
    pub(super) models: Vec<String>,
    /// The side whose outcome is wrong or extra, as a position in `models`, and that outcome.
    pub(super) outcome: Option<(usize, Outcome)>,
    /// The parts of the rule that are broken, where the oracle can name them. [`CRASH`] and its name: the tool died.
    pub(super) causes: Vec<String>,
    /// What shows the outcome, where that is no execution of a model.
    pub(super) witness: Option<String>,
}

impl Broken {
    /// A rule that no outcome of one side breaks.
    pub(super) fn of(direction: Direction, models: Vec<String>, causes: Vec<String>) -> Broken {
        Broken { direction, models, outcome: None, causes, witness: None }
    }

    /// The checks to blame, where no outcome says more.
    pub(super) fn causes(&self) -> Vec<Vec<String>> {
        self.causes.iter().map(|c| vec![c.clone()]).collect()
    }

    fn claim<R: Rule>(&self, program: &Program, context: Context<'_>) -> Claim {
        let witness = self.outcome.as_ref().and_then(|(side, outcome)| {
            let spec = self.models.get(*side)?;
            let model = context.models.get(spec).ok()?;
            answer::witness(program, spec, &model, outcome)
        });
        Claim {
            oracle: R::ABOUT.name.into(),
            direction: self.direction,
            models: self.models.iter().map(|s| Side::of(s)).collect(),
            verdict: if self.causes.first().is_some_and(|c| c == CRASH) { CRASH } else { "discrepancy" }
                .into(),
            program: print(program),
            witness: self.witness.clone().or(witness).unwrap_or_default(),
            axioms: self.causes(),
        }
    }

    /// Minimal sets of checks of the stricter side whose removal admits the outcome.
    fn blamed(&self, program: &Program, context: Context<'_>) -> Vec<Vec<String>> {
        let Some((side, outcome)) = &self.outcome else { return self.causes() };
        let stricter = self.models.iter().enumerate().find(|(i, _)| i != side).map(|(_, spec)| spec);
        let Some(model) = stricter.and_then(|spec| context.models.get(spec).ok()) else { return Vec::new() };
        blame::minimal_sets(program, &model, outcome)
    }
}

/// Whether the rule of a claim is broken by a candidate; no candidate counts once the job is cancelled.
fn holds<R: Rule>(rule: &R, claim: &Claim, candidate: &Program, context: Context<'_>) -> bool {
    context.cancel.tick();
    !context.cancel.is_cancelled() && matches!(rule.again(claim, candidate, context), Ok(Some(_)))
}

impl<R: Rule> Oracle for R {
    fn about(&self) -> &'static About {
        R::ABOUT
    }

    fn run(&self, case: &mut Case<'_>) -> Vec<Claim> {
        let Some(program) = case.program.clone() else { return Vec::new() };
        let broken = self.item(case, &program);
        broken.iter().map(|(program, b)| b.claim::<R>(program, case.context)).collect()
    }

    fn verify(&self, claim: &Claim, context: Context<'_>) -> Verification {
        let program = parse(&claim.program, Format::Native).map_err(unread);
        verification(program.and_then(|program| self.again(claim, &program, context)))
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        context: Context<'_>,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        let Ok(program) = parse(&claim.program, Format::Native) else {
            return Reduced { claim: claim.clone(), tried: 0, normal: false };
        };
        if !self.is_reducible(claim) {
            return Reduced { claim: claim.clone(), tried: 0, normal: true };
        }
        // A budget beyond what this machine can count is no limit here.
        let limits = Limits { tried_max: usize::try_from(budget.candidates).unwrap_or(usize::MAX) };
        let shrunk = minimise(&program, |candidate| holds(self, claim, candidate, context), limits);
        let normal = shrunk.complete && !context.cancel.is_cancelled();
        let mut reduced = claim.clone();
        if let Ok(Some(broken)) = self.again(claim, &shrunk.program, context) {
            reduced = broken.claim::<R>(&shrunk.program, context);
            reduced.axioms = broken.blamed(&shrunk.program, context);
        }
        progress(&reduced);
        Reduced { claim: reduced, tried: shrunk.tried as u64, normal }
    }

    fn part(&self, claim: &Claim, part: &Part, context: Context<'_>) -> Option<Parted> {
        Parted::of(claim, part, |candidate| holds(self, claim, candidate, context))
    }

    fn evidence(&self, claim: &Claim, _context: Context<'_>) -> Option<Result<Evidence, Abstention>> {
        self.shown(claim)
    }

    fn is_here(&self) -> bool {
        self.has_tool()
    }

    fn capabilities(&self) -> Vec<String> {
        Rule::capabilities(self)
    }

    fn tool_version(&self, spec: &str) -> Option<Result<String, Abstention>> {
        self.version_of(spec)
    }
}
