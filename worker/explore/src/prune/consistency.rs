//! What the model says of a graph: whether it can still become an execution, and which coherence it has.
//!
//! Contract: a graph that is refused is in no execution, because only monotone checks are asked of a graph that is not
//! finished.

use crate::graph::graph::Graph;
use moire_cat::bits::Row;
use moire_cat::eval::{Evaluator, Solution};
use moire_cat::{CheckId, Mark, Model, NodeId};

/// The evaluator of the model, with the graph it was asked about last.
#[derive(Clone)]
pub(crate) struct Consistency<const W: usize> {
    pub(crate) evaluator: Evaluator<W>,
    /// Edits of the graph that was judged last.
    judged: Option<u64>,
}

impl<const W: usize> Consistency<W> {
    /// `watched`: definitions whose rows are asked for.
    pub(crate) fn new(model: &Model, watched: &[NodeId]) -> Self {
        let mut evaluator = Evaluator::new(model);
        evaluator.watch(watched);
        Consistency { evaluator, judged: None }
    }

    /// The graph judged last of this universe; [`Evaluator::back`] returns to it.
    pub(crate) fn enter(&mut self, g: &Graph<'_, W>) -> Mark {
        self.evaluator.enter(g.events.universe.name(), &g.events.inputs);
        self.evaluator.mark()
    }

    /// What the model says of the graph as far as it goes.
    pub(crate) fn partial(&mut self, g: &mut Graph<'_, W>) -> Solution {
        debug_assert_eq!(g.events.inputs.n, g.events.len(), "the model sees each event");
        self.evaluator.enter(g.events.universe.name(), &g.events.inputs);
        g.events.inputs.present = g.events.present;
        self.judged = Some(g.events.edits);
        self.evaluator.partial(&g.events.inputs)
    }

    /// Whether the graph is beyond repair.
    pub(crate) fn contradicts(&mut self, g: &mut Graph<'_, W>) -> bool {
        let mark = self.enter(g);
        let wrong = matches!(self.partial(g), Solution::Violated(_));
        self.evaluator.back(&mark);
        wrong
    }

    /// Whether the finished graph has one coherence and raises no flag; it stays loaded.
    pub(crate) fn plain(&mut self, g: &mut Graph<'_, W>) -> bool {
        debug_assert!(g.events.open.is_empty(), "a finished graph has no open read");
        self.evaluator.enter(g.events.universe.name(), &g.events.inputs);
        g.events.inputs.present = g.events.present;
        self.evaluator.plain(&g.events.inputs, self.judged == Some(g.events.edits))
    }

    /// Visits every coherence the finished graph can have; whether some order of the fence.sc was left untried.
    pub(crate) fn evaluate_leaf(
        &mut self,
        g: &mut Graph<'_, W>,
        mut visit: impl FnMut(&[Row<W>], &[Row<W>], &[(CheckId, Vec<Row<W>>)]),
    ) -> bool {
        let mark = self.enter(g);
        g.events.inputs.present = g.events.present;
        let found = self.evaluator.completions(&g.events.inputs, &mut |c| {
            visit(c.coherence, c.fences, c.flags);
        });
        self.evaluator.back(&mark);
        found.bounded
    }
}
