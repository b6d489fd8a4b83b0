//! The static base sets and relations of the model language, filled in event by event.

use crate::event::{Emitted, Kind, has_dep};
use moire_cat::bits;
use moire_cat::eval::Inputs;
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::{Placement, Program, ThreadId};

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

/// Enters event `new` into the rows of `inputs`: its sets, and its pairs with every earlier event and itself.
pub(crate) fn enter<const W: usize>(program: &Program, inputs: &mut Inputs<W>, events: &[Event], new: usize) {
    let event = &events[new];
    for set in 0..sets::ALL.len() {
        bits::put(&mut inputs.sets[set], new, event.emitted.labels >> set & 1 == 1);
    }
    bits::put(&mut inputs.sets[sets::IW], new, event.thread.is_none());
    for relation in rels::RF..rels::ALL.len() {
        inputs.rels[relation][new] = bits::empty();
        for row in &mut inputs.rels[relation][..new] {
            bits::clear(row, new);
        }
    }
    for (other, before) in events.iter().enumerate().take(new + 1) {
        relate(program, inputs, (other, before), (new, event));
        if other != new {
            relate(program, inputs, (new, event), (other, before));
        }
    }
}

/// All static relations of one ordered pair.
fn relate<const W: usize>(
    program: &Program,
    inputs: &mut Inputs<W>,
    (i, a): (usize, &Event),
    (j, b): (usize, &Event),
) {
    let (x, y) = (&a.emitted, &b.emitted);
    let same_thread = a.thread.is_some() && a.thread == b.thread;
    let memory = x.access.zip(y.access);
    let apart = same_thread && x.index != y.index && memory.is_some() && unordered(x, y);
    let together = same_thread && !crate::lanes::apart(&x.arms, &y.arms);
    let after = together && x.index < y.index && !apart && !x.detached && !y.detached;
    let loc = memory.is_some_and(|(p, q)| p.overlaps(&q));
    let threads = a.thread.is_some() && b.thread.is_some();
    let vloc = threads && loc && memory.is_some_and(|(p, q)| p.virt == q.virt);
    let same_range = memory.is_some_and(|(p, q)| p.same_range(&q));
    let place = |e: &Event| e.thread.map(|t| &program.threads[t as usize].place);
    let home =
        |e: &Event| e.emitted.home.map_or_else(|| place(e), |t| Some(&program.threads[t.index()].place));
    let near = |f: fn(&Placement, &Placement) -> bool| place(a).zip(place(b)).is_some_and(|(p, q)| f(p, q));
    let mut put = |relation: usize, value: bool| bits::put(&mut inputs.rels[relation][i], j, value);
    put(rels::INT, same_thread);
    put(rels::EXT, a.thread != b.thread);
    put(rels::PO, after);
    put(rels::PO_LOC, after && vloc);
    put(rels::LOC, loc);
    put(rels::VLOC, vloc);
    put(rels::COMPLETE, vloc && same_range);
    put(rels::SAME_RANGE, same_range);
    put(rels::SCTA, near(Placement::same_cta));
    put(rels::SCTA_HOME, home(a).zip(home(b)).is_some_and(|(p, q)| p.same_cta(q)));
    put(rels::SCLUSTER, near(|p, q| p.includes(moire_program::ir::Scope::Cluster, q)));
    put(rels::SGPU, near(|p, q| p.includes(moire_program::ir::Scope::Gpu, q)));
    let included =
        |e: &Event, p: &Placement, q: &Placement| e.emitted.scope.is_some_and(|s| p == q || p.includes(s, q));
    put(rels::SR, place(a).zip(place(b)).is_some_and(|(p, q)| included(a, p, q) && included(b, q, p)));
    put(rels::SR_HOME, home(a).zip(home(b)).is_some_and(|(p, q)| included(a, p, q) && included(b, q, p)));
    put(rels::BAR_MIXED, near(Placement::same_cta) && crate::barriers::mixed(&x.kind, &y.kind));
    put(rels::UNORDERED, apart);
    put(rels::RMW, same_thread && y.mate == Some(x.index));
    put(rels::RMW_DEP, same_thread && y.mate == Some(x.index) && y.rmw_dep);
    let gives = match x.kind {
        Kind::Read => true,
        Kind::Mbarrier(u) => u.act.answers(),
        _ => false,
    };
    let depends = |d: &crate::event::Deps| same_thread && gives && has_dep(d, x.index);
    put(rels::ISSUE, same_thread && x.unit == y.unit && !x.detached && y.detached);
    let tensor = x.tensor.as_deref().zip(y.tensor.as_deref());
    let tensor = tensor.filter(|_| x.unit != y.unit || !same_thread);
    let accesses = tensor.filter(|_| x.detached && y.detached);
    put(rels::TC_CONFLICT, accesses.is_some_and(|(t, u)| t.conflicts(u)));
    put(rels::TC_PIPE, accesses.is_some_and(|(t, u)| t.pipes(u)));
    let common = accesses.and_then(|(t, u)| t.common(u));
    put(rels::TC_SAME_SHAPE, common.is_some_and(|c| c.shape));
    put(rels::TC_SAME_BASE, common.is_some_and(|c| c.base));
    put(rels::TC_SAME_CELL, common.is_some_and(|c| c.cell));
    put(rels::TC_SAME_KIND, common.is_some_and(|c| c.kind));
    crate::allocator::relate(x, y, &mut put);
    crate::launch::relate(program, a, b, &mut put);
    let tracked = tensor.is_some_and(|(t, u)| x.detached && u.tracks(t));
    put(rels::TC_TRACKED, tracked && same_thread && x.index < y.index);
    put(rels::COPY_TRACKED, same_thread && x.index < y.index && crate::copies::tracked(x, y));
    let own = |t: ThreadId| place(a).is_some_and(|p| p.same_cta(&program.threads[t.index()].place));
    put(rels::COVERS, crate::proxies::covers(x, y, own));
    let spent = tensor.is_some_and(|(_, u)| x.detached && u.consumes(x.index));
    put(rels::TC_USED, spent && same_thread);
    crate::tile::relate(same_thread, x, y, &mut put);
    put(rels::ADDR, depends(&y.addr));
    put(rels::DATA, depends(&y.data) && y.mate != Some(x.index));
    put(rels::CTRL, depends(&y.ctrl));
    put(rels::CTRL_RECONV, depends(&y.ctrl_reconv));
    put(
        rels::SYNC_API,
        place(a).zip(place(b)).is_some_and(|(p, q)| {
            let stream = |p: &Placement| (p.host, p.gpu, p.stream);
            !p.host && stream(p) == stream(q) && p.grid < q.grid
        }),
    );
}

/// Whether two accesses are pieces of one vector, packed or multimem instruction; the halves of one read-modify-write
/// are one piece.
fn unordered(x: &Emitted, y: &Emitted) -> bool {
    x.unit == y.unit && x.mate != Some(y.index) && y.mate != Some(x.index)
}
