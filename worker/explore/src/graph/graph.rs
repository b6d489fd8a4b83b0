//! An execution graph under construction, as the sum of its parts, and how it grows: threads run, and what they emit
//! enters the graph.
//!
//! Invariant: each part holds one entry an event; [`Graph::reset`] drops what came after a mark in all of them.

use super::allocation::Allocations;
use super::barriers::Phases;
use super::event::Event;
use super::events::{Events, Point};
use super::ids::EventId;
use super::mbarriers::{Floor, Mbarriers};
use super::row;
use crate::thread::flow::Flow;
use crate::thread::layout::Layout;
use crate::thread::run::run;
use crate::thread::runs::Runs;
use crate::thread::trace::{FrontEnd, Gate, TraceEnd, View};
use crate::visit::Abstain;
use moire_cat::Model;
use moire_program::ir::*;
use smallvec::SmallVec;
use std::rc::Rc;

/// An execution graph under construction.
#[derive(Clone)]
pub(crate) struct Graph<'a, const W: usize> {
    pub(crate) events: Events<'a, W>,
    pub(crate) phases: Phases,
    pub(crate) mbarriers: Mbarriers,
    pub(crate) allocations: Allocations,
    runs: Runs,
}

/// Why there is no graph to start from.
pub(crate) enum NoGraph {
    /// Rows have fewer bits than the program has events.
    TooWide,
    /// A loop that changes state runs past the loop bound before its thread needs an answer: it does so in every execution.
    Bound,
    Abstain(Abstain),
}

impl<'a, const W: usize> Graph<'a, W> {
    /// The graph of the initial writes, and of what each thread does before it needs an answer.
    pub(crate) fn new(
        program: &'a Program,
        model: &Model,
        front: FrontEnd,
        flows: &[Rc<Flow>],
    ) -> Result<Self, NoGraph> {
        let abstain = |reason: &str| NoGraph::Abstain(Abstain { reason: reason.into(), line: 0 });
        let layout = Layout::new(program).ok_or_else(|| abstain("memory of more than 65535 cells"))?;
        let mut graph = Graph {
            events: Events::new(program, layout, front, flows),
            phases: Phases::default(),
            mbarriers: Mbarriers::default(),
            allocations: Allocations::new(program, model),
            runs: Runs::default(),
        };
        for write in graph.events.initial_writes() {
            graph.push(write).ok_or(NoGraph::TooWide)?;
        }
        graph.events.place_initial_writes();
        for thread in graph.events.threads.ids() {
            match graph.refresh_thread(thread) {
                Ok(()) => {}
                Err(TraceEnd::Unsupported(reason, line)) => {
                    return Err(NoGraph::Abstain(Abstain { reason, line }));
                }
                Err(TraceEnd::Bound) => return Err(NoGraph::Bound),
                Err(TraceEnd::SpinFail) => return Err(abstain("an endless loop that reads nothing")),
                Err(_) => return Err(NoGraph::TooWide),
            }
        }
        graph.events.settle_all();
        Ok(graph)
    }

    /// Adds an event to the universe; `None` when rows are too narrow.
    fn push(&mut self, event: Event) -> Option<EventId> {
        let id = self.events.push(event)?;
        self.phases.of.push(None);
        self.mbarriers.places.push(None);
        self.mbarriers.floors.push(Floor::default());
        self.allocations.granted.push(None);
        self.allocations.put_off.push(0);
        debug_assert!(self.is_aligned(), "each part has one entry an event");
        Some(id)
    }

    /// Whether each part has one entry an event.
    fn is_aligned(&self) -> bool {
        let n = self.events.len();
        [
            self.phases.of.len(),
            self.mbarriers.places.len(),
            self.mbarriers.floors.len(),
            self.allocations.granted.len(),
            self.allocations.put_off.len(),
        ]
        .into_iter()
        .all(|len| len == n)
    }

    /// A point to which [`Graph::reset`] returns.
    pub(crate) fn mark(&self) -> Point {
        self.events.mark()
    }

    pub(crate) fn reset(&mut self, mark: Point) {
        self.events.reset(mark);
        let n = self.events.len();
        if n == self.phases.of.len() {
            return;
        }
        self.phases.of.truncate(n);
        self.mbarriers.places.truncate(n);
        self.mbarriers.floors.truncate(n);
        self.allocations.granted.truncate(n);
        self.allocations.put_off.truncate(n);
        debug_assert!(self.is_aligned(), "each part has one entry an event");
    }

    /// Re-interprets the threads of these reads, and every thread a barrier then lets go.
    pub(crate) fn refresh(&mut self, reads: &[EventId]) -> Result<(), TraceEnd> {
        let mut done: SmallVec<[ThreadId; 8]> = SmallVec::new();
        for read in reads {
            let thread = self.events[*read].thread.expect("reads belong to threads");
            debug_assert!(row::has(&self.events.present, *read), "a read that has a value is placed");
            let idle = !self.events.threads[thread].flow.uses_loads
                && self.events.threads[thread].trace.end == TraceEnd::Done;
            if !idle && !done.contains(&thread) {
                done.push(thread);
                self.refresh_thread(thread)?;
            }
        }
        if done.is_empty() { Ok(()) } else { self.refresh_waiting() }
    }

    /// Re-interprets threads that wait at barriers until none moves.
    pub(crate) fn refresh_waiting(&mut self) -> Result<(), TraceEnd> {
        loop {
            let mut moved = false;
            for thread in self.events.threads.ids() {
                if let TraceEnd::Barrier(index) = self.events.threads[thread].trace.end {
                    let view = Answers { graph: self, thread };
                    if view.passed(index).is_some() {
                        self.refresh_thread(thread)?;
                        moved = true;
                    }
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Runs one thread again and takes its new events into the universe. The error says why the run is no part of an
    /// execution (its events are in the universe all the same, until the caller resets).
    pub(crate) fn refresh_thread(&mut self, thread: ThreadId) -> Result<(), TraceEnd> {
        let flow = Rc::clone(&self.events.threads[thread].flow);
        let mut runs = std::mem::take(&mut self.runs);
        let trace = runs.of((thread, &flow), &Answers { graph: self, thread }, |view| {
            run(self.events.program, &self.events.layout, &flow, thread, self.events.front, view)
        });
        self.runs = runs;
        self.events.replace_run(thread, Rc::clone(&trace));
        for (index, event) in trace.events.iter().enumerate() {
            if self.events.threads[thread].ids.len() <= index {
                self.events.threads[thread].ids.push(None);
            }
            let (None, Some(emitted)) = (self.events.threads[thread].ids[index], event) else { continue };
            let event = Event { thread: Some(thread), emitted: emitted.clone() };
            let Some(new) = self.push(event) else { return Err(TraceEnd::Done) };
            self.events.threads[thread].ids[index] = Some(new);
        }
        match &trace.end {
            end @ (TraceEnd::SpinFail | TraceEnd::Bound | TraceEnd::Unsupported(..)) => Err(end.clone()),
            _ => Ok(()),
        }
    }
}

/// What the interpreter may ask about one thread.
pub(crate) struct Answers<'s, 'a, const W: usize> {
    pub(crate) graph: &'s Graph<'a, W>,
    pub(crate) thread: ThreadId,
}

impl<const W: usize> Answers<'_, '_, W> {
    fn id(&self, index: u16) -> Option<EventId> {
        self.graph.events.threads[self.thread].ids.get(index as usize).copied().flatten()
    }
}

impl<const W: usize> View for Answers<'_, '_, W> {
    fn read(&self, index: u16) -> Option<Value> {
        let id = self.id(index)?;
        let access = self.graph.events[id].emitted.access?;
        let mut value = 0;
        if self.unknown(index) {
            return None;
        }
        for (slot, source) in self.graph.events.sources[id].iter().enumerate() {
            let cell = access.cell_at(slot);
            let shift = 8 * (self.graph.events.layout.cells[cell].offset - access.offset);
            value |= self.graph.events.cell_value((*source)?, cell) << shift;
        }
        Some(value)
    }

    fn unknown(&self, index: u16) -> bool {
        let Some(id) = self.id(index) else { return false };
        let sources = &self.graph.events.sources[id];
        sources.iter().all(Option::is_some)
            && sources.iter().flatten().any(|w| self.graph.events.writes_unknown(*w))
    }

    fn passed(&self, index: u16) -> Option<Value> {
        let id = self.id(index)?;
        if self.graph.events[id].allocator().is_some() {
            return self.graph.allocations.allocator_passed(&self.graph.events, id);
        }
        (self.graph.phases.of[id].is_some() && self.graph.phases.complete(&self.graph.events, id))
            .then(|| self.graph.phases.reduction(&self.graph.events, id))
    }

    fn answer(&self, index: u16) -> Option<Value> {
        let id = self.id(index)?;
        let (place, used) = (self.graph.mbarriers.places[id]?, self.graph.events[id].mbarrier()?);
        Some(self.graph.mbarriers.answer_at(&self.graph.events, used, place))
    }

    fn gate(&self, index: u16) -> Gate {
        let known = self.graph.events.threads[self.thread].gates.iter().find(|g| g.0 == index);
        known.map_or(Gate::Closed, |g| g.1)
    }
}

/// A view with one gate opened and some reads answered, to see where that leads.
pub(crate) struct Trial<'s, 'a, const W: usize> {
    pub(crate) inner: Answers<'s, 'a, W>,
    pub(crate) gate: u16,
    pub(crate) given: &'s [(u16, Value)],
}

impl<const W: usize> Trial<'_, '_, W> {
    fn given(&self, index: u16) -> Option<Value> {
        self.given.iter().find(|g| g.0 == index).map(|g| g.1)
    }
}

impl<const W: usize> View for Trial<'_, '_, W> {
    fn read(&self, index: u16) -> Option<Value> {
        self.given(index).or_else(|| self.inner.read(index))
    }

    fn unknown(&self, index: u16) -> bool {
        self.given(index).is_none() && self.inner.unknown(index)
    }

    fn passed(&self, index: u16) -> Option<Value> {
        self.inner.passed(index)
    }

    fn answer(&self, index: u16) -> Option<Value> {
        self.given(index).or_else(|| self.inner.answer(index))
    }

    fn gate(&self, index: u16) -> Gate {
        if index == self.gate { Gate::Open } else { self.inner.gate(index) }
    }
}
