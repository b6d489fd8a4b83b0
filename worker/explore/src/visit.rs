//! What an exploration is asked, and what it tells: limits, totals, finished executions.

use crate::reduce::{Cut, Reductions};
use moire_execution::leaf::{LeafFacts, LeafKind};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Bounds on one exploration. Hitting one is reported, never silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Finished executions.
    pub leaves: u64,
    /// Consistency checks.
    pub checks: u64,
    /// Decisions: what an exploration does between checks is bounded too.
    pub steps: u64,
    /// Iterations of a loop that changes state.
    pub loop_bound: u32,
    /// Final states of one execution.
    pub outcomes: usize,
    /// Executions that need not be visited; by default all are. Random descents visit any.
    pub reductions: Reductions,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            leaves: 10_000_000,
            checks: 100_000_000,
            steps: 1_000_000_000,
            loop_bound: 2,
            outcomes: 4_096,
            reductions: Reductions::NONE,
        }
    }
}

/// Which limit cut an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// A loop ran longer than [`Limits::loop_bound`].
    Loop,
    /// [`Limits::leaves`].
    Leaves,
    /// [`Limits::checks`].
    Checks,
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::outcomes`].
    Outcomes,
    /// More orders of `fence.sc` than are tried at one leaf.
    FenceOrders,
    /// More orders of the operations of one mbarrier phase than are tried at one leaf.
    PhaseOrders,
    /// Random descents only.
    Descents,
}

impl Bound {
    /// All of them.
    pub const ALL: [Bound; 8] = [
        Bound::Loop,
        Bound::Leaves,
        Bound::Checks,
        Bound::Steps,
        Bound::Outcomes,
        Bound::FenceOrders,
        Bound::PhaseOrders,
        Bound::Descents,
    ];
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bound::Loop => "a loop that changes state ran past the loop bound",
            Bound::Leaves => "the limit on executions",
            Bound::Checks => "the limit on consistency checks",
            Bound::Steps => "the limit on decisions",
            Bound::Outcomes => "the limit on final states of one execution",
            Bound::FenceOrders => "the limit on orders of fence.sc at one execution",
            Bound::PhaseOrders => {
                "the limit on orders of fence.sc and of mbarrier operations at one execution"
            }
            Bound::Descents => "random descents see some executions only",
        })
    }
}

/// Why an engine gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason} is not supported")]
pub struct Abstain {
    /// What is not supported.
    pub reason: String,
    /// Line of the program; 0 when it is no single line.
    pub line: u32,
}

/// Totals of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Complete executions.
    pub complete: u64,
    /// Executions that end blocked.
    pub blocked: u64,
    /// States that led to no execution.
    pub dead_ends: u64,
    /// Consistency checks.
    pub checks: u64,
    /// What [`Limits::reductions`] left out.
    pub cut: Cut,
    /// The first limit hit.
    pub bounded: Option<Bound>,
    /// The visitor wanted no more.
    pub stopped: bool,
}

impl Summary {
    /// Of two parts together.
    #[must_use]
    pub fn plus(&self, other: &Summary) -> Summary {
        Summary {
            complete: self.complete + other.complete,
            blocked: self.blocked + other.blocked,
            dead_ends: self.dead_ends + other.dead_ends,
            checks: self.checks + other.checks,
            cut: self.cut.plus(other.cut),
            bounded: self.bounded.or(other.bounded),
            stopped: self.stopped || other.stopped,
        }
    }
}

/// A finished execution, as a visitor sees it.
pub trait LeafView {
    /// Complete or blocked.
    fn kind(&self) -> LeafKind;
    /// Final states; none when blocked.
    fn states(&mut self) -> Vec<moire_execution::leaf::FinalState>;
    /// The memories of [`LeafView::states`], for whoever does not look at registers: threads are not run again.
    fn memories(&mut self) -> Vec<moire_execution::leaf::Memory>;
    /// Names of the flags the model raises.
    fn flags(&self) -> &BTreeSet<String>;
    /// What the flags are about: events by thread and line.
    fn findings(&self) -> BTreeSet<moire_execution::leaf::Finding>;
    /// Everything two engines compare.
    fn facts(&mut self) -> LeafFacts;
    /// The execution in full, for people.
    fn witness(&mut self) -> moire_execution::leaf::Witness;
    /// A number of this execution; the sum over a set of executions stands for the set, whoever visited them.
    fn digest(&mut self) -> u64;
    /// The decisions that lead here; [`crate::explore`] with them visits this leaf again.
    fn path(&self) -> &[u32];
    /// Threads that wait for columns of tensor memory, or for the other CTA of a pair, for ever.
    fn column_stalls(&self) -> Vec<moire_execution::leaf::ColumnStall>;
    /// Threads that wait at an mbarrier for ever, and for what.
    fn stalls(&self) -> Vec<moire_execution::leaf::Stall>;
}

/// Receives executions one after another.
pub trait Visitor {
    /// Called once a leaf; `Break` ends the exploration.
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()>;
    /// Called where a [`crate::search::share::Giver`] says it is due: all of the piece up to and with this node is done (empty:
    /// nothing yet), with these totals. `Break` ends the exploration.
    fn reached(&mut self, _until: &[u32], _so_far: &Summary) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&mut dyn LeafView) -> ControlFlow<()>> Visitor for F {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self(leaf)
    }
}
