//! The tail of an exploration: what is left when only accesses are that nobody looks at (`reduce.rs`, `unseen.rs`).
//!
//! Contract: in a tail every effect of an execution is shown by some execution, not each by all that have it. A graph is
//! left when all effects its larger graphs can have were shown in this tail; so nothing is left before a first execution
//! was, and dead ends are searched through as ever.

use super::{Found, Next, Search, Then};
use crate::leaf::LeafKind;
use crate::mbarrier_leaf::{Raised, raised};
use crate::planted::Planted;
use moire_cat::Node;
use moire_cat::bits::{self, Row};
use moire_cat::vocabulary::{FIRST_DYNAMIC, rels, sets};
use moire_program::ir::Value;
use std::collections::BTreeSet;

/// Final memories that are told apart in one tail; one with more is explored in full.
const MEMORIES: usize = 256;

/// Final values, by cell; of cells that end the same whatever happens, 0.
type Memory = Vec<Value>;

/// See the module header.
pub(super) struct Tail {
    /// Decisions in front of it.
    pub(super) depth: usize,
    /// Threads wait for ever: there is no final memory.
    blocked: bool,
    /// An execution was shown.
    shown: bool,
    /// Flags with pairs that may be raised and were not; `None` if nobody knows.
    flags: Option<Raised>,
    /// Cells that all executions leave the same.
    settled: Vec<bool>,
    /// Final memories shown; `None` when there were too many.
    memories: Option<BTreeSet<Memory>>,
}

impl<const W: usize> Search<'_, W> {
    /// Whether an event waits until nothing else is left.
    pub(super) fn is_late(&self, id: usize) -> bool {
        let Some(unseen) = &self.unseen else { return false };
        let event = &self.state.events[id];
        event.thread.is_some_and(|t| unseen.late(usize::from(t), event.emitted.pc))
    }

    /// The first event nobody looks at, writes first, so that no read is left open for one.
    pub(super) fn next_late(&self) -> Option<Next> {
        let state = &self.state;
        if self.unseen.is_some() {
            let ids = || state.threads.iter().flat_map(|t| t.ids.iter().flatten()).map(|id| usize::from(*id));
            let mut late = ids().filter(|id| !bits::has(&state.present, *id) && self.is_late(*id));
            let writes = |id: usize| state.events[id].is_write();
            let mut reads = late.clone().filter(|id| !writes(*id));
            if let Some(id) = late.find(|id| writes(*id) && state.ready(*id)) {
                return Some(Next::Write(id));
            }
            if let Some(id) = reads.find(|id| state.is_rmw(*id)) {
                return Some(Next::Read(id));
            }
        }
        state.next_read().map(Next::Read)
    }

    /// Whether nothing but a tail is left from here on.
    pub(super) fn begins_tail(&self, next: &Next) -> bool {
        match next {
            Next::Read(id) | Next::Write(id) => self.tail.is_none() && self.is_late(*id),
            _ => false,
        }
    }

    /// Goes on with what the scheduler picked; where a tail begins, until it ends.
    pub(super) fn step_into(&mut self, next: Next, then: Then<Self>) -> Found {
        if !self.begins_tail(&next) {
            return self.step(next, then);
        }
        self.tail = Some(self.begin());
        let result = self.step(next, then);
        self.tail = None;
        result
    }

    fn begin(&mut self) -> Tail {
        let commuting: Vec<usize> = (0..self.state.layout.cells.len())
            .filter(|c| {
                let instance = usize::from(self.state.layout.cells[*c].instance);
                let object = self.state.layout.instances[instance].object;
                self.unseen.as_ref().is_some_and(|u| u.commuting.contains(&object))
            })
            .collect();
        let mut settled = vec![false; self.state.layout.cells.len()];
        for cell in commuting {
            settled[cell] = self.has(Planted::CommutesUnasked) || self.state.commutes(cell);
        }
        Tail {
            depth: self.path.len(),
            blocked: self.state.kind() == LeafKind::Blocked,
            shown: false,
            flags: if self.has(Planted::TailFlags) { Some(Raised::new()) } else { self.flags_at_most() },
            settled,
            memories: Some(BTreeSet::new()),
        }
    }

    /// All flags, with their pairs, that a larger graph of these events can raise.
    fn flags_at_most(&mut self) -> Option<Raised> {
        let model = self.state.model;
        if !model.checks().iter().any(|c| c.flag) {
            return Some(Raised::new());
        }
        let inputs = &self.state.inputs;
        let all = bits::first::<W>(inputs.n);
        let none = |row: &Row<W>| bits::is_empty(&bits::and(row, &all));
        // What the evaluator makes itself is not in the rows of the engine.
        let made = |r: usize| r == rels::ID || (FIRST_DYNAMIC..=rels::SYNC_FENCE).contains(&r);
        let shrink = model.flags_shrink(&|node| match node {
            Node::Set(s) => s != sets::ANY && none(&inputs.sets[s]),
            Node::Relation(r) => !made(r) && inputs.rels[r][..inputs.n].iter().all(none),
            _ => false,
        });
        if !shrink {
            return None;
        }
        let mark = self.state.judged();
        self.state.inputs.present = self.state.present;
        let flags = self.state.evaluator.flags_so_far(&self.state.inputs);
        self.state.evaluator.back(&mark);
        flags.map(|f| raised(model, &f, self.state.inputs.n))
    }

    /// Whether every effect that executions with the graph judged just now can have was shown.
    pub(super) fn is_covered(&self) -> bool {
        let Some(tail) = self.tail.as_ref().filter(|t| t.shown) else { return false };
        let Some(shown) = &tail.memories else { return false };
        if !tail.flags.as_ref().is_some_and(|f| f.values().all(BTreeSet::is_empty)) {
            return false;
        }
        tail.blocked
            || self.has(Planted::TailMemory)
            || self.memories(tail, self.state.evaluator.coherence()).is_some_and(|m| m.is_subset(shown))
    }

    /// Final memories that some coherence with these pairs may leave, as far as they differ; `None` when they are many.
    fn memories(&self, tail: &Tail, co: &[Row<W>]) -> Option<BTreeSet<Memory>> {
        let state = &self.state;
        let mut out = vec![Memory::new()];
        for cell in 0..state.layout.cells.len() {
            let writes = state.universe.writes[cell];
            let mut values = BTreeSet::new();
            if tail.settled[cell] || bits::is_empty(&writes) {
                values.insert(0);
            } else {
                for write in bits::iter(&writes).filter(|w| bits::is_empty(&bits::and(&co[*w], &writes))) {
                    // Of an atomic whose source is open.
                    state.current(write)?.value?;
                    values.insert(state.cell_value(write, cell));
                }
            }
            if out.len() * values.len() > MEMORIES {
                return None;
            }
            let longer = |m: &Memory| {
                let longer = |v: &Value| m.iter().copied().chain([*v]).collect::<Memory>();
                values.iter().map(longer).collect::<Vec<Memory>>()
            };
            out = out.iter().flat_map(longer).collect();
        }
        Some(out.into_iter().collect())
    }

    /// Notes the effects of an execution that was shown.
    pub(super) fn note(&mut self, co: &[Row<W>], flags: &Raised) {
        let Some(mut tail) = self.tail.take() else { return };
        tail.shown = true;
        for (id, left) in tail.flags.iter_mut().flatten() {
            left.retain(|pair| !flags.get(id).is_some_and(|shown| shown.contains(pair)));
        }
        let now = if tail.blocked { Some(BTreeSet::new()) } else { self.memories(&tail, co) };
        tail.memories = tail.memories.take().zip(now).map(|(mut all, now)| {
            all.extend(now);
            all
        });
        self.tail = Some(tail);
    }
}
