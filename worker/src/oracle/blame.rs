//! Blame: the axioms that forbid an outcome, as minimal sets of checks whose removal admits it.

use super::answer::explored;
use moire_cat::{CheckId, Model};
use moire_execution::leaf::Outcome;
use moire_program::ir::Program;

/// Most checks of a set that is tried.
const MAX_SET: usize = 2;

/// Finds the minimal sets, by the names of their checks, in the order of the model's text. Empty if no set of at most
/// [`MAX_SET`] checks admits the outcome.
pub(super) fn minimal_sets(program: &Program, model: &Model, outcome: &Outcome) -> Vec<Vec<String>> {
    let checks: Vec<usize> = (0..model.checks().len()).filter(|c| !model.checks()[*c].flag).collect();
    let admits = |without: &[usize]| {
        let mut weaker = model.clone();
        for c in without.iter().rev() {
            weaker = weaker.without(CheckId(*c));
        }
        explored(program, &weaker).is_ok_and(|a| a.outcomes.contains(outcome))
    };
    let mut found: Vec<Vec<usize>> = checks.iter().filter(|c| admits(&[**c])).map(|c| vec![*c]).collect();
    if found.is_empty() && MAX_SET > 1 {
        let pairs =
            checks.iter().flat_map(|a| checks.iter().filter(move |b| *b > a).map(move |b| vec![*a, *b]));
        found = pairs.filter(|p| admits(p)).collect();
    }
    let names = |set: &Vec<usize>| set.iter().map(|c| model.checks()[*c].name.clone()).collect();
    found.iter().map(names).collect()
}
