//! What becomes of programs with one mistake in their synchronisation.
//!
//! A mutant that is still clean is a question: is the instruction not needed, or does the explorer overlook something?
//! The enumerator answers it where the program is small enough for it. All others are counted, and named by reason.

use crate::differential::{Comparison, Difference, compare};
use moire_cat::Model;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::lanes::joined;
use moire_program::mutate::Mutant;
use moire_program::text::Severity;
use moire_program::validate::{RuleKind, rule, validate};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is no legal program.
    Illegal,
    /// The explorer finds something, and says it in this word.
    Caught(&'static str),
    /// It is clean, and the enumerator finds the same executions and flags.
    Confirmed,
    /// It is clean; the enumerator was not asked, for this reason.
    Unconfirmed(String),
    /// There is no verdict, for this reason.
    Undecided(String),
    /// Explorer and enumerator differ.
    Different(Box<Difference>),
}

/// Whether nothing is wrong with a program under a model.
pub fn is_clean(program: &Program, model: &Model, limits: &Limits) -> bool {
    matches!(verdicts(program, model, limits)[..], [Verdict::Clean(_)])
}

fn verdicts(program: &Program, model: &Model, limits: &Limits) -> Vec<Verdict> {
    judge(&joined(program), model, limits, Questions { witnesses: false, about: About::All }).verdicts
}

/// Whether NVIDIA's assembler would refuse it.
pub fn is_illegal(program: &Program) -> bool {
    let refused = |name: &str| rule(name).is_some_and(|r| r.kind != RuleKind::Lint);
    validate(program).iter().any(|d| d.severity == Severity::Error && d.rule.is_some_and(refused))
}

/// Judges a mutant; asks the enumerator if it is clean.
pub fn fate(mutant: &Mutant, model: &Model, limits: &Limits, naive: &NaiveLimits) -> Fate {
    let program = &mutant.program;
    if is_illegal(program) {
        return Fate::Illegal;
    }
    match verdicts(program, model, limits).as_slice() {
        [Verdict::Clean(_)] => match compare(program, model, naive) {
            Comparison::Same { .. } => Fate::Confirmed,
            Comparison::Skipped(reason) => Fate::Unconfirmed(reason),
            Comparison::Different(difference) => Fate::Different(Box::new(difference)),
        },
        all => match all.iter().find(|v| v.exit_code() == 10) {
            Some(wrong) => Fate::Caught(wrong.word()),
            None => Fate::Undecided(
                all.iter()
                    .map(|v| match v {
                        Verdict::Bounded(why) | Verdict::Abstained(why) => why.clone(),
                        other => other.word().to_owned(),
                    })
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
        },
    }
}
