//! Mends a program: the weakest edits that make it clean, each found by exploring the edited program.
//!
//! Pure: no I/O, no clock, no environment. A caller bounds the search by counts ([`Budget`]) and by a question that is asked
//! before each exploration.
//!
//! # What is accepted
//!
//! A set of edits is accepted if the edited program, explored completely under the same model, is clean: no flag, no hang,
//! every condition as stated. That alone would accept a barrier in the wrong direction, so the order of execution is
//! compared as well. *Ran before* is the transitive closure of program order, issue, completion, barriers, phases of
//! mbarriers and strong reads-from ([`order`]). It depends on no fence and no proxy. A pair of conflicting accesses is
//! *forced* if one ran before the other in every execution that has both.
//!
//! - **Kept.** Each pair that is forced in the program is forced the same way in the edited one.
//! - **Direction.** A pair of a write `w` and a read `r` that was not forced, and is now, has the direction that the rest of
//!   the program asks for. If one access is always issued before the other runs, as program order and existing
//!   synchronisation say, then it comes first. Otherwise, if another write is forced before both, and `r` is
//!   the first read of its thread that may take it, then `r` comes first: otherwise `w` would destroy what `r` still needs. If
//!   an earlier read of the thread has taken it, then `w` comes first, unless a later read of the thread is forced behind
//!   `w`; then both directions are possible. If no write is forced before both, then `w` comes first: a reader that always
//!   runs before its only writer reads nothing.
//!   A program with `~exists` or `forall` states what it wants, and its conditions are asked instead.
//! - **Values.** Each outcome of an execution without a flag is an outcome of the edited program.
//!
//! Accesses are compared by thread and position, so the comparison does not depend on the edits.
//!
//! # What is weakest
//!
//! From an accepted set each edit is left out in turn, and each order, scope and kind that an edit puts in is made weaker by
//! one step in turn, as long as the rest is still accepted. What remains has no sufficient subset, and no edit of it has a
//! strictly weaker form that is enough.
//!
//! # The search
//!
//! For a pair of accesses the candidate is a whole handover (`pair`): the first access completes, is fenced out, a thread
//! synchronises with the other, and that one is fenced in. Leaving edits out then finds what was missing. Single edits
//! (`single`) change what is there: a parity, a count, bytes, an order, a scope, a group, a place. An edit set that removes
//! findings and adds none is kept for the next round, in which the remaining findings are looked at.

pub mod order;
mod pair;
pub mod patch;
pub mod planted;
pub mod redundant;
mod search;
mod single;
mod trial;
mod words;

use moire_cat::Model;
use moire_execution::leaf::Finding;
use moire_explore::Limits;
use moire_explore::judge::Judgement;
use moire_program::edit::Edit;
use moire_program::ir::Program;
pub use planted::Planted;
use std::collections::BTreeSet;
use std::fmt;
pub use words::describe;

/// One textual edit: the same edit at each place of the program that one place of the text stands for.
pub type Step = Vec<Edit>;

/// What a program is explored under.
#[derive(Clone, Copy)]
pub struct Models<'a> {
    /// The model of the verdict.
    pub model: &'a Model,
    /// The same with the flags of [`order::text`].
    pub order: &'a Model,
}

/// Bounds of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most explorations.
    pub explorations: u32,
    /// Most consistency checks of all of them together.
    pub checks: u64,
    /// Most consistency checks of one of them.
    pub each: u64,
}

impl Budget {
    /// The budget for a program that took so many checks itself.
    pub fn of(checks: u64) -> Self {
        let each = checks.saturating_mul(8).saturating_add(5_000);
        Budget { explorations: 1_500, checks: checks.saturating_mul(400).clamp(200_000, 20_000_000), each }
    }
}

/// Edits that were verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The edits, all of which are needed.
    pub steps: Vec<Step>,
    /// The program with these edits, with the lines of the text; 0 for what is new.
    pub program: Program,
    /// Whether each subset and each weaker form was tried and is not enough.
    pub weakest: bool,
    /// For each edit the findings of the program that return without it.
    pub solves: Vec<BTreeSet<Finding>>,
    /// Explorations that it took.
    pub explorations: u32,
}

impl Advice {
    /// The edits as one list.
    pub fn edits(&self) -> Vec<Edit> {
        self.steps.concat()
    }
}

/// The reason that there is no advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The program was not explored to the end.
    Open,
    /// Nothing is wrong with it.
    Clean,
    /// No short set of edits is enough.
    Nothing,
    /// The budget was spent before all candidates were tried.
    Budget,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Open => "no advice: the program was not explored to the end",
            Why::Clean => "no advice: nothing is wrong",
            Why::Nothing => "no advice: no short edit makes the program clean and keeps its order",
            Why::Budget => "no advice: the time or the number of explorations for explanations was spent",
        })
    }
}

/// The weakest edits that make `program` clean. `judgement` is that of the program under the model, and `more`, which is
/// asked before each exploration, says whether the caller still waits.
///
/// # Errors
/// There are none, or none were found in time.
pub fn mend(
    program: &Program,
    judgement: &Judgement,
    models: Models<'_>,
    limits: &Limits,
    budget: Budget,
    more: &dyn Fn() -> bool,
) -> Result<Advice, Why> {
    mend_planted(program, judgement, models, limits, (budget, None), more)
}

/// [`mend`] with a bug planted in the search.
///
/// # Errors
/// As there.
pub fn mend_planted(
    program: &Program,
    judgement: &Judgement,
    models: Models<'_>,
    limits: &Limits,
    (budget, planted): (Budget, Option<Planted>),
    more: &dyn Fn() -> bool,
) -> Result<Advice, Why> {
    search::mend(judgement, trial::Bench::new(program, models, limits, budget, planted, more))
}
