//! The least numbers of trips for which a mistake shows, and the program with so many copies of its loops.

use crate::finding::Abstain;
use crate::settings::Settings;
use crate::{Kind, Limits, Outcome, operate};
use moire_program::ir::Program;
use moire_program::loops::unroll;
use std::collections::{BTreeMap, BTreeSet};

/// A program without loops that has the mistake of a program with loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The numbers of trips: by name, one for each time that a thread enters such a loop.
    pub numbers: BTreeMap<String, Vec<u32>>,
    /// The program with so many copies.
    pub program: Program,
    /// What it does.
    pub outcome: Outcome,
}

/// Most programs that are tried.
const TRIALS: usize = 400;

/// Unrolls a program with the numbers of a finding, and makes the numbers smaller one after another while a finding of one
/// of the same kinds remains.
///
/// # Errors
/// The unrolled program is not decided.
pub fn counterexample(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
    found: &Outcome,
) -> Result<Option<Counterexample>, Abstain> {
    let kinds: BTreeSet<Kind> = found.findings.iter().map(|f| f.kind).collect();
    let least: BTreeMap<&str, u32> =
        found.classes.iter().map(|(name, least)| (name.as_str(), *least)).collect();
    let shows = |numbers: &BTreeMap<String, Vec<u32>>| -> Result<Option<Counterexample>, Abstain> {
        let Ok(unrolled) = unroll(program, numbers) else { return Ok(None) };
        let outcome = operate(&unrolled, settings, limits)?;
        let same = outcome.findings.iter().any(|f| kinds.contains(&f.kind));
        Ok(same.then(|| Counterexample { numbers: numbers.clone(), program: unrolled, outcome }))
    };
    let Some(mut best) = shows(&found.numbers)? else { return Ok(None) };
    let mut trials = 0;
    let places: Vec<(String, usize)> =
        best.numbers.iter().flat_map(|(name, all)| (0..all.len()).map(|n| (name.clone(), n))).collect();
    for (name, at) in places {
        let lowest = least.get(name.as_str()).copied().unwrap_or(0);
        for number in lowest..best.numbers[&name][at] {
            trials += 1;
            if trials > TRIALS {
                return Ok(Some(best));
            }
            let mut numbers = best.numbers.clone();
            if let Some(all) = numbers.get_mut(&name) {
                all[at] = number;
            }
            if let Ok(Some(smaller)) = shows(&numbers) {
                best = smaller;
                break;
            }
        }
    }
    Ok(Some(best))
}
