//! Read-modify-writes that cannot share a source.
//!
//! Two of them that read one write leave no place for the second in coherence, under most models. That is not built in:
//! the model is asked about the graph that holds just the two, their source, and one write and the initial one of the place,
//! and what it refuses there it refuses in every larger graph, because only monotone checks are asked. The answer depends on
//! the universe up to the last of these events and is kept under its name.

use crate::event::Kind;
use crate::memory::Access;
use crate::planted::Planted;
use crate::state::State;
use moire_cat::bits;
use moire_cat::eval::{Inputs, Solution};
use moire_cat::vocabulary::{rels, sets};

impl<const W: usize> State<'_, W> {
    /// Whether a read is half of an `atom` or a `red`.
    pub(crate) fn is_rmw(&self, read: usize) -> bool {
        self.events[read].emitted.labels & (1 << sets::ATOM | 1 << sets::RED) != 0
    }

    /// The write half of a read-modify-write that surely writes.
    fn other_half(&self, read: usize) -> Option<usize> {
        let event = &self.events[read];
        let thread = event.thread? as usize;
        let id = self.threads[thread].ids.get(usize::from(event.emitted.index) + 1).copied().flatten()?;
        let half = &self.events[usize::from(id)].emitted;
        (half.kind == Kind::Write && half.mate == Some(event.emitted.index)).then_some(usize::from(id))
    }

    /// Whether no execution has both reads take `source` at `cell`.
    pub(crate) fn exclusive(&mut self, a: usize, b: usize, source: usize, cell: usize) -> bool {
        let (Some(x), Some(y)) = (self.other_half(a), self.other_half(b)) else { return false };
        let anywhere = self.front.planted == Some(Planted::SharesAnywhere);
        let there = |a: &Access| (anywhere || usize::from(a.cell) == cell) && a.cells == 1;
        let one = |id: usize| self.events[id].emitted.access.as_ref().is_some_and(there);
        if !(one(a) && one(b) && one(x) && one(y)) {
            return false;
        }
        let last = x.max(y).max(source);
        let key = (self.universe.name_after(last), a.min(b) as u64, a.max(b) as u64, source as u64);
        if let Some(known) = self.shared.get(&key) {
            return *known;
        }
        let refused = self.refuses_both((a, x), (b, y), source, cell, last + 1);
        self.shared.insert(key, refused);
        refused
    }

    fn refuses_both(
        &mut self,
        (a, x): (usize, usize),
        (b, y): (usize, usize),
        source: usize,
        cell: usize,
        n: usize,
    ) -> bool {
        let mut graph = self.small_graph(cell, &[source, x, y], &[(a, source), (b, source)], n);
        self.evaluator.enter(self.universe.name_after(n - 1), &graph);
        let mark = self.evaluator.mark();
        let refused = self.refuses(&mut graph);
        self.evaluator.back(&mark);
        refused
    }

    /// A graph of the first `n` events: these writes and the initial one of a cell, these reads with their sources.
    pub(crate) fn small_graph(
        &self,
        cell: usize,
        writes: &[usize],
        reads: &[(usize, usize)],
        n: usize,
    ) -> Inputs<W> {
        let mut graph = Inputs { n, sets: self.inputs.sets.clone(), ..Inputs::<W>::with_room(n) };
        (0..rels::RF).for_each(|r| graph.rels[r].copy_from_slice(&self.inputs.rels[r][..n]));
        graph.cells.writers = vec![bits::empty(); self.inputs.cells.writers.len()];
        let initial = usize::from(self.layout.cells[cell].instance);
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        graph.present = bits::empty();
        for write in std::iter::once(initial).chain(writes.iter().copied()) {
            bits::set(&mut graph.cells.writers[cell], write);
            bits::set(&mut graph.present, write);
            if write != initial {
                bits::set(&mut graph.rels[rels::CO][initial], write);
            }
        }
        for &(read, source) in reads {
            bits::set(&mut graph.rels[rels::RF][source], read);
            bits::set(&mut graph.present, read);
            graph.cells.reads.push((narrow(read), narrow(cell), narrow(source)));
        }
        graph
    }

    /// Whether the model refuses a graph however its writes are ordered.
    pub(crate) fn refuses(&mut self, graph: &mut Inputs<W>) -> bool {
        match self.evaluator.partial(graph) {
            Solution::Violated(_) => true,
            Solution::Consistent { .. } => false,
            Solution::Open { a, b } => [(a, b), (b, a)].into_iter().all(|(x, y)| {
                let before = graph.rels[rels::CO].to_vec();
                let n = graph.n;
                bits::insert_closed(&mut graph.rels[rels::CO][..n], x, y);
                let mark = self.evaluator.mark();
                let refused = self.refuses(graph);
                self.evaluator.back(&mark);
                graph.rels[rels::CO].copy_from_slice(&before);
                refused
            }),
        }
    }
}
