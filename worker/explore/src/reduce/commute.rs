//! Atomics that leave one value whatever their order.
//!
//! Let the writes of a place be the initial one and those of atomics that are functions of what they read, any two of which
//! give one result in both orders. Asked of the model, for every two of them: no write is read by both
//! ([`State::exclusive`]); and if one reads what the other writes, coherence has them so, not the other way round, not
//! undecided. Refusals, forced and wanted orders are all found again in larger graphs. Then the atomics form one chain from
//! the initial write on: each source has one reader, and a cycle of sources would be one of coherence. Coherence has the
//! chain in order, the last write is the only one nothing comes after, and it holds the result of all.

use crate::graph::graph::Graph;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::prune::exclusive::{refuses, small_graph};
use crate::prune::state::State;
use crate::thread::event::Kind;
use crate::thread::ids::{CellId, Id};
use moire_cat::bits;
use moire_cat::eval::Evaluator;
use moire_cat::eval::Solution;
use moire_cat::vocabulary::rels;

/// Whether all executions of this universe leave one value in a cell that atomics of one kind write.
pub(crate) fn commutes<const W: usize>(state: &mut State<'_, W>, cell: CellId) -> bool {
    let writes: Vec<EventId> = row::events(&state.graph.events.universe.writes[cell]).collect();
    let Some(pairs) = writes.iter().map(|w| atomic(&state.graph, *w, cell)).collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let initial = EventId::initial(state.graph.events.layout.cells[cell].instance);
    let sources: Vec<EventId> = std::iter::once(initial).chain(writes).collect();
    for (i, (a, x)) in pairs.iter().enumerate() {
        for (b, y) in pairs.iter().take(i) {
            let shared = |s: &&EventId| **s != *x && **s != *y;
            let apart: Vec<EventId> = sources.iter().filter(shared).copied().collect();
            if !apart.into_iter().all(|s| state.exclusive(*a, *b, s, cell))
                || !follows(&state.graph, &mut state.consistency.evaluator, *x, (*b, *y), cell)
                || !follows(&state.graph, &mut state.consistency.evaluator, *y, (*a, *x), cell)
            {
                return false;
            }
        }
    }
    true
}

/// The halves of the atomic a write belongs to, if it touches this cell only.
fn atomic<const W: usize>(g: &Graph<'_, W>, write: EventId, cell: CellId) -> Option<(EventId, EventId)> {
    let event = &g.events[write];
    let thread = event.thread?;
    let read = g.events.threads[thread].ids[usize::from(event.emitted.mate()?)]?;
    let here = |id: EventId| g.events[id].emitted.access.is_some_and(|a| a.cell == cell && a.cells == 1);
    let whole = g.events[read].emitted.kind == Kind::Read && here(read) && here(write);
    whole.then_some((read, write))
}

/// Whether coherence has `first` before the atomic that reads it, in every graph.
fn follows<const W: usize>(
    g: &Graph<'_, W>,
    evaluator: &mut Evaluator<W>,
    first: EventId,
    (read, write): (EventId, EventId),
    cell: CellId,
) -> bool {
    let last = first.max(read).max(write);
    let mut graph = small_graph(g, cell, &[first, write], &[(read, first)], last);
    evaluator.enter(g.events.universe.name_after(last), &graph);
    let mark = evaluator.mark();
    let follows = match evaluator.partial(&graph) {
        Solution::Violated(_) => true,
        Solution::Consistent { .. } => row::has(&evaluator.coherence()[first.index()], write),
        Solution::Open { .. } => {
            let n = graph.n;
            bits::insert_closed(&mut graph.rels[rels::CO][..n], write.index(), first.index());
            refuses(evaluator, &mut graph)
        }
    };
    evaluator.back(&mark);
    follows
}
