//! The patterns oracle: protocols and kernels built from the documented patterns are clean, and a mistake in one shows.
//!
//! A protocol or a kernel that is not clean breaks a property. A few mutants of a protocol are tried for each item; a kernel of the
//! stream is right itself, or its own only mutant. A mutant that the explorer
//! calls clean must be clean for the enumerator too (an equivalent mutant), unless it is too large for the enumerator.
//! Each mutant is a row of the item's report, from which a campaign counts how many mistakes were found. The verdict of the
//! row is that of the first execution that is not clean.
//!
//! A finding of this oracle is not minimised, because part of a protocol is no protocol. Mutants that are too large for
//! the enumerator count as missed.

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::answer::{self, Answer, CLEAN};
use super::case::{Case, Context};
use super::litmus::{Broken, Rule};
use crate::direction::Direction;
use crate::job::{Claim, EngineReport, Source};
use moire_cat::Model;
use moire_explore::planted::Planted;
use moire_generate::protocol::{Mutant, Mutation, Protocol, mutants};
use moire_generate::{Profile, Stream};
use moire_program::ir::Program;
use std::sync::Arc;

/// Facts about the oracle.
pub const PATTERNS: About =
    About { name: "patterns", takes: Takes::Programs, by_default: true, under_models: false, tool: None };
/// Starts the name of a mutant's row; the mutation follows.
pub const MUTANT: &str = "mutant/";
/// The model the patterns are documented for.
const MODEL: &str = "ptx";
/// Mutants tried for each item.
const MUTANTS_TRIED: usize = 4;

/// The patterns oracle.
#[derive(Debug)]
pub(super) struct Patterns;

impl Rule for Patterns {
    const ABOUT: &'static About = &PATTERNS;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let Source::Generated { seed, profile, index } = &case.item.source else { return Vec::new() };
        let (Ok(model), Ok(profile)) = (case.context.models.get(MODEL), profile.parse::<Profile>()) else {
            return Vec::new();
        };
        let stream = Stream::new(*seed, profile);
        match (stream.protocol(*index), stream.module(*index)) {
            (Some(protocol), _) => tried(&protocol, &model, case),
            (None, Some(kernel)) => match kernel.weakened {
                Some(weaker) => mistaken(program, weaker.mutation, &model, case).into_iter().collect(),
                None => right(program, &model, case).into_iter().collect(),
            },
            (None, None) => Vec::new(),
        }
    }

    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let found = broken(program, &*context.models.get(MODEL)?, context.planted)?;
        Ok(found.filter(|b| b.direction == claim.direction))
    }

    /// Part of a protocol, or of a kernel, is none and may well be wrong.
    fn is_reducible(&self, claim: &Claim) -> bool {
        claim.direction != Direction::Property
    }
}

/// The rules that a protocol and a few of its mutants break, with the programs that show it.
fn tried(protocol: &Protocol, model: &Model, case: &mut Case<'_>) -> Vec<(Arc<Program>, Broken)> {
    let mut out = Vec::new();
    let Some(program) = protocol.program() else {
        case.abstain(&Abstention::Unusable("a protocol that does not read").at(PATTERNS.name));
        return out;
    };
    if case.context.cancel.is_cancelled() {
        return out;
    }
    out.extend(right(&Arc::new(program), model, case));
    for mutant in chosen(protocol, case.item.index) {
        if case.context.cancel.is_cancelled() {
            return out;
        }
        case.context.cancel.tick();
        let Some(program) = mutant.protocol.program().map(Arc::new) else { continue };
        out.extend(mistaken(&program, mutant.mutation, model, case));
    }
    out
}

/// The rule that the program of the item breaks, which is that of something right.
fn right(program: &Arc<Program>, model: &Model, case: &mut Case<'_>) -> Option<(Arc<Program>, Broken)> {
    let said = case.said(MODEL).unwrap_or_else(|| {
        let answer = answer::explored_planted(program, model, case.context.planted)?;
        case.report.engines.push(answer.report(PATTERNS.name));
        Ok(answer.verdict())
    });
    match said {
        Ok(verdict) if verdict == CLEAN => None,
        Ok(verdict) => Some((Arc::clone(program), rule(Direction::Property, verdict))),
        Err(why) => {
            case.abstain(&why.at(PATTERNS.name));
            None
        }
    }
}

/// The row of a mutant, and the rule that it breaks.
fn mistaken(
    program: &Arc<Program>,
    mutation: Mutation,
    model: &Model,
    case: &mut Case<'_>,
) -> Option<(Arc<Program>, Broken)> {
    let answer = match answer::first_wrong(program, model) {
        Ok(answer) => answer,
        Err(why) => {
            case.abstain(&why.at(PATTERNS.name));
            return None;
        }
    };
    let (verdict, broken) = judged(program, model, &answer);
    let engine = format!("{MUTANT}{}", mutation.name());
    case.report.engines.push(EngineReport { verdict, ..answer.report(&engine) });
    Some((Arc::clone(program), broken?))
}

/// The verdict on a mutant. One that only the explorer calls clean breaks the rule.
fn judged(program: &Program, model: &Model, explored: &Answer) -> (String, Option<Broken>) {
    let verdict = explored.verdict();
    if verdict != CLEAN {
        return (verdict, None);
    }
    match answer::enumerated(program, model) {
        Ok(naive) if naive.verdict() == CLEAN => ("equivalent".into(), None),
        Ok(naive) => ("discrepancy".into(), Some(rule(Direction::Equal, naive.verdict()))),
        Err(_) => ("clean, unconfirmed".into(), None),
    }
}

fn rule(direction: Direction, cause: String) -> Broken {
    Broken::of(direction, vec![MODEL.into()], vec![cause])
}

/// A few mutants of the protocol; they differ from index to index.
fn chosen(protocol: &Protocol, index: u64) -> Vec<Mutant> {
    let all = mutants(protocol);
    let start = usize::try_from(index.wrapping_mul(0x9e37_79b9) % 0xffff).expect("below 2^16");
    let step = (all.len() / MUTANTS_TRIED).max(1);
    (0..MUTANTS_TRIED.min(all.len())).map(|n| all[(start + n * step) % all.len()].clone()).collect()
}

/// The rule that a program breaks, judged from its text alone.
fn broken(program: &Program, model: &Model, bug: Option<Planted>) -> Result<Option<Broken>, Abstention> {
    let explored = answer::explored_planted(program, model, bug)?.verdict();
    if explored != CLEAN {
        return Ok(Some(rule(Direction::Property, explored)));
    }
    let naive = answer::enumerated(program, model)?.verdict();
    Ok((naive != CLEAN).then(|| rule(Direction::Equal, naive)))
}
