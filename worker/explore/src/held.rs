//! Writes that cannot become the source of an open read, so that it is not kept open for them.
//!
//! *Held*: a thread whose way on hangs on a read arrives at no barrier before the read has its value. A write another
//! thread of the CTA can only get to past a barrier of the whole CTA, where that arrival is missing, is never the source.
//!
//! *Too late*: where a read comes before what its possible writers have done already, by causality, it comes before all
//! they will still do, and takes none of it: `rf; cause` is irreflexive (`CausalityRF`), and causality of the generic
//! proxy is causality of accesses to one address. For what copies write that is so only as far as the model says, in
//! `slot-settled`.

use crate::event::{BarrierObject, Emitted, Kind, has_dep};
use crate::flow::successors;
use crate::interp::TraceEnd;
use crate::memory::{Layout, memory_operand, tile_operands};
use crate::relate::Event;
use crate::state::State;
use fixedbitset::FixedBitSet;
use moire_cat::NodeId;
use moire_cat::bits::{self, Row};
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use std::collections::BTreeMap;

/// Per pc the cells that code may write; `None` when some address is not a static constant.
pub(crate) type Written = Vec<Option<FixedBitSet>>;

/// Waits for every thread of the CTA.
fn for_all(instr: &Instr) -> bool {
    matches!(instr.op, Op::Bar { kind: BarKind::Sync | BarKind::Red { .. }, count: None, instance: None, .. })
        && instr.guard.is_none()
}

/// The cells an instruction may write; if `copied`, other than by ordinary stores.
fn own(program: &Program, layout: &Layout, id: ThreadId, instr: &Instr, copied: bool) -> Option<FixedBitSet> {
    let mut cells = FixedBitSet::with_capacity(layout.cells.len());
    if crate::copies::spreads(&instr.op) {
        return None;
    }
    let later = crate::copies::written(&instr.op)?;
    for (addr, bytes) in &later {
        let Operand::Address(symbol) = addr.base else { return None };
        let start = layout.address(program, symbol, id);
        #[allow(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(i128::from(addr.offset) as Value), *bytes)?;
        cells.insert_range(access.cell_range());
    }
    for (addr, bytes) in tile_operands(&instr.op) {
        let Operand::Address(symbol) = addr.base else { return None };
        let start = layout.address(program, symbol, id);
        #[allow(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(i128::from(addr.offset) as Value), bytes)?;
        cells.insert_range(access.cell_range());
    }
    let ordinary =
        matches!(instr.op, Op::Store { proxy: Proxy::Generic, .. } | Op::Rmw { proxy: Proxy::Generic, .. });
    let Some((addr, bytes, count, true)) = memory_operand(&instr.op).filter(|_| !(copied && ordinary)) else {
        return Some(cells);
    };
    let Operand::Address(symbol) = addr.base else { return None };
    if !program.symbols[symbol.index()].multimem.is_empty() {
        return None;
    }
    let start = layout.address(program, symbol, id);
    let (bytes, count) = if bytes == 16 { (8, 2 * count) } else { (bytes, count) };
    for element in 0..count {
        let offset = i128::from(addr.offset) + i128::try_from(element).ok()? * i128::from(bytes);
        #[allow(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(offset as Value), bytes)?;
        cells.insert_range(access.cell_range());
    }
    Some(cells)
}

/// Adds what `other` may write.
fn join(cells: &mut Option<FixedBitSet>, other: Option<&FixedBitSet>) {
    match (cells.as_mut(), other) {
        (Some(cells), Some(other)) => cells.union_with(other),
        _ => *cells = None,
    }
}

/// What code from some place on may write.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// By pc, anything.
    pub(crate) all: Written,
    /// Before it comes to a barrier of the whole CTA, one at that pc apart.
    pub(crate) near: Written,
    /// Other than by ordinary stores.
    copied: Written,
}

impl Ahead {
    pub(crate) fn new(program: &Program, layout: &Layout, thread: usize) -> Ahead {
        let body = &program.threads[thread].body;
        let id = ThreadId(u16::try_from(thread).unwrap_or(u16::MAX));
        let by =
            |copied: bool| -> Written { body.iter().map(|i| own(program, layout, id, i, copied)).collect() };
        let (any, copied) = (by(false), by(true));
        let onward = |now: &mut Option<FixedBitSet>, of: &Written, pc: usize| {
            successors(body, pc).iter().for_each(|s| join(now, of[(*s).min(body.len())].as_ref()));
        };
        let close = |own: &Written, stops: &dyn Fn(usize) -> bool| {
            let mut after = vec![Some(FixedBitSet::with_capacity(layout.cells.len())); body.len() + 1];
            let mut now = None;
            loop {
                let mut changed = false;
                for pc in (0..body.len()).rev() {
                    now.clone_from(&own[pc]);
                    if !stops(pc) {
                        onward(&mut now, &after, pc);
                    }
                    if now != after[pc] {
                        changed = true;
                        std::mem::swap(&mut now, &mut after[pc]);
                    }
                }
                if !changed {
                    return after;
                }
            }
        };
        let stopped = close(&any, &|pc| for_all(&body[pc]));
        let mut near = any.clone();
        near.iter_mut().enumerate().for_each(|(pc, now)| onward(now, &stopped, pc));
        near.push(None);
        Ahead { near, all: close(&any, &|_| false), copied: close(&copied, &|_| false) }
    }
}

impl<const W: usize> State<'_, W> {
    /// Arrivals at barriers of the whole CTA a thread has come to, by number.
    fn arrivals(&self, thread: usize) -> BTreeMap<i64, usize> {
        let mut out = BTreeMap::new();
        for event in self.threads[thread].trace.events.iter().flatten() {
            if let Kind::Barrier(b) = event.kind
                && let (BarrierObject::Cta { id, .. }, None) = (b.object, b.count)
            {
                *out.entry(id).or_default() += 1;
            }
        }
        out
    }

    /// Whether no barrier of the whole CTA that thread `t` comes to lets it pass before `reader` has its value.
    pub(crate) fn held(&self, reader: &Event, t: usize) -> bool {
        let Some(u) = reader.thread.map(usize::from).filter(|u| *u != t) else { return false };
        let waits =
            matches!(&self.threads[u].trace.end, TraceEnd::Pending(d) if has_dep(d, reader.emitted.index));
        let (own, other) = (&self.program.threads[u], &self.program.threads[t]);
        let split = |i: &Instr| matches!(i.op, Op::Bar { kind: BarKind::Arrive, .. });
        if !waits || !own.place.same_cta(&other.place) || own.body.iter().any(split) {
            return false;
        }
        let behind = self.arrivals(t);
        self.arrivals(u).iter().all(|(id, n)| behind.get(id).is_some_and(|m| n <= m))
    }

    /// Whether nothing hangs on the value of a read.
    pub(crate) fn idle(&self, read: usize) -> bool {
        let event = &self.events[read];
        event.thread.is_some_and(|t| self.threads[t as usize].flow.idle[event.emitted.pc])
    }

    /// The first read that is not placed.
    pub(crate) fn next_read(&self) -> Option<usize> {
        let ids = self.threads.iter().flat_map(|t| t.ids.iter().flatten()).map(|id| usize::from(*id));
        ids.into_iter()
            .find(|id| self.events[*id].emitted.kind == Kind::Read && !bits::has(&self.present, *id))
    }

    /// Whether some open read comes before all that may still write its bytes, by the graph just found consistent.
    pub(crate) fn too_late(&self) -> bool {
        let rows = |node: Option<NodeId>| node.and_then(|n| self.evaluator.rows(n));
        let (false, true, Some(order)) = (self.open.is_empty(), self.one_name, rows(self.timely.0)) else {
            return false;
        };
        let slots = rows(self.timely.1);
        self.open.iter().any(|(read, cell)| {
            let (read, cell) = (usize::from(*read), usize::from(*cell));
            let generic = self.events[read].emitted.labels >> sets::GEN & 1 == 1;
            let unseen =
                |t: usize| !self.threads[t].trace.restless() || self.over_for(t, cell, read, (order, slots));
            generic
                && bits::iter(&self.waiting_writes(cell, read))
                    .all(|w| self.comes_after(w, read, (order, slots)))
                && (self.restless == 0 || (0..self.threads.len()).all(unseen))
        })
    }

    /// Whether a write of the universe that is not placed comes after a read.
    fn comes_after(&self, write: usize, read: usize, (order, slots): (&[Row<W>], Option<&[Row<W>]>)) -> bool {
        let event = &self.events[write];
        let Some(thread) = event.thread else { return false };
        let ordinary = event.emitted.labels >> sets::GEN & 1 == 1 && !event.emitted.detached;
        let mut after = match (ordinary, slots) {
            (true, _) => order[read],
            (false, Some(slots)) => slots[read],
            (false, None) => return false,
        };
        if ordinary {
            bits::set(&mut after, read);
        }
        let of_thread = bits::and(&self.universe.of_thread[thread as usize], &self.universe.whole);
        let after = bits::and(&bits::and(&after, &of_thread), &self.present);
        bits::iter(&after).any(|p| self.events[p].emitted.index < event.emitted.index)
    }

    /// Whether all that thread `t` may still write to a cell comes after a read.
    fn over_for(
        &self,
        t: usize,
        cell: usize,
        read: usize,
        (order, slots): (&[Row<W>], Option<&[Row<W>]>),
    ) -> bool {
        let thread = &self.threads[t];
        // The last event of the thread that comes after the read: all later ones do.
        let last = |order: &[Row<W>], itself: bool| {
            let after = |id: &usize| (itself && *id == read) || bits::has(&order[read], *id);
            let events = thread.ids.iter().flatten().map(|id| usize::from(*id));
            let whole = |id: &usize| {
                let e = &self.events[*id].emitted;
                bits::has(&self.present, *id) && !e.detached && e.arms.is_none()
            };
            events.filter(|id| whole(id) && after(id)).map(|id| self.events[id].emitted.index).max()
        };
        let (plain, copied) = (last(order, true), slots.and_then(|slots| last(slots, false)));
        let serves = |e: &Emitted| e.access.is_none_or(|a| a.cell_range().contains(&cell));
        let behind = |e: &Emitted| {
            let ordinary = e.labels >> sets::GEN & 1 == 1 && !e.detached;
            (if ordinary { plain } else { copied }).is_some_and(|p| p < e.index)
        };
        let known = thread.ids.iter().flatten().map(|id| usize::from(*id)).all(|id| {
            let event = &self.events[id];
            bits::has(&self.present, id)
                || !event.is_write()
                || !serves(&event.emitted)
                || behind(&event.emitted)
        });
        let may = |of: &Written| of[thread.trace.pc].as_ref().is_none_or(|cells| cells[cell]);
        let unseen = match &thread.trace.end {
            TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_) => {
                (!may(&self.ahead(t).all) || plain.is_some())
                    && (!may(&self.ahead(t).copied) || copied.is_some())
            }
            _ => true,
        };
        known && unseen && thread.trace.unsure.iter().all(|e| !serves(e) || behind(e))
    }
}
