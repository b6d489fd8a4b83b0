//! Allocation of tensor memory: columns are taken, given back, and the right to take more is given up.
//!
//! PTX ISA 9.2, 9.7.16.7. An allocation is an event of the allocator, which
//! blocks until columns are free, and then a weak store of the address. Columns are counted, not placed: there is no
//! fragmentation. Where all allocations of a CTA fit together nothing can wait, and their order is not kept. Elsewhere
//! the order in which they are granted is part of an execution. As everywhere in this engine it is decided forward: of
//! the allocations that fit, each is granted or put off until another one of its CTA has been.
//!
//! With `.cta_group::2` an allocation waits for the one of the other CTA. Whether `dealloc` and `relinquish` do is left
//! to the model (`pair-release`): where both are possible, one choice an execution.

use super::event::{Faults, raise};
use super::events::Events;
use super::ids::EventId;
use crate::thread::event::allocator::{AllocAct, AllocUse};
use crate::thread::event::tensor::Home;
use crate::thread::ids::Table;
use crate::thread::trace::TraceEnd;
use moire_cat::Model;
use moire_cat::contract::{Deallocation, PairRelease};
use moire_execution::columns;
use moire_execution::leaf::{ColumnStall, flag};
use moire_program::ir::*;

/// What the allocators may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Decide whether `dealloc` and `relinquish` of a pair wait.
    Meeting,
    /// Grant an allocation that nothing competes with.
    Grant(EventId),
    /// Grant an allocation, or put it off.
    Offer(EventId),
}

/// All events of allocators.
fn allocator_events<'g, const W: usize>(
    g: &'g Events<'_, W>,
) -> impl Iterator<Item = (EventId, AllocUse)> + 'g {
    g.ids().filter_map(|id| Some((id, g[id].allocator()?)))
}

/// Allocations of tensor memory: which are granted, in which order, and what was decided about pairs of CTAs.
#[derive(Clone, Debug)]
pub(crate) struct Allocations {
    /// Place of each granted allocation among those of its CTA.
    pub(crate) granted: Table<EventId, Option<u16>>,
    /// Allocations of its CTA that must be granted before each one.
    pub(crate) put_off: Table<EventId, u16>,
    /// Whether `dealloc` and `relinquish` of a pair wait for the other CTA; open until the first.
    pub(crate) meeting: Option<bool>,
    /// What [`Allocations::meeting`] may be.
    meetings: &'static [bool],
    /// Whether a part of an allocation can be given back.
    partly: bool,
    /// By thread: whether the order of allocations of its CTA matters.
    contended: Table<ThreadId, bool>,
}

impl Allocations {
    pub(crate) fn new(program: &Program, model: &Model) -> Self {
        Allocations {
            granted: Table::default(),
            put_off: Table::default(),
            meeting: None,
            meetings: match model.settings().pair_release {
                PairRelease::Alone => &[false],
                PairRelease::Together => &[true],
                PairRelease::Either => &[false, true],
            },
            partly: model.settings().deallocation == Deallocation::Parts,
            contended: (0..program.threads.len()).map(|t| columns::contended(program, t)).collect(),
        }
    }
}

impl Allocations {
    /// What an event hands to its thread once it lets it go on.
    pub(crate) fn allocator_passed<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> Option<Value> {
        let used = g[id].allocator()?;
        match (used.act, used.peer, self.meeting) {
            (AllocAct::Get { slot }, ..) => {
                self.granted[id].is_some().then(|| Value::from(columns::address(slot)))
            }
            (_, None, _) | (_, _, Some(false)) => Some(0),
            // With the other one there, it goes on whatever is decided.
            (_, Some(_), None | Some(true)) => self.partner(g, &used).map(|_| 0),
        }
    }

    /// The first event of the other CTA that a collective one meets.
    fn partner<const W: usize>(&self, g: &Events<'_, W>, used: &AllocUse) -> Option<EventId> {
        self.partners(g, *used).next().map(|(id, _)| id)
    }

    /// The events of the other CTA that a collective one meets: the same allocation taken or given back, any other giving
    /// up.
    fn partners<'g, const W: usize>(
        &self,
        g: &'g Events<'_, W>,
        used: AllocUse,
    ) -> impl Iterator<Item = (EventId, AllocUse)> + use<'g, '_, W> {
        let meets = move |other: &AllocUse| {
            let act = match (used.act, other.act) {
                (AllocAct::Get { slot }, AllocAct::Get { slot: theirs }) => slot == theirs,
                (AllocAct::Put { place }, AllocAct::Put { place: theirs }) => {
                    place.map(|p| p.0) == theirs.map(|p| p.0)
                }
                (AllocAct::Release, AllocAct::Release) => true,
                _ => false,
            };
            act && other.peer == Some(used.cta) && used.peer == Some(other.cta)
        };
        allocator_events(g).filter(move |(_, u)| meets(u))
    }

    /// Columns of an allocation that have been given back, other than by what its own thread did before `get`.
    fn given_back<const W: usize>(
        &self,
        g: &Events<'_, W>,
        get: EventId,
        cta: ThreadId,
        slot: u32,
        whole: u32,
    ) -> u32 {
        let before = |id: EventId| {
            let (a, b) = (&g[id], &g[get]);
            a.thread == b.thread && a.emitted.index < b.emitted.index
        };
        let partly = self.partly;
        let of = |u: &AllocUse| {
            u.cta == cta && matches!(u.act, AllocAct::Put { place: Some((s, _)) } if s == slot)
        };
        let done = allocator_events(g)
            .filter(|(id, u)| of(u) && !before(*id) && self.allocator_passed(g, *id).is_some());
        done.map(|(_, u)| if partly { u.columns } else { whole }).fold(0, u32::saturating_add).min(whole)
    }

    /// Columns of a CTA that are taken, and whether exclusively.
    fn taken<const W: usize>(&self, g: &Events<'_, W>, cta: ThreadId) -> (u32, bool) {
        let mut taken = (0, false);
        for (id, used) in allocator_events(g) {
            let AllocAct::Get { slot } = used.act else { continue };
            if used.cta == cta && self.granted[id].is_some() {
                let left = used.columns - self.given_back(g, id, cta, slot, used.columns);
                debug_assert!(left <= used.columns, "no more is given back than was taken");
                taken = (taken.0 + left, taken.1 || (used.exclusive && left > 0));
            }
        }
        taken
    }

    /// Whether the columns of an allocation are free in its CTA.
    fn columns_free<const W: usize>(&self, g: &Events<'_, W>, used: &AllocUse) -> bool {
        let (taken, exclusively) = self.taken(g, used.cta);
        if used.exclusive { taken == 0 } else { !exclusively && taken + used.columns <= columns::most(false) }
    }

    /// How many allocations of a CTA have been granted.
    fn grants<const W: usize>(&self, g: &Events<'_, W>, cta: ThreadId) -> usize {
        let granted = |(id, u): &(EventId, AllocUse)| u.cta == cta && self.granted[*id].is_some();
        allocator_events(g).filter(granted).count()
    }

    /// The first thing to be done at an allocator; `last`: nothing else is left to do anywhere.
    pub(crate) fn next_allocation<const W: usize>(&self, g: &Events<'_, W>, last: bool) -> Option<Turn> {
        for (id, used) in allocator_events(g) {
            match (used.act, used.peer) {
                (AllocAct::Get { .. }, _) if self.granted[id].is_some() => {}
                (AllocAct::Get { .. }, Some(_)) => {
                    let other = self.partner(g, &used).and_then(|p| g[p].allocator());
                    if other.is_some_and(|o| self.columns_free(g, &used) && self.columns_free(g, &o)) {
                        return Some(Turn::Grant(id));
                    }
                }
                (AllocAct::Get { .. }, None) if !self.contended[used.cta] => return Some(Turn::Grant(id)),
                (AllocAct::Get { .. }, None) => {
                    let late = usize::from(self.put_off[id]) <= self.grants(g, used.cta);
                    if last && late && self.columns_free(g, &used) {
                        return Some(Turn::Offer(id));
                    }
                }
                // The later it is decided, the less is done twice.
                (_, Some(_)) if last && self.meeting.is_none() => return Some(Turn::Meeting),
                _ => {}
            }
        }
        None
    }

    /// Whether `dealloc` and `relinquish` of a pair may wait for the other CTA, and may not.
    pub(crate) fn meetings(&self) -> &'static [bool] {
        self.meetings
    }

    /// Grants an allocation, with that of the other CTA of a pair; returns what to undo. The error names what is not
    /// modelled.
    pub(crate) fn grant<const W: usize>(
        &mut self,
        g: &Events<'_, W>,
        id: EventId,
    ) -> Result<Vec<EventId>, &'static str> {
        let Some(used) = g[id].allocator() else { return Ok(Vec::new()) };
        let mut both = vec![id];
        if used.peer.is_some() {
            both.extend(self.partner(g, &used));
            let thread = |e: EventId| g[e].thread;
            let several = allocator_events(g).any(|(e, u)| {
                let get = matches!(u.act, AllocAct::Get { .. });
                get && both
                    .iter()
                    .any(|b| g[*b].allocator().is_some_and(|v| v.cta == u.cta) && thread(*b) != thread(e))
            });
            if several {
                return Err("tcgen05.alloc.cta_group::2 by several warps of a CTA");
            }
        }
        for get in &both {
            let position = g[*get].allocator().map_or(0, |u| self.grants(g, u.cta));
            debug_assert_eq!(self.granted[*get], None, "an allocation is granted once");
            self.granted[*get] = Some(
                u16::try_from(position).expect("allocations are events, of which there are at most 1024"),
            );
        }
        Ok(both)
    }

    /// Whether another thread may still take columns of the CTA, so that `id` can be put off.
    pub(crate) fn may_wait<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> bool {
        let (Some(used), Some(own)) = (g[id].allocator(), g[id].thread) else { return false };
        let waiting = |(e, u): (EventId, AllocUse)| {
            let get = matches!(u.act, AllocAct::Get { .. });
            get && e != id && u.cta == used.cta && self.granted[e].is_none()
        };
        allocator_events(g).any(waiting)
            || g.threads.ids().any(|t| {
                let trace = &g.threads[t].trace;
                let over = matches!(trace.end, TraceEnd::Done | TraceEnd::Stuck(_));
                let allocates = |i: &Instr| matches!(i.op, Op::Tcgen05(Tcgen05::Alloc { .. }));
                let body = &g.code(t).body;
                t != own
                    && !over
                    && g.code(t).place.same_cta(&g.code(used.cta).place)
                    && body[g.reachable_from(t, trace.pc)..].iter().any(allocates)
            })
    }

    /// How many allocations of the CTA must be granted before this one, after it was put off once more.
    pub(crate) fn after_next<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> u16 {
        let grants = g[id].allocator().map_or(0, |u| self.grants(g, u.cta));
        u16::try_from(grants + 1).expect("allocations are events, of which there are at most 1024")
    }

    /// Whether no allocation that fits was put off for nothing.
    pub(crate) fn allocations_settled<const W: usize>(&self, g: &Events<'_, W>) -> bool {
        let idle = |(id, u): (EventId, AllocUse)| {
            matches!(u.act, AllocAct::Get { .. })
                && u.peer.is_none()
                && self.granted[id].is_none()
                && self.columns_free(g, &u)
        };
        !allocator_events(g).any(idle)
    }

    /// What a key says of an event: the place among the allocations of its CTA where that matters, whether the pair waits.
    pub(crate) fn allocator_phase<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> Option<u16> {
        let used = g[id].allocator()?;
        match (used.act, used.peer) {
            (AllocAct::Get { .. }, None) if self.contended[used.cta] => self.granted[id].map(|p| p + 1),
            (AllocAct::Get { .. }, _) | (_, None) => None,
            (_, Some(_)) => self.meeting.map(u16::from),
        }
    }

    /// The granted allocation of a number in a CTA.
    fn allocation<const W: usize>(&self, g: &Events<'_, W>, cta: ThreadId, slot: u32) -> Option<AllocUse> {
        let is = |(id, u): &(EventId, AllocUse)| {
            let here = u.cta == cta && self.granted[*id].is_some();
            here && matches!(u.act, AllocAct::Get { slot: s } if s == slot)
        };
        allocator_events(g).find(is).map(|(_, u)| u)
    }

    /// What is wrong whatever the order is.
    pub(crate) fn allocator_flags<const W: usize>(&self, g: &Events<'_, W>, out: &mut Faults) {
        for (id, used) in allocator_events(g) {
            let mut at = |flag: &str| raise(out, flag, g[id].place());
            used.granularity.into_iter().for_each(&mut at);
            if used.wrong_count || self.partners(g, used).any(|(_, o)| o.columns != used.columns) {
                at(flag::COUNT);
            }
            if let AllocAct::Put { place } = used.act {
                self.wrong_put(g, id, &used, place).into_iter().for_each(&mut at);
            }
            if let AllocAct::Get { slot } = used.act
                && self.granted[id].is_some()
                && self.over(g, used.cta)
                && self.given_back(g, id, used.cta, slot, used.columns) < used.columns
            {
                at(flag::LEAK);
            }
        }
        for event in g.iter() {
            let Some(used) = event.emitted.tensor() else { continue };
            let mut at = |flag: &str| raise(out, flag, event.place());
            used.granularity.into_iter().for_each(&mut at);
            if used.unallocated {
                at(flag::UNALLOCATED);
            }
            for cells in &used.cells {
                let Home::Slot(slot) = cells.home else { continue };
                match self.allocation(g, cells.cta, slot) {
                    None => at(flag::UNALLOCATED),
                    Some(a) if cells.columns.end > a.columns => at(flag::COLUMNS),
                    Some(_) => {}
                }
            }
        }
    }

    /// Whether every thread of a CTA has exited.
    fn over<const W: usize>(&self, g: &Events<'_, W>, cta: ThreadId) -> bool {
        g.of_cta(Some(cta)).all(|t| g.threads[t].trace.end == TraceEnd::Done)
    }

    fn wrong_put<const W: usize>(
        &self,
        g: &Events<'_, W>,
        id: EventId,
        used: &AllocUse,
        place: Option<(u32, u32)>,
    ) -> Option<&'static str> {
        let Some((slot, column)) = place else { return Some(flag::UNALLOCATED) };
        let Some(allocation) = self.allocation(g, used.cta, slot) else { return Some(flag::UNALLOCATED) };
        let partly = self.partly;
        let again = allocator_events(g).any(|(other, u)| {
            let theirs = match u.act {
                AllocAct::Put { place: Some((s, c)) } if s == slot && u.cta == used.cta => c,
                _ => return false,
            };
            let apart = theirs + u.columns <= column || column + used.columns <= theirs;
            other != id && (!partly || !apart)
        });
        if again {
            return Some(flag::UNALLOCATED);
        }
        let whole = column == 0 && used.columns == allocation.columns;
        let part = partly && column + used.columns <= allocation.columns;
        let right = (whole || part) && used.exclusive == allocation.exclusive;
        (!right).then_some(flag::DEALLOC)
    }

    /// Threads that wait for an allocator for ever.
    pub(crate) fn column_stalls<const W: usize>(&self, g: &Events<'_, W>) -> Vec<ColumnStall> {
        let stuck = |(id, used): (EventId, AllocUse)| {
            let thread = g[id].thread?;
            if g.threads[thread].trace.end != TraceEnd::Barrier(g[id].emitted.index) {
                return None;
            }
            let alone = used.peer.is_some() && self.partner(g, &used).is_none();
            let (taken, _) = self.taken(g, used.cta);
            let columns = used.columns;
            Some(ColumnStall { thread: thread.index(), line: g[id].emitted.line, columns, taken, alone })
        };
        allocator_events(g).filter_map(stuck).collect()
    }
}
