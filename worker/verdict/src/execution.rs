//! Executions as an answer holds them: events with their instructions, and the edges between them.

use crate::finding::Place;
use moire_execution::leaf;
use moire_program::ir::Program;
use moire_program::text::instruction;
use schemars::JsonSchema;
use serde::Serialize;

/// One execution in full. Events are named by their positions in `events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Execution {
    /// Initial writes first, then the events of each thread in program order.
    pub events: Vec<Event>,
    /// The edges.
    pub edges: Vec<Edge>,
}

/// An event of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Event {
    /// The thread; none for an initial write.
    pub thread: Option<String>,
    /// The number of events of the thread before it.
    pub index: u16,
    /// The line of the text; 0 for initial writes and generated programs.
    pub line: u32,
    /// `R`, `W`, `F`, `B`, `M` (mbarrier), `A` (allocator), `init`, `exit`; `issue` of an asynchronous instruction, and what it
    /// does then: `tmem`, `async R`, `async W`, `async M`.
    pub label: String,
    /// The object and offset of an access.
    pub location: Option<String>,
    /// The value that is read or written.
    pub value: Option<u64>,
    /// The instruction, where its line has no other.
    pub instruction: Option<String>,
}

impl Event {
    /// Thread and index, or `init`.
    pub fn name(&self) -> String {
        self.thread.as_ref().map_or("init".to_owned(), |thread| format!("{thread}.{}", self.index))
    }
}

/// An edge of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edge {
    /// `rf`, `co`, `rmw`, `syncbar`, `sync_fence`.
    pub kind: String,
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
}

impl Execution {
    /// Two accesses at these threads and lines: the first ones of one place of which one writes, or else the first ones.
    pub fn pair(&self, a: &Place, b: &Place) -> Option<(usize, usize)> {
        let all = |place: &Place| -> Vec<usize> {
            let own = |e: &Event| {
                e.thread.as_ref() == Some(&place.thread) && e.line == place.line && e.location.is_some()
            };
            (0..self.events.len()).filter(|n| own(&self.events[*n])).collect()
        };
        let (of_a, of_b) = (all(a), all(b));
        let conflict = |(a, b): &(usize, usize)| {
            let (a, b) = (&self.events[*a], &self.events[*b]);
            a.location == b.location && [a, b].iter().any(|e| e.label.ends_with('W'))
        };
        let mut pairs = of_a.iter().flat_map(|a| of_b.iter().map(move |b| (*a, *b)));
        let first = pairs.clone().next();
        pairs.find(conflict).or(first)
    }

    /// An execution that an engine found.
    pub fn new(program: &Program, witness: &leaf::Witness) -> Self {
        let one = |e: &leaf::WitnessEvent| {
            let thread = program.threads.get(usize::from(e.event.thread));
            let mut here = thread.into_iter().flat_map(|t| t.body.iter().map(move |i| (t, i)));
            let mut here = here.by_ref().filter(|i| e.line > 0 && i.1.line == e.line);
            let alone = match (here.next(), here.next()) {
                (Some(one), None) => Some(one),
                _ => None,
            };
            Event {
                thread: thread.map(|t| t.name.clone()),
                index: e.event.index,
                line: e.line,
                label: e.kind.clone(),
                location: e.location.clone(),
                value: e.value,
                instruction: alone.map(|(thread, instr)| instruction(program, thread, instr)),
            }
        };
        let edge =
            |(kind, from, to): &(String, usize, usize)| Edge { kind: kind.clone(), from: *from, to: *to };
        Execution {
            events: witness.events.iter().map(one).collect(),
            edges: witness.edges.iter().map(edge).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_accesses_of_one_place_are_the_pair() {
        let event = |thread: &str, index, label: &str, location: &str| Event {
            thread: Some(thread.to_owned()),
            index,
            line: if thread == "P0" { 5 } else { 6 },
            label: label.to_owned(),
            location: Some(location.to_owned()),
            value: None,
            instruction: None,
        };
        let events = vec![
            event("P0", 0, "W", "x"),
            event("P0", 1, "W", "f"),
            event("P1", 0, "R", "f"),
            event("P1", 1, "R", "x"),
        ];
        let execution = Execution { events, edges: Vec::new() };
        let place = |thread: &str, line| Place { thread: thread.to_owned(), line };
        assert_eq!(execution.pair(&place("P0", 5), &place("P1", 6)), Some((0, 3)));
        assert_eq!(execution.pair(&place("P1", 6), &place("P1", 6)), Some((2, 2)), "nothing writes");
        assert_eq!(execution.pair(&place("P0", 5), &place("P1", 7)), None);
    }
}
