//! What a search is asked under, and what it answers.

use moire_cat::Model;
use moire_execution::leaf::Finding;
use moire_program::edit::Edit;
use moire_program::ir::Program;
use std::collections::BTreeSet;
use std::fmt;

/// One textual edit: the same edit at each place of the program that one place of the text stands for.
pub type Step = Vec<Edit>;

/// What a program is explored under.
#[derive(Clone, Copy)]
pub struct Models<'a> {
    /// The model of the verdict.
    pub model: &'a Model,
    /// The same with the flags of [`crate::order::text`].
    pub order: &'a Model,
    /// The engine that needs one run, if it knows the model.
    pub second: Option<&'a Second<'a>>,
}

/// What an engine finds wrong in a program that it runs once: nothing if it is clean. None if it does not decide.
pub type Second<'a> = dyn Fn(&Program) -> Option<BTreeSet<Finding>> + 'a;

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
    /// The module was wrong with the edits as it was read again.
    Again,
    /// The edits name memory or registers of one launch.
    Named,
    /// Lanes of a warp are taken to move together, so that what orders them would look redundant.
    Lanes,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Open => "the program was not explored to the end",
            Why::Clean => "nothing is wrong",
            Why::Nothing => "no short edit adds the order that is missing and keeps everything else",
            Why::Budget => "the time or the number of explorations for explanations was spent",
            Why::Again => "the module was not shown to be clean when it was read again with the edits",
            Why::Named => "an edit mends this launch, but names memory or registers that the module computes",
            Why::Lanes => {
                "lanes of a warp are taken to move together, so what orders them would look redundant"
            }
        })
    }
}
