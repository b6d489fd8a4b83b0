//! What becomes of a mutant, as it is noted and counted.

use moire_cat::Model;
use moire_explore::Limits;
use moire_lab::mutants::{Fate as Judged, fate};
use moire_naive::NaiveLimits;
use moire_program::mutate::Mutant;
use serde::{Deserialize, Serialize};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fate {
    /// The assembler refuses it, or the reader.
    Illegal,
    /// Something is found.
    Caught,
    /// It is clean, and this second witness says so too.
    Confirmed(String),
    /// It is clean, and a line of the table says why.
    Argued(String),
    /// It is clean, and no second witness has an answer, for this reason.
    Open(String),
    /// There is no verdict, for this reason.
    Undecided(String),
    /// There is no verdict within the budget.
    Spent,
    /// It is called clean, and another witness finds a mistake.
    Wrong(String),
}

/// The fate of a changed program.
pub(super) fn of_program(mutant: &Mutant, model: &Model, limits: &Limits) -> Fate {
    match fate(mutant, model, limits, &NaiveLimits::default()) {
        Judged::Illegal => Fate::Illegal,
        Judged::Caught(_) => Fate::Caught,
        Judged::Confirmed(witness) => Fate::Confirmed(witness.to_owned()),
        Judged::Unconfirmed(why) => Fate::Open(why),
        Judged::Undecided(why) => Fate::Undecided(why),
        Judged::Different(difference) => Fate::Wrong(difference.kind().to_owned()),
    }
}
