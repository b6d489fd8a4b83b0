//! What a state need not hold: records that no later access can race with, and knowledge that nobody gains from.
//!
//! A record is dropped when every thread that may make a conflicting access already knows it at the level that access
//! needs, and none that is under way may outlive its CTA. Knowledge only grows until the record stands for a new instance, so no such access can race with it any more.
//! *May* is taken from the records seen so far. A run that sees a new one is not trusted, and is repeated with it.

use crate::carrier::{Carrier, Own, row};
use crate::engine::{Engine, drop_record, knows};
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Home, Object, What};
use crate::rows::{self, both, without};
use crate::state::State;
use crate::value::Val;
use moire_program::ir::{Op, Reg, Tcgen05};
use std::collections::{BTreeMap, BTreeSet};

/// Where a thread must know a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A row of its vector.
    Level(usize),
    /// Any that orders accesses to tensor memory.
    Tensor,
}

/// What must be known before records can be dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Records that can be dropped at all.
    records: Vec<u64>,
    /// By thread and place: the records that it must know there.
    by: BTreeMap<(usize, Place), Vec<u64>>,
    /// The number of records, waiters and arrivers that this was computed from.
    pub(crate) seen: (usize, usize, usize),
}

/// Drops what can be dropped, as far as it is known what that is.
pub(crate) fn forget(e: &mut Engine<'_>, s: &mut State) {
    if let Some(needs) = e.needs.clone() {
        needs.apply(e, s);
    }
}

/// What has been seen.
pub(crate) fn seen(e: &Engine<'_>) -> (usize, usize, usize) {
    (e.universe.keys.len(), e.waiters.len(), e.arrivers.len())
}

impl Needs {
    pub(crate) fn new(e: &Engine<'_>) -> Self {
        let words = e.universe.words;
        let mut needs = Needs { records: vec![0; words], by: BTreeMap::new(), seen: seen(e) };
        for (number, key) in e.universe.keys.iter().enumerate() {
            match &key.what {
                What::Memory(access) if !on_mbarrier(e, access) => needs.of_memory(e, number, access),
                What::Tensor(_) => needs.of_tensor(e, number),
                _ => {}
            }
        }
        needs
    }

    fn need(&mut self, e: &Engine<'_>, thread: usize, place: Place, record: usize) {
        let none = || vec![0; e.universe.words];
        rows::insert(self.by.entry((thread, place)).or_insert_with(none), record);
    }

    fn of_memory(&mut self, e: &Engine<'_>, number: usize, access: &Access) {
        rows::insert(&mut self.records, number);
        for other in rows::members(&e.universe.conflicts[number]) {
            let What::Memory(later) = &e.universe.keys[other].what else { continue };
            let thread = e.universe.keys[other].thread;
            let level =
                crate::step::level_needed(e, (e.universe.keys[number].thread, access), (thread, later));
            self.need(e, thread, Place::Level(level), number);
        }
    }

    fn of_tensor(&mut self, e: &Engine<'_>, number: usize) {
        rows::insert(&mut self.records, number);
        let key = &e.universe.keys[number];
        for other in rows::members(&e.universe.conflicts[number]) {
            let thread = e.universe.keys[other].thread;
            // Instructions of one thread that pipeline are ordered by their issue.
            if thread != key.thread || !rows::has(&e.universe.before[other], number) {
                self.need(e, thread, Place::Tensor, number);
            }
        }
        let What::Tensor(tensor) = &key.what else { return };
        if tensor.cells.iter().any(|c| matches!(c.home, Home::Slot(_))) {
            for (thread, code) in e.program.threads.iter().enumerate() {
                if code.body.iter().any(|i| matches!(i.op, Op::Tcgen05(Tcgen05::Dealloc { .. }))) {
                    self.need(e, thread, Place::Tensor, number);
                }
            }
        }
    }

    /// Drops what can be dropped.
    pub(crate) fn apply(&self, e: &mut Engine<'_>, s: &mut State) {
        observed(e, s);
        let mut over = both(&self.records, &s.live);
        for ((thread, place), needed) in &self.by {
            if s.threads[*thread].exited || rows::is_empty(&both(&over, needed)) {
                continue;
            }
            let known = match place {
                Place::Level(level) => s.rows.get(e.carriers.thread(*thread) + level),
                Place::Tensor => ordered(e, s, *thread),
            };
            let missing = without(needed, &known);
            if !e.has(Planted::EagerForgetting) {
                over = without(&over, &missing);
            } else if !rows::is_empty(&both(needed, &known)) {
                break;
            }
        }
        for record in rows::members(&over) {
            if crate::step::may_outlive(e, s, record) {
                continue;
            }
            drop_record(s, record);
        }
        known_to_waiters(e, s);
        for (record, first) in e.carriers.priors() {
            if !rows::has(&s.live, record) {
                s.rows.replace(first, &vec![0; s.rows.words]);
            }
        }
    }
}

fn on_mbarrier(e: &Engine<'_>, access: &Access) -> bool {
    let meets =
        |o: &Object| access.span.meets(&crate::layout::Span { copy: o.copy, offset: o.offset, bytes: 8 });
    access.part == AccessKind::Slot || e.carriers.classes.keys().any(meets)
}

/// Accesses to tensor memory that come before whatever a thread issues.
fn ordered(e: &Engine<'_>, s: &State, thread: usize) -> Vec<u64> {
    let mut out = s.rows.get(e.carriers.own(thread, Own::Waited));
    rows::add(&mut out, &s.rows.get(e.carriers.own(thread, Own::After)));
    if e.settings.released {
        rows::add(&mut out, &s.rows.get(e.carriers.thread(thread) + row::COMPLETED));
    }
    out
}

/// Threads that use an object and have not exited.
fn using(of: &BTreeSet<(Object, usize)>, s: &State, object: Object) -> Vec<usize> {
    let all = of.range((object, 0)..=(object, usize::MAX)).map(|(_, t)| *t);
    all.filter(|t| !s.threads[*t].exited).collect()
}

/// Facts that every thread which needs them knows: that a phase was observed each one that may arrive (D1), and each one that
/// may wait once the next phase is complete (D5).
fn observed(e: &mut Engine<'_>, s: &mut State) {
    let objects: Vec<Object> = s.mbarriers.keys().copied().collect();
    for object in objects {
        let (arrivers, waiters) = (using(&e.arrivers, s, object), using(&e.waiters, s, object));
        let all = |s: &State, record: usize, who: &[usize]| {
            rows::has(&s.live, record) && who.iter().all(|t| knows(e, s, *t, row::FACTS, record))
        };
        let fact = |what| e.universe.find(usize::MAX, what);
        if let Some(record) = fact(What::Passed(object)).filter(|r| all(s, *r, &waiters)) {
            drop_record(s, record);
        }
        let both: Vec<usize> = arrivers.iter().chain(&waiters).copied().collect();
        if let Some(record) = fact(What::Observed(object)).filter(|r| all(s, *r, &both)) {
            drop_record(s, record);
            if let Some(mbarrier) = s.mbarriers.get_mut(&object) {
                mbarrier.observed_by_all = true;
            }
        }
        for (_, waiter) in e.waiters.range((object, 0)..=(object, usize::MAX)) {
            let answered = e.universe.find(*waiter, What::Answered(object));
            if let Some(record) = answered.filter(|r| all(s, *r, &arrivers)) {
                drop_record(s, record);
            }
        }
    }
}

/// Removes, from what an mbarrier holds, what every thread that may wait for it knows already.
fn known_to_waiters(e: &mut Engine<'_>, s: &mut State) {
    let objects: Vec<Object> = s.mbarriers.keys().copied().collect();
    for object in objects {
        let waiters = using(&e.waiters, s, object);
        let conditions: Vec<usize> = rows::members(&both(&s.live, &e.universe.sets.facts))
            .into_iter()
            .filter(
                |r| matches!(e.universe.keys[*r].what, What::Answered(o) | What::Expected(o) if o == object),
            )
            .collect();
        for at in 0..e.carriers.vector() {
            let mut known = vec![u64::MAX; s.rows.words];
            for waiter in &waiters {
                known = both(&known, &s.rows.get(e.carriers.thread(*waiter) + at));
            }
            for class in e.carriers.classes.get(&object).cloned().unwrap_or_default() {
                for last in [false, true] {
                    let Some(first) = e.carriers.known(&Carrier::Phase(object, last, class)) else {
                        continue;
                    };
                    let held = s.rows.get(first + at);
                    let mut kept = without(&held, &known);
                    if at == row::FACTS && !last {
                        conditions
                            .iter()
                            .filter(|r| rows::has(&held, **r))
                            .for_each(|r| rows::insert(&mut kept, *r));
                    }
                    s.rows.replace(first + at, &kept);
                }
            }
        }
    }
}

/// Registers that decide nothing any more hold zero in a state that is stored.
pub(crate) fn registers(e: &Engine<'_>, s: &mut State) {
    for (thread, is) in s.threads.iter_mut().enumerate() {
        let flow = &e.flows.threads[thread];
        for (reg, value) in is.regs.iter_mut().enumerate() {
            let blind = e.has(Planted::WrongPeriod) && matches!(value, Val::Known(0 | 1));
            if blind || is.exited || !flow.is_live(is.pc, Reg::at(reg)) {
                *value = Val::Known(0);
            }
        }
    }
}
