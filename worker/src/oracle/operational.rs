//! The operational oracle: the operational engine and the explorer give the same verdict.
//!
//! Each program of the streams `protocol` and `kernel` is compared under the letter or under the practice profile, in turns, and so
//! are a few mutants of it. A program that is given as text is compared under both. The rule is broken where the verdicts differ,
//! or where the operational engine finds a kind of mistake that the explorer does not (`crate::agreement`). A run that
//! breaks one of the conditions D1 to D5 proves nothing and breaks no rule.

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::answer::limits;
use super::case::{Case, Context};
use super::litmus::{Broken, Rule};
use crate::agreement::{Agreement, Kinds, compare_planted, drawn_mutant};
use crate::direction::Direction;
use crate::job::{Claim, Source};
use moire_cat::Model;
use moire_explore::Limits;
use moire_generate::Profile;
use moire_operate::Planted;
use moire_program::ir::Program;
use moire_program::validate::is_illegal;
use std::sync::Arc;

/// Facts about the oracle.
const OPERATIONAL: About =
    About { name: "operational", takes: Takes::Programs, by_default: true, under_models: true, tool: None };
/// The readings under which programs are compared.
const SPECS: [&str; 2] = ["ptx", "ptx:profile=practice"];
/// The work of an exploration: a check costs about the square of the number of instructions.
const WORK: u64 = 1 << 27;
/// Mutants tried for each item.
const MUTANTS_TRIED: u64 = 2;

/// The operational oracle, for this bug of the operational engine.
#[derive(Debug, Default)]
pub(super) struct Operational(pub(super) Option<Planted>);

impl Rule for Operational {
    const ABOUT: &'static About = &OPERATIONAL;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        match &case.item.source {
            Source::Text(_) => {
                let one = |spec: &&str| {
                    let broken = self.tried(program, spec, case.context).ok().flatten()?;
                    Some((Arc::clone(program), broken))
                };
                SPECS.iter().filter_map(one).collect()
            }
            Source::Generated { seed, profile, index }
                if [Profile::Protocol, Profile::Kernel].iter().any(|own| profile == own.name()) =>
            {
                self.drawn(case, program, *seed, *index)
            }
            Source::Generated { .. } => Vec::new(),
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
        if claim.direction != Direction::Equal {
            return Err(Abstention::FORM);
        }
        self.tried(program, spec, context)
    }
}

impl Operational {
    /// The broken rules of a protocol and a few of its mutants. A reason for abstaining is counted once.
    fn drawn(
        &self,
        case: &mut Case<'_>,
        program: &Arc<Program>,
        seed: u64,
        index: u64,
    ) -> Vec<(Arc<Program>, Broken)> {
        let mutants =
            (0..MUTANTS_TRIED).filter_map(|n| drawn_mutant(program, index * MUTANTS_TRIED + n, seed));
        let mutants = mutants.filter(|mutant| !is_illegal(mutant)).map(Arc::new);
        let spec = SPECS[usize::from(!index.is_multiple_of(2))];
        let mut out = Vec::new();
        for program in std::iter::once(Arc::clone(program)).chain(mutants) {
            if case.context.cancel.is_cancelled() {
                break;
            }
            match self.tried(&program, spec, case.context) {
                Ok(broken) => out.extend(broken.map(|broken| (program, broken))),
                Err(why) => case.abstain(&why.at(OPERATIONAL.name)),
            }
            case.context.cancel.tick();
        }
        out
    }

    /// Compares both engines on a program.
    fn tried(
        &self,
        program: &Program,
        spec: &str,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let model: Arc<Model> = context.models.get(spec)?;
        match compare_planted(program, &model, &affordable(program), self.0) {
            Agreement::Abstained(why) | Agreement::Undecided(why) => Err(Abstention::Undecided(why)),
            Agreement::Different { operational, explorer } => {
                let cause = format!(
                    "operational engine {}, explorer {}",
                    words(&operational.words()),
                    if explorer.is_empty() { "clean".to_owned() } else { words(&explorer) }
                );
                let models = vec![spec.to_owned()];
                Ok(Some(Broken::of(Direction::Equal, models, vec![cause])))
            }
            Agreement::Same | Agreement::Fewer { .. } | Agreement::Broken { .. } => Ok(None),
        }
    }
}

/// The limits of an exploration that ends long before a lease counts as stuck.
fn affordable(program: &Program) -> Limits {
    let size = program.threads.iter().map(|t| t.body.len() as u64).sum::<u64>().max(1);
    let usual = limits();
    Limits { checks: usual.checks.min(WORK / (size * size)), ..usual }
}

fn words(kinds: &Kinds) -> String {
    kinds.iter().copied().collect::<Vec<_>>().join("+")
}
