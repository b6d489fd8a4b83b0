//! Decisions at barriers, mbarriers, allocators of tensor memory, and in front of loops that may spin.

use super::explorer::{Found, Search, Stop, Then};
use crate::graph::allocation::Turn;
use crate::graph::events::Source;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::planted::Planted;
use crate::prune::gates::Entry;
use crate::prune::mbarriers;
use crate::thread::event::Kind;
use crate::thread::event::barrier::BarrierUse;
use crate::thread::trace::{Gate, TraceEnd};
use crate::visit::Abstain;
use moire_cat::bits;
use moire_program::ir::ThreadId;

/// An alternative as a number of a path.
fn number(choice: usize) -> u32 {
    u32::try_from(choice).expect("a decision has few alternatives")
}

impl<const W: usize> Search<'_, W> {
    /// Lets a barrier event join each phase it can.
    pub(super) fn place_barrier(&mut self, id: EventId, then: Then<Self>) -> Found {
        let Kind::Barrier(barrier) = self.state.graph.events[id].emitted.kind else { return Ok(()) };
        if self.state.graph.phases.arrives_again(&self.state.graph.events, id, &barrier) {
            let reason = "a barrier for all threads where the thread has arrived before".to_owned();
            return Err(Stop::Abstain(Abstain { reason, line: self.state.graph.events[id].emitted.line }));
        }
        let phases = self.state.phases_for(id, &barrier);
        debug_assert!(phases.is_sorted(), "alternatives have an order");
        if phases.is_empty() {
            let reason = "more arrivals at a barrier than its count".to_owned();
            return self.unsupported(reason, self.state.graph.events[id].emitted.line);
        }
        self.decide(|search| {
            for (choice, phase) in phases.iter().enumerate() {
                if choice > 0 && search.has(Planted::FirstPhase) {
                    continue;
                }
                if !search.take(number(choice)) {
                    continue;
                }
                let result = search.join_phase(id, &barrier, *phase, then);
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    fn join_phase(&mut self, id: EventId, barrier: &BarrierUse, phase: u16, then: Then<Self>) -> Found {
        self.state.graph.phases.join_phase(&mut self.state.graph.events, id, barrier, phase);
        let result = self.wake(then);
        self.state.graph.phases.leave_phase(&mut self.state.graph.events, id);
        result
    }

    /// Re-interprets every thread that waits at a barrier, as long as that moves one; then continues.
    fn wake(&mut self, then: impl FnOnce(&mut Self) -> Found) -> Found {
        self.rerun(|state| state.graph.refresh_waiting(), then)
    }

    /// Gives an operation on an mbarrier each place it can have now, and puts it off; if `sure`, it has one place.
    pub(super) fn place_mbarrier(&mut self, id: EventId, sure: bool) -> Found {
        self.decide(|search| search.places(id, sure))
    }

    fn places(&mut self, id: EventId, sure: bool) -> Found {
        let places = mbarriers::choices_for(&self.state.graph, id);
        for (choice, place) in places.iter().enumerate() {
            if self.has(Planted::FirstPlace) && choice > 0 {
                continue;
            }
            if !self.take(number(choice)) {
                continue;
            }
            self.state.graph.mbarriers.take_place(&mut self.state.graph.events, id, *place);
            let result = self.close_phase(id, sure);
            self.state.graph.mbarriers.leave_place(&mut self.state.graph.events, id);
            self.path.pop();
            result?;
        }
        if !sure && mbarriers::may_put_off(&self.state.graph, id) && self.take(number(places.len())) {
            let old = self.state.graph.mbarriers.put_off(&self.state.graph.events, id);
            debug_assert_ne!(
                self.state.graph.mbarriers.floors[id], old,
                "what is put off goes past something"
            );
            let result = self.visit();
            self.state.graph.mbarriers.floors[id] = old;
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// The phase that `id` joined completes as soon as it adds up, or stays open for a later operation.
    fn close_phase(&mut self, id: EventId, sure: bool) -> Found {
        let Some(open) = self.state.graph.mbarriers.may_stay_open(&self.state.graph.events, id) else {
            return self.answered(id, sure);
        };
        self.state.graph.mbarriers.kept_open.push(open);
        let joined = mbarriers::may_join_open(&self.state.graph, &open);
        self.state.graph.mbarriers.kept_open.pop();
        if !joined {
            return self.answered(id, sure);
        }
        self.decide(|search| {
            for choice in 0..2 {
                if !search.take(choice) {
                    continue;
                }
                if choice == 1 {
                    search.state.graph.mbarriers.kept_open.push(open);
                }
                let result = search.answered(id, false);
                if choice == 1 {
                    search.state.graph.mbarriers.kept_open.pop();
                }
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    /// Hands its answer to the thread of `id`, if it wants one, and goes on.
    fn answered(&mut self, id: EventId, sure: bool) -> Found {
        let answers = self.state.graph.events[id].mbarrier().is_some_and(|u| u.act.answers());
        let then = if sure { Self::judge_later } else { Self::judge };
        if answers { self.resolved(&[id], then) } else { then(self) }
    }

    /// Decides something at the allocators of tensor memory.
    pub(super) fn allocation(&mut self, turn: Turn) -> Found {
        match turn {
            Turn::Grant(id) => self.grant(id),
            Turn::Meeting | Turn::Offer(_) => self.decide(|search| search.turns(turn)),
        }
    }

    fn turns(&mut self, turn: Turn) -> Found {
        match turn {
            Turn::Meeting => {
                debug_assert_eq!(self.state.graph.allocations.meeting, None, "it is decided once");
                for meeting in self.state.graph.allocations.meetings() {
                    if self.take(u32::from(*meeting)) {
                        self.state.graph.allocations.meeting = Some(*meeting);
                        let result = self.wake(Self::visit);
                        self.state.graph.allocations.meeting = None;
                        self.path.pop();
                        result?;
                    }
                }
                Ok(())
            }
            Turn::Grant(id) => self.grant(id),
            Turn::Offer(id) => {
                if self.take(0) {
                    let result = self.grant(id);
                    self.path.pop();
                    result?;
                }
                if !self.has(Planted::FirstCome)
                    && self.state.graph.allocations.may_wait(&self.state.graph.events, id)
                    && self.take(1)
                {
                    let later = self.state.graph.allocations.after_next(&self.state.graph.events, id);
                    let old = std::mem::replace(&mut self.state.graph.allocations.put_off[id], later);
                    let result = self.visit();
                    self.state.graph.allocations.put_off[id] = old;
                    self.path.pop();
                    result?;
                }
                Ok(())
            }
        }
    }

    fn grant(&mut self, id: EventId) -> Found {
        let line = self.state.graph.events[id].emitted.line;
        let unsupported = |reason: &str| Stop::Abstain(Abstain { reason: reason.to_owned(), line });
        let granted =
            self.state.graph.allocations.grant(&self.state.graph.events, id).map_err(unsupported)?;
        let result = self.wake(Self::judge);
        for get in granted {
            self.state.graph.allocations.granted[get] = None;
        }
        result
    }

    /// Lets a thread in by each way there is now, and has it wait; if `sure`, there is one way.
    pub(super) fn place_gate(&mut self, thread: ThreadId, sure: bool) -> Found {
        let TraceEnd::Gate(index) = self.state.graph.events.threads[thread].trace.end else { return Ok(()) };
        let entry = self.state.gates.entry(&self.state.graph, thread, index);
        if sure {
            debug_assert_eq!(entry.ways(), 1, "what is sure leaves no choice");
            return self.enter((thread, index), &entry, 0, Self::judge_later);
        }
        self.decide(|search| search.gates(thread, index, &entry))
    }

    fn gates(&mut self, thread: ThreadId, index: u16, entry: &Entry) -> Found {
        for way in 0..entry.ways() {
            let shape = |search: &Self| match entry {
                Entry::Reads { read, writes, .. } => Some(search.awaited_by(writes[way], thread, *read)),
                _ => None,
            };
            if self.take_as(number(way), shape) {
                let result = self.enter((thread, index), entry, way, Self::judge);
                self.path.pop();
                result?;
            }
        }
        if self.has(Planted::NeverStuck)
            || !self.state.gates.may_be_stuck(
                &mut self.state.graph,
                &mut self.state.consistency,
                thread,
                index,
            )
        {
            return Ok(());
        }
        if self.take(number(entry.ways())) {
            let result = match entry {
                Entry::Reads { writes, .. } => self.wait(thread, writes),
                _ => self.set_gate(thread, Gate::Stuck),
            };
            self.path.pop();
            result?;
        }
        Ok(())
    }

    fn wait(&mut self, thread: ThreadId, refused: &[EventId]) -> Found {
        let before = self.state.gates.refuse(&mut self.state.graph, thread, refused);
        debug_assert!(!refused.is_empty(), "who waits for another write has refused one");
        let result = self.visit();
        self.state.gates.refused[thread] = before;
        self.state.graph.events.edits += 1;
        result
    }

    /// Lets a thread in by one way.
    fn enter(
        &mut self,
        (thread, index): (ThreadId, u16),
        entry: &Entry,
        way: usize,
        then: Then<Self>,
    ) -> Found {
        let Entry::Reads { read, cell, writes } = entry else { return self.set_gate(thread, Gate::Open) };
        debug_assert!(way < writes.len(), "a thread enters by one of its ways");
        let write = writes[way];
        let before = std::mem::replace(&mut self.state.gates.refused[thread], bits::empty());
        self.state.graph.events.threads[thread].gates.push((index, Gate::Open));
        let result = self.rerun(
            |state| state.graph.refresh_thread(thread).and_then(|()| state.graph.refresh_waiting()),
            |search| {
                let ids = &search.state.graph.events.threads[thread].ids;
                let Some(id) = ids.get(usize::from(*read)).copied().flatten() else {
                    return search.visit();
                };
                if search.source_is_taken(id, write, *cell) {
                    return Ok(());
                }
                row::set(&mut search.state.graph.events.present, id);
                let result = search.read_from(id, 0, Source::Write(write), then);
                row::clear(&mut search.state.graph.events.present, id);
                result
            },
        );
        self.state.graph.events.threads[thread].gates.pop();
        self.state.gates.refused[thread] = before;
        result
    }

    fn set_gate(&mut self, thread: ThreadId, gate: Gate) -> Found {
        let TraceEnd::Gate(index) = self.state.graph.events.threads[thread].trace.end else { return Ok(()) };
        self.state.graph.events.threads[thread].gates.push((index, gate));
        let result = self.rerun(
            |state| state.graph.refresh_thread(thread).and_then(|()| state.graph.refresh_waiting()),
            Self::visit,
        );
        self.state.graph.events.threads[thread].gates.pop();
        result
    }
}
