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
//!   runs before its only writer reads nothing. Two threads that each read and then overwrite what the other one reads both read
//!   first.
//!   A program with `~exists` or `forall` states what it wants, and its conditions are asked instead.
//!   A barrier at a line that all its threads run has the direction of the text (`line`), and so do fences and waits of a thread for
//!   its own accesses beside it. Nothing is compared for them.
//! - **Intent.** An edit puts an instruction in, or gives one that synchronises another order, scope, object or parity. None takes an
//!   instruction out or moves it, changes a count of threads, arrivals or bytes, or waits for a phase that is over from the
//!   start. An access becomes strong only if it is of a flag that a loop polls: for data that would hide the race and keep the
//!   mistake. These edits are not candidates at all (`single`, `pair`). A new arrival hands over what its thread accessed to one that
//!   accesses it behind its wait. A new fence is not narrower than the strong accesses of its thread, and an arrival at another CTA
//!   is of the cluster.
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
//! (`single`) change what is there: a parity, an order, a scope, a group, an object. Accesses of a kernel meet at a line of it (`line`).
//! An edit set that removes
//! findings and adds none is kept for the next round, in which the remaining findings are looked at.
//!
//! # Wide programs
//!
//! A program that is not explored to the end is judged by the engine that needs one run ([`Models::second`]), and the explorer finds nothing
//! as far as it comes. Then only edits are tried that need no comparison of executions.
//!
//! # Readings
//!
//! [`extend`] adds what a contested reading asks for, if edits are found that hold under it and under the model itself.

mod answer;
mod line;
pub mod order;
mod pair;
pub mod patch;
pub mod planted;
pub mod redundant;
mod search;
mod single;
mod trial;
mod words;

pub use answer::{Advice, Budget, Models, Second, Step, Why};
pub use line::has_barrier;
use moire_explore::Limits;
use moire_explore::judge::Judgement;
use moire_program::ir::Program;
pub use planted::Planted;
pub use trial::finding_of;
pub use words::describe;

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

/// Edits that hold under another reading as well, where those of `advice` do not, and some do.
pub fn extend(
    program: &Program,
    advice: &Advice,
    (models, other): (Models<'_>, Models<'_>),
    limits: &Limits,
    budget: Budget,
    more: &dyn Fn() -> bool,
) -> Option<Advice> {
    let bench = |models| trial::Bench::new(program, models, limits, budget, None, more);
    search::extend(bench(models), bench(other), advice)
}
