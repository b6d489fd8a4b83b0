//! Runs of a thread: the questions a run may ask ([`View`]), and its result ([`Trace`]).

use super::event::Emitted;
use super::event::deps::Deps;
use super::run_ahead::RunAhead;
use crate::planted::Planted;
use moire_program::ir::Value;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// What the graph says about a thread's events, by index.
pub(crate) trait View {
    /// Value of a read whose source is chosen.
    fn read(&self, index: u16) -> Option<Value>;
    /// The same of the load at `pc`, of which [`Flow::tests`] says what its value is used for.
    fn loaded(&self, index: u16, _pc: usize) -> Option<Value> {
        self.read(index)
    }
    /// Whether the phase of a barrier event is complete; for `bar.red` with the combined value.
    fn passed(&self, index: u16) -> Option<Value>;
    /// What an operation on an mbarrier hands back, once it has its place.
    fn answer(&self, index: u16) -> Option<Value>;
    /// Whether a read whose source is chosen returns unknown data; it has no value then, and one with a value does not.
    fn unknown(&self, index: u16) -> bool;
    /// State of the gate in front of the loop iteration that starts at this event index.
    fn gate(&self, index: u16) -> Gate;
}

/// Whether an iteration of a loop that may spin is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Gate {
    Closed,
    Open,
    Stuck,
}

/// Why a trace stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TraceEnd {
    Done,
    /// Needs a value that depends on these reads.
    Pending(Deps),
    /// Waits at the barrier event of this index.
    Barrier(u16),
    /// Stands at a closed gate.
    Gate(u16),
    /// Spins for ever from this index on.
    Stuck(u16),
    /// Ran an iteration of a spin loop that changed nothing.
    SpinFail,
    /// Ran a loop that changes state more often than the loop bound allows.
    Bound,
    /// Did something no engine models, with the reason and the line.
    Unsupported(String, u32),
}

/// One thread's run under a [`View`].
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// By index; `None` where the event is absent or its address is pending.
    pub(crate) events: Vec<Option<Emitted>>,
    /// Writes that may come: their address is pending, or whether they happen.
    pub(crate) unsure: Vec<Emitted>,
    pub(crate) regs: Vec<RegState>,
    /// Mistakes of the thread on its own: the flag and the line.
    pub(crate) flags: BTreeSet<(&'static str, u32)>,
    pub(crate) end: TraceEnd,
    /// Where the trace stopped.
    pub(crate) pc: usize,
    /// What the thread does if its waits are answered with yes, once asked.
    pub(crate) run_ahead: OnceCell<RunAhead>,
}

impl Trace {
    /// Whether the thread may do more than its events say.
    pub(crate) fn restless(&self) -> bool {
        matches!(self.end, TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_))
            || !self.unsure.is_empty()
    }
}

/// A register: its value unless pending, and what it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegState {
    pub(crate) value: Option<Value>,
    pub(crate) deps: Deps,
}

/// Switches of the front end, taken from the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontEnd {
    /// A bug planted for tests.
    pub(crate) planted: Option<Planted>,
    /// A 128-bit load or store is one operation.
    pub(crate) wide_whole: bool,
    /// A failed cas writes the old value back.
    pub(crate) cas_writes_back: bool,
    /// Control dependencies end at reconvergence.
    pub(crate) reconverging: bool,
    /// Lanes of an accumulator that are masked off count as written.
    pub(crate) masked_too: bool,
    /// `bar.warp.sync` waits for lanes that have exited.
    pub(crate) exited_awaited: bool,
    /// TOKIF=B: of the tokens an `if` yields both arms count.
    pub(crate) both_arms: bool,
    /// Iterations of a changing loop.
    pub(crate) loop_bound: u32,
}

impl RegState {
    /// A value that depends on nothing.
    pub(crate) fn known(value: Value) -> Self {
        RegState { value: Some(value), deps: Deps::NONE }
    }
}
