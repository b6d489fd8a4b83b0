//! Whether lanes may run in one order although they do not all take part in what orders them.
//!
//! If one lane arrives at an mbarrier, only what this lane has done is ordered before the arrival, and what others have done
//! before the last meeting with it. If one lane waits, only what this lane does is ordered behind the wait, and what others
//! do behind the next meeting. In one order of all lanes, everything before and behind counts. So lanes run in one order
//! exactly if nothing that counts lies in between: on the paths from the last meeting to a *release* by some of the lanes
//! nothing that other lanes touch, and on the paths from an *acquire* by some of them to the next meeting neither.
//!
//! What counts are data that others touch too, and writes that others may read. Waits, arrivals and fences of all lanes do
//! not: the lanes that take part in the release or the acquire have done the same (conditions S1, S2 and S4 of a reduction:
//! joined lanes name the same objects, and their arrivals fall into the same phase).
//!
//! Lanes that release together, each by a write of its own, are the same case once for each of them (S3). A commit or a wait
//! of one lane is about what this lane has issued, so lanes that issue take part in it.

use super::course::Course;
use crate::specialise::item::{Item, Manner, Placed};
use crate::specialise::touch::{Kind, Touch};
use moire_program::ir::*;
use moire_program::{jump_op, register_op};

/// The order that an item gives the lanes that execute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gives {
    /// To what they did before.
    release: bool,
    /// To what they do later.
    acquire: bool,
}

/// A warp as this question sees it.
pub(super) struct Order<'w> {
    items: &'w [Placed],
    gives: Vec<Gives>,
    /// Whether order matters to the access.
    counts: Vec<bool>,
    /// The lanes whose bulk copies end with a group.
    grouping: u32,
    /// The lanes that issue products and copies to tensor memory.
    issuing: u32,
}

impl<'w> Order<'w> {
    /// `contested` says whether threads outside the warp touch the bytes too, one of them writing.
    pub(super) fn new(items: &'w [Placed], contested: &dyn Fn(&Touch) -> bool) -> Self {
        let fence = |p: &Placed| matches!(&p.item, Item::Op { op, .. } if matches!(**op, Op::Fence { .. }));
        let fenced = items.iter().any(fence);
        let lanes = |which: fn(&Op) -> bool| {
            let all = items.iter().filter(|p| matches!(&p.item, Item::Op { op, .. } if which(op)));
            all.fold(0, |m, p| m | p.lanes)
        };
        let (grouping, issuing) = (lanes(groups), lanes(issues));
        let gives = items.iter().map(|p| gives(&p.item, fenced)).collect();
        let counts = items.iter().map(|p| counts(&p.item, contested)).collect();
        Order { items, gives, counts, grouping, issuing }
    }

    /// Whether one order of these lanes says no more than the orders of each.
    pub(super) fn is_shared(&self, lanes: u32, course: &Course, meetings: &[bool]) -> bool {
        let counts = self.items.iter().zip(&self.counts);
        let counts: Vec<u32> = counts.map(|(p, counts)| if *counts { p.lanes & lanes } else { 0 }).collect();
        let meetings: Vec<u32> = meetings.iter().map(|meets| if *meets { u32::MAX } else { 0 }).collect();
        let [before, behind] = [false, true].map(|forward| course.near(&counts, forward, &meetings));
        (0..self.items.len()).all(|at| self.fits(at, lanes, [before[at], behind[at]]))
    }

    /// Whether the order that an item gives is the same for one order of these lanes. What counts near it has these lanes.
    fn fits(&self, at: usize, lanes: u32, [before, behind]: [u32; 2]) -> bool {
        let (placed, gives) = (&self.items[at], self.gives[at]);
        let some = self.acting(placed) & lanes;
        let missing = lanes & !some;
        let each = some.count_ones() > 1 && writes_order(&placed.item);
        let others = if each { lanes } else { missing };
        let whole = self.owners(&placed.item) & missing == 0;
        some == 0
            || whole && !(gives.release && before & others != 0) && !(gives.acquire && behind & missing != 0)
    }

    /// The lanes that must take part if one does: a commit or a wait is about the operations of its own lanes.
    fn owners(&self, item: &Item) -> u32 {
        let Item::Op { op, .. } = item else { return 0 };
        if matches!(**op, Op::AsyncCopy(AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. })) {
            self.grouping
        } else if matches!(**op, Op::Tcgen05(Tcgen05::Commit(_))) {
            self.issuing
        } else {
            0
        }
    }

    /// The lanes for which an item gives order.
    fn acting(&self, placed: &Placed) -> u32 {
        let waits = |op: &Op| matches!(op, Op::AsyncCopy(AsyncCopy::BulkWait { .. }));
        let by_group = matches!(&placed.item, Item::Op { op, .. } if waits(op));
        placed.lanes & if by_group { self.grouping } else { u32::MAX }
    }
}

/// The order that an item gives its lanes. Without a fence in the warp (`fenced`), relaxed accesses give none.
fn gives(item: &Item, fenced: bool) -> Gives {
    match item {
        Item::Data { manner: Manner::Relaxed(_), write, .. } => {
            Gives { release: *write && fenced, acquire: !write && fenced }
        }
        Item::Op { op, touches } if !is_agreed(touches) => given(op, fenced),
        _ => Gives::default(),
    }
}

/// The order that an instruction gives.
fn given(op: &Op, fenced: bool) -> Gives {
    let gives = |release, acquire| Gives { release, acquire };
    let (nothing, release, acquire, both) =
        (gives(false, false), gives(true, false), gives(false, true), gives(true, true));
    match op {
        Op::Load { order, .. } | Op::MultimemLoad { order, .. } => {
            gives(false, *order != LoadOrder::Weak && (fenced || ordered_load(*order)))
        }
        Op::Store { order, .. } | Op::MultimemStore { order, .. } => {
            gives(*order != StoreOrder::Weak && (fenced || ordered_store(*order)), false)
        }
        Op::Rmw { order, .. } | Op::MultimemRed { order, .. } => {
            let ordered = fenced || *order != RmwOrder::Relaxed;
            gives(ordered, ordered)
        }
        Op::Fence { .. } | Op::ProxyFence(_) | Op::ProxyOrder(_) => both,
        // It orders inits before what others do behind a meeting.
        Op::MbarrierInitFence => nothing,
        Op::Bar { kind: BarKind::Arrive, .. } | Op::ClusterArrive { .. } => release,
        Op::Bar { .. } | Op::WarpSync { .. } => both,
        Op::ClusterWait => acquire,
        Op::Control(control) => gives(false, *control == Control::WaitDependencies),
        Op::Mbarrier(m) => match m.op {
            MbarrierOp::Arrive(_) => release,
            MbarrierOp::Wait(_) => acquire,
            MbarrierOp::Init { .. } | MbarrierOp::Inval => nothing,
            MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => nothing,
        },
        Op::AsyncCopy(copy) => match copy {
            AsyncCopy::Arrive { .. } => release,
            AsyncCopy::BulkWait { .. } => acquire,
            AsyncCopy::Remote(write) => gives(!matches!(write.order, RemoteOrder::Mbarrier(_)), false),
            // What these wait for, or end, are copies of the lane itself.
            AsyncCopy::Small(_) | AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => nothing,
            AsyncCopy::Bulk(_) | AsyncCopy::Prefetch(_) | AsyncCopy::BulkCommit => nothing,
        },
        Op::Tcgen05(op) => match op {
            Tcgen05::Commit(_) | Tcgen05::FenceBefore => release,
            Tcgen05::FenceAfter => acquire,
            Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => nothing,
            Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => nothing,
            Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_) => nothing,
        },
        register_op!() | Op::Wgmma(_) | Op::Tile(_) | jump_op!() => nothing,
        Op::Book(_) => nothing,
    }
}

/// Whether the item is an access that order matters to.
fn counts(item: &Item, contested: &dyn Fn(&Touch) -> bool) -> bool {
    match item {
        Item::Data { touch, manner, write } => (manner.is_strong() && *write) || contested(touch),
        Item::Op { op, touches } => {
            let reads = matches!(**op, Op::Load { .. });
            let waits = reads && op.access().is_some_and(Access::is_strong);
            let allocates = matches!(**op, Op::Tcgen05(Tcgen05::Alloc { .. }));
            let here = |t: &Touch| (reads || t.kind != Kind::Barrier) && contested(t);
            !waits && !allocates && touches.iter().any(here)
        }
        _ => false,
    }
}

/// Whether the item is a write by which each of its lanes may release.
pub(super) fn writes_order(item: &Item) -> bool {
    match item {
        Item::Data { manner: Manner::Relaxed(_), write, .. } => *write,
        Item::Op { touches, .. } if is_agreed(touches) => false,
        Item::Op { op, .. } => {
            let writes = matches!(op.access(), Some(Access::Store(_) | Access::Update));
            !matches!(**op, Op::Mbarrier(_)) && writes && op.access().is_some_and(Access::is_strong)
        }
        _ => false,
    }
}

/// Whether these are the touches of a weak store of agreed numbers.
fn is_agreed(touches: &[Touch]) -> bool {
    touches.iter().any(|t| t.kind == Kind::Agreed)
}

fn groups(op: &Op) -> bool {
    matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.done == BulkDone::Group)
}

fn issues(op: &Op) -> bool {
    matches!(op, Op::Tcgen05(t) if t.by_one_thread() && !matches!(t, Tcgen05::Commit(_)))
}

fn ordered_load(order: LoadOrder) -> bool {
    !matches!(order, LoadOrder::Weak | LoadOrder::Volatile | LoadOrder::Relaxed(_))
}

fn ordered_store(order: StoreOrder) -> bool {
    !matches!(order, StoreOrder::Weak | StoreOrder::Volatile | StoreOrder::Relaxed(_))
}
