//! Compares explorer and naive enumerator: their sets of leaf keys, final states and flags, on one program or on many.
//!
//! It compares sets, not counts, because a missing and an invented execution cancel out in a count.

pub mod campaign;
pub mod contract;
pub mod draw_crowd;
pub mod draw_peeks;
pub mod draw_warps;
pub mod grow;
mod in_order;
pub mod joined;
pub mod reduced;
mod shape;
mod shrink;
mod turned;

pub use shape::Shape;
pub use shrink::shrink;
pub use turned::{Tally, differs_when_turned, turned};

use moire_cat::Model;
use moire_execution::leaf::{LeafFacts, LeafKey};
use moire_explore::planted::Planted;
use moire_explore::search::explore_planted;
use moire_explore::search::{Bound, Limits};
use moire_naive::{Leaves, NaiveLimits, leaves as naive_leaves};
use moire_program::ir::Program;
use moire_program::lanes::{joined, literal};
use std::ops::ControlFlow;

/// Most threads of a program whose lanes are taken literally.
const THREADS_MAX: usize = 16;

/// The result of comparing both engines on one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both engines agree.
    Same {
        /// Executions, complete and blocked.
        leaves: u64,
        /// Candidates that the enumerator judged.
        candidates: u64,
    },
    /// The engines differ.
    Different(Difference),
    /// The program was not compared, for this reason.
    Skipped(String),
}

/// The first difference found, in the order of this list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The explorer visited a leaf twice.
    Duplicate(LeafKey),
    /// The enumerator has a leaf that the explorer lacks.
    Missing(LeafKey),
    /// The explorer has a leaf that the enumerator lacks.
    Extra(LeafKey),
    /// A leaf has different final states or another kind: explorer, enumerator.
    Outcomes(Box<(LeafFacts, LeafFacts)>),
    /// A leaf has different flags: explorer, enumerator.
    Flags(Box<(LeafFacts, LeafFacts)>),
    /// The explorer's counts change when threads are reversed and renamed: as drawn, turned.
    Turned(Box<(Tally, Tally)>),
    /// The operational engine gives another verdict than the explorer: both answers in words.
    Operational(String),
    /// A thread for each lane has another verdict than warps that are few threads: in what they differ.
    Lanes(String),
}

impl Difference {
    /// Names the kind of difference.
    pub fn kind(&self) -> &'static str {
        match self {
            Difference::Duplicate(_) => "duplicate",
            Difference::Missing(_) => "missing",
            Difference::Extra(_) => "extra",
            Difference::Outcomes(_) => "outcomes",
            Difference::Flags(_) => "flags",
            Difference::Turned(_) => "thread order",
            Difference::Operational(_) => "operational",
            Difference::Lanes(_) => "lanes",
        }
    }
}

/// Runs both engines on a program and compares their leaves.
pub fn compare(program: &Program, model: &Model, limits: &NaiveLimits) -> Comparison {
    compare_planted(program, model, limits, None)
}

/// [`compare`] with a bug planted in the explorer.
pub fn compare_planted(
    program: &Program,
    model: &Model,
    limits: &NaiveLimits,
    planted: Option<Planted>,
) -> Comparison {
    // The enumerator takes the lanes of a small program itself; warps of a large one are few threads for both engines.
    let (whole, few) = (literal(program), joined(program));
    let small = whole.threads.len() <= THREADS_MAX;
    let (given, program) = if small { (program, &*whole) } else { (&*few, &*few) };
    let (naive, summary) = match naive_leaves(given, model, limits) {
        Ok(found) => found,
        Err(skip) => return Comparison::Skipped(skip.to_string()),
    };
    let mut explored = Leaves::new();
    let mut duplicate = None;
    // About half a minute. A program that the enumerator can finish takes the explorer a thousandth of that.
    let steps = 20_000_000;
    let bounds =
        Limits { loop_bound: limits.loop_bound, outcomes: limits.outcomes, steps, ..Limits::default() };
    let result = explore_planted(
        program,
        model,
        planted,
        &bounds,
        &mut |leaf: &mut dyn moire_explore::search::LeafView| {
            let facts = leaf.facts();
            if explored.contains_key(&facts.key) {
                duplicate = Some(facts.key);
                return ControlFlow::Break(());
            }
            explored.insert(facts.key.clone(), facts);
            ControlFlow::Continue(())
        },
    );
    match result {
        Err(abstain) => return Comparison::Skipped(format!("explorer: {}", abstain.reason)),
        Ok(s) => match s.bounded {
            None | Some(Bound::Loop) => {}
            Some(bound) => return Comparison::Skipped(format!("explorer: {bound}")),
        },
    }
    if let Some(key) = duplicate {
        return Comparison::Different(Difference::Duplicate(key));
    }
    match difference(&explored, &naive) {
        Some(d) => Comparison::Different(d),
        None => Comparison::Same { leaves: summary.leaves, candidates: summary.candidates },
    }
}

/// Finds the first difference between two sets of leaves.
pub fn difference(explored: &Leaves, naive: &Leaves) -> Option<Difference> {
    if let Some(key) = naive.keys().find(|k| !explored.contains_key(*k)) {
        return Some(Difference::Missing(key.clone()));
    }
    for (key, ours) in explored {
        let Some(theirs) = naive.get(key) else { return Some(Difference::Extra(key.clone())) };
        if ours.kind != theirs.kind || ours.outcomes != theirs.outcomes {
            return Some(Difference::Outcomes(Box::new((ours.clone(), theirs.clone()))));
        }
        if ours.flags != theirs.flags {
            return Some(Difference::Flags(Box::new((ours.clone(), theirs.clone()))));
        }
    }
    None
}
