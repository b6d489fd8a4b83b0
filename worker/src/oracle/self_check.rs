//! The self oracle: the explorer and the naive enumerator give the same answer to every program.
//!
//! Both run under the last model of the plan. The rule is broken where their leaf keys, final states or flags differ.
//! The canaries of a campaign run here too, because they need the enumerator's answer.

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::case::{Case, Context, explored_each};
use super::litmus::{Broken, Rule};
use super::{answer, canary};
use crate::direction::Direction;
use crate::job::Claim;
use moire_program::ir::Program;
use std::sync::Arc;

/// The self oracle.
#[derive(Debug)]
pub(super) struct SelfCheck;

/// Facts about the oracle.
const SELF: About =
    About { name: "self", takes: Takes::Programs, by_default: true, under_models: true, tool: None };

fn broken(spec: &str) -> Broken {
    Broken { direction: Direction::Equal, models: vec![spec.to_owned()], outcome: None, cause: None }
}

impl Rule for SelfCheck {
    const ABOUT: &'static About = &SELF;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let answers = case.answers();
        let Some((spec, answer)) = answers.last() else { return Vec::new() };
        let model = case.context.models.get(spec).map_err(Abstention::from);
        let naive = model.and_then(|m| answer::enumerated(program, &m));
        case.context.cancel.tick();
        match naive {
            Ok(naive) => {
                case.report.engines.push(naive.report(&format!("naive/{spec}")));
                if case.item.plan.canaries && spec == canary::MODEL {
                    case.report.canaries = canary::run(program, case.item.index, &naive);
                }
                let same = naive.leaves == answer.leaves;
                if same { Vec::new() } else { vec![(Arc::clone(program), broken(spec))] }
            }
            Err(why) => {
                case.abstain(&why.at(SELF.name));
                Vec::new()
            }
        }
    }

    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let specs = claim.specs();
        let [spec] = specs.as_slice() else { return Ok(None) };
        let Some((_, answer)) = explored_each(program, &specs, context).pop() else { return Ok(None) };
        let (answer, model) = (answer?, context.models.get(spec)?);
        let naive = answer::enumerated(program, &model).map_err(|why| why.at(SELF.name))?;
        context.cancel.tick();
        Ok((claim.direction == Direction::Equal && naive.leaves != answer.leaves).then(|| broken(spec)))
    }
}
