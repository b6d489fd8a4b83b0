//! Barriers of the graph: which phase an arrival joins, when a phase is complete, what `bar.red` hands back.
//!
//! PTX ISA 9.2, 9.7.13.1 (bar), 9.7.13.3 (barrier.cluster), 9.7.13.2 (bar.warp.sync).

use crate::event::{BarrierObject, BarrierUse, Kind};
use crate::flow::successors;
use crate::interp::TraceEnd;
use crate::state::State;
use moire_cat::bits;
use moire_cat::vocabulary::rels;
use moire_program::ir::*;

impl<const W: usize> State<'_, W> {
    fn barrier(&self, id: usize) -> Option<BarrierUse> {
        match self.events[id].emitted.kind {
            Kind::Barrier(b) => Some(b),
            _ => None,
        }
    }

    fn place(&self, thread: usize) -> &Placement {
        &self.program.threads[thread].place
    }

    /// Whether two threads share barriers of this kind.
    pub(crate) fn meet(&self, object: &BarrierObject, a: usize, b: usize) -> bool {
        let (p, q) = (self.place(a), self.place(b));
        match object {
            BarrierObject::Cta { .. } => p.same_cta(q),
            BarrierObject::Cluster => p.includes(Scope::Cluster, q),
            BarrierObject::Warp { .. } => {
                a == b || (p.same_cta(q) && p.warp == q.warp && p.lane.is_some() && q.lane.is_some())
            }
        }
    }

    /// Whether a thread is among those a barrier waits for.
    pub(crate) fn names(&self, object: &BarrierObject, thread: usize) -> bool {
        let lane = self.place(thread).lane.unwrap_or(0);
        !matches!(object, BarrierObject::Warp { mask } if mask >> lane & 1 == 0)
    }

    /// Placed events of the same barrier as `id`, itself excluded.
    fn companions(&self, id: usize, object: BarrierObject) -> Vec<usize> {
        let thread = self.events[id].thread.unwrap_or(0) as usize;
        let same = |other: &usize| {
            *other != id
                && self.phases[*other].is_some()
                && self.barrier(*other).is_some_and(|b| b.object == object)
                && self.meet(&object, thread, self.events[*other].thread.unwrap_or(0) as usize)
        };
        (0..self.events.len()).filter(same).collect()
    }

    /// Phases the event can join.
    pub(crate) fn phases_for(&self, id: usize, barrier: &BarrierUse) -> Vec<u16> {
        let companions = self.companions(id, barrier.object);
        let thread = self.events[id].thread;
        let own: Vec<usize> =
            companions.iter().copied().filter(|c| self.events[*c].thread == thread).collect();
        let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let (Some(count), BarrierObject::Cta { .. }) = (barrier.count, barrier.object) else {
            let before =
                own.iter().filter(|o| self.barrier(**o).is_some_and(|b| b.arrives == barrier.arrives));
            return vec![narrow(before.count())];
        };
        let lanes = |id: usize| self.events[id].emitted.lanes.count_ones() as usize;
        let members = |p: u16| -> usize {
            companions.iter().filter(|c| self.phases[**c] == Some(p)).map(|c| lanes(*c)).sum()
        };
        if dialect(barrier) {
            // A minimum without phases: 0 the arrivals that synchronise, 1 those that come later.
            return if members(0) < count as usize { vec![0, 1] } else { vec![1] };
        }
        let floor = own.iter().map(|o| {
            let waits = self.barrier(*o).is_some_and(|b| b.waits);
            self.phases[*o].unwrap_or(0) + u16::from(waits)
        });
        let floor = floor.max().unwrap_or(0);
        let arrivals = self.potential_arrivals(id);
        let last = narrow(arrivals.div_ceil((count as usize).max(1))).saturating_sub(1);
        // A phase is passed over only if it completes without this thread.
        let mut out = Vec::new();
        for p in floor..=last.max(floor) {
            if members(p) + lanes(id) <= count as usize {
                out.push(p);
            }
            let missing = (count as usize).saturating_sub(members(p));
            if missing > 0 && missing > self.others_at(id, barrier, p) {
                break;
            }
        }
        out
    }

    /// Arrivals other threads can still add to phase `p` of the barrier of `id`: one each where they wait.
    fn others_at(&self, id: usize, barrier: &BarrierUse, p: u16) -> usize {
        let thread = self.events[id].thread.unwrap_or(0) as usize;
        let companions = self.companions(id, barrier.object);
        let mut total = 0usize;
        for (t, code) in self.program.threads.iter().enumerate() {
            if t == thread || !self.place(t).same_cta(self.place(thread)) {
                continue;
            }
            let meets = |i: &&Instr| may_meet(i, barrier);
            if code.body.iter().filter(meets).any(|i| matches!(i.op, Op::Bar { kind: BarKind::Arrive, .. })) {
                return usize::MAX;
            }
            let over = self.threads[t].trace.end == TraceEnd::Done;
            let past = companions.iter().any(|c| {
                self.events[*c].thread == u16::try_from(t).ok() && self.phases[*c].is_some_and(|q| q >= p)
            });
            if !past && !over && code.body.iter().any(|i| may_meet(i, barrier)) {
                total += code.place.lanes().count_ones() as usize;
            }
        }
        total
    }

    /// Barrier instructions of the CTA that may be this barrier, times the iterations a loop may take.
    fn potential_arrivals(&self, id: usize) -> usize {
        let thread = self.events[id].thread.unwrap_or(0) as usize;
        let mut total = 0;
        for (t, code) in self.program.threads.iter().enumerate() {
            if !self.place(t).same_cta(self.place(thread)) {
                continue;
            }
            let loops = (0..code.body.len()).any(|pc| successors(&code.body, pc).iter().any(|s| *s <= pc));
            let bars = code.body.iter().filter(|i| matches!(i.op, Op::Bar { .. })).count();
            let lanes = code.place.lanes().count_ones() as usize;
            total += lanes * bars * if loops { self.front.loop_bound as usize + 1 } else { 1 };
        }
        total
    }

    pub(crate) fn join_phase(&mut self, id: usize, barrier: &BarrierUse, phase: u16) {
        bits::set(&mut self.present, id);
        let companions = self.companions(id, barrier.object);
        self.phases[id] = Some(phase);
        for other in companions {
            let (theirs, b) = (self.phases[other].unwrap_or(0), self.barrier(other).unwrap_or(*barrier));
            let relation = match barrier.object {
                BarrierObject::Cta { .. } => rels::SYNCBAR,
                BarrierObject::Cluster => rels::SYNC_CLUSTER,
                BarrierObject::Warp { .. } => rels::SYNC_WARP,
            };
            if dialect(barrier) {
                if phase == 0 && b.waits {
                    bits::set(&mut self.inputs.rels[relation][id], other);
                }
                if theirs == 0 && barrier.waits {
                    bits::set(&mut self.inputs.rels[relation][other], id);
                }
            } else if theirs == phase {
                if barrier.arrives && b.waits {
                    bits::set(&mut self.inputs.rels[relation][id], other);
                }
                if b.arrives && barrier.waits {
                    bits::set(&mut self.inputs.rels[relation][other], id);
                }
            } else if theirs < phase {
                bits::set(&mut self.inputs.rels[rels::BAR_PHASE][other], id);
            } else {
                bits::set(&mut self.inputs.rels[rels::BAR_PHASE][id], other);
            }
        }
    }

    pub(crate) fn leave_phase(&mut self, id: usize) {
        bits::clear(&mut self.present, id);
        self.phases[id] = None;
        for relation in [rels::SYNCBAR, rels::SYNC_CLUSTER, rels::SYNC_WARP, rels::BAR_PHASE] {
            self.inputs.rels[relation][id] = bits::empty();
            for row in &mut self.inputs.rels[relation][..self.inputs.n] {
                bits::clear(row, id);
            }
        }
    }

    /// Whether the phase this placed event joined has all it waits for.
    pub(crate) fn complete(&self, id: usize) -> bool {
        let (Some(barrier), Some(phase)) = (self.barrier(id), self.phases[id]) else { return false };
        let thread = self.events[id].thread.unwrap_or(0) as usize;
        let companions = self.companions(id, barrier.object);
        let all = || companions.iter().copied().chain([id]);
        let arrived = |t: usize| {
            all().any(|c| {
                self.events[c].thread == u16::try_from(t).ok()
                    && self.phases[c] == Some(phase)
                    && self.barrier(c).is_some_and(|b| b.arrives)
            })
        };
        let exited = |t: usize| self.threads[t].trace.end == TraceEnd::Done;
        match (barrier.object, barrier.count) {
            (BarrierObject::Cta { .. }, Some(count)) => {
                let phase = if dialect(&barrier) { 0 } else { phase };
                let here = all().filter(|c| self.phases[*c] == Some(phase));
                here.map(|c| self.events[c].emitted.lanes.count_ones()).sum::<u32>() >= count
            }
            (BarrierObject::Cta { id: number, instance: Some(instance), .. }, None) => {
                self.static_bars(thread, number, instance).into_iter().all(|(t, pc)| self.reached(t, pc))
            }
            (object, _) => (0..self.threads.len()).all(|t| {
                !self.meet(&object, thread, t) || !self.names(&object, t) || arrived(t) || exited(t)
            }),
        }
    }

    /// Dat3M dialect: the bars of the CTA that may be the same barrier.
    fn static_bars(&self, thread: usize, number: i64, wanted: u32) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        for (t, code) in self.program.threads.iter().enumerate() {
            if !self.place(t).same_cta(self.place(thread)) {
                continue;
            }
            for (pc, instr) in code.body.iter().enumerate() {
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

    fn reached(&self, thread: usize, pc: usize) -> bool {
        self.threads[thread].ids.iter().flatten().any(|id| {
            let id = *id as usize;
            self.events[id].emitted.pc == pc && self.events[id].is_barrier() && self.phases[id].is_some()
        })
    }

    /// Every phase before the last of its barrier is complete.
    pub(crate) fn phases_complete(&self) -> bool {
        (0..self.events.len()).all(|id| {
            let (Some(barrier), Some(phase)) = (self.barrier(id), self.phases[id]) else { return true };
            if barrier.count.is_none() {
                return true;
            }
            let companions = self.companions(id, barrier.object);
            let last = companions.iter().filter_map(|c| self.phases[*c]).max().unwrap_or(0);
            if dialect(&barrier) {
                return phase == 0 || self.complete(id);
            }
            let below = phase == 0 || companions.iter().any(|c| self.phases[*c] == Some(phase - 1));
            below && (phase >= last || self.complete(id))
        })
    }

    /// What `bar.red` hands to its thread.
    pub(crate) fn reduction(&self, id: usize) -> Value {
        let event = &self.events[id];
        let Some(thread) = event.thread else { return 0 };
        let Op::Bar { kind: BarKind::Red { op, .. }, .. } =
            self.program.threads[thread as usize].body[event.emitted.pc].op
        else {
            return 0;
        };
        let (Some(barrier), phase) = (self.barrier(id), self.phases[id]) else { return 0 };
        let others = self.companions(id, barrier.object).into_iter().filter(|c| self.phases[*c] == phase);
        let lanes = |c: usize| self.events[c].emitted.lanes.count_ones();
        let preds: Vec<(bool, u32)> =
            others.chain([id]).filter_map(|c| Some((self.barrier(c)?.pred, lanes(c)))).collect();
        match op {
            BarRed::Popc => preds.iter().filter(|p| p.0).map(|p| Value::from(p.1)).sum(),
            BarRed::And => Value::from(preds.iter().all(|p| p.0)),
            BarRed::Or => Value::from(preds.iter().any(|p| p.0)),
        }
    }
}

/// Lanes of the CTA of a thread, all threads of the program together.
pub(crate) fn cta_lanes(program: &Program, thread: ThreadId) -> u32 {
    let own = &program.threads[thread.index()].place;
    let here = program.threads.iter().filter(|t| t.place.same_cta(own));
    here.map(|t| t.place.lanes().count_ones()).sum()
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

/// Whether two events are at barriers of one number that name different counts.
pub(crate) fn mixed(x: &Kind, y: &Kind) -> bool {
    let cta = |kind: &Kind| match kind {
        Kind::Barrier(BarrierUse { object: BarrierObject::Cta { id, instance: None, count }, .. }) => {
            Some((*id, *count))
        }
        _ => None,
    };
    cta(x).zip(cta(y)).is_some_and(|((i, m), (j, n))| i == j && m != n)
}

/// Whether a count is a minimum without phases, as in the Dat3M dialect (FORMATS: late arrivals pass).
fn dialect(barrier: &BarrierUse) -> bool {
    barrier.count.is_some() && matches!(barrier.object, BarrierObject::Cta { instance: Some(_), .. })
}
