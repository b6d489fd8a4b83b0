//! Phases of barriers: which phase an arrival joins, when a phase is complete, what `bar.red` returns.
//!
//! PTX ISA 9.2, 9.7.13.1 (bar), 9.7.13.2 (bar.warp.sync), 9.7.13.3 (barrier.cluster).

use super::events::Events;
use super::ids::EventId;
use super::row;
use crate::planted::Planted;
use crate::thread::collective::{Gift, result};
use crate::thread::event::barrier::{BarrierObject, BarrierUse, meet, names};
use crate::thread::flow::successors;
use crate::thread::ids::Table;
use crate::thread::trace::TraceEnd;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;

/// The phase that each placed barrier event joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    /// By event.
    pub(crate) of: Table<EventId, Option<u16>>,
}

impl Phases {
    /// Placed events of the same barrier as `id`, itself excluded.
    fn companions<const W: usize>(
        &self,
        g: &Events<'_, W>,
        id: EventId,
        object: BarrierObject,
    ) -> Vec<EventId> {
        let Some(thread) = g[id].thread else { return Vec::new() };
        let same = |other: &EventId| {
            *other != id
                && self.of[*other].is_some()
                && g[*other].barrier().is_some_and(|b| b.object == object)
                && g[*other].thread.is_some_and(|t| meet(g.program, &object, thread, t))
        };
        g.ids().filter(same).collect()
    }

    /// Phases the event can join.
    pub(crate) fn phases_for<const W: usize>(
        &self,
        g: &Events<'_, W>,
        id: EventId,
        barrier: &BarrierUse,
    ) -> Vec<u16> {
        let companions = self.companions(g, id, barrier.object);
        let thread = g[id].thread;
        let own: Vec<EventId> = companions.iter().copied().filter(|c| g[*c].thread == thread).collect();
        let narrow =
            |n: usize| u16::try_from(n).expect("a barrier has at most as many phases as there are arrivals");
        let (Some(count), BarrierObject::Cta { .. }) = (barrier.count, barrier.object) else {
            // Each wait of a lane at the cluster barrier ends its phase.
            let lane = g[id].emitted.lanes.active.trailing_zeros();
            let earlier = |o: &&EventId| {
                let (of, emitted) = (g[**o].barrier(), &g[**o].emitted);
                match barrier.object {
                    BarrierObject::Cluster => {
                        of.is_some_and(|b| b.waits) && emitted.lanes.active >> lane & 1 == 1
                    }
                    _ => of.is_some_and(|b| b.arrives == barrier.arrives),
                }
            };
            return vec![narrow(own.iter().filter(earlier).count())];
        };
        let lanes = |id: EventId| g[id].emitted.lanes.count() as usize;
        let members = |p: u16| -> usize {
            companions.iter().filter(|c| self.of[**c] == Some(p)).map(|c| lanes(*c)).sum()
        };
        if dialect(barrier) {
            // A minimum without phases: 0 the arrivals that synchronise, 1 those that come later.
            return if members(0) < count as usize { vec![0, 1] } else { vec![1] };
        }
        let floor = own.iter().map(|o| {
            let waits = g[*o].barrier().is_some_and(|b| b.waits);
            self.of[*o].unwrap_or(0) + u16::from(waits)
        });
        let floor = floor.max().unwrap_or(0);
        let arrivals = self.potential_arrivals(g, id);
        // Loops that run often may arrive often; a phase that is passed over has a member, which is an event.
        let phases = arrivals.div_ceil((count as usize).max(1)).min(64 * W);
        let last = narrow(phases).saturating_sub(1);
        // A phase is passed over only if it completes without this thread.
        let mut out = Vec::new();
        for p in floor..=last.max(floor) {
            if members(p) + lanes(id) <= count as usize {
                out.push(p);
            }
            let missing = (count as usize).saturating_sub(members(p));
            if missing > 0 && missing > self.others_at(g, id, barrier, p) {
                break;
            }
        }
        out
    }

    /// Whether the thread of an event for all threads has arrived there before and gone on: the phase of that arrival may
    /// still be open, and it is not modelled that both are of one phase.
    pub(crate) fn arrives_again<const W: usize>(
        &self,
        g: &Events<'_, W>,
        id: EventId,
        barrier: &BarrierUse,
    ) -> bool {
        let (None, BarrierObject::Cta { instance: None, .. }) = (barrier.count, barrier.object) else {
            return false;
        };
        let went_on = |c: &EventId| g[*c].thread == g[id].thread && g[*c].barrier().is_some_and(|b| !b.waits);
        self.companions(g, id, barrier.object).iter().any(went_on)
    }

    /// Arrivals other threads can still add to phase `p` of the barrier of `id`: one each where they wait.
    fn others_at<const W: usize>(
        &self,
        g: &Events<'_, W>,
        id: EventId,
        barrier: &BarrierUse,
        p: u16,
    ) -> usize {
        let companions = self.companions(g, id, barrier.object);
        let mut total = 0usize;
        for t in g.of_cta(g[id].thread).filter(|t| Some(*t) != g[id].thread) {
            let code = g.code(t);
            let meets = |i: &&Instr| may_meet(i, barrier);
            if code.body.iter().filter(meets).any(|i| matches!(i.op, Op::Bar { kind: BarKind::Arrive, .. })) {
                return usize::MAX;
            }
            let over = g.threads[t].trace.end == TraceEnd::Done;
            let past =
                companions.iter().any(|c| g[*c].thread == Some(t) && self.of[*c].is_some_and(|q| q >= p));
            if !past && !over && code.body.iter().any(|i| may_meet(i, barrier)) {
                total += code.place.lanes().count_ones() as usize;
            }
        }
        total
    }

    /// Barrier instructions of the CTA that may be this barrier, times the iterations a loop may take.
    fn potential_arrivals<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> usize {
        let mut total = 0;
        for code in g.of_cta(g[id].thread).map(|t| g.code(t)) {
            let loops = (0..code.body.len()).any(|pc| successors(&code.body, pc).iter().any(|s| *s <= pc));
            let bars = code.body.iter().filter(|i| matches!(i.op, Op::Bar { .. })).count();
            let lanes = code.place.lanes().count_ones() as usize;
            total += lanes * bars * if loops { g.front.loop_bound as usize + 1 } else { 1 };
        }
        total
    }

    pub(crate) fn join_phase<const W: usize>(
        &mut self,
        g: &mut Events<'_, W>,
        id: EventId,
        barrier: &BarrierUse,
        phase: u16,
    ) {
        row::set(&mut g.present, id);
        let companions = self.companions(g, id, barrier.object);
        debug_assert_eq!(self.of[id], None, "an arrival joins one phase");
        self.of[id] = Some(phase);
        for other in companions {
            let (theirs, b) = (self.of[other].unwrap_or(0), g[other].barrier().unwrap_or(*barrier));
            let relation = match barrier.object {
                BarrierObject::Cta { .. } => rels::SYNCBAR,
                BarrierObject::Cluster => rels::SYNC_CLUSTER,
                BarrierObject::Warp { .. } if g.front.planted == Some(Planted::WarpSyncBare) => {
                    rels::RENDEZVOUS
                }
                BarrierObject::Warp { .. } => rels::SYNC_WARP,
                BarrierObject::Collective { .. } if g.front.planted == Some(Planted::ExchangeOrders) => {
                    rels::SYNC_WARP
                }
                BarrierObject::Collective { .. } => rels::RENDEZVOUS,
            };
            let ordered = relation != rels::RENDEZVOUS;
            if dialect(barrier) {
                if phase == 0 && b.waits {
                    row::set(g.related_mut(relation, id), other);
                }
                if theirs == 0 && barrier.waits {
                    row::set(g.related_mut(relation, other), id);
                }
            } else if theirs == phase {
                if barrier.arrives && b.waits {
                    row::set(g.related_mut(relation, id), other);
                }
                if b.arrives && barrier.waits {
                    row::set(g.related_mut(relation, other), id);
                }
            } else if !ordered {
            } else if theirs < phase {
                row::set(g.related_mut(rels::BAR_PHASE, other), id);
            } else {
                row::set(g.related_mut(rels::BAR_PHASE, id), other);
            }
        }
    }

    pub(crate) fn leave_phase<const W: usize>(&mut self, g: &mut Events<'_, W>, id: EventId) {
        debug_assert!(self.of[id].is_some(), "what is undone was done");
        row::clear(&mut g.present, id);
        self.of[id] = None;
        g.unrelate(
            &[rels::SYNCBAR, rels::SYNC_CLUSTER, rels::SYNC_WARP, rels::RENDEZVOUS, rels::BAR_PHASE],
            id,
        );
    }

    /// Whether the phase this placed event joined has all it waits for.
    pub(crate) fn complete<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> bool {
        let (Some(barrier), Some(phase), Some(thread)) = (g[id].barrier(), self.of[id], g[id].thread) else {
            return false;
        };
        let companions = self.companions(g, id, barrier.object);
        let all = || companions.iter().copied().chain([id]);
        let arrived = |t: ThreadId| {
            all().any(|c| {
                g[c].thread == Some(t)
                    && self.of[c] == Some(phase)
                    && g[c].barrier().is_some_and(|b| b.arrives)
            })
        };
        let planted = g.front.planted;
        let awaited = planted == Some(Planted::ExitedAwaited)
            && matches!(barrier.object, BarrierObject::Collective { .. });
        let exited = |t: ThreadId| !awaited && g.threads[t].trace.end == TraceEnd::Done;
        match (barrier.object, barrier.count) {
            (BarrierObject::Cta { .. }, Some(count)) => {
                // A phase is complete only when those before it are.
                let phase = if dialect(&barrier) { 0 } else { phase };
                let lanes = |p: u16| -> u32 {
                    let here = all().filter(|c| self.of[*c] == Some(p));
                    here.map(|c| g[c].emitted.lanes.count()).sum()
                };
                (0..=phase).all(|p| lanes(p) >= count)
            }
            (BarrierObject::Cta { id: number, instance: Some(instance), .. }, None) => self
                .static_bars(g, thread, number, instance)
                .into_iter()
                .all(|(t, pc)| self.reached(g, t, pc)),
            (BarrierObject::Collective { .. }, _) if planted == Some(Planted::ExchangePasses) => true,
            (BarrierObject::Warp { mask }, _) if g.front.exited_awaited => {
                let came = |t: ThreadId| {
                    let here = all().filter(|c| g[*c].thread == Some(t) && self.of[*c] == Some(phase));
                    here.fold(0, |lanes, c| lanes | g[c].emitted.lanes.active)
                };
                let named = |t: ThreadId| mask & g.code(t).place.lanes();
                let here = |t: &ThreadId| meet(g.program, &barrier.object, thread, *t);
                g.threads.ids().filter(here).all(|t| named(t) & !came(t) == 0)
            }
            (object, _) => g.threads.ids().all(|t| {
                !meet(g.program, &object, thread, t)
                    || !(names(g.program, &object, t) || planted == Some(Planted::MasksIgnored))
                    || arrived(t)
                    || exited(t)
            }),
        }
    }

    /// Dat3M dialect: the bars of the CTA that may be the same barrier.
    fn static_bars<const W: usize>(
        &self,
        g: &Events<'_, W>,
        thread: ThreadId,
        number: i64,
        wanted: u32,
    ) -> Vec<(ThreadId, usize)> {
        let mut out = Vec::new();
        for t in g.of_cta(Some(thread)) {
            for (pc, instr) in g.code(t).body.iter().enumerate() {
                if let Op::Bar { id, instance: Some(i), .. } = &instr.op {
                    let same = match id {
                        Operand::Imm(v) => *v == i128::from(number),
                        _ => number >= 0,
                    };
                    if *i == wanted && same {
                        out.push((t, pc));
                    }
                }
            }
        }
        out
    }

    fn reached<const W: usize>(&self, g: &Events<'_, W>, thread: ThreadId, pc: usize) -> bool {
        g.threads[thread]
            .ids
            .iter()
            .flatten()
            .any(|id| g[*id].emitted.pc == pc && g[*id].is_barrier() && self.of[*id].is_some())
    }

    /// Every phase before the last of its barrier is complete.
    pub(crate) fn phases_complete<const W: usize>(&self, g: &Events<'_, W>) -> bool {
        g.ids().all(|id| {
            let (Some(barrier), Some(phase)) = (g[id].barrier(), self.of[id]) else { return true };
            // A barrier for all threads may be named with their number as well, and then joined in a later phase.
            if barrier.count.is_none() && !matches!(barrier.object, BarrierObject::Cta { instance: None, .. })
            {
                return true;
            }
            let companions = self.companions(g, id, barrier.object);
            let last = companions.iter().filter_map(|c| self.of[*c]).max().unwrap_or(0);
            if dialect(&barrier) {
                return phase == 0 || self.complete(g, id);
            }
            let below = phase == 0 || companions.iter().any(|c| self.of[*c] == Some(phase - 1));
            below && (phase >= last || self.complete(g, id))
        })
    }

    /// What `bar.red` or a collective instruction hands to its thread.
    pub(crate) fn reduction<const W: usize>(&self, g: &Events<'_, W>, id: EventId) -> Value {
        let event = &g[id];
        let (Some(thread), Some(barrier), phase) = (event.thread, event.barrier(), self.of[id]) else {
            return 0;
        };
        let of = |c: EventId| Some((g[c].emitted.lanes.active, g[c].barrier()?));
        let gifts = || -> Vec<Gift> {
            let others = self.companions(g, id, barrier.object).into_iter();
            others.filter(|c| self.of[*c] == phase).chain([id]).filter_map(of).collect()
        };
        let op = &g.code(thread).body[event.emitted.pc].op;
        if matches!(op, Op::Control(_)) {
            return result(event.emitted.lanes.active.trailing_zeros(), &barrier, &gifts());
        }
        let Op::Bar { kind: BarKind::Red { op, .. }, .. } = op else { return 0 };
        match op {
            BarRed::Popc => gifts().iter().map(|g| Value::from(g.1.votes.count_ones())).sum(),
            BarRed::And => Value::from(gifts().iter().all(|g| g.1.votes == g.0)),
            BarRed::Or => Value::from(gifts().iter().any(|g| g.1.votes != 0)),
        }
    }
}

/// Whether an instruction may be an arrival at a barrier with this number and count.
fn may_meet(instr: &Instr, barrier: &BarrierUse) -> bool {
    let Op::Bar { id, count, .. } = &instr.op else { return false };
    let number = match (id, barrier.object) {
        (Operand::Imm(v), BarrierObject::Cta { id, .. }) => *v == i128::from(id),
        _ => true,
    };
    let counted = match count {
        Some(Operand::Imm(v)) => barrier.count.is_none_or(|c| *v == i128::from(c)),
        Some(_) => true,
        // As many as there are threads.
        None => matches!(barrier.object, BarrierObject::Cta { count: None, .. }),
    };
    number && counted
}

/// Whether a count is a minimum without phases, as in the Dat3M dialect: late arrivals pass.
fn dialect(barrier: &BarrierUse) -> bool {
    barrier.count.is_some() && matches!(barrier.object, BarrierObject::Cta { instance: Some(_), .. })
}
