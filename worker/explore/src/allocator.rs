//! Allocation of tensor memory: columns are taken, given back, and the right to take more is given up.
//!
//! Digest `tcgen05.md` sections 3, 7 and 8 (PTX ISA 9.2, 9.7.16.7). An allocation is an event of the allocator, which
//! blocks until columns are free, and then a weak store of the address. Columns are counted, not placed: there is no
//! fragmentation. Where all allocations of a CTA fit together nothing can wait, and their order is not kept. Elsewhere
//! the order in which they are granted is part of an execution. As everywhere in this engine it is decided forward: of
//! the allocations that fit, each is granted or put off until another one of its CTA has been.
//!
//! With `.cta_group::2` an allocation waits for the one of the other CTA. Whether `dealloc` and `relinquish` do is open
//! (TQ18): one choice an execution.

use crate::columns;
use crate::event::{Emitted, Kind, labels};
use crate::interp::{Machine, TraceEnd, View};
use crate::leaf::{ColumnStall, flag, truncate};
use crate::state::State;
use crate::tensor::Home;
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::*;
use std::collections::BTreeSet;

/// An event of the allocator of a CTA, or of those of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocUse {
    pub(crate) act: AllocAct,
    /// First thread of the CTA.
    cta: usize,
    /// First thread of the other CTA of the pair, with `.cta_group::2`.
    peer: Option<usize>,
    exclusive: bool,
    columns: u32,
    /// The count is none.
    wrong_count: bool,
    /// Some lanes of the warp only.
    granularity: Option<&'static str>,
}

impl AllocUse {
    /// The other CTA, where columns are taken from both.
    pub(crate) fn takes_from(&self) -> Option<usize> {
        self.peer.filter(|_| matches!(self.act, AllocAct::Get { .. }))
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocAct {
    /// Takes columns as the allocation of this number.
    Get { slot: u32 },
    /// Gives back columns of an allocation, from one of its columns on; none where the address has no allocation.
    Put { place: Option<(u32, u32)> },
    /// Gives up the right to take more.
    Release,
}

/// What the allocators may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Decide whether `dealloc` and `relinquish` of a pair wait.
    Meeting,
    /// Grant an allocation that nothing competes with.
    Grant(usize),
    /// Grant an allocation, or put it off.
    Offer(usize),
}

impl<V: View> Machine<'_, V> {
    pub(crate) fn allocator(&mut self, op: &Tcgen05, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let ctas = self.ctas(op.group() == Some(CtaGroup::Two), instr)?;
        let (cta, peer) = (ctas[0], ctas.get(1).copied());
        let known = |o: Operand| {
            let state = self.operand(o);
            state.value.map(|v| truncate(v, 32)).ok_or(TraceEnd::Pending(state.deps))
        };
        let granularity = self.granularity(op);
        let plain = |act, set| {
            let (exclusive, columns, wrong_count) = (false, 0, false);
            (AllocUse { act, cta, peer, exclusive, columns, wrong_count, granularity }, set)
        };
        let counted = |act, set, exclusive, count: Operand| {
            let count = known(count)?;
            let wrong_count = !columns::countable(count, exclusive);
            let most = columns::most(exclusive);
            let columns = u32::try_from(count).unwrap_or(most).min(most);
            Ok((AllocUse { act, cta, peer, exclusive, columns, wrong_count, granularity }, set))
        };
        let (used, set) = match op {
            Tcgen05::Alloc { exclusive, columns: count, .. } => {
                let gets = |e: &&Emitted| {
                    matches!(e.kind, Kind::Allocator(AllocUse { act: AllocAct::Get { .. }, .. }))
                };
                let nth = self.events.iter().flatten().filter(gets).count();
                let slot = columns::slot(self.program, self.thread.index(), nth, peer.is_some());
                let slot = slot.ok_or_else(|| {
                    TraceEnd::Unsupported("more than 63 allocations of tensor memory".into(), instr.line)
                })?;
                counted(AllocAct::Get { slot }, sets::TC_GET, *exclusive, *count)?
            }
            Tcgen05::Dealloc { exclusive, addr, columns: count, .. } => {
                let at = self.operand(*addr);
                let Some(at) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
                let at = u32::try_from(at).ok().filter(|at| at >> 16 == 0);
                let place = at.and_then(columns::of_column);
                counted(AllocAct::Put { place }, sets::TC_PUT, *exclusive, *count)?
            }
            _ => plain(AllocAct::Release, sets::TC_REL),
        };
        let event = self.blank(instr, pc, Kind::Allocator(used), labels(&[set]), None);
        let index = event.index;
        self.events.push(Some(event));
        let waits = peer.is_some() || matches!(used.act, AllocAct::Get { .. });
        if !waits {
            return Ok(());
        }
        let Some(address) = self.view.passed(index) else { return Err(TraceEnd::Barrier(index)) };
        match op {
            Tcgen05::Alloc { dst, .. } => self.address_out(instr, pc, dst, address),
            _ => Ok(()),
        }
    }
}

impl<const W: usize> State<'_, W> {
    pub(crate) fn alloc_use(&self, id: usize) -> Option<AllocUse> {
        match self.events[id].emitted.kind {
            Kind::Allocator(u) => Some(u),
            _ => None,
        }
    }

    /// All events of allocators.
    fn allocator_events(&self) -> impl Iterator<Item = (usize, AllocUse)> + '_ {
        (0..self.events.len()).filter_map(|id| Some((id, self.alloc_use(id)?)))
    }

    /// What an event hands to its thread once it lets it go on.
    pub(crate) fn allocator_passed(&self, id: usize) -> Option<Value> {
        let used = self.alloc_use(id)?;
        match (used.act, used.peer, self.meeting) {
            (AllocAct::Get { slot }, ..) => {
                self.granted[id].is_some().then(|| Value::from(columns::address(slot)))
            }
            (_, None, _) | (_, _, Some(false)) => Some(0),
            // With the other one there, it goes on whatever is decided.
            (_, Some(_), None | Some(true)) => self.partner(&used).map(|_| 0),
        }
    }

    /// The first event of the other CTA that a collective one meets.
    fn partner(&self, used: &AllocUse) -> Option<usize> {
        self.partners(*used).next().map(|(id, _)| id)
    }

    /// The events of the other CTA that a collective one meets: the same allocation taken or given back, any other giving
    /// up.
    fn partners(&self, used: AllocUse) -> impl Iterator<Item = (usize, AllocUse)> + '_ {
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
        self.allocator_events().filter(move |(_, u)| meets(u))
    }

    /// Columns of an allocation that have been given back, other than by what its own thread did before `get`.
    fn given_back(&self, get: usize, cta: usize, slot: u32, whole: u32) -> u32 {
        let before = |id: usize| {
            let (a, b) = (&self.events[id], &self.events[get]);
            a.thread == b.thread && a.emitted.index < b.emitted.index
        };
        let partly = self.model.variant("TQ23") == Some("B");
        let of = |u: &AllocUse| {
            u.cta == cta && matches!(u.act, AllocAct::Put { place: Some((s, _)) } if s == slot)
        };
        let done = self
            .allocator_events()
            .filter(|(id, u)| of(u) && !before(*id) && self.allocator_passed(*id).is_some());
        done.map(|(_, u)| if partly { u.columns } else { whole }).fold(0, u32::saturating_add).min(whole)
    }

    /// Columns of a CTA that are taken, and whether exclusively.
    fn taken(&self, cta: usize) -> (u32, bool) {
        let mut taken = (0, false);
        for (id, used) in self.allocator_events() {
            let AllocAct::Get { slot } = used.act else { continue };
            if used.cta == cta && self.granted[id].is_some() {
                let left = used.columns - self.given_back(id, cta, slot, used.columns);
                taken = (taken.0 + left, taken.1 || (used.exclusive && left > 0));
            }
        }
        taken
    }

    /// Whether the columns of an allocation are free in its CTA.
    fn columns_free(&self, used: &AllocUse) -> bool {
        let (taken, exclusively) = self.taken(used.cta);
        if used.exclusive { taken == 0 } else { !exclusively && taken + used.columns <= columns::most(false) }
    }

    /// How many allocations of a CTA have been granted.
    fn grants(&self, cta: usize) -> usize {
        let granted = |(id, u): &(usize, AllocUse)| u.cta == cta && self.granted[*id].is_some();
        self.allocator_events().filter(granted).count()
    }

    /// The first thing to be done at an allocator; `last`: nothing else is left to do anywhere.
    pub(crate) fn next_allocation(&self, last: bool) -> Option<Turn> {
        for (id, used) in self.allocator_events() {
            match (used.act, used.peer) {
                (AllocAct::Get { .. }, _) if self.granted[id].is_some() => {}
                (AllocAct::Get { .. }, Some(_)) => {
                    let other = self.partner(&used).and_then(|p| self.alloc_use(p));
                    if other.is_some_and(|o| self.columns_free(&used) && self.columns_free(&o)) {
                        return Some(Turn::Grant(id));
                    }
                }
                (AllocAct::Get { .. }, None) if !self.contended[used.cta] => return Some(Turn::Grant(id)),
                (AllocAct::Get { .. }, None) => {
                    let late = usize::from(self.put_off[id]) <= self.grants(used.cta);
                    if last && late && self.columns_free(&used) {
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

    /// Whether `dealloc` and `relinquish` of a pair may wait for the other CTA, and may not (TQ18).
    pub(crate) fn meetings(&self) -> &'static [bool] {
        match self.model.variant("TQ18") {
            Some("B") => &[false],
            Some("C") => &[true],
            _ => &[false, true],
        }
    }

    /// Grants an allocation, with that of the other CTA of a pair; returns what to undo. The error names what is not
    /// modelled.
    pub(crate) fn grant(&mut self, id: usize) -> Result<Vec<usize>, &'static str> {
        let Some(used) = self.alloc_use(id) else { return Ok(Vec::new()) };
        let mut both = vec![id];
        if used.peer.is_some() {
            both.extend(self.partner(&used));
            let thread = |e: usize| self.events[e].thread;
            let several = self.allocator_events().any(|(e, u)| {
                let get = matches!(u.act, AllocAct::Get { .. });
                get && both
                    .iter()
                    .any(|b| self.alloc_use(*b).is_some_and(|v| v.cta == u.cta) && thread(*b) != thread(e))
            });
            if several {
                return Err("tcgen05.alloc.cta_group::2 by several warps of a CTA");
            }
        }
        for get in &both {
            let position = self.alloc_use(*get).map_or(0, |u| self.grants(u.cta));
            self.granted[*get] = Some(u16::try_from(position).unwrap_or(u16::MAX));
        }
        Ok(both)
    }

    /// Whether another thread may still take columns of the CTA, so that `id` can be put off.
    pub(crate) fn may_wait(&self, id: usize) -> bool {
        let (Some(used), Some(own)) = (self.alloc_use(id), self.events[id].thread) else { return false };
        let waiting = |(e, u): (usize, AllocUse)| {
            let get = matches!(u.act, AllocAct::Get { .. });
            get && e != id && u.cta == used.cta && self.granted[e].is_none()
        };
        self.allocator_events().any(waiting)
            || (0..self.threads.len()).any(|t| {
                let place = |t: usize| &self.program.threads[t].place;
                let trace = &self.threads[t].trace;
                let over = matches!(trace.end, TraceEnd::Done | TraceEnd::Stuck(_));
                let allocates = |i: &Instr| matches!(i.op, Op::Tcgen05(Tcgen05::Alloc { .. }));
                let body = &self.program.threads[t].body;
                t != usize::from(own)
                    && !over
                    && place(t).same_cta(place(used.cta))
                    && body[self.reachable_from(t, trace.pc)..].iter().any(allocates)
            })
    }

    /// How many allocations of the CTA must be granted before this one, after it was put off once more.
    pub(crate) fn after_next(&self, id: usize) -> u16 {
        let grants = self.alloc_use(id).map_or(0, |u| self.grants(u.cta));
        u16::try_from(grants + 1).unwrap_or(u16::MAX)
    }

    /// Whether no allocation that fits was put off in vain.
    pub(crate) fn allocations_settled(&self) -> bool {
        let idle = |(id, u): (usize, AllocUse)| {
            matches!(u.act, AllocAct::Get { .. })
                && u.peer.is_none()
                && self.granted[id].is_none()
                && self.columns_free(&u)
        };
        !self.allocator_events().any(idle)
    }

    /// What a key says of an event: the place among the allocations of its CTA where that matters, the choice of TQ18.
    pub(crate) fn allocator_phase(&self, id: usize) -> Option<u16> {
        let used = self.alloc_use(id)?;
        match (used.act, used.peer) {
            (AllocAct::Get { .. }, None) if self.contended[used.cta] => self.granted[id].map(|p| p + 1),
            (AllocAct::Get { .. }, _) | (_, None) => None,
            (_, Some(_)) => self.meeting.map(u16::from),
        }
    }

    /// The granted allocation of a number in a CTA.
    fn allocation(&self, cta: usize, slot: u32) -> Option<AllocUse> {
        let is = |(id, u): &(usize, AllocUse)| {
            let here = u.cta == cta && self.granted[*id].is_some();
            here && matches!(u.act, AllocAct::Get { slot: s } if s == slot)
        };
        self.allocator_events().find(is).map(|(_, u)| u)
    }

    /// What is wrong whatever the order is.
    pub(crate) fn allocator_flags(&self, out: &mut BTreeSet<String>) {
        for (id, used) in self.allocator_events() {
            out.extend(used.granularity.map(str::to_owned));
            if used.wrong_count || self.partners(used).any(|(_, o)| o.columns != used.columns) {
                out.insert(flag::COUNT.to_owned());
            }
            if let AllocAct::Put { place } = used.act {
                out.extend(self.wrong_put(id, &used, place).map(str::to_owned));
            }
            if let AllocAct::Get { slot } = used.act
                && self.granted[id].is_some()
                && self.over(used.cta)
                && self.given_back(id, used.cta, slot, used.columns) < used.columns
            {
                out.insert(flag::LEAK.to_owned());
            }
        }
        for used in self.events.iter().filter_map(|e| e.emitted.tensor.as_deref()) {
            out.extend(used.granularity.map(str::to_owned));
            if used.unallocated {
                out.insert(flag::UNALLOCATED.to_owned());
            }
            for cells in &used.cells {
                let Home::Slot(slot) = cells.home else { continue };
                match self.allocation(cells.cta, slot) {
                    None => {
                        out.insert(flag::UNALLOCATED.to_owned());
                    }
                    Some(a) if cells.columns.end > a.columns => {
                        out.insert(flag::COLUMNS.to_owned());
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Whether every thread of a CTA has exited.
    fn over(&self, cta: usize) -> bool {
        let place = |t: usize| &self.program.threads[t].place;
        (0..self.threads.len())
            .filter(|t| place(*t).same_cta(place(cta)))
            .all(|t| self.threads[t].trace.end == TraceEnd::Done)
    }

    fn wrong_put(&self, id: usize, used: &AllocUse, place: Option<(u32, u32)>) -> Option<&'static str> {
        let Some((slot, column)) = place else { return Some(flag::UNALLOCATED) };
        let Some(allocation) = self.allocation(used.cta, slot) else { return Some(flag::UNALLOCATED) };
        let partly = self.model.variant("TQ23") == Some("B");
        let again = self.allocator_events().any(|(other, u)| {
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
    pub(crate) fn column_stalls(&self) -> Vec<ColumnStall> {
        let stuck = |(id, used): (usize, AllocUse)| {
            let thread = usize::from(self.events[id].thread?);
            if self.threads[thread].trace.end != TraceEnd::Barrier(self.events[id].emitted.index) {
                return None;
            }
            let alone = used.peer.is_some() && self.partner(&used).is_none();
            let (taken, _) = self.taken(used.cta);
            let columns = used.columns;
            Some(ColumnStall { thread, line: self.events[id].emitted.line, columns, taken, alone })
        };
        self.allocator_events().filter_map(stuck).collect()
    }
}

/// Relations between events of the allocator, or of the tensor cores, and events of the allocator.
pub(crate) fn relate(x: &Emitted, y: &Emitted, put: &mut impl FnMut(usize, bool)) {
    let used = |e: &Emitted| if let Kind::Allocator(u) = e.kind { Some(u) } else { None };
    let (from, to) = (used(x), used(y));
    let slot = |u: &AllocUse| match u.act {
        AllocAct::Get { slot } => Some(slot),
        AllocAct::Put { place } => place.map(|p| p.0),
        AllocAct::Release => None,
    };
    let touches = |e: &Emitted, u: &AllocUse, both: bool| {
        let here = |cta: usize| cta == u.cta || (both && u.peer == Some(cta));
        let cells = e.tensor.iter().filter(|_| e.detached).flat_map(|t| &t.cells);
        slot(u).is_some_and(|s| cells.into_iter().any(|c| c.home == Home::Slot(s) && here(c.cta)))
    };
    let gets = |u: &AllocUse| matches!(u.act, AllocAct::Get { .. });
    let puts = |u: &AllocUse| matches!(u.act, AllocAct::Put { .. });
    put(rels::TC_GOT, from.is_some_and(|u| gets(&u) && touches(y, &u, false)));
    put(rels::TC_FREED, to.is_some_and(|u| puts(&u) && touches(x, &u, true)));
    let both = from.zip(to);
    let grows =
        |(a, b): (AllocUse, AllocUse)| gets(&a) && gets(&b) && a.cta == b.cta && a.columns < b.columns;
    put(rels::TC_GROWS, both.is_some_and(grows));
    let taken = |(a, b): (AllocUse, AllocUse)| {
        let either = a.cta == b.cta || (a.peer.is_some() && b.peer == Some(a.cta));
        gets(&a) && puts(&b) && slot(&a) == slot(&b) && either
    };
    put(rels::TC_TAKEN, both.is_some_and(taken));
}
