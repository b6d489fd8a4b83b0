//! Cache of runs: a thread that gets the same answers again is not interpreted again.
//!
//! What a thread does is a function of the answers it gets: which question comes next depends on the earlier answers only.
//! So runs form a tree with a question at each inner node, an answer on each edge and a trace at each leaf. Of a load whose value is only compared with constants, the results are
//! the answer ([`crate::thread::tested`]). What is kept is bounded ([`MAX_NODES`], [`MAX_EVENTS`]).

use super::flow::Flow;
use super::trace::{Gate, Trace, View};
use moire_program::ir::{ThreadId, Value};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Most questions and traces kept.
const MAX_NODES: usize = 20_000;
/// Most events in the traces kept, some hundred bytes each.
const MAX_EVENTS: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Read(u16),
    /// Of an event, the load at this pc.
    Loaded(u16, usize),
    Passed(u16),
    Answer(u16),
    Unknown(u16),
    Gate(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reply {
    Value(Option<Value>),
    /// What comparisons of a value say, a bit each.
    Answers(u64),
    Truth(bool),
    Gate(Gate),
}

#[derive(Clone, Debug)]
enum Node {
    Asks(Question),
    Ends(Rc<Trace>),
}

/// The cache of runs of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    nodes: Vec<Node>,
    /// By thread.
    roots: FxHashMap<ThreadId, usize>,
    edges: FxHashMap<(usize, Reply), usize>,
    /// In all traces that are kept.
    events: usize,
}

impl Runs {
    /// The run of a thread under a view, made by `run` where it is not known.
    pub(crate) fn of<V: View>(
        &mut self,
        (thread, flow): (ThreadId, &Flow),
        view: &V,
        run: impl FnOnce(&Recorder<'_, V>) -> Trace,
    ) -> Rc<Trace> {
        let mut at = self.roots.get(&thread).copied();
        while let Some(node) = at {
            match &self.nodes[node] {
                Node::Ends(trace) => return Rc::clone(trace),
                Node::Asks(question) => at = self.edges.get(&(node, ask(view, flow, *question).0)).copied(),
            }
        }
        let recorder = Recorder { view, flow, heard: RefCell::new(Vec::new()) };
        let trace = Rc::new(run(&recorder));
        let heard = recorder.heard.into_inner();
        if self.nodes.len() + heard.len() < MAX_NODES && self.events + trace.events.len() < MAX_EVENTS {
            self.events += trace.events.len();
            self.keep(thread, &heard, &trace);
        }
        trace
    }

    fn keep(&mut self, thread: ThreadId, heard: &[(Question, Reply)], trace: &Rc<Trace>) {
        let mut edge: Option<(usize, Reply)> = None;
        for (question, reply) in heard {
            let node = self.next(thread, edge, || Node::Asks(*question));
            edge = Some((node, *reply));
        }
        self.next(thread, edge, || Node::Ends(Rc::clone(trace)));
    }

    /// The node behind an edge, or the first of a thread; a new one if there is none.
    fn next(&mut self, thread: ThreadId, edge: Option<(usize, Reply)>, make: impl FnOnce() -> Node) -> usize {
        let new = self.nodes.len();
        let node = match edge {
            None => *self.roots.entry(thread).or_insert(new),
            Some(edge) => *self.edges.entry(edge).or_insert(new),
        };
        if node == new {
            self.nodes.push(make());
        }
        node
    }
}

/// What a run may depend on, and the value behind it.
fn ask<V: View>(view: &V, flow: &Flow, question: Question) -> (Reply, Option<Value>) {
    let value = |value| (Reply::Value(value), value);
    match question {
        Question::Read(index) => value(view.read(index)),
        Question::Loaded(index, pc) => match (view.loaded(index, pc), &flow.tests[pc]) {
            (Some(value), Some(tests)) => (Reply::Answers(tests.answers(value)), Some(value)),
            (other, _) => value(other),
        },
        Question::Passed(index) => value(view.passed(index)),
        Question::Answer(index) => value(view.answer(index)),
        Question::Unknown(index) => (Reply::Truth(view.unknown(index)), None),
        Question::Gate(index) => (Reply::Gate(view.gate(index)), None),
    }
}

/// A view that notes what was asked.
pub(crate) struct Recorder<'v, V> {
    view: &'v V,
    flow: &'v Flow,
    heard: RefCell<Vec<(Question, Reply)>>,
}

impl<V: View> Recorder<'_, V> {
    fn note(&self, question: Question) -> (Reply, Option<Value>) {
        let (reply, value) = ask(self.view, self.flow, question);
        self.heard.borrow_mut().push((question, reply));
        (reply, value)
    }
}

impl<V: View> View for Recorder<'_, V> {
    fn read(&self, index: u16) -> Option<Value> {
        self.note(Question::Read(index)).1
    }

    fn loaded(&self, index: u16, pc: usize) -> Option<Value> {
        self.note(Question::Loaded(index, pc)).1
    }

    fn passed(&self, index: u16) -> Option<Value> {
        self.note(Question::Passed(index)).1
    }

    fn answer(&self, index: u16) -> Option<Value> {
        self.note(Question::Answer(index)).1
    }

    fn unknown(&self, index: u16) -> bool {
        self.note(Question::Unknown(index)).0 == Reply::Truth(true)
    }

    fn gate(&self, index: u16) -> Gate {
        match self.note(Question::Gate(index)).0 {
            Reply::Gate(gate) => gate,
            _ => Gate::Closed,
        }
    }
}
