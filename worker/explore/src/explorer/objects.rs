//! Decisions at barriers, mbarriers, allocators of tensor memory, and in front of loops that may spin.

use super::{Found, Search, Then};
use crate::allocator::Turn;
use crate::event::{BarrierUse, Kind};
use crate::explorer::Stop;
use crate::interp::{Gate, TraceEnd};
use crate::planted::Planted;
use crate::state::State;
use crate::visit::Abstain;

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

    pub(super) fn place_gate(&mut self, thread: usize) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        self.decide(|search| search.gates(thread, index))
    }

    fn gates(&mut self, thread: usize, index: u16) -> Found {
        for (choice, gate) in [Gate::Open, Gate::Stuck].into_iter().enumerate() {
            if gate == Gate::Stuck && (self.has(Planted::NeverStuck) || !self.state.may_miss(thread, index)) {
                continue;
            }
            if !self.take(u32::try_from(choice).unwrap_or(0)) {
                continue;
            }
            let result = self.set_gate(thread, gate);
            self.path.pop();
            result?;
        }
        Ok(())
    }

    pub(super) fn set_gate(&mut self, thread: usize, gate: Gate) -> Found {
        let TraceEnd::Gate(index) = self.state.threads[thread].trace.end else { return Ok(()) };
        self.state.threads[thread].gates.push((index, gate));
        let result = self.wake_thread(thread);
        self.state.threads[thread].gates.pop();
        result
    }

    fn wake_thread(&mut self, thread: usize) -> Found {
        self.rerun(|state| state.refresh_thread(thread).and_then(|()| state.refresh_waiting()), Self::visit)
    }
}
