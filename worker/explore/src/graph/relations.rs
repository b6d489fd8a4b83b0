//! The static base sets and relations of the model language, filled in event by event.

use super::event::Event;
use super::ids::EventId;
use super::row;
use crate::thread::event::allocator::{AllocAct, AllocUse};
use crate::thread::event::barrier::{BarrierObject, BarrierUse};
use crate::thread::event::copy::CopyUse;
use crate::thread::event::fence::Covers;
use crate::thread::event::lanes::parted;
use crate::thread::event::tensor::{Home, TensorUse};
use crate::thread::event::{Emitted, Kind};
use crate::thread::ids::{Id, Table};
use moire_cat::bits;
use moire_cat::eval::Inputs;
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::{Placement, Program, Scope, ThreadId};

/// What the places of the threads say of each pair of them, whatever they do.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    threads: usize,
    /// By thread: the number of its grid, and that of the grid before which all are complete when its own starts.
    grids: Vec<(u16, u16)>,
    /// By ordered pair: relations of their events, a bit each, and by [`Scope`] whether the first's includes the second.
    pairs: Vec<(u64, u8)>,
}

impl Places {
    pub(crate) fn new(program: &Program) -> Self {
        let places = || program.threads.iter().map(|t| &t.place);
        let stream = |p: &Placement| (p.host, p.gpu, p.stream);
        let pair = |p: &Placement, q: &Placement| {
            let relations = (bit(rels::SCTA, p.same_cta(q)) | bit(rels::SCTA_HOME, p.same_cta(q)))
                | bit(rels::SCLUSTER, p.includes(Scope::Cluster, q))
                | bit(rels::SGPU, p.includes(Scope::Gpu, q))
                | bit(rels::SYNC_API, !p.host && stream(p) == stream(q) && p.grid < q.grid);
            let included = |scope: &Scope| p == q || p.includes(*scope, q);
            let all = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
            (relations, all.iter().filter(|s| included(s)).fold(0, |mask, s| mask | 1 << *s as u8))
        };
        let pairs = places().flat_map(|p| places().map(move |q| pair(p, q))).collect();
        let grids = places().map(|p| (p.grid, program.starts_behind(p))).collect();
        Places { threads: program.threads.len(), grids, pairs }
    }

    fn of(&self, a: ThreadId, b: ThreadId) -> (u64, u8) {
        self.pairs[a.index() * self.threads + b.index()]
    }

    /// Whether each of two operations, in these threads, is of a scope that includes the other's thread.
    fn included(&self, (x, a): (&Emitted, ThreadId), (y, b): (&Emitted, ThreadId)) -> bool {
        let one = |e: &Emitted, scopes: u8| e.scope.is_some_and(|s| scopes >> s as u8 & 1 == 1);
        one(x, self.of(a, b).1) && one(y, self.of(b, a).1)
    }
}

/// A relation as a bit, where it holds.
fn bit(relation: usize, holds: bool) -> u64 {
    u64::from(holds) << relation
}

const _: () = assert!(rels::RF <= 64, "static relations of a pair are the bits of a word");

/// Enters the last event into the rows of `inputs`: its sets, and its pairs with every earlier event and itself. `used`:
/// whether there may be something in its row and columns.
pub(crate) fn enter<const W: usize>(
    (program, places): (&Program, &Places),
    inputs: &mut Inputs<W>,
    events: &Table<EventId, Event>,
    used: bool,
) {
    let new = EventId::at(events.len() - 1);
    let event = &events[new];
    if used {
        inputs.sets.iter_mut().for_each(|set| row::clear(set, new));
    }
    let mut labels = event.emitted.labels & !(1 << sets::IW) | u128::from(event.thread.is_none()) << sets::IW;
    while labels != 0 {
        row::set(&mut inputs.sets[labels.trailing_zeros() as usize], new);
        labels &= labels - 1;
    }
    for relation in (0..rels::ALL.len()).filter(|_| used) {
        let rows = &mut inputs.rels[relation][..=new.index()];
        rows.iter_mut().for_each(|row| row::clear(row, new));
        rows[new.index()] = bits::empty();
    }
    let mut put = |i: EventId, j: EventId, mut relations: u64| {
        while relations != 0 {
            row::set(&mut inputs.rels[relations.trailing_zeros() as usize][i.index()], j);
            relations &= relations - 1;
        }
    };
    for (other, before) in events.entries() {
        put(other, new, related(program, places, before, event));
        if other != new {
            put(new, other, related(program, places, event, before));
        }
    }
}

/// All static relations of one ordered pair, a bit each.
fn related(program: &Program, places: &Places, a: &Event, b: &Event) -> u64 {
    let (x, y) = (&a.emitted, &b.emitted);
    let same_thread = a.thread.is_some() && a.thread == b.thread;
    let memory = x.access.zip(y.access);
    let apart = same_thread && apart(x, y);
    let together = same_thread && !parted(&x.lanes.arms, &y.lanes.arms);
    let after = together && x.index < y.index && !apart && !x.detached && !y.detached;
    let mut out = bit(rels::INT, same_thread) | bit(rels::EXT, a.thread != b.thread) | bit(rels::PO, after);
    if let Some((p, q)) = memory {
        let loc = p.overlaps(&q);
        let vloc = a.thread.is_some() && b.thread.is_some() && loc && p.virt == q.virt;
        let same_range = p.same_range(&q);
        out |= bit(rels::LOC, loc)
            | bit(rels::VLOC, vloc)
            | bit(rels::PO_LOC, after && vloc)
            | bit(rels::COMPLETE, vloc && same_range)
            | bit(rels::SAME_RANGE, same_range);
    }
    if same_thread {
        out |= of_thread(x, y, apart);
    }
    if let Some((t, u)) = a.thread.zip(b.thread) {
        let early = places.grids[t.index()].0 >= places.grids[u.index()].1;
        let unawaited = early && y.labels >> sets::GRID_WAIT & 1 == 0;
        out |= places.of(t, u).0 & !(bit(rels::SCTA_HOME, true) | bit(rels::SYNC_API, unawaited));
        out |= bit(rels::SR, places.included((x, t), (y, u)));
    }
    let home = |e: &Event| e.emitted.ctas.home.or(e.thread);
    if let Some((t, u)) = home(a).zip(home(b)) {
        out |= places.of(t, u).0 & bit(rels::SCTA_HOME, true);
        out |= bit(rels::SR_HOME, places.included((x, t), (y, u)));
    }
    if matches!((&x.kind, &y.kind), (Kind::Barrier(_), Kind::Barrier(_))) {
        let near = a.thread.zip(b.thread).is_some_and(|(t, u)| places.of(t, u).0 >> rels::SCTA & 1 == 1);
        out |= bit(rels::BAR_MIXED, near && mixed(&x.kind, &y.kind));
    }
    if let Some((t, u)) = x.tensor().zip(y.tensor())
        && (x.unit != y.unit || !same_thread)
    {
        out |= of_tensors(same_thread, (x, t), (y, u));
    }
    if matches!(x.kind, Kind::Allocator(_)) || matches!(y.kind, Kind::Allocator(_)) {
        of_allocators(x, y, &mut |relation, holds| out |= bit(relation, holds));
    }
    if x.labels >> sets::PF & 1 == 1 {
        let own = |t: ThreadId| a.thread.is_some_and(|u| places.of(u, t).0 >> rels::SCTA & 1 == 1);
        out |= bit(rels::COVERS, orders(x, y, own));
    }
    super::launch::relate(program, a, b, &mut |relation, holds| out |= bit(relation, holds));
    out
}

/// The relations of two events of one thread.
fn of_thread(x: &Emitted, y: &Emitted, apart: bool) -> u64 {
    let gives = match x.kind {
        Kind::Read => true,
        Kind::Mbarrier(u) => u.act.answers(),
        _ => false,
    };
    let halves = y.mate() == Some(x.index);
    let mut out = bit(rels::UNORDERED, apart)
        | bit(rels::RMW, halves)
        | bit(rels::RMW_DEP, halves && y.mate.is_some_and(|m| m.uses_value))
        | bit(rels::ISSUE, x.unit == y.unit && !x.detached && y.detached)
        | bit(rels::COPY_TRACKED, x.index < y.index && tracked(x, y));
    out |= bit(rels::TOKEN, y.token.all.has(x.index)) | bit(rels::TOKEN_DIRECT, y.token.direct.has(x.index));
    if gives {
        out |= bit(rels::ADDR, y.needs.addr.has(x.index))
            | bit(rels::DATA, y.needs.data.has(x.index) && !halves)
            | bit(rels::CTRL, y.needs.ctrl.has(x.index))
            | bit(rels::CTRL_RECONV, y.needs.ctrl_reconv.has(x.index));
    }
    out
}

/// The relations of two events of tcgen05 instructions, not of the same one.
fn of_tensors(same_thread: bool, (x, t): (&Emitted, &TensorUse), (y, u): (&Emitted, &TensorUse)) -> u64 {
    let mut out = bit(rels::TC_TRACKED, x.detached && u.tracks(t) && same_thread && x.index < y.index)
        | bit(rels::TC_USED, x.detached && u.consumes(x.index) && same_thread);
    if x.detached && y.detached {
        out |= bit(rels::TC_CONFLICT, t.conflicts(u)) | bit(rels::TC_PIPE, t.pipes(u));
        if let Some(common) = t.common(u) {
            out |= bit(rels::TC_SAME_SHAPE, common.shape)
                | bit(rels::TC_SAME_BASE, common.base)
                | bit(rels::TC_SAME_CELL, common.cell)
                | bit(rels::TC_SAME_KIND, common.kind);
        }
    }
    out
}

/// Whether two events of one thread are different pieces of one vector, packed or multimem instruction, which have no order;
/// the halves of one read-modify-write are one piece.
pub(crate) fn apart(x: &Emitted, y: &Emitted) -> bool {
    let accesses = x.access.is_some() && y.access.is_some();
    let halves = x.mate() == Some(y.index) || y.mate() == Some(x.index);
    x.index != y.index && accesses && x.unit == y.unit && !halves
}

/// Whether `y` comes after the completion of the access `x` of the same thread.
fn tracked(x: &Emitted, y: &Emitted) -> bool {
    let Some(CopyUse::Access { writes }) = x.copy() else { return false };
    let Some(CopyUse::Follows { units, reads_only, part }) = y.copy() else { return false };
    units.contains(&x.unit)
        && !(*reads_only && *writes)
        && !(*writes && part.is_some() && *part != x.ctas.home)
}

/// Whether the fence `f` is about the access `x`; `own`: in the CTA of the fence.
fn orders(f: &Emitted, x: &Emitted, own: impl Fn(ThreadId) -> bool) -> bool {
    let Some(access) = x.access else { return false };
    if f.labels >> sets::PF & 1 == 0 {
        return false;
    }
    match f.covers() {
        None => true,
        Some(Covers::Global) => x.ctas.owner.is_none(),
        Some(Covers::Own) => x.ctas.owner.is_some_and(own),
        Some(Covers::Shared) => x.ctas.owner.is_some(),
        Some(Covers::Bytes(range)) => range.overlaps(&access),
    }
}

/// Whether two events are at barriers of one number that name different counts.
fn mixed(x: &Kind, y: &Kind) -> bool {
    let cta = |kind: &Kind| match kind {
        Kind::Barrier(BarrierUse { object: BarrierObject::Cta { id, instance: None, count }, .. }) => {
            Some((*id, *count))
        }
        _ => None,
    };
    cta(x).zip(cta(y)).is_some_and(|((i, m), (j, n))| i == j && m != n)
}

/// Relations between events of the allocator, or of the tensor cores, and events of the allocator.
fn of_allocators(x: &Emitted, y: &Emitted, put: &mut impl FnMut(usize, bool)) {
    let used = |e: &Emitted| if let Kind::Allocator(u) = e.kind { Some(u) } else { None };
    let (from, to) = (used(x), used(y));
    let slot = |u: &AllocUse| match u.act {
        AllocAct::Get { slot } => Some(slot),
        AllocAct::Put { place } => place.map(|p| p.0),
        AllocAct::Release => None,
    };
    let touches = |e: &Emitted, u: &AllocUse, both: bool| {
        let here = |cta: ThreadId| cta == u.cta || (both && u.peer == Some(cta));
        let cells = e.tensor().into_iter().filter(|_| e.detached).flat_map(|t| &t.cells);
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
