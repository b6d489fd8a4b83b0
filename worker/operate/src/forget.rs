//! What a state need not hold: records that no later access can race with, and knowledge that nobody gains from.
//!
//! A record is dropped when every thread that may make a conflicting access already knows it at the level that access
//! needs, and none that is under way may outlive its CTA. Knowledge only grows until the record stands for a new instance, so no such access can race with it any more.
//! *May* is taken from the records seen so far. A run that sees a new one is not trusted, and is repeated with it.

use crate::carrier::{Carrier, Own, row};
use crate::engine::{Engine, drop_records};
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Home, Object, What};
use crate::rows::{self, both};
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
    /// By mbarrier: who uses it.
    uses: Vec<Use>,
    /// The number of rows that `uses` was computed from.
    rows: usize,
    /// The number of records, waiters and arrivers that this was computed from.
    pub(crate) seen: (usize, usize, usize),
}

/// The threads that use an mbarrier, the facts about it, and the rows of its phases.
#[derive(Clone, Debug)]
struct Use {
    object: Object,
    arrivers: Vec<usize>,
    waiters: Vec<usize>,
    passed: Option<usize>,
    observed: Option<usize>,
    answered: Vec<usize>,
    /// Facts that the conditions of a collecting phase ask for.
    asked: Vec<u64>,
    /// The first row of each phase, and whether the phase is complete.
    phases: Vec<(usize, bool)>,
}

impl Use {
    /// Those of all mbarriers, as far as they are known.
    fn all(e: &Engine<'_>) -> Vec<Self> {
        let objects: BTreeSet<Object> = e
            .arrivers
            .iter()
            .chain(&e.waiters)
            .map(|(object, _)| *object)
            .chain(e.carriers.classes.keys().copied())
            .collect();
        objects.into_iter().map(|object| Self::of(e, object)).collect()
    }

    fn of(e: &Engine<'_>, object: Object) -> Self {
        let using = |of: &BTreeSet<(Object, usize)>| -> Vec<usize> {
            of.range((object, 0)..=(object, usize::MAX)).map(|(_, thread)| *thread).collect()
        };
        let waiters = using(&e.waiters);
        let mut asked = vec![0; e.universe.words];
        for (record, key) in e.universe.keys.iter().enumerate() {
            if matches!(key.what, What::Answered(o) | What::Expected(o) if o == object) {
                rows::insert(&mut asked, record);
            }
        }
        let classes = e.carriers.classes.get(&object).into_iter().flatten();
        let phases =
            classes.flat_map(|class| [false, true].map(|last| (Carrier::Phase(object, last, *class), last)));
        Use {
            object,
            arrivers: using(&e.arrivers),
            passed: e.universe.find(usize::MAX, What::Passed(object)),
            observed: e.universe.find(usize::MAX, What::Observed(object)),
            answered: waiters.iter().filter_map(|w| e.universe.find(*w, What::Answered(object))).collect(),
            waiters,
            asked,
            phases: phases.filter_map(|(carrier, last)| Some((e.carriers.known(&carrier)?, last))).collect(),
        }
    }
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
        let (uses, rows) = (Use::all(e), e.carriers.rows());
        let mut needs = Needs { records: vec![0; words], by: BTreeMap::new(), uses, rows, seen: seen(e) };
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
        let anew = (self.rows, self.seen) != (e.carriers.rows(), seen(e));
        let now = if anew { Use::all(e) } else { Vec::new() };
        let uses = if anew { &now } else { &self.uses };
        let mut dropped = observed(e, s, uses);
        let mut over = both(&self.records, &s.live);
        for ((thread, place), needed) in &self.by {
            if s.threads[*thread].exited || !rows::meet(&over, needed) {
                continue;
            }
            let known = Known::of(e, *thread, *place);
            if !e.has(Planted::EagerForgetting) {
                let words = over.iter_mut().zip(needed).enumerate();
                words.for_each(|(at, (over, needed))| *over &= !needed | known.word(s, at));
            } else if needed.iter().enumerate().any(|(at, needed)| needed & known.word(s, at) != 0) {
                break;
            }
        }
        let settled = rows::members(&over).into_iter().filter(|r| !crate::step::may_outlive(e, s, *r));
        settled.for_each(|record| rows::insert(&mut dropped, record));
        drop_records(s, &dropped);
        known_to_waiters(e, s, uses);
        for (record, first) in e.carriers.priors() {
            if !rows::has(&s.live, *record) {
                s.rows.clear(*first);
            }
        }
    }
}

/// The rows of a thread that say what it knows at a place.
struct Known([Option<usize>; 3]);

impl Known {
    fn of(e: &Engine<'_>, thread: usize, place: Place) -> Self {
        let first = e.carriers.thread(thread);
        Known(match place {
            Place::Level(level) => [Some(first + level), None, None],
            // Accesses to tensor memory that come before whatever the thread issues.
            Place::Tensor => [
                Some(e.carriers.own(thread, Own::Waited)),
                Some(e.carriers.own(thread, Own::After)),
                e.settings.released.then_some(first + row::COMPLETED),
            ],
        })
    }

    fn word(&self, s: &State, at: usize) -> u64 {
        self.0.iter().flatten().fold(0, |all, row| all | s.rows.word(*row, at))
    }
}

fn on_mbarrier(e: &Engine<'_>, access: &Access) -> bool {
    let meets =
        |o: &Object| access.span.meets(&crate::layout::Span { copy: o.copy, offset: o.offset, bytes: 8 });
    access.part == AccessKind::Slot || e.carriers.classes.keys().any(meets)
}

/// Facts that every thread which needs them knows: that a phase was observed each one that may arrive (D1), and each one that
/// may wait once the next phase is complete (D5).
fn observed(e: &Engine<'_>, s: &mut State, uses: &[Use]) -> Vec<u64> {
    let mut dropped = vec![0; s.live.len()];
    for of in uses {
        let Some(mbarrier) = s.mbarriers.get_mut(&of.object) else { continue };
        let known = |record: &usize, who: &[usize]| {
            let knows = |t: &usize| s.rows.has(e.carriers.thread(*t) + row::FACTS, *record);
            rows::has(&s.live, *record) && who.iter().all(|t| s.threads[*t].exited || knows(t))
        };
        if let Some(record) = of.passed.filter(|r| known(r, &of.waiters)) {
            rows::insert(&mut dropped, record);
        }
        if let Some(record) = of.observed.filter(|r| known(r, &of.arrivers) && known(r, &of.waiters)) {
            rows::insert(&mut dropped, record);
            mbarrier.observed_by_all = true;
        }
        let answered = of.answered.iter().filter(|r| known(r, &of.arrivers));
        answered.for_each(|record| rows::insert(&mut dropped, *record));
    }
    dropped
}

/// Removes, from what an mbarrier holds, what every thread that may wait for it knows already. A phase that collects keeps the
/// facts that its conditions ask for.
fn known_to_waiters(e: &Engine<'_>, s: &mut State, uses: &[Use]) {
    let (words, all) = (s.rows.words, s.rows.words * e.carriers.vector());
    for of in uses.iter().filter(|of| s.mbarriers.contains_key(&of.object)) {
        let waiters = of.waiters.iter().filter(|t| !s.threads[**t].exited);
        let waiters: Vec<usize> = waiters.map(|t| e.carriers.thread(*t) * words).collect();
        for (first, last) in &of.phases {
            let start = first * words;
            for at in 0..all.min(s.rows.data.len().saturating_sub(start)) {
                let held = s.rows.data[start + at];
                if held == 0 {
                    continue;
                }
                let word = |row: &usize| s.rows.data.get(row + at).copied().unwrap_or(0);
                let known = waiters.iter().fold(u64::MAX, |all, row| all & word(row));
                // The facts are the first row.
                let kept = if at < words && !last { of.asked[at] & s.live[at] } else { 0 };
                s.rows.data[start + at] = held & (!known | kept);
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
