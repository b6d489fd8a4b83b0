//! The tail of an exploration: what is left when only unobserved accesses are to be placed.
//!
//! Contract: in a tail every effect of an execution is shown by some execution, not by each that has it. A graph is left when
//! all effects its larger graphs can have were shown in this tail; so none is left before a first execution was shown, and
//! dead ends are searched as ever.

use super::commute::commutes;
use super::unobserved::Unobserved;
use crate::finish::settle::{Raised, raised};
use crate::graph::row;
use crate::planted::Planted;
use crate::prune::state::State;
use crate::thread::ids::{CellId, Id, Table};
use moire_cat::Node;
use moire_cat::bits::{self, Row};
use moire_cat::vocabulary::{FIRST_DYNAMIC, rels, sets};
use moire_execution::leaf::LeafKind;
use moire_program::ir::Value;
use std::collections::BTreeSet;

/// Most final memories that are distinguished in one tail. A tail with more is explored completely.
const MAX_MEMORIES: usize = 256;

/// Final values, by cell; of cells that end the same whatever happens, 0.
type CellValues = Vec<Value>;

/// The tail that a search is in.
pub(crate) struct Tail {
    /// Decisions in front of it.
    pub(crate) depth: usize,
    /// Threads wait for ever: there is no final memory.
    blocked: bool,
    /// An execution was shown.
    shown: bool,
    /// Flags with pairs that may be raised and were not; `None` if that is not known.
    flags: Option<Raised>,
    /// Cells that all executions leave the same.
    settled: Table<CellId, bool>,
    /// Final memories shown; `None` when there were too many.
    memories: Option<BTreeSet<CellValues>>,
}

fn has<const W: usize>(state: &State<'_, W>, bug: Planted) -> bool {
    state.graph.events.front.planted == Some(bug)
}

impl Tail {
    pub(crate) fn begin<const W: usize>(
        state: &mut State<'_, W>,
        unobserved: &Unobserved,
        depth: usize,
    ) -> Tail {
        let layout = &state.graph.events.layout;
        let object = |c: CellId| layout.instances[layout.cells[c].instance].object;
        let commuting: Vec<CellId> =
            layout.cells.ids().filter(|c| unobserved.commuting.contains(&object(*c))).collect();
        let mut settled: Table<CellId, bool> = layout.cells.iter().map(|_| false).collect();
        for cell in commuting {
            settled[cell] = has(state, Planted::CommutesUnasked) || commutes(state, cell);
        }
        Tail {
            depth,
            blocked: state.graph.events.kind() == LeafKind::Blocked,
            shown: false,
            flags: if has(state, Planted::TailFlags) { Some(Raised::new()) } else { flags_at_most(state) },
            settled,
            memories: Some(BTreeSet::new()),
        }
    }

    /// Whether every effect that executions with the graph judged just now can have was shown.
    pub(crate) fn covers<const W: usize>(&self, state: &State<'_, W>) -> bool {
        let Some(shown) = self.memories.as_ref().filter(|_| self.shown) else { return false };
        if !self.flags.as_ref().is_some_and(|f| f.values().all(BTreeSet::is_empty)) {
            return false;
        }
        self.blocked
            || has(state, Planted::TailMemory)
            || self
                .memories_left(state, state.consistency.evaluator.coherence())
                .is_some_and(|m| m.is_subset(shown))
    }

    /// Final memories that some coherence with these pairs may leave, as far as they differ; `None` when they are many.
    fn memories_left<const W: usize>(
        &self,
        state: &State<'_, W>,
        co: &[Row<W>],
    ) -> Option<BTreeSet<CellValues>> {
        let mut out = vec![CellValues::new()];
        for cell in state.graph.events.layout.cells.ids() {
            let writes = state.graph.events.universe.writes[cell];
            let mut values = BTreeSet::new();
            if self.settled[cell] || bits::is_empty(&writes) {
                values.insert(0);
            } else {
                for write in
                    row::events(&writes).filter(|w| bits::is_empty(&bits::and(&co[w.index()], &writes)))
                {
                    // Of an atomic whose source is open.
                    state.graph.events.current(write)?.value?;
                    values.insert(state.graph.events.cell_value(write, cell));
                }
            }
            if out.len() * values.len() > MAX_MEMORIES {
                return None;
            }
            let longer = |m: &CellValues| {
                let longer = |v: &Value| m.iter().copied().chain([*v]).collect::<CellValues>();
                values.iter().map(longer).collect::<Vec<CellValues>>()
            };
            out = out.iter().flat_map(longer).collect();
        }
        Some(out.into_iter().collect())
    }

    /// Notes the effects of an execution that was shown.
    pub(crate) fn note<const W: usize>(&mut self, state: &State<'_, W>, co: &[Row<W>], flags: &Raised) {
        self.shown = true;
        for (id, left) in self.flags.iter_mut().flatten() {
            left.retain(|pair| !flags.get(id).is_some_and(|shown| shown.contains(pair)));
        }
        let now = if self.blocked { Some(BTreeSet::new()) } else { self.memories_left(state, co) };
        self.memories = self.memories.take().zip(now).map(|(mut all, now)| {
            all.extend(now);
            all
        });
    }
}

/// All flags, with their pairs, that a larger graph of these events can raise.
fn flags_at_most<const W: usize>(state: &mut State<'_, W>) -> Option<Raised> {
    let model = state.model;
    if !model.checks().iter().any(|c| c.flag) {
        return Some(Raised::new());
    }
    let inputs = &state.graph.events.inputs;
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
    let mark = state.enter();
    state.graph.events.inputs.present = state.graph.events.present;
    let flags = state.consistency.evaluator.flags_so_far(&state.graph.events.inputs);
    state.consistency.evaluator.back(&mark);
    flags.map(|f| raised(model, &f, state.graph.events.inputs.n))
}
