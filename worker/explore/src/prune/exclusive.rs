//! Pairs of read-modify-writes that cannot share a source.
//!
//! Under most models, two that read one write leave no place for the second in coherence. That is not built in: the model is
//! asked about the graph that holds just the two, their source, and the initial write of the place. What it refuses there it
//! refuses in every larger graph, because only monotone checks are asked. The answer depends on the universe up to the last
//! of these events and is kept under its name.

use crate::graph::graph::Graph;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::planted::Planted;
use crate::thread::event::Kind;
use crate::thread::ids::{CellId, Id};
use crate::thread::layout::Access;
use moire_cat::bits;
use moire_cat::eval::Evaluator;
use moire_cat::eval::{Inputs, Solution};
use moire_cat::vocabulary::rels;
use rustc_hash::FxHashMap;

/// Answers of the model, by universe, the two reads and their source.
#[derive(Clone, Default)]
pub(crate) struct Exclusive {
    known: FxHashMap<(u64, EventId, EventId, EventId), bool>,
}

impl Exclusive {
    /// Whether no execution has both reads take `source` at `cell`.
    pub(crate) fn excludes<const W: usize>(
        &mut self,
        g: &Graph<'_, W>,
        evaluator: &mut Evaluator<W>,
        (a, b): (EventId, EventId),
        source: EventId,
        cell: CellId,
    ) -> bool {
        let (Some(x), Some(y)) = (other_half(g, a), other_half(g, b)) else { return false };
        let anywhere = g.events.front.planted == Some(Planted::SharesAnywhere);
        let there = |a: &Access| (anywhere || a.cell == cell) && a.cells == 1;
        let one = |id: EventId| g.events[id].emitted.access.as_ref().is_some_and(there);
        if !(one(a) && one(b) && one(x) && one(y)) {
            return false;
        }
        debug_assert!(a != b && x != y, "two updates have four halves");
        let last = x.max(y).max(source);
        let key = (g.events.universe.name_after(last), a.min(b), a.max(b), source);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let refused = refuses_both(g, evaluator, (a, x), (b, y), source, cell, last);
        self.known.insert(key, refused);
        refused
    }
}

/// The write half of a read-modify-write that surely writes.
fn other_half<const W: usize>(g: &Graph<'_, W>, read: EventId) -> Option<EventId> {
    let event = &g.events[read];
    let thread = event.thread?;
    let next = usize::from(event.emitted.index) + 1;
    let id = g.events.threads[thread].ids.get(next).copied().flatten()?;
    let half = &g.events[id].emitted;
    debug_assert_eq!(g.events[id].thread, Some(thread), "an event is where its thread has it");
    (half.kind == Kind::Write && half.mate() == Some(event.emitted.index)).then_some(id)
}

fn refuses_both<const W: usize>(
    g: &Graph<'_, W>,
    evaluator: &mut Evaluator<W>,
    (a, x): (EventId, EventId),
    (b, y): (EventId, EventId),
    source: EventId,
    cell: CellId,
    last: EventId,
) -> bool {
    let mut graph = small_graph(g, cell, &[source, x, y], &[(a, source), (b, source)], last);
    evaluator.enter(g.events.universe.name_after(last), &graph);
    let mark = evaluator.mark();
    let refused = refuses(evaluator, &mut graph);
    evaluator.back(&mark);
    refused
}

/// A graph of the events up to `last`: these writes and the initial one of a cell, these reads with their sources.
pub(crate) fn small_graph<const W: usize>(
    g: &Graph<'_, W>,
    cell: CellId,
    writes: &[EventId],
    reads: &[(EventId, EventId)],
    last: EventId,
) -> Inputs<W> {
    let n = last.index() + 1;
    debug_assert!(
        writes.iter().chain(reads.iter().map(|(read, _)| read)).all(|id| id.index() < n),
        "the last event is the last"
    );
    let mut graph = Inputs { n, sets: g.events.inputs.sets.clone(), ..Inputs::<W>::with_room(n) };
    (0..rels::RF).for_each(|r| graph.rels[r].copy_from_slice(&g.events.inputs.rels[r][..n]));
    graph.cells.writers = vec![bits::empty(); g.events.inputs.cells.writers.len()];
    let initial = EventId::initial(g.events.layout.cells[cell].instance);
    graph.present = bits::empty();
    for write in std::iter::once(initial).chain(writes.iter().copied()) {
        row::set(&mut graph.cells.writers[cell.index()], write);
        row::set(&mut graph.present, write);
        if write != initial {
            row::set(&mut graph.rels[rels::CO][initial.index()], write);
        }
    }
    for &(read, source) in reads {
        row::set(&mut graph.rels[rels::RF][source.index()], read);
        row::set(&mut graph.present, read);
        graph.cells.reads.push((read.number(), cell.number(), source.number()));
    }
    graph
}

/// Whether the model refuses a graph however its writes are ordered.
pub(crate) fn refuses<const W: usize>(evaluator: &mut Evaluator<W>, graph: &mut Inputs<W>) -> bool {
    match evaluator.partial(graph) {
        Solution::Violated(_) => true,
        Solution::Consistent { .. } => false,
        Solution::Open { a, b } => [(a, b), (b, a)].into_iter().all(|(x, y)| {
            let before = graph.rels[rels::CO].to_vec();
            let n = graph.n;
            bits::insert_closed(&mut graph.rels[rels::CO][..n], x, y);
            let mark = evaluator.mark();
            let refused = refuses(evaluator, graph);
            evaluator.back(&mark);
            graph.rels[rels::CO].copy_from_slice(&before);
            refused
        }),
    }
}
