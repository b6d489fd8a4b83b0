//! The metamorphic oracle: changes to a program whose effect on its outcomes is known without running it.
//!
//! One more fence, a stronger order or a wider scope adds no outcome. Threads in another order have as many executions and
//! as many outcomes. Items take turns with the changes; a claim is tried with every change, so that it does not depend on
//! its item.

use super::about::{About, Takes};
use super::abstained_or_holds;
use super::abstention::Abstention;
use super::answer::{Answer, explored_planted};
use super::case::{Case, Context, explored_each};
use super::litmus::{Broken, Rule};
use crate::direction::Direction;
use crate::job::Claim;
use moire_cat::Model;
use moire_execution::leaf::Outcome;
use moire_program::ir::*;
use std::sync::Arc;

/// Number of different changes; item indices take turns.
const CHANGES: u64 = 24;

/// The metamorphic oracle.
#[derive(Debug)]
pub(super) struct Metamorphic;

/// Facts about the oracle.
const METAMORPHIC: About =
    About { name: "metamorphic", takes: Takes::Programs, by_default: true, under_models: true, tool: None };

impl Rule for Metamorphic {
    const ABOUT: &'static About = &METAMORPHIC;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let answers = case.answers();
        let Some((spec, answer)) = answers.last() else { return Vec::new() };
        let model = case.context.models.get(spec).map_err(Abstention::from);
        let found = model.and_then(|m| broken(program, (spec, &m), answer, case.item.index, case.context));
        case.context.cancel.tick();
        match found {
            Ok(found) => found.into_iter().map(|b| (Arc::clone(program), b)).collect(),
            Err(why) => {
                case.abstain(&why.at(METAMORPHIC.name));
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
        let [spec] = specs.as_slice() else { return Err(Abstention::FORM) };
        let answered = explored_each(program, &specs, context).pop();
        let (_, answer) = answered.ok_or(Abstention::CANCELLED)?;
        let (answer, model) = (answer?, context.models.get(spec)?);
        let mut abstained: Vec<Abstention> = answer.cut.then_some(Abstention::CUT).into_iter().collect();
        for turn in 0..CHANGES {
            if context.cancel.is_cancelled() {
                return Err(Abstention::CANCELLED);
            }
            match broken(program, (spec, &model), &answer, turn, context) {
                Ok(Some(broken)) if broken.direction == claim.direction => return Ok(Some(broken)),
                Ok(_) => {}
                Err(why) => abstained.push(why.at(METAMORPHIC.name)),
            }
            context.cancel.tick();
        }
        abstained_or_holds(abstained)
    }
}

/// The rule that one change of `program` breaks under `model`.
fn broken(
    program: &Program,
    (spec, model): (&str, &Model),
    answer: &Answer,
    index: u64,
    context: Context<'_>,
) -> Result<Option<Broken>, Abstention> {
    if answer.undefined || answer.cut {
        return Ok(None);
    }
    let turn = index % CHANGES;
    let of = |direction| Broken::of(direction, vec![spec.to_owned()], Vec::new());
    if turn.is_multiple_of(4) {
        let mut other = program.clone();
        other.threads.reverse();
        other.conditions.clear();
        other.filter = None;
        let permuted = explored_planted(&other, model, context.planted)?;
        let same =
            permuted.leaves.len() == answer.leaves.len() && permuted.outcomes.len() == answer.outcomes.len();
        return Ok((!same).then(|| of(Direction::Equal)));
    }
    let Some(stronger) = strengthen(program, turn) else { return Ok(None) };
    let after = explored_planted(&stronger, model, context.planted)?;
    if after.undefined || after.cut {
        return Ok(None);
    }
    let added: Option<&Outcome> = after.outcomes.difference(&answer.outcomes).next();
    Ok(added.map(|_| of(Direction::Subset)))
}

/// The program with one thing made stronger; which one depends on `turn`.
fn strengthen(program: &Program, turn: u64) -> Option<Program> {
    let mut sites = Vec::new();
    for (t, thread) in program.threads.iter().enumerate() {
        for pc in 0..thread.body.len() {
            if turn % 4 == 1 || stronger(&thread.body[pc].op, turn % 4 == 2).is_some() {
                sites.push((t, pc));
            }
        }
    }
    let (t, pc) = *sites.get(usize::try_from(turn / 4).ok()? % sites.len().max(1))?;
    let mut out = program.clone();
    let thread = &mut out.threads[t];
    if turn % 4 == 1 {
        let fence = Op::Fence { order: FenceOrder::Sc, scope: Scope::Sys };
        thread.body.insert(pc, Instr::new(fence));
        for label in thread.labels.iter_mut().filter(|l| l.at > pc) {
            label.at += 1;
        }
        for instr in &mut thread.body {
            if let Op::Bra { target } = &mut instr.op
                && *target > pc
            {
                *target += 1;
            }
        }
    } else {
        thread.body[pc].op = stronger(&thread.body[pc].op, turn % 4 == 2)?;
    }
    Some(out)
}

/// The operation with the next stronger order, or (with `wider`) at system scope. Weak accesses stay weak: a strong one also
/// takes part in coherence, which is a different rule.
fn stronger(op: &Op, wider: bool) -> Option<Op> {
    let plain = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. });
    let forms = if wider { op.wider() } else { op.stronger() };
    forms.into_iter().last().filter(|_| plain)
}
