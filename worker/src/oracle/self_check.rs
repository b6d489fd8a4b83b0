//! The self oracle: the explorer and the naive enumerator give the same answer to every program.
//!
//! Both run under the last model of the plan. The rule is broken where their leaf keys, final states or flags differ, and where
//! both find that the program has no execution at all: about such a program every question has every answer.
//! Programs of at most [`SMALL`] instructions are all enumerated. Of larger ones, one in [`SHARE`] is, drawn by its hash, because the
//! enumerator takes most of the time there and gives up on half of them. A claim is always enumerated.
//! The canaries of a campaign run here too, because they need the enumerator's answer.

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::answer::{self, Answer};
use super::canary;
use super::case::{Case, Context, explored_each};
use super::litmus::{Broken, Rule};
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

/// Most instructions of a program that is always enumerated.
const SMALL: usize = 32;

/// Of larger programs, one in so many is enumerated.
const SHARE: u8 = 16;

/// Whether a program with this hash is enumerated. The answer depends on the program alone.
fn drawn(program: &Program, hash: &[u8; 32]) -> bool {
    let size: usize = program.threads.iter().map(|t| t.body.len()).sum();
    size <= SMALL || hash[0].is_multiple_of(SHARE)
}

/// How the rule is broken, if it is.
fn broken(spec: &str, naive: &Answer, explored: &Answer) -> Option<Broken> {
    let cause = match naive.leaves != explored.leaves {
        true => None,
        false if explored.leaves.is_empty() && !explored.cut => Some("no execution".to_owned()),
        false => return None,
    };
    Some(Broken::of(Direction::Equal, vec![spec.to_owned()], cause.into_iter().collect()))
}

impl Rule for SelfCheck {
    const ABOUT: &'static About = &SELF;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let answers = case.answers();
        let Some((spec, answer)) = answers.last() else { return Vec::new() };
        if !drawn(program, &case.report.program) {
            case.abstain(&Abstention::NOT_DRAWN.at(SELF.name));
            return Vec::new();
        }
        let model = case.context.models.get(spec).map_err(Abstention::from);
        let naive = model.and_then(|m| answer::enumerated(program, &m));
        case.context.cancel.tick();
        match naive {
            Ok(naive) => {
                case.report.engines.push(naive.report(&format!("naive/{spec}")));
                if case.item.plan.canaries && spec == canary::MODEL {
                    case.report.canaries = canary::run(program, case.item.index, &naive);
                }
                let broken = broken(spec, &naive, answer).map(|b| (Arc::clone(program), b));
                broken.into_iter().collect()
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
        let ([spec], Direction::Equal) = (specs.as_slice(), claim.direction) else {
            return Err(Abstention::FORM);
        };
        let answered = explored_each(program, &specs, context).pop();
        let (_, answer) = answered.ok_or(Abstention::CANCELLED)?;
        let (answer, model) = (answer?, context.models.get(spec)?);
        let naive = answer::enumerated(program, &model).map_err(|why| why.at(SELF.name))?;
        context.cancel.tick();
        let same = |b: &Broken| claim.direction == b.direction && claim.axioms == b.causes();
        Ok(broken(spec, &naive, &answer).filter(same))
    }
}
