//! Mbarrier objects of the graph: which phase an operation belongs to, and what a wait observes.
//!
//! PTX ISA 9.2, 9.7.13.15, layout v0. Operations on one object take place one after another. The observable part of that
//! order is kept: the *era* of each operation (the number of `init` and `inval` before it, which are ordered), and in an era
//! its *level*: for an arrival the phase it counts in, for a wait the phase that is current when it asks. The order inside a
//! phase is existential (`finish::settle`).
//!
//! Forward exploration: an operation joins the phase that is current in the graph, or is put off for good past it; a wait
//! asks at any phase reached, or is put off past it. Both are dictated by the execution wanted, so each execution is reached
//! once (`search::explorer`). A phase is complete when its arrivals and its transactions add up. An operation on the
//! transaction count can belong to a phase that adds up without it; then completing is a decision too.

use super::events::Events;
use super::ids::EventId;
use super::row;
use crate::thread::event::lanes::{Arms, parted};
use crate::thread::event::mbarrier::{Act, MbarUse, Object};
use crate::thread::ids::Table;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;

/// Position of an event in the history of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stage {
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

/// A phase that stays open though it adds up, with as many members as it has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenPhase {
    pub(crate) object: Object,
    pub(crate) stage: Stage,
    pub(crate) members: usize,
}

/// The phases of one era.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) members: Vec<EventId>,
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

/// Where events on mbarriers stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mbarriers {
    /// Stage of each placed operation.
    pub(crate) places: Table<EventId, Option<Stage>>,
    /// What each operation was put off past.
    pub(crate) floors: Table<EventId, Floor>,
    /// Phases that add up and stay open all the same.
    pub(crate) kept_open: Vec<OpenPhase>,
}

impl Mbarriers {
    /// Placed events of an object, with their places.
    pub(crate) fn placed_on<'g, const W: usize>(
        &'g self,
        g: &'g Events<'_, W>,
        object: Object,
    ) -> impl Iterator<Item = (EventId, Act, Stage)> + 'g {
        self.places.entries().filter_map(move |(id, place)| {
            let (place, used) = ((*place)?, g[id].mbarrier()?);
            (used.object == object).then_some((id, used.act, place))
        })
    }

    /// The placed `init` or `inval` that starts an era.
    fn starts<const W: usize>(&self, g: &Events<'_, W>, object: Object, era: u16) -> Option<(EventId, Act)> {
        let found = self.placed_on(g, object).find(|(_, act, place)| act.ends() && place.era == era);
        found.map(|(id, act, _)| (id, act))
    }

    pub(crate) fn eras<const W: usize>(&self, g: &Events<'_, W>, object: Object) -> u16 {
        self.placed_on(g, object).filter(|(_, act, _)| act.ends()).map(|p| p.2.era).max().unwrap_or(0)
    }

    /// The phases of a valid era that hold something, and the current one; `None` where the object is not valid.
    pub(crate) fn phases_of<const W: usize>(
        &self,
        g: &Events<'_, W>,
        object: Object,
        era: u16,
    ) -> Option<Vec<Phase>> {
        let (_, Act::Init { count }) = self.starts(g, object, era)? else { return None };
        let mut expected = u64::from(count);
        let mut phases = Vec::new();
        loop {
            let level = u16::try_from(phases.len() + 1).expect("phases are numbered by 16 bits");
            let mut phase = Phase { members: vec![], expected, arrivals: 0, tx: 0 };
            for (id, act, place) in self.placed_on(g, object) {
                let Act::Add { arrivals, tx, drops, .. } = act else { continue };
                if place == (Stage { era, level }) {
                    phase.members.push(id);
                    phase.arrivals += u64::from(arrivals);
                    phase.tx += tx;
                    expected = expected.saturating_sub(if drops { u64::from(arrivals) } else { 0 });
                }
            }
            let kept = OpenPhase { object, stage: Stage { era, level }, members: phase.members.len() };
            let over = phase.adds_up() && !self.kept_open.contains(&kept);
            phases.push(phase);
            if !over || level > 1_000 {
                return Some(phases);
            }
        }
    }

    /// Level of the current phase of an era; 1 where the object is not valid.
    pub(crate) fn level<const W: usize>(&self, g: &Events<'_, W>, object: Object, era: u16) -> u16 {
        self.phases_of(g, object, era)
            .map_or(1, |p| u16::try_from(p.len()).expect("phases are numbered by 16 bits"))
    }

    /// Value an event hands to its thread from a place.
    pub(crate) fn answer_at<const W: usize>(&self, g: &Events<'_, W>, used: MbarUse, place: Stage) -> Value {
        let valid = matches!(self.starts(g, used.object, place.era), Some((_, Act::Init { .. })));
        let phase = place.level.saturating_sub(1);
        match used.act {
            Act::Wait { odd } => Value::from(valid && (phase & 1 == 1) != odd),
            _ => Value::from(phase),
        }
    }

    /// Places an event of `thread` with this index, in these arms of branches, can take now.
    /// An arrival of a commit (`detached`) comes after what is before the commit, and before nothing of its thread.
    pub(crate) fn places_for<const W: usize>(
        &self,
        g: &Events<'_, W>,
        used: MbarUse,
        (thread, index, arms, detached): (ThreadId, u16, &Arms, bool),
        floor: &Floor,
    ) -> Vec<Stage> {
        let object = used.object;
        let eras = self.eras(g, object);
        let mut out = Vec::new();
        if used.act.ends() {
            out.push(Stage { era: eras + 1, level: 0 });
            out.retain(|p| p.era >= floor.era);
        } else {
            for era in 0..=eras {
                let (now, least) =
                    (self.level(g, object, era), floor.levels.get(era as usize).map_or(1, |l| *l));
                let first = if matches!(used.act, Act::Wait { .. }) { 1 } else { now };
                out.extend((first.max(least)..=now).map(|level| Stage { era, level }));
            }
        }
        let mine = |id: EventId| g[id].thread == Some(thread);
        for (id, _, theirs) in self.placed_on(g, object).filter(|p| mine(p.0)) {
            let emitted = &g[id].emitted;
            let apart = parted(&emitted.lanes.arms, arms);
            if emitted.index < index && !emitted.detached && !apart {
                out.retain(|p| theirs <= *p);
            } else if emitted.index > index && !detached && !apart {
                out.retain(|p| *p <= theirs);
            }
        }
        out
    }

    /// Puts an event off past everything it can take now; returns what it was put off past before.
    pub(crate) fn put_off<const W: usize>(&mut self, g: &Events<'_, W>, id: EventId) -> Floor {
        let old = self.floors[id].clone();
        if let Some(used) = g[id].mbarrier() {
            let eras = self.eras(g, used.object);
            let levels = (0..=eras).map(|era| self.level(g, used.object, era) + 1).collect();
            self.floors[id] = Floor { levels, era: eras + 2 };
        }
        old
    }

    /// Gives an event its place and enters its pairs.
    pub(crate) fn take_place<const W: usize>(&mut self, g: &mut Events<'_, W>, id: EventId, place: Stage) {
        debug_assert_eq!(self.places[id], None, "an operation has one place");
        let Some(used) = g[id].mbarrier() else { return };
        row::set(&mut g.present, id);
        debug_assert_eq!(used.act.ends(), place.level == 0, "what starts or ends a life has no phase");
        let others: Vec<(EventId, Act, Stage)> = self.placed_on(g, used.object).collect();
        self.places[id] = Some(place);
        let yes = |act: Act, at: Stage, here: &Self, g: &Events<'_, W>| {
            matches!(act, Act::Wait { .. })
                && here.answer_at(g, MbarUse { object: used.object, act, fault: None }, at) != 0
        };
        for (other, act, theirs) in others {
            let before = theirs < place;
            if theirs == place {
                if yes(act, place, self, g) && yes(used.act, place, self, g) {
                    row::set(g.related_mut(rels::MBAR_AGAIN, id), other);
                    row::set(g.related_mut(rels::MBAR_AGAIN, other), id);
                }
                for (wait, asked, added) in [(other, act, (id, used.act)), (id, used.act, (other, act))] {
                    // The operations of the phase that is current when a wait asks that is answered with yes.
                    if yes(asked, place, self, g) && matches!(added.1, Act::Add { .. }) {
                        row::set(g.related_mut(rels::MBAR_SEEN, wait), added.0);
                    }
                }
                continue;
            }
            let (a, b) = if before {
                ((other, act, theirs), (id, used.act, place))
            } else {
                ((id, used.act, place), (other, act, theirs))
            };
            row::set(g.related_mut(rels::MBAR_ORDER, a.0), b.0);
            let starts = matches!(a.1, Act::Init { .. });
            if starts && (b.2.era == a.2.era || (b.1.ends() && b.2.era == a.2.era + 1)) {
                row::set(g.related_mut(rels::MBAR_LIFE, a.0), b.0);
            }
            let adds = |act: Act| matches!(act, Act::Add { .. });
            if adds(a.1) && a.2.era == b.2.era && a.2.level + 1 == b.2.level {
                if adds(b.1) {
                    row::set(g.related_mut(rels::MBAR_STEP, a.0), b.0);
                } else if yes(b.1, b.2, self, g) {
                    row::set(g.related_mut(rels::MBAR_SYNC, a.0), b.0);
                }
            }
        }
        if yes(used.act, place, self, g) {
            enter_chain(g, id);
        }
    }

    pub(crate) fn leave_place<const W: usize>(&mut self, g: &mut Events<'_, W>, id: EventId) {
        debug_assert!(self.places[id].is_some(), "what is undone was done");
        row::clear(&mut g.present, id);
        self.places[id] = None;
        g.unrelate(&MBAR_RELATIONS, id);
    }

    /// Whether the phase that `id` just joined adds up, so that a later operation might belong to it all the same: it
    /// took place before the one that completes the phase. Only among single arrivals without bytes any order completes
    /// the phase too early.
    pub(crate) fn may_stay_open<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> Option<OpenPhase> {
        let (used, place) = (g[id].mbarrier()?, self.places[id]?);
        let phases = self.phases_of(g, used.object, place.era)?;
        let phase = &phases[place.level.checked_sub(1)? as usize];
        debug_assert!(
            phase.members.contains(&id) || !matches!(used.act, Act::Add { .. }),
            "an arrival is in its phase"
        );
        let adds = matches!(used.act, Act::Add { .. });
        let open = OpenPhase { object: used.object, stage: place, members: phase.members.len() };
        (phase.adds_up() && adds).then_some(open)
    }
}

/// Of the phase a wait answers for, the operations whose scopes and those of all others include each other. The
/// phase is complete, so this never changes.
fn enter_chain<const W: usize>(g: &mut Events<'_, W>, wait: EventId) {
    let phase: Vec<EventId> = g.ids().filter(|a| row::has(g.related(rels::MBAR_SYNC, *a), wait)).collect();
    for a in &phase {
        if phase.iter().all(|b| row::has(g.related(rels::SR_HOME, *a), *b)) {
            row::set(g.related_mut(rels::MBAR_CHAIN, *a), wait);
        }
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
