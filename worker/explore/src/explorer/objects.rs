//! Decisions at barriers, mbarriers, allocators of tensor memory, and in front of loops that may spin.

use super::{Found, Search, Then};
use crate::allocator::Turn;
use crate::event::{BarrierUse, Kind};
use crate::explorer::Stop;
use crate::gate::Entry;
use crate::interp::{Gate, TraceEnd};
use crate::planted::Planted;
use crate::state::{Source, State};
use crate::visit::Abstain;
use moire_cat::bits;

impl<const W: usize> Search<'_, W> {
    /// Lets a barrier event join each phase it can.
    pub(super) fn place_barrier(&mut self, id: usize, then: Then<Self>) -> Found {
        let Kind::Barrier(barrier) = self.state.events[id].emitted.kind else { return Ok(()) };
        let phases = self.state.phases_for(id, &barrier);
        self.decide(|search| {
            for (choice, phase) in phases.iter().enumerate() {
                if choice > 0 && search.has(Planted::FirstPhase) {
                    continue;
                }
                if !search.take(u32::try_from(choice).unwrap_or(u32::MAX)) {
                    continue;
                }
                let result = search.join_phase(id, &barrier, *phase, then);
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    fn join_phase(&mut self, id: usize, barrier: &BarrierUse, phase: u16, then: Then<Self>) -> Found {
        self.state.join_phase(id, barrier, phase);
        let result = self.wake(then);
        self.state.leave_phase(id);
        result
    }

    /// Re-interprets every thread that waits at a barrier, as long as that moves one; then continues.
    fn wake(&mut self, then: impl FnOnce(&mut Self) -> Found) -> Found {
        self.rerun(State::refresh_waiting, then)
    }

    /// Gives an operation on an mbarrier each place it can have now, and puts it off; if `sure`, it has one place.
    pub(super) fn place_mbarrier(&mut self, id: usize, sure: bool) -> Found {
        self.decide(|search| search.places(id, sure))
    }

    fn places(&mut self, id: usize, sure: bool) -> Found {
        let places = self.state.choices_for(id);
        let wide = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        for (choice, place) in places.iter().enumerate() {
            if self.has(Planted::FirstPlace) && choice > 0 {
                continue;
            }
            if !self.take(wide(choice)) {
                continue;
            }
            self.state.take_place(id, *place);
            let result = self.close_phase(id, sure);
            self.state.leave_place(id);
            self.path.pop();
            result?;
        }
        if !sure && self.state.may_put_off(id) && self.take(wide(places.len())) {
            let old = self.state.put_off(id);
            let result = self.visit();
            self.state.floors[id] = old;
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// The phase that `id` joined completes as soon as it adds up, or stays open for a later operation.
    fn close_phase(&mut self, id: usize, sure: bool) -> Found {
        let Some(open) = self.state.may_stay_open(id) else { return self.answered(id, sure) };
        self.state.kept_open.push(open);
        let joined = self.state.may_join_open(&open);
        self.state.kept_open.pop();
        if !joined {
            return self.answered(id, sure);
        }
        self.decide(|search| {
            for choice in 0..2 {
                if !search.take(choice) {
                    continue;
                }
                if choice == 1 {
                    search.state.kept_open.push(open);
                }
                let result = search.answered(id, false);
                if choice == 1 {
                    search.state.kept_open.pop();
                }
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    /// Hands its answer to the thread of `id`, if it wants one, and goes on.
    fn answered(&mut self, id: usize, sure: bool) -> Found {
        let answers = self.state.mbar_use(id).is_some_and(|u| u.act.answers());
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
                for meeting in self.state.meetings() {
                    if self.take(u32::from(*meeting)) {
                        self.state.meeting = Some(*meeting);
                        let result = self.wake(Self::visit);
                        self.state.meeting = None;
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
                if !self.has(Planted::FirstCome) && self.state.may_wait(id) && self.take(1) {
                    let later = self.state.after_next(id);
                    let old = std::mem::replace(&mut self.state.put_off[id], later);
                    let result = self.visit();
                    self.state.put_off[id] = old;
                    self.path.pop();
                    result?;
                }
                Ok(())
            }
        }
    }

    fn grant(&mut self, id: usize) -> Found {
        let line = self.state.events[id].emitted.line;
        let unsupported = |reason: &str| Stop::Abstain(Abstain { reason: reason.to_owned(), line });
        let granted = self.state.grant(id).map_err(unsupported)?;
        let result = self.wake(Self::judge);
        for get in granted {
            self.state.granted[get] = None;
        }
        result
    }

    /// Lets a thread in by each way there is now, and has it wait; if `sure`, there is one way.
    pub(super) fn place_gate(&mut self, thread: usize, sure: bool) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        let entry = self.state.entry(thread, index);
        if sure {
            return self.enter((thread, index), &entry, 0, Self::judge_later);
        }
        self.decide(|search| search.gates(thread, index, &entry))
    }

    fn gates(&mut self, thread: usize, index: u16, entry: &Entry) -> Found {
        let wide = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        for way in 0..entry.ways() {
            let shape = |search: &Self| match entry {
                Entry::Reads { read, writes, .. } => Some(search.awaited_by(writes[way], thread, *read)),
                _ => None,
            };
            if self.take_as(wide(way), shape) {
                let result = self.enter((thread, index), entry, way, Self::judge);
                self.path.pop();
                result?;
            }
        }
        if self.has(Planted::NeverStuck) || !self.state.may_be_stuck(thread, index) {
            return Ok(());
        }
        if self.take(wide(entry.ways())) {
            let result = match entry {
                Entry::Reads { writes, .. } => self.wait(thread, writes),
                _ => self.set_gate(thread, Gate::Stuck),
            };
            self.path.pop();
            result?;
        }
        Ok(())
    }

    fn wait(&mut self, thread: usize, refused: &[usize]) -> Found {
        let before = self.state.refuse(thread, refused);
        let result = self.visit();
        self.state.refused[thread] = before;
        self.state.edits += 1;
        result
    }

    /// Lets a thread in by one way.
    fn enter(&mut self, (thread, index): (usize, u16), entry: &Entry, way: usize, then: Then<Self>) -> Found {
        let Entry::Reads { read, cell, writes } = entry else { return self.set_gate(thread, Gate::Open) };
        let write = writes[way];
        let before = std::mem::replace(&mut self.state.refused[thread], bits::empty());
        self.state.threads[thread].gates.push((index, Gate::Open));
        let result = self.rerun(
            |state| state.refresh_thread(thread).and_then(|()| state.refresh_waiting()),
            |search| {
                let ids = &search.state.threads[thread].ids;
                let Some(id) = ids.get(usize::from(*read)).copied().flatten().map(usize::from) else {
                    return search.visit();
                };
                if search.source_is_taken(id, write, *cell) {
                    return Ok(());
                }
                bits::set(&mut search.state.present, id);
                let result = search.read_from(id, 0, Source::Write(write), then);
                bits::clear(&mut search.state.present, id);
                result
            },
        );
        self.state.threads[thread].gates.pop();
        self.state.refused[thread] = before;
        result
    }

    fn set_gate(&mut self, thread: usize, gate: Gate) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        self.state.threads[thread].gates.push((index, gate));
        let result = self
            .rerun(|state| state.refresh_thread(thread).and_then(|()| state.refresh_waiting()), Self::visit);
        self.state.threads[thread].gates.pop();
        result
    }
}
