//! Mbarrier objects of the graph: which phase an operation belongs to, what a wait observes, what may still happen.
//!
//! PTX ISA 9.2, 9.7.13.15, layout v0. Operations on one object take place one after another. What of that order can be
//! seen is kept: the *era* of each operation (its number counts the `init` and `inval` before it, which are ordered),
//! and in an era its *level*, the phase an arrival counts in, and for a wait the phase that is current when it asks. The
//! order inside a phase is existential (`mbarrier_leaf`).
//!
//! Forward exploration: an operation joins the phase that is current in the graph, or is put off for good past it; a
//! wait asks at any phase reached, or is put off past it. Both are dictated by the execution wanted, so each is reached
//! once (see `explorer`). A phase is complete when the arrivals it holds and its transactions add up; an operation on the
//! transaction count can belong to a phase that adds up without it, and then completing is a decision too.

use crate::event::{Emitted, Kind, has_dep};
use crate::future::Without;
use crate::interp::{TraceEnd, run};
use crate::lanes::{Arms, apart};
use crate::state::State;
use crate::view::{ThreadView, Trial};
use moire_cat::bits;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;

/// Where an mbarrier object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Object {
    pub(crate) instance: u16,
    pub(crate) offset: u32,
}

/// An mbarrier event: object and effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MbarUse {
    pub(crate) object: Object,
    pub(crate) act: Act,
    /// What the instruction itself gets wrong.
    pub(crate) fault: Option<Fault>,
}

/// A precondition an instruction breaks by its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A count no mbarrier holds.
    Range,
    /// A form for objects of the own CTA on one of another.
    Target,
    /// An `init` or `inval` by several lanes, of which each undoes the one before.
    Repeated,
}

/// What an mbarrier event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Init {
        count: u32,
    },
    Inval,
    /// An arrival, a change of the transaction count, or both.
    Add {
        arrivals: u32,
        tx: i64,
        drops: bool,
        no_complete: bool,
        returns: bool,
    },
    /// Asks whether the phase of this parity is complete.
    Wait {
        odd: bool,
    },
}

impl Act {
    /// `init` and `inval` end what was before.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Act::Init { .. } | Act::Inval)
    }

    /// The same by a form that does not reach the object: nothing arrives there.
    pub(crate) fn lost(self) -> Self {
        match self {
            Act::Add { no_complete, returns, .. } => {
                Act::Add { arrivals: 0, tx: 0, drops: false, no_complete, returns }
            }
            other => other,
        }
    }

    /// Whether the event hands a value to its thread.
    pub(crate) fn answers(&self) -> bool {
        matches!(self, Act::Wait { .. } | Act::Add { returns: true, .. })
    }
}

/// Position of an event in the history of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// `init`s and `inval`s so far, an own one included.
    pub(crate) era: u16,
    /// 0 for `init` and `inval`, otherwise one more than the phase.
    pub(crate) level: u16,
}

/// What an event was put off past: by era the least level left, and the least number of an `init` or `inval`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Floor {
    levels: Vec<u16>,
    era: u16,
}

/// A phase that stays open though it adds up: object, era, level, members so far.
pub(crate) type Open = (Object, u16, u16, usize);

/// The phases of one era.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) members: Vec<usize>,
    pub(crate) expected: u64,
    pub(crate) arrivals: u64,
    pub(crate) tx: i64,
}

impl Phase {
    /// Whether arrivals and transactions add up.
    pub(crate) fn adds_up(&self) -> bool {
        self.arrivals >= self.expected && self.tx == 0 && !self.members.is_empty()
    }
}

impl<const W: usize> State<'_, W> {
    pub(crate) fn mbar_use(&self, id: usize) -> Option<MbarUse> {
        match self.events[id].emitted.kind {
            Kind::Mbarrier(u) => Some(u),
            _ => None,
        }
    }

    /// Placed events of an object, with their places.
    pub(crate) fn placed_on(&self, object: Object) -> impl Iterator<Item = (usize, Act, Place)> + '_ {
        self.mbarriers.iter().enumerate().filter_map(move |(id, place)| {
            let (place, used) = ((*place)?, self.mbar_use(id)?);
            (used.object == object).then_some((id, used.act, place))
        })
    }

    /// The placed `init` or `inval` that starts an era.
    fn starts(&self, object: Object, era: u16) -> Option<(usize, Act)> {
        let found = self.placed_on(object).find(|(_, act, place)| act.ends() && place.era == era);
        found.map(|(id, act, _)| (id, act))
    }

    pub(crate) fn eras(&self, object: Object) -> u16 {
        self.placed_on(object).filter(|(_, act, _)| act.ends()).map(|p| p.2.era).max().unwrap_or(0)
    }

    /// The phases of a valid era that hold something, and the current one; `None` where the object is not valid.
    pub(crate) fn phases_of(&self, object: Object, era: u16) -> Option<Vec<Phase>> {
        let (_, Act::Init { count }) = self.starts(object, era)? else { return None };
        let mut expected = u64::from(count);
        let mut phases = Vec::new();
        loop {
            let level = u16::try_from(phases.len() + 1).unwrap_or(u16::MAX);
            let mut phase = Phase { members: vec![], expected, arrivals: 0, tx: 0 };
            for (id, act, place) in self.placed_on(object) {
                let Act::Add { arrivals, tx, drops, .. } = act else { continue };
                if place == (Place { era, level }) {
                    phase.members.push(id);
                    phase.arrivals += u64::from(arrivals);
                    phase.tx += tx;
                    expected = expected.saturating_sub(if drops { u64::from(arrivals) } else { 0 });
                }
            }
            let kept = (object, era, level, phase.members.len());
            let over = phase.adds_up() && !self.kept_open.contains(&kept);
            phases.push(phase);
            if !over || level > 1_000 {
                return Some(phases);
            }
        }
    }

    /// Level of the current phase of an era; 1 where the object is not valid.
    pub(crate) fn level(&self, object: Object, era: u16) -> u16 {
        self.phases_of(object, era).map_or(1, |p| u16::try_from(p.len()).unwrap_or(u16::MAX))
    }

    /// Value an event hands to its thread from a place.
    pub(crate) fn answer_at(&self, used: MbarUse, place: Place) -> Value {
        let valid = matches!(self.starts(used.object, place.era), Some((_, Act::Init { .. })));
        let phase = place.level.saturating_sub(1);
        match used.act {
            Act::Wait { odd } => Value::from(valid && (phase & 1 == 1) != odd),
            _ => Value::from(phase),
        }
    }

    /// Places an event of `thread` with this index, in these arms of branches, can take now.
    /// An arrival of a commit (`detached`) comes after what is before the commit, and before nothing of its thread.
    pub(crate) fn places_for(
        &self,
        used: MbarUse,
        (thread, index, arms, detached): (usize, u16, &Arms, bool),
        floor: &Floor,
    ) -> Vec<Place> {
        let object = used.object;
        let eras = self.eras(object);
        let mut out = Vec::new();
        if used.act.ends() {
            out.push(Place { era: eras + 1, level: 0 });
            out.retain(|p| p.era >= floor.era);
        } else {
            for era in 0..=eras {
                let (now, least) =
                    (self.level(object, era), floor.levels.get(era as usize).map_or(1, |l| *l));
                let first = if matches!(used.act, Act::Wait { .. }) { 1 } else { now };
                out.extend((first.max(least)..=now).map(|level| Place { era, level }));
            }
        }
        let mine = |id: usize| self.events[id].thread.map(usize::from) == Some(thread);
        for (id, _, theirs) in self.placed_on(object).filter(|p| mine(p.0)) {
            let emitted = &self.events[id].emitted;
            let apart = apart(&emitted.arms, arms);
            if emitted.index < index && !emitted.detached && !apart {
                out.retain(|p| theirs <= *p);
            } else if emitted.index > index && !detached && !apart {
                out.retain(|p| *p <= theirs);
            }
        }
        out
    }

    /// The first event on an mbarrier that can take a place: `init` and `inval`, then arrivals, then waits.
    pub(crate) fn next_mbarrier(&self) -> Option<usize> {
        let rank = |act: &Act| match act {
            Act::Init { .. } | Act::Inval => 0,
            Act::Add { .. } => 1,
            Act::Wait { .. } => 2,
        };
        for wanted in 0..3 {
            for id in self.waiting_mbarriers() {
                let Some(used) = self.mbar_use(id) else { continue };
                if rank(&used.act) == wanted && !self.choices_for(id).is_empty() {
                    return Some(id);
                }
            }
        }
        None
    }

    /// Events on mbarriers without a place.
    pub(crate) fn waiting_mbarriers(&self) -> impl Iterator<Item = usize> + '_ {
        let ids = self.threads.iter().flat_map(|t| t.ids.iter().flatten()).map(|id| *id as usize);
        ids.filter(|id| self.mbar_use(*id).is_some() && self.mbarriers[*id].is_none())
    }

    pub(crate) fn choices_for(&self, id: usize) -> Vec<Place> {
        let (Some(used), Some(thread)) = (self.mbar_use(id), self.events[id].thread) else { return vec![] };
        let emitted = &self.events[id].emitted;
        let event = (thread as usize, emitted.index, &emitted.arms, emitted.detached);
        let mut places = self.places_for(used, event, &self.floors[id]);
        if matches!(used.act, Act::Wait { .. }) && places.iter().any(|p| self.answer_at(used, *p) == 0) {
            let vain = self.asked_in_vain(thread as usize, emitted);
            places.retain(|p| !vain || self.answer_at(used, *p) != 0);
        }
        places
    }

    /// Whether a thread that gets no for an answer here has spun in vain, so that this iteration is none: it does not
    /// ask where the answer is no, and where that is does not change.
    fn asked_in_vain(&self, thread: usize, emitted: &Emitted) -> bool {
        let waits = &self.threads[thread];
        let pending = matches!(&waits.trace.end, TraceEnd::Pending(deps) if has_dep(deps, emitted.index));
        pending && waits.flow.asked_until_yes[emitted.pc] && {
            let id = ThreadId(u16::try_from(thread).unwrap_or(u16::MAX));
            let inner = ThreadView { state: self, thread };
            let view = Trial { inner, gate: u16::MAX, given: &[(emitted.index, 0)] };
            let trace = run(self.program, &self.layout, &waits.flow, id, self.front, &view);
            trace.end == TraceEnd::SpinFail
        }
    }

    /// Whether putting `id` off can lead anywhere: without it, and without the thread that waits for its answer, the
    /// phase may complete or the life of the object end.
    pub(crate) fn may_put_off(&self, id: usize) -> bool {
        let Some(used) = self.mbar_use(id) else { return false };
        let event = &self.events[id];
        let waits = |t: &usize| match &self.threads[*t].trace.end {
            TraceEnd::Pending(deps) => has_dep(deps, event.emitted.index),
            _ => false,
        };
        let thread = event.thread.map(usize::from).filter(waits);
        let outlook = self.outlook(Without { event: Some(id), thread });
        if used.act.ends() { outlook.may_end(used.object) } else { self.may_advance(used.object, &outlook) }
    }

    /// An event on an mbarrier that has one place, and cannot be put off.
    pub(crate) fn settled_mbarrier(&self) -> Option<usize> {
        self.waiting_mbarriers().find(|id| self.choices_for(*id).len() == 1 && !self.may_put_off(*id))
    }

    /// Puts an event off past everything it can take now; returns what it was put off past before.
    pub(crate) fn put_off(&mut self, id: usize) -> Floor {
        let old = self.floors[id].clone();
        if let Some(used) = self.mbar_use(id) {
            let eras = self.eras(used.object);
            let levels = (0..=eras).map(|era| self.level(used.object, era) + 1).collect();
            self.floors[id] = Floor { levels, era: eras + 2 };
        }
        old
    }

    /// Gives an event its place and enters its pairs.
    pub(crate) fn take_place(&mut self, id: usize, place: Place) {
        let Some(used) = self.mbar_use(id) else { return };
        bits::set(&mut self.present, id);
        let others: Vec<(usize, Act, Place)> = self.placed_on(used.object).collect();
        self.mbarriers[id] = Some(place);
        let yes = |act: Act, at: Place, state: &Self| {
            matches!(act, Act::Wait { .. })
                && state.answer_at(MbarUse { object: used.object, act, fault: None }, at) != 0
        };
        for (other, act, theirs) in others {
            let before = theirs < place;
            if theirs == place {
                if yes(act, place, self) && yes(used.act, place, self) {
                    bits::set(&mut self.inputs.rels[rels::MBAR_AGAIN][id], other);
                    bits::set(&mut self.inputs.rels[rels::MBAR_AGAIN][other], id);
                }
                self.relate_level((other, act), (id, used.act), |s, a| yes(a, place, s));
                continue;
            }
            let (a, b) = if before {
                ((other, act, theirs), (id, used.act, place))
            } else {
                ((id, used.act, place), (other, act, theirs))
            };
            bits::set(&mut self.inputs.rels[rels::MBAR_ORDER][a.0], b.0);
            let starts = matches!(a.1, Act::Init { .. });
            if starts && (b.2.era == a.2.era || (b.1.ends() && b.2.era == a.2.era + 1)) {
                bits::set(&mut self.inputs.rels[rels::MBAR_LIFE][a.0], b.0);
            }
            let adds = |act: Act| matches!(act, Act::Add { .. });
            if adds(a.1) && a.2.era == b.2.era && a.2.level + 1 == b.2.level {
                if adds(b.1) {
                    bits::set(&mut self.inputs.rels[rels::MBAR_STEP][a.0], b.0);
                } else if yes(b.1, b.2, self) {
                    bits::set(&mut self.inputs.rels[rels::MBAR_SYNC][a.0], b.0);
                }
            }
        }
        if yes(used.act, place, self) {
            self.enter_chain(id);
        }
    }

    /// Pairs of one level: a wait answered true, and the operations of the phase that is current when it asks.
    fn relate_level(&mut self, a: (usize, Act), b: (usize, Act), yes: impl Fn(&Self, Act) -> bool) {
        for (wait, other) in [(a, b), (b, a)] {
            if yes(self, wait.1) && matches!(other.1, Act::Add { .. }) {
                bits::set(&mut self.inputs.rels[rels::MBAR_SEEN][wait.0], other.0);
            }
        }
    }

    /// Of the phase a wait answers for, the operations whose scopes and those of all others include each other. The
    /// phase is complete, so this never changes.
    fn enter_chain(&mut self, wait: usize) {
        let phase: Vec<usize> =
            (0..self.inputs.n).filter(|a| bits::has(&self.inputs.rels[rels::MBAR_SYNC][*a], wait)).collect();
        for a in &phase {
            if phase.iter().all(|b| bits::has(&self.inputs.rels[rels::SR_HOME][*a], *b)) {
                bits::set(&mut self.inputs.rels[rels::MBAR_CHAIN][*a], wait);
            }
        }
    }

    pub(crate) fn leave_place(&mut self, id: usize) {
        bits::clear(&mut self.present, id);
        self.mbarriers[id] = None;
        for relation in MBAR_RELATIONS {
            self.inputs.rels[relation][id] = bits::empty();
            for row in &mut self.inputs.rels[relation][..self.inputs.n] {
                bits::clear(row, id);
            }
        }
    }

    /// Whether the phase that `id` just joined adds up, so that a later operation might belong to it all the same: it
    /// took place before the one that completes the phase. Only among single arrivals without bytes any order completes
    /// the phase too early.
    pub(crate) fn may_stay_open(&self, id: usize) -> Option<Open> {
        let (used, place) = (self.mbar_use(id)?, self.mbarriers[id]?);
        let phases = self.phases_of(used.object, place.era)?;
        let phase = &phases[place.level.checked_sub(1)? as usize];
        let adds = matches!(used.act, Act::Add { .. });
        (phase.adds_up() && adds).then_some((used.object, place.era, place.level, phase.members.len()))
    }

    /// Whether a later operation may join a phase that is kept open though it adds up.
    pub(crate) fn may_join_open(&self, open: &Open) -> bool {
        let single = |act: Act| matches!(act, Act::Add { arrivals: 1, tx: 0, .. });
        let phases = self.phases_of(open.0, open.1).unwrap_or_default();
        let Some(phase) = phases.get(usize::from(open.2).saturating_sub(1)) else { return false };
        let singles = phase.members.iter().all(|m| self.mbar_use(*m).is_some_and(|u| single(u.act)));
        self.outlook(Without::default()).may_join(open.0, |act| !(singles && single(act)))
    }

    /// The least position of a thread's body that can be reached from `pc`.
    pub(crate) fn reachable_from(&self, thread: usize, pc: usize) -> usize {
        let body = &self.program.threads[thread].body;
        let back = |i: &Instr| if let Op::Bra { target } = i.op { target } else { usize::MAX };
        let mut least = pc.min(body.len());
        while let Some(lower) = body[least..].iter().map(back).min().filter(|t| *t < least) {
            least = lower;
        }
        least
    }

    /// Whether every event on an mbarrier has its place and no phase was kept open for nothing.
    pub(crate) fn mbarriers_settled(&self) -> bool {
        let idle = |(object, era, level, members): &Open| {
            self.phases_of(*object, *era).is_some_and(|p| {
                p.get(usize::from(*level) - 1).is_some_and(|p| p.members.len() == *members && p.adds_up())
            })
        };
        self.waiting_mbarriers().next().is_none() && !self.kept_open.iter().any(idle)
    }
}

/// Relations this module fills in.
const MBAR_RELATIONS: [usize; 7] = [
    rels::MBAR_ORDER,
    rels::MBAR_SYNC,
    rels::MBAR_CHAIN,
    rels::MBAR_LIFE,
    rels::MBAR_STEP,
    rels::MBAR_SEEN,
    rels::MBAR_AGAIN,
];
