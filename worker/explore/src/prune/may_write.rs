//! May-write analysis of open reads: which writes can still become the source of a read that has none.
//!
//! A read stays open only while some write that is not placed may become its source. Three facts rule writes out:
//!
//! - *Dependency*: a write that depends on the read cannot be its source, because `rf | xdep` has no cycle.
//! - *Barrier*: a thread whose next step depends on an open read reaches no barrier until that read has a value. So a write
//!   that another thread of the CTA can reach only behind that barrier is never the read's source ([`waits_behind`]).
//! - *Too late*: a read that comes before an event of a writer comes before all its later events, and reads none of them
//!   ([`Causality::too_late`]). The model licenses that ([`moire_cat::licence`]): `late-stores` for stores through the
//!   generic proxy, `late-copies` for asynchronous writes. Other writes are never too late.

use super::gates::Gates;
use crate::graph::event::Event;
use crate::graph::graph::Graph;
use crate::graph::ids::{EventId, OpenRead};
use crate::graph::relations::apart;
use crate::graph::row;
use crate::planted::Planted;
use crate::thread::event::barrier::BarrierObject;
use crate::thread::event::deps::Deps;
use crate::thread::event::{Emitted, Kind};
use crate::thread::ids::{CellId, Id};
use crate::thread::may_write::{Written, may_write};
use crate::thread::trace::TraceEnd;
use moire_cat::Model;
use moire_cat::NodeId;
use moire_cat::bits::{self, Row};
use moire_cat::eval::Evaluator;
use moire_cat::licence::Kind as Licence;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Whether some write not yet placed (and not `except`) may still become the source of `read` at `cell`.
pub(crate) fn may_be_written<const W: usize>(
    (g, gates): Context<'_, '_, W>,
    cell: CellId,
    read: EventId,
    except: Option<EventId>,
) -> bool {
    let mut waiting = g.events.waiting_writes(cell, read);
    debug_assert!(g.events[read].emitted.kind == Kind::Read, "only a read has a source");
    if let Some(except) = except {
        row::clear(&mut waiting, except);
    }
    !bits::is_empty(&waiting) || (g.events.restless > 0 && may_be_written_unseen((g, gates), cell, read))
}

/// The same for writes that the universe does not hold.
fn may_be_written_unseen<const W: usize>(
    (g, gates): Context<'_, '_, W>,
    cell: CellId,
    read: EventId,
) -> bool {
    let reader = &g.events[read];
    let needs = |d: &Deps, thread: ThreadId| reader.thread == Some(thread) && d.has(reader.emitted.index);
    g.events.threads.entries().any(|(t, thread)| {
        let serves = |e: &Emitted| {
            e.access.is_none_or(|a| a.covers(cell))
                && !(needs(&e.needs.addr, t) || needs(&e.needs.data, t) || needs(&e.needs.ctrl, t))
                && !(e.mate() == Some(reader.emitted.index) && reader.thread == Some(t))
        };
        let unseen = match &thread.trace.end {
            TraceEnd::Pending(d) if needs(d, t) => false,
            TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_) => {
                let unless = |of: &Written| may_write(of, thread.trace.pc, cell);
                let waits = matches!(thread.trace.end, TraceEnd::Gate(_));
                let ahead = g.events.ahead(t);
                unless(&ahead.all)
                    && (unless(&ahead.near) || !waits_behind(g, reader, t))
                    && (!waits || gates.may_be_let_in(g, t))
            }
            _ => false,
        };
        unseen || thread.trace.unsure.iter().any(serves)
    })
}

/// Whether some open read has no write left that could become its source. Because `rf | xdep` has no cycle, there is an
/// order in which the open reads get their sources: each from a write that waits only for reads before it.
pub(crate) fn hopeless<const W: usize>((g, gates): Context<'_, '_, W>) -> bool {
    debug_assert!(g.events.open.is_sorted(), "open reads are kept in order");
    let mut left: SmallVec<[OpenRead; 16]> = g.events.open.iter().copied().collect();
    loop {
        let mut held = bits::empty();
        for open in &left {
            let read = open.read;
            bits::or(&mut held, &g.events.universe.needing[read]);
            if g.events.front.planted == Some(Planted::HalfWaits) {
                bits::or(&mut held, &g.events.universe.half[read]);
            }
        }
        let before = left.len();
        left.retain(|open| {
            let (read, cell) = (open.read, open.cell);
            debug_assert!(
                g.events[read].emitted.access.is_some_and(|a| a.covers(cell)),
                "an open read is open at its own cells"
            );
            let free = bits::minus(&g.events.waiting_writes(cell, read), &held);
            bits::is_empty(&free) && !(g.events.restless > 0 && may_be_written_unseen((g, gates), cell, read))
        });
        if left.is_empty() || left.len() == before {
            return !left.is_empty();
        }
    }
}

/// A graph with its gates.
pub(crate) type Context<'s, 'a, const W: usize> = (&'s Graph<'a, W>, &'s Gates<W>);

/// Relations of the licences used by [`Causality::too_late`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Causality {
    causality: Option<NodeId>,
    settled: Option<NodeId>,
    /// No object has two names.
    one_name: bool,
}

impl Causality {
    pub(crate) fn new(program: &Program, model: &Model) -> Self {
        let names = |object: ObjectId| program.symbols.iter().filter(|s| s.object == object).count();
        Causality {
            causality: model.licence(Licence::LateStores),
            settled: model.licence(Licence::LateCopies),
            one_name: program.symbols.iter().all(|s| names(s.object) == 1),
        }
    }

    /// The relations whose rows [`Causality::too_late`] needs.
    pub(crate) fn watched(&self) -> Vec<NodeId> {
        [self.causality, self.settled].into_iter().flatten().collect()
    }

    /// Whether some open read comes before every write that may still reach its bytes. The graph was just found consistent.
    pub(crate) fn too_late<const W: usize>(&self, g: &Graph<'_, W>, evaluator: &Evaluator<W>) -> bool {
        let rows = |node: Option<NodeId>| node.and_then(|n| evaluator.rows(n));
        let (false, true, Some(order)) = (g.events.open.is_empty(), self.one_name, rows(self.causality))
        else {
            return false;
        };
        let slots = rows(self.settled);
        g.events.open.iter().any(|open| {
            let (read, cell) = (open.read, open.cell);
            let generic = g.events[read].emitted.labels >> sets::GEN & 1 == 1;
            let unseen = |t: ThreadId| {
                !g.events.threads[t].trace.restless() || over_for(g, t, cell, read, (order, slots))
            };
            generic
                && row::events(&g.events.waiting_writes(cell, read))
                    .all(|w| comes_after(g, w, read, (order, slots)))
                && (g.events.restless == 0 || g.events.threads.ids().all(unseen))
        })
    }
}

/// The number of arrivals of a thread at each barrier of the whole CTA.
fn arrivals<const W: usize>(g: &Graph<'_, W>, thread: ThreadId) -> BTreeMap<i64, usize> {
    let mut out = BTreeMap::new();
    for event in g.events.threads[thread].trace.events.iter().flatten() {
        if let Kind::Barrier(b) = event.kind
            && let (BarrierObject::Cta { id, .. }, None) = (b.object, b.count)
        {
            *out.entry(id).or_default() += 1;
        }
    }
    out
}

/// Whether thread `t` cannot pass a further barrier of the whole CTA before `reader` has its value, because the thread of
/// `reader` arrives at none before that.
pub(crate) fn waits_behind<const W: usize>(g: &Graph<'_, W>, reader: &Event, t: ThreadId) -> bool {
    let Some(u) = reader.thread.filter(|u| *u != t) else { return false };
    let waits = matches!(&g.events.threads[u].trace.end, TraceEnd::Pending(d) if d.has(reader.emitted.index));
    let (own, other) = (g.events.code(u), g.events.code(t));
    let split = |i: &Instr| matches!(i.op, Op::Bar { kind: BarKind::Arrive, .. });
    if !waits || !own.place.same_cta(&other.place) || own.body.iter().any(split) {
        return false;
    }
    let behind = arrivals(g, t);
    arrivals(g, u).iter().all(|(id, n)| behind.get(id).is_some_and(|m| n <= m))
}

/// Whether a write of the universe that is not placed comes after a read.
fn comes_after<const W: usize>(
    g: &Graph<'_, W>,
    write: EventId,
    read: EventId,
    (order, slots): (&[Row<W>], Option<&[Row<W>]>),
) -> bool {
    let event = &g.events[write];
    let Some(thread) = event.thread else { return false };
    debug_assert!(!row::has(&g.events.present, write), "asked of a write to come");
    let (ordinary, copied) = licensed(&event.emitted);
    let mut after = match slots {
        _ if ordinary => order[read.index()],
        Some(slots) if copied => slots[read.index()],
        _ => return false,
    };
    if ordinary {
        row::set(&mut after, read);
    }
    let of_thread = bits::and(&g.events.universe.of_thread[thread], &g.events.universe.whole);
    let after = bits::and(&bits::and(&after, &of_thread), &g.events.present);
    row::events(&after).any(|p| goes_before(&g.events[p].emitted, &event.emitted))
}

/// Whether an event comes before another one of its thread. Pieces of one instruction have no order.
fn goes_before(x: &Emitted, y: &Emitted) -> bool {
    x.index < y.index && !apart(x, y)
}

/// Whether every write that thread `t` may still make to a cell comes after a read.
fn over_for<const W: usize>(
    g: &Graph<'_, W>,
    t: ThreadId,
    cell: CellId,
    read: EventId,
    (order, slots): (&[Row<W>], Option<&[Row<W>]>),
) -> bool {
    let thread = &g.events.threads[t];
    // The last event of the thread that comes after the read. All later ones come after it too.
    let last = |order: &[Row<W>], itself: bool| {
        let after = |id: &EventId| (itself && *id == read) || row::has(&order[read.index()], *id);
        let events = thread.ids.iter().flatten().copied();
        let whole = |id: &EventId| {
            let e = &g.events[*id].emitted;
            row::has(&g.events.present, *id) && !e.detached && e.lanes.arms.is_none()
        };
        events.filter(|id| whole(id) && after(id)).map(|id| &g.events[id].emitted).max_by_key(|e| e.index)
    };
    let (plain, copied) = (last(order, true), slots.and_then(|slots| last(slots, false)));
    let serves = |e: &Emitted| e.access.is_none_or(|a| a.covers(cell));
    let behind = |e: &Emitted| {
        let last = match licensed(e) {
            (true, _) => plain,
            (_, true) => copied,
            _ => None,
        };
        last.is_some_and(|p| goes_before(p, e))
    };
    let known = thread.ids.iter().flatten().copied().all(|id| {
        let event = &g.events[id];
        row::has(&g.events.present, id)
            || !event.is_write()
            || !serves(&event.emitted)
            || behind(&event.emitted)
    });
    let may = |of: &Written| may_write(of, thread.trace.pc, cell);
    let unseen = match &thread.trace.end {
        TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_) => {
            (!may(&g.events.ahead(t).all) || plain.is_some())
                && (!may(&g.events.ahead(t).copied) || (copied.is_some() && !g.events.ahead(t).unlicensed))
        }
        _ => true,
    };
    known && unseen && thread.trace.unsure.iter().all(|e| !serves(e) || behind(e))
}

/// Whether the licence for stores, and whether the licence for asynchronous writes, covers a write.
fn licensed(write: &Emitted) -> (bool, bool) {
    let has = |set: usize| write.labels >> set & 1 == 1;
    (has(sets::GEN) && !write.detached, has(sets::ASYNC) || (has(sets::GEN) && write.detached))
}
