//! The model-pair oracle: outcomes under one model against outcomes under another.
//!
//! Sequential consistency is the strongest model there is, so every other must allow its outcomes. Two versions of
//! one model may differ: the difference is shown and is no bug. A program to which a model gives no meaning may have any
//! outcome under it, so such a pair is not compared; neither are answers cut at the loop bound.

use super::about::{About, Takes};
use super::abstained_or_holds;
use super::abstention::Abstention;
use super::answer::Answer;
use super::case::{Case, Context, explored_each};
use super::litmus::{Broken, Rule};
use crate::direction::Direction;
use crate::job::Claim;
use moire_execution::leaf::Outcome;
use moire_program::ir::Program;
use std::sync::Arc;

/// The model-pair oracle.
#[derive(Debug)]
pub(super) struct ModelPair;

/// Facts about the oracle.
const MODEL_PAIR: About =
    About { name: "model-pair", takes: Takes::Programs, by_default: true, under_models: true, tool: None };

impl Rule for ModelPair {
    const ABOUT: &'static About = &MODEL_PAIR;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        broken(&case.answers()).into_iter().map(|b| (Arc::clone(program), b)).collect()
    }

    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let specs = claim.specs();
        if specs.len() != 2 {
            return Err(Abstention::FORM);
        }
        let (mut answers, mut abstained) = (Vec::new(), Vec::new());
        for (spec, answer) in explored_each(program, &specs, context) {
            match answer {
                Ok(answer) => answers.push((spec, answer)),
                Err(why) => abstained.push(why),
            }
        }
        let same = |b: &Broken| b.direction == claim.direction && b.models == specs;
        match broken(&answers).into_iter().find(same) {
            Some(broken) => Ok(Some(broken)),
            None => {
                abstained.extend(answers.iter().any(|(_, a)| a.cut).then_some(Abstention::CUT));
                abstained_or_holds(abstained)
            }
        }
    }
}

/// Every broken rule between the answers; neighbours in the list are compared.
fn broken(answers: &[(String, Answer)]) -> Vec<Broken> {
    let mut out = Vec::new();
    for pair in answers.windows(2) {
        let [(a, left), (b, right)] = pair else { continue };
        if left.undefined || right.undefined || left.cut || right.cut {
            continue;
        }
        let strong = |spec: &str| spec == "sc" || spec.starts_with("sc:");
        let lost: Option<&Outcome> = left.outcomes.difference(&right.outcomes).next();
        let gained = right.outcomes.difference(&left.outcomes).next();
        let models = vec![a.clone(), b.clone()];
        let (direction, outcome) = match (strong(a), lost, gained) {
            (true, Some(lost), _) => (Direction::Subset, (0, lost.clone())),
            (false, Some(lost), _) => (Direction::Difference, (0, lost.clone())),
            (false, None, Some(gained)) => (Direction::Difference, (1, gained.clone())),
            _ => continue,
        };
        out.push(Broken { direction, models, outcome: Some(outcome), causes: Vec::new(), witness: None });
    }
    out
}
