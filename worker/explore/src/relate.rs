//! The static base sets and relations of the model language, filled in event by event.

use crate::event::{Emitted, Kind, has_dep};
use crate::tensor::TensorUse;
use moire_cat::bits;
use moire_cat::eval::Inputs;
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::{Placement, Program, Scope, ThreadId};

/// An event of the universe: a thread's, or an initial write (no thread).
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// `None` for initial writes.
    pub(crate) thread: Option<u16>,
    pub(crate) emitted: Emitted,
}

impl Event {
    pub(crate) fn is_write(&self) -> bool {
        self.emitted.kind == Kind::Write
    }

    pub(crate) fn is_barrier(&self) -> bool {
        matches!(self.emitted.kind, Kind::Barrier(_))
    }
}

/// What the places of the threads say of each pair of them, whatever they do.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    threads: usize,
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
        Places { threads: program.threads.len(), pairs }
    }

    fn of(&self, a: u16, b: u16) -> (u64, u8) {
        self.pairs[usize::from(a) * self.threads + usize::from(b)]
    }

    /// Whether each of two operations, in these threads, is of a scope that includes the other's thread.
    fn included(&self, (x, a): (&Emitted, u16), (y, b): (&Emitted, u16)) -> bool {
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
    events: &[Event],
    used: bool,
) {
    let new = events.len() - 1;
    let event = &events[new];
    if used {
        inputs.sets.iter_mut().for_each(|set| bits::clear(set, new));
    }
    let mut labels = event.emitted.labels & !(1 << sets::IW) | u128::from(event.thread.is_none()) << sets::IW;
    while labels != 0 {
        bits::set(&mut inputs.sets[labels.trailing_zeros() as usize], new);
        labels &= labels - 1;
    }
    for relation in (0..rels::ALL.len()).filter(|_| used) {
        let rows = &mut inputs.rels[relation][..=new];
        rows.iter_mut().for_each(|row| bits::clear(row, new));
        rows[new] = bits::empty();
    }
    let mut put = |i: usize, j: usize, mut relations: u64| {
        while relations != 0 {
            bits::set(&mut inputs.rels[relations.trailing_zeros() as usize][i], j);
            relations &= relations - 1;
        }
    };
    for (other, before) in events.iter().enumerate().take(new + 1) {
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
    let apart = same_thread && x.index != y.index && memory.is_some() && unordered(x, y);
    let together = same_thread && !crate::lanes::apart(&x.arms, &y.arms);
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
        out |= places.of(t, u).0 & !bit(rels::SCTA_HOME, true);
        out |= bit(rels::SR, places.included((x, t), (y, u)));
    }
    let home = |e: &Event| e.emitted.home.map_or(e.thread, |t| Some(t.0));
    if let Some((t, u)) = home(a).zip(home(b)) {
        out |= places.of(t, u).0 & bit(rels::SCTA_HOME, true);
        out |= bit(rels::SR_HOME, places.included((x, t), (y, u)));
    }
    if matches!((&x.kind, &y.kind), (Kind::Barrier(_), Kind::Barrier(_))) {
        let near = a.thread.zip(b.thread).is_some_and(|(t, u)| places.of(t, u).0 >> rels::SCTA & 1 == 1);
        out |= bit(rels::BAR_MIXED, near && crate::barriers::mixed(&x.kind, &y.kind));
    }
    if let Some((t, u)) = x.tensor.as_deref().zip(y.tensor.as_deref())
        && (x.unit != y.unit || !same_thread)
    {
        out |= of_tensors(same_thread, (x, t), (y, u));
    }
    if matches!(x.kind, Kind::Allocator(_)) || matches!(y.kind, Kind::Allocator(_)) {
        crate::allocator::relate(x, y, &mut |relation, holds| out |= bit(relation, holds));
    }
    if x.labels >> sets::PF & 1 == 1 {
        let own = |t: ThreadId| a.thread.is_some_and(|u| places.of(u, t.0).0 >> rels::SCTA & 1 == 1);
        out |= bit(rels::COVERS, crate::proxies::covers(x, y, own));
    }
    crate::launch::relate(program, a, b, &mut |relation, holds| out |= bit(relation, holds));
    out
}

/// The relations of two events of one thread.
fn of_thread(x: &Emitted, y: &Emitted, apart: bool) -> u64 {
    let gives = match x.kind {
        Kind::Read => true,
        Kind::Mbarrier(u) => u.act.answers(),
        _ => false,
    };
    let halves = y.mate == Some(x.index);
    let mut out = bit(rels::UNORDERED, apart)
        | bit(rels::RMW, halves)
        | bit(rels::RMW_DEP, halves && y.rmw_dep)
        | bit(rels::ISSUE, x.unit == y.unit && !x.detached && y.detached)
        | bit(rels::COPY_TRACKED, x.index < y.index && crate::copies::tracked(x, y));
    crate::tile::relate(x, y, &mut |relation, holds| out |= bit(relation, holds));
    if gives {
        out |= bit(rels::ADDR, has_dep(&y.addr, x.index))
            | bit(rels::DATA, has_dep(&y.data, x.index) && !halves)
            | bit(rels::CTRL, has_dep(&y.ctrl, x.index))
            | bit(rels::CTRL_RECONV, has_dep(&y.ctrl_reconv, x.index));
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

/// Whether two accesses are pieces of one vector, packed or multimem instruction; the halves of one read-modify-write
/// are one piece.
fn unordered(x: &Emitted, y: &Emitted) -> bool {
    x.unit == y.unit && x.mate != Some(y.index) && y.mate != Some(x.index)
}
