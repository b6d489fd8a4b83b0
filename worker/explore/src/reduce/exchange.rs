//! Which of the executions that differ by exchanging symmetric threads is visited.
//!
//! Contract: [`Exchange::is_exchanged`] says that some thread comes before one of its class with a lower number, in a strict
//! partial order that renaming threads renames. What it says of a graph it says of every larger one.

use super::symmetry::{Alike, Class};
use crate::graph::graph::Graph;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::thread::event::Kind;
use crate::thread::ids::Id;
use crate::thread::trace::TraceEnd;
use moire_cat::bits::Row;
use moire_program::ir::ThreadId;
use std::cmp::Ordering;

/// What a thread did at one of its positions, as far as it does not matter which of its class it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    /// Nothing: it had reached its exit.
    Over,
    /// Something that has no source.
    Other(u8),
    /// A read with its sources, by cell.
    Read(Vec<Origin>),
}

/// A write: whether an initial one, one of a class, or of a thread that has none; which of these; its position.
type Origin = (u8, usize, u16);

/// A graph judged just now, with the threads that can be exchanged.
pub(crate) struct Exchange<'s, 'a, const W: usize> {
    pub(crate) alike: &'s Alike,
    pub(crate) graph: &'s Graph<'a, W>,
    pub(crate) coherence: &'s [Row<W>],
}

impl<const W: usize> Exchange<'_, '_, W> {
    /// Whether, in the graph judged last, some thread comes before one of its class with a lower number.
    pub(crate) fn is_exchanged(&self) -> bool {
        self.alike.classes.iter().any(|class| {
            let threads = &class.threads;
            (1..threads.len()).any(|b| (0..b).any(|a| self.comes_before(class, threads[b], threads[a])))
        })
    }

    fn comes_before(&self, class: &Class, first: ThreadId, second: ThreadId) -> bool {
        let Some(pc) = class.writes_at else { return self.reads_before(first, second) };
        let (Some(x), Some(y)) = (self.written_at(first, pc), self.written_at(second, pc)) else {
            return false;
        };
        let co = self.coherence;
        co.get(x.index()).is_some_and(|row| row::has(row, y))
    }

    fn written_at(&self, thread: ThreadId, pc: usize) -> Option<EventId> {
        let ids = self.graph.events.threads[thread].ids.iter().flatten();
        ids.copied().find(|id| self.graph.events[*id].is_write() && self.graph.events[*id].emitted.pc == pc)
    }

    /// By the first position at which they differ, if everything up to it is known.
    fn reads_before(&self, first: ThreadId, second: ThreadId) -> bool {
        for index in 0.. {
            let (Some(x), Some(y)) = (self.fact(first, index), self.fact(second, index)) else {
                return false;
            };
            match x.cmp(&y) {
                Ordering::Equal if x == Fact::Over => return false,
                Ordering::Equal => {}
                different => return different == Ordering::Less,
            }
        }
        false
    }

    /// `None` as long as it may change.
    fn fact(&self, thread: ThreadId, index: usize) -> Option<Fact> {
        let own = &self.graph.events.threads[thread];
        if own.trace.end == TraceEnd::Done && index >= own.trace.events.len() {
            return Some(Fact::Over);
        }
        let id = (*own.ids.get(index)?)?;
        match self.graph.events[id].emitted.kind {
            Kind::Read if !row::has(&self.graph.events.present, id) => None,
            Kind::Read => self.graph.events.sources[id]
                .iter()
                .map(|s| Some(self.named((*s)?)))
                .collect::<Option<_>>()
                .map(Fact::Read),
            Kind::Write => Some(Fact::Other(0)),
            Kind::Fence => Some(Fact::Other(1)),
            Kind::Barrier(_) => Some(Fact::Other(2)),
            Kind::Mbarrier(_) | Kind::Allocator(_) => None,
        }
    }

    fn named(&self, write: EventId) -> Origin {
        let event = &self.graph.events[write];
        let index = event.emitted.index;
        match event.thread.map(|thread| (thread, self.alike.of[thread])) {
            None => (0, 0, index),
            Some((_, Some(class))) => (1, class, index),
            Some((thread, None)) => (2, thread.index(), index),
        }
    }
}
