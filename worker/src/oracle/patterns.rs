//! The patterns oracle: protocols built from the documented patterns are clean, and a mistake in one shows.
//!
//! A protocol that is not clean breaks a property. A few of its mutants are tried for each item. A mutant that the explorer
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
use moire_generate::protocol::{Mutant, Protocol, mutants};
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

    fn item(&self, case: &mut Case<'_>, _program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let Source::Generated { seed, profile, index } = &case.item.source else { return Vec::new() };
        let (Ok(model), Ok(profile)) = (case.context.models.get(MODEL), profile.parse::<Profile>()) else {
            return Vec::new();
        };
        let protocol = Stream::new(*seed, profile).protocol(*index);
        protocol.map(|protocol| tried(&protocol, &model, case)).unwrap_or_default()
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

    /// Part of a protocol is not a protocol and may well be wrong.
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
    // The program of the item is that of the protocol.
    let said = case.said(MODEL).unwrap_or_else(|| {
        answer::explored_planted(&program, model, case.context.planted).map(|answer| answer.verdict())
    });
    match said {
        Ok(verdict) if verdict == CLEAN => {}
        Ok(verdict) => out.push((Arc::new(program), rule(Direction::Property, verdict))),
        Err(why) => case.abstain(&why.at(PATTERNS.name)),
    }
    for mutant in chosen(protocol, case.item.index) {
        if case.context.cancel.is_cancelled() {
            return out;
        }
        case.context.cancel.tick();
        let Some(program) = mutant.protocol.program().map(Arc::new) else { continue };
        match answer::first_wrong(&program, model) {
            Err(why) => case.abstain(&why.at(PATTERNS.name)),
            Ok(answer) => {
                let verdict = judged(&program, model, &answer, &mut out);
                let engine = format!("{MUTANT}{}", mutant.mutation.name());
                case.report.engines.push(EngineReport { verdict, ..answer.report(&engine) });
            }
        }
    }
    out
}

/// The verdict on a mutant. One that only the explorer calls clean breaks the rule.
fn judged(
    program: &Arc<Program>,
    model: &Model,
    explored: &Answer,
    out: &mut Vec<(Arc<Program>, Broken)>,
) -> String {
    let verdict = explored.verdict();
    if verdict != CLEAN {
        return verdict;
    }
    match answer::enumerated(program, model) {
        Ok(naive) if naive.verdict() == CLEAN => "equivalent".into(),
        Ok(naive) => {
            out.push((Arc::clone(program), rule(Direction::Equal, naive.verdict())));
            "discrepancy".into()
        }
        Err(_) => "clean, unconfirmed".into(),
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
