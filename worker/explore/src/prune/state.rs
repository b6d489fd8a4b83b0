//! The state of a search: its graph, the verdict of the model on it, the threads at gates, and the pairs of
//! read-modify-writes that exclude each other.

use super::consistency::Consistency;
use super::exclusive::Exclusive;
use super::gates::Gates;
use super::may_write::{self, Causality};
use super::outlook::arrivals_without;
use crate::graph::graph::{Graph, NoGraph};
use crate::graph::ids::EventId;
use crate::thread::event::barrier::{BarrierObject, BarrierUse};
use crate::thread::flow::Flow;
use crate::thread::ids::CellId;
use crate::thread::trace::FrontEnd;
use moire_cat::eval::Solution;
use moire_cat::{Mark, Model};
use moire_program::ir::Program;
use std::rc::Rc;

/// The state of a search.
#[derive(Clone)]
pub(crate) struct State<'a, const W: usize> {
    pub(crate) model: &'a Model,
    pub(crate) graph: Graph<'a, W>,
    pub(crate) consistency: Consistency<W>,
    pub(crate) gates: Gates<W>,
    exclusive: Exclusive,
    causality: Causality,
}

impl<'a, const W: usize> State<'a, W> {
    pub(crate) fn new(
        program: &'a Program,
        model: &'a Model,
        front: FrontEnd,
        flows: &[Rc<Flow>],
    ) -> Result<Self, NoGraph> {
        let causality = Causality::new(program, model);
        Ok(State {
            model,
            graph: Graph::new(program, model, front, flows)?,
            consistency: Consistency::new(model, &causality.watched()),
            gates: Gates::new(program.threads.len()),
            exclusive: Exclusive::default(),
            causality,
        })
    }

    /// See [`may_write::may_be_written`].
    pub(crate) fn may_be_written(&self, cell: CellId, read: EventId, except: Option<EventId>) -> bool {
        may_write::may_be_written((&self.graph, &self.gates), cell, read, except)
    }

    /// Phases that an arrival at a barrier can join. A phase is passed over only if it may complete before the arrival: phases
    /// complete one after another, so as many lanes arrive before as all phases up to that one count.
    pub(crate) fn phases_for(&self, id: EventId, barrier: &BarrierUse) -> Vec<u16> {
        let mut phases = self.graph.phases.phases_for(&self.graph.events, id, barrier);
        let (Some(count), BarrierObject::Cta { instance: None, .. }) = (barrier.count, barrier.object) else {
            return phases;
        };
        if let Some(first) = phases.first().copied().filter(|_| phases.len() > 1)
            && let Some(most) = arrivals_without(&self.graph, id)
        {
            phases.retain(|p| *p == first || u64::from(*p) * u64::from(count) <= most);
        }
        phases
    }

    /// See [`may_write::hopeless`].
    pub(crate) fn hopeless(&self) -> bool {
        may_write::hopeless((&self.graph, &self.gates))
    }

    /// See [`Causality::too_late`].
    pub(crate) fn too_late(&self) -> bool {
        self.causality.too_late(&self.graph, &self.consistency.evaluator)
    }

    /// See [`Gates::waits_in_vain`].
    pub(crate) fn waits_in_vain(&self) -> bool {
        self.gates.waits_in_vain(&self.graph, self.consistency.evaluator.coherence())
    }

    /// See [`Exclusive::excludes`].
    pub(crate) fn exclusive(&mut self, a: EventId, b: EventId, source: EventId, cell: CellId) -> bool {
        self.exclusive.excludes(&self.graph, &mut self.consistency.evaluator, (a, b), source, cell)
    }

    /// See [`Consistency::enter`].
    pub(crate) fn enter(&mut self) -> Mark {
        self.consistency.enter(&self.graph)
    }

    /// See [`Consistency::partial`].
    pub(crate) fn partial(&mut self) -> Solution {
        self.consistency.partial(&mut self.graph)
    }

    /// See [`Consistency::contradicts`].
    pub(crate) fn contradicts(&mut self) -> bool {
        self.consistency.contradicts(&mut self.graph)
    }

    /// Whether a finished graph that is [plain](Consistency::plain) raises no flag either.
    pub(crate) fn simple(&self) -> bool {
        let events = &self.graph.events;
        events.universe.special == 0 && events.threads.iter().all(|t| t.trace.flags.is_empty())
    }
}
