//! Input and output of an exploration: its limits, its totals, and the finished executions it visits.

use crate::reduce::{Cut, Reductions};
use moire_execution::leaf::{LeafFacts, LeafKind};
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

/// Bounds on one exploration. Hitting one is reported, never silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most finished executions.
    pub leaves: u64,
    /// Most consistency checks.
    pub checks: u64,
    /// Most decisions. This bounds the work between two checks.
    pub steps: u64,
    /// How often a loop that changes state may jump back.
    pub loop_bound: u32,
    /// Most final states of one execution.
    pub outcomes: usize,
    /// Reductions in use: which executions need not be visited. None by default. Random descents ignore them.
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

/// The limit that ended an exploration early.
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
    /// The exploration consisted of random descents.
    Descents,
    /// The visitor ended it, see [`Visitor::meanwhile`].
    Ended,
}

impl Bound {
    /// All of them.
    pub const ALL: [Bound; 9] = [
        Bound::Loop,
        Bound::Leaves,
        Bound::Checks,
        Bound::Steps,
        Bound::Outcomes,
        Bound::FenceOrders,
        Bound::PhaseOrders,
        Bound::Descents,
        Bound::Ended,
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
            Bound::Ended => "not explored to the end",
        })
    }
}

/// Why an engine gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason} is not supported", at(*line))]
pub struct Abstain {
    /// What is not supported, in words.
    pub reason: String,
    /// Line of the program; 0 if no single line is the reason.
    pub line: u32,
}

/// The reason of an abstention that is about size alone.
pub const TOO_WIDE: &str = "an execution of more than 1024 events";

/// The line before a message, if there is one.
fn at(line: u32) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
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
    /// Counts of what [`Limits::reductions`] left out.
    pub cut: Cut,
    /// The first limit hit.
    pub bounded: Option<Bound>,
    /// Whether the visitor ended the exploration.
    pub stopped: bool,
}

impl Summary {
    /// How many executions there are, complete or blocked. None if there is none.
    pub fn executions(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.complete.saturating_add(self.blocked))
    }

    /// The totals of two parts together.
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
    /// The memories of [`LeafView::states`] without the registers. Cheaper, because threads are not run again.
    fn memories(&mut self) -> Vec<moire_execution::leaf::Memory>;
    /// Names of the flags the model raises.
    fn flags(&self) -> &BTreeSet<String>;
    /// The events that the flags name, by thread and line.
    fn findings(&self) -> BTreeSet<moire_execution::leaf::Finding>;
    /// The pairs of events that a flag names, as the model orders each pair, by thread and line. Events of no thread are
    /// left out.
    fn pairs(&self, flag: &str) -> BTreeSet<(moire_execution::leaf::Place, moire_execution::leaf::Place)>;
    /// Everything that is compared between two engines.
    fn facts(&mut self) -> LeafFacts;
    /// The execution in full, for people.
    fn witness(&mut self) -> moire_execution::leaf::Witness;
    /// Digest of this execution. Digests of a set of executions are added, so the sum does not depend on the order of visits
    /// or on how they were shared.
    fn digest(&mut self) -> u64;
    /// The decisions that lead to this leaf. [`crate::explore`] with this path visits it again.
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
    /// Called when a [`crate::search::share::Giver`] asks for a report of progress. All leaves of the piece up to and with
    /// the node `until` are visited (an empty path: none yet); `so_far` are their totals. `Break` ends the exploration.
    fn reached(&mut self, _until: &[u32], _so_far: &Summary) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// Called from time to time, also where there are no leaves; `Break` ends the exploration as [`Bound::Ended`].
    fn meanwhile(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&mut dyn LeafView) -> ControlFlow<()>> Visitor for F {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self(leaf)
    }
}
