//! What becomes of programs with one mistake in their synchronisation.
//!
//! A mutant that is still clean is a question: is the instruction not needed, or does the explorer overlook something?
//! A thread for each lane, the enumerator and the operational engine answer it where the program is small enough for them
//! and has nothing that they abstain from. All others are counted, and named by reason.

use crate::differential::joined::{Compared, compare_joined};
use crate::differential::{Comparison, Difference, compare};
use moire_cat::Model;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::lanes::{joined, literal};
use moire_program::mutate::Mutant;
use moire_program::validate::is_illegal;
use moire_worker::agreement::{self, Agreement, MODEL, unquestioned};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is no legal program.
    Illegal,
    /// The explorer finds something, and says it in this word.
    Caught(&'static str),
    /// It is clean, and this second witness finds nothing either.
    Confirmed(&'static str),
    /// It is clean; no second witness has an answer, for this reason.
    Unconfirmed(String),
    /// There is no verdict, for this reason.
    Undecided(String),
    /// Explorer and second witness differ.
    Different(Box<Difference>),
}

/// Why a clean program is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// A second witness finds something else than the explorer.
    Differs(Box<Difference>),
    /// No second witness has an answer: the reason of the enumerator.
    Skipped(String),
}

/// The second witness that finds what the explorer finds in a clean program.
///
/// # Errors
/// There is none.
pub fn second(program: &Program, model: &Model, naive: &NaiveLimits) -> Result<&'static str, Unconfirmed> {
    if let Some(what) = told_apart(program, model) {
        return Err(Unconfirmed::Differs(Box::new(Difference::Lanes(what))));
    }
    match compare(program, model, naive) {
        Comparison::Same { .. } => Ok("the enumerator"),
        Comparison::Different(difference) => Err(Unconfirmed::Differs(Box::new(difference))),
        Comparison::Skipped(reason) if model.name() != MODEL || *program != unquestioned(program) => {
            Err(Unconfirmed::Skipped(reason))
        }
        Comparison::Skipped(reason) => match agreement::compare(program, model, &Limits::default()) {
            Agreement::Same => Ok("the operational engine"),
            different @ Agreement::Different { .. } => {
                Err(Unconfirmed::Differs(Box::new(Difference::Operational(different.both()))))
            }
            _ => Err(Unconfirmed::Skipped(reason)),
        },
    }
}

/// In what a program with a thread for each lane differs from one whose warps are few threads. None if in nothing, if there is
/// no such thread, or if one of them is not explored to the end.
fn told_apart(program: &Program, model: &Model) -> Option<String> {
    let limits = Limits { leaves: 20_000, checks: 200_000, steps: 2_000_000, ..Limits::default() };
    let fewer = literal(program).threads.len() > joined(program).threads.len();
    match fewer.then(|| compare_joined(program, model, &limits, None))? {
        Compared::Different(what) => Some(what),
        Compared::Same(..) | Compared::Skipped(_) => None,
    }
}

/// Whether nothing is wrong with a program under a model.
pub fn is_clean(program: &Program, model: &Model, limits: &Limits) -> bool {
    matches!(verdicts(program, model, limits)[..], [Verdict::Clean(_)])
}

fn verdicts(program: &Program, model: &Model, limits: &Limits) -> Vec<Verdict> {
    judge(&joined(program), model, limits, Questions { witnesses: false, about: About::All }).verdicts
}

/// Judges a mutant; asks a second witness if it is clean.
pub fn fate(mutant: &Mutant, model: &Model, limits: &Limits, naive: &NaiveLimits) -> Fate {
    let program = &mutant.program;
    if is_illegal(program) {
        return Fate::Illegal;
    }
    match verdicts(program, model, limits).as_slice() {
        [Verdict::Clean(_)] => match second(program, model, naive) {
            Ok(witness) => Fate::Confirmed(witness),
            Err(Unconfirmed::Skipped(reason)) => Fate::Unconfirmed(reason),
            Err(Unconfirmed::Differs(difference)) => Fate::Different(difference),
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
