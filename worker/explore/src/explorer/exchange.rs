//! Which of the executions that differ by exchanging threads is visited (`reduce.rs`, `alike.rs`).
//!
//! Contract: [`Search::is_exchanged`] says that some thread comes before one of its class with a lower number, in a strict
//! partial order that renaming threads renames; what it says of a graph it says of every larger one.

use super::Search;
use crate::alike::Class;
use crate::event::Kind;
use crate::interp::TraceEnd;
use crate::leaf::EventRef;
use moire_cat::bits;
use std::cmp::Ordering;

/// What a thread did at one of its positions, as far as it does not matter which of its class it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    /// Nothing: it had reached its exit.
    Over,
    /// Something that has no source.
    Other(u8),
    /// A read with its sources, by cell.
    Read(Vec<Source>),
}

/// A write: whether an initial one, one of a class, or of a thread that has none; which of these; its position.
type Source = (u8, usize, u16);

impl<const W: usize> Search<'_, W> {
    /// See the module header; about the graph judged just now.
    pub(super) fn is_exchanged(&self) -> bool {
        self.alike.classes.iter().any(|class| {
            let threads = &class.threads;
            (1..threads.len()).any(|b| (0..b).any(|a| self.comes_before(class, threads[b], threads[a])))
        })
    }

    fn comes_before(&self, class: &Class, first: usize, second: usize) -> bool {
        let Some(pc) = class.writes_at else { return self.reads_before(first, second) };
        let (Some(x), Some(y)) = (self.written_at(first, pc), self.written_at(second, pc)) else {
            return false;
        };
        let co = self.state.evaluator.coherence();
        co.get(x).is_some_and(|row| bits::has(row, y))
    }

    fn written_at(&self, thread: usize, pc: usize) -> Option<usize> {
        let ids = self.state.threads[thread].ids.iter().flatten().map(|id| usize::from(*id));
        ids.into_iter()
            .find(|id| self.state.events[*id].is_write() && self.state.events[*id].emitted.pc == pc)
    }

    /// By the first position at which they differ, if everything up to it is known.
    fn reads_before(&self, first: usize, second: usize) -> bool {
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
    fn fact(&self, thread: usize, index: usize) -> Option<Fact> {
        let state = &self.state;
        let own = &state.threads[thread];
        if own.trace.end == TraceEnd::Done && index >= own.trace.events.len() {
            return Some(Fact::Over);
        }
        let id = usize::from((*own.ids.get(index)?)?);
        match state.events[id].emitted.kind {
            Kind::Read if !bits::has(&state.present, id) => None,
            Kind::Read => state.sources[id]
                .iter()
                .map(|s| Some(self.named(usize::from((*s)?))))
                .collect::<Option<_>>()
                .map(Fact::Read),
            Kind::Write => Some(Fact::Other(0)),
            Kind::Fence => Some(Fact::Other(1)),
            Kind::Barrier(_) => Some(Fact::Other(2)),
            Kind::Mbarrier(_) | Kind::Allocator(_) => None,
        }
    }

    fn named(&self, write: usize) -> Source {
        let EventRef { thread, index } = self.state.reference(write);
        match self.alike.of.get(usize::from(thread)) {
            None => (0, 0, index),
            Some(Some(class)) => (1, *class, index),
            Some(None) => (2, usize::from(thread), index),
        }
    }
}
