//! What each lane of a warp touches, and where two lanes touch the same byte unordered.
//!
//! The lanes of a warp run in one order here, in PTX each has an order of its own. So two accesses of different lanes
//! conflict if they touch a byte, one writes, not both are strong, and no meeting (`course`) lies between them.
//!
//! An asynchronous access is over when its mbarrier says so, and who waits for that knows it (`order`). What conflicts with
//! it here is what comes before it: one lane issues it, and other lanes may not have done yet what stands before it. A small copy
//! is over for other lanes only behind the wait of its lane (`flight`).
//!
//! Stores of which lanes write the same (`Alike`) conflict with everything but themselves. If what they write is not known, and
//! a path leads back to them, they conflict with themselves, too.
//!
//! Some instructions are one access of the whole warp: the address that `tcgen05.alloc` writes is left out, and a bulk copy
//! that several lanes issue together, or a copy of a tensor map, counts as one by the first of them.

use super::course::Course;
use super::flight::{self, Flights};
use super::part::by_the_warp;
use crate::specialise::item::{Alike, Item, Placed};
use crate::specialise::residual::apart::uses;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// An access of some lanes to some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    mem: Mem,
    start: u64,
    end: u64,
    lanes: u32,
    write: bool,
    strong: bool,
    /// Whether it may outlast its instruction until an mbarrier or a group says that it is over.
    outlasts: bool,
    /// The store, if lanes write the same in it.
    alike: Option<Alike>,
}

/// The accesses of a warp to bytes that several of its lanes touch and one writes, each with the number of its item.
pub(super) fn accesses(items: &[Placed], course: &Course) -> Vec<(usize, Access)> {
    let of = |(n, p): (usize, &Placed)| -> Vec<(usize, Access)> {
        let all = uses(&p.item).into_iter().flat_map(|(touch, write)| each(p, touch, write));
        all.map(|a| (n, a)).collect()
    };
    let mut out: Vec<(usize, Access)> = items.iter().enumerate().flat_map(of).collect();
    let written: BTreeSet<Mem> = out.iter().filter(|a| a.1.write).map(|a| a.1.mem).collect();
    out.retain(|a| written.contains(&a.1.mem));
    let anywhere = conflicts(&out, u32::MAX, course, (&Flights::new(), &vec![0; items.len()]));
    let inside = |a: &Access| {
        let from = anywhere.partition_point(|c| (c.mem, c.end) <= (a.mem, a.start));
        anywhere.get(from).is_some_and(|c| c.mem == a.mem && c.start < a.end)
    };
    out.retain(|a| inside(&a.1));
    out
}

fn each(placed: &Placed, touch: &Touch, write: bool) -> Vec<Access> {
    let (mem, strong) = (touch.mem, is_strong(&placed.item, touch));
    // The beginning and the end of an mbarrier are what its other uses must be ordered with.
    let write = if touch.kind == Kind::Barrier { !strong } else { write };
    let outlasts = touch.kind.together();
    let alike = placed.alike();
    let runs = touch.by_lanes(by_whom(placed)).into_iter().filter(|r| r.0 < r.1 && r.2 != 0);
    let of = |(start, end, lanes)| Access {
        mem,
        start,
        end,
        lanes,
        write,
        strong,
        outlasts,
        alike: alike.clone(),
    };
    runs.map(of).collect()
}

/// The lanes that an instruction acts for.
fn by_whom(placed: &Placed) -> u32 {
    let lanes = placed.lanes;
    let Item::Op { op, .. } = &placed.item else { return lanes };
    if matches!(**op, Op::Tcgen05(Tcgen05::Alloc { .. })) {
        0
    } else if by_the_warp(&placed.item) {
        lanes & lanes.wrapping_neg()
    } else {
        lanes
    }
}

fn is_strong(item: &Item, touch: &Touch) -> bool {
    match item {
        Item::Data { manner, .. } => manner.is_strong(),
        Item::Op { .. } if touch.kind == Kind::Agreed => false,
        Item::Op { op, .. } => {
            let lives = |m: &Mbarrier| matches!(m.op, MbarrierOp::Init { .. } | MbarrierOp::Inval);
            let updates = matches!(&**op, Op::AsyncCopy(AsyncCopy::Remote(write)) if write.op.is_some());
            let other = updates || touch.kind == Kind::Barrier;
            let strong = op.access().map_or(other, moire_program::ir::Access::is_strong);
            strong && !matches!(&**op, Op::Mbarrier(m) if lives(m))
        }
        _ => false,
    }
}

/// Bytes that lanes touch unordered, and all lanes that touch them in a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) stretch: usize,
    pub(super) mem: Mem,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) lanes: u32,
}

/// An access in a stretch, and the items at which it happens first and last.
type Seen = ((usize, Access), (usize, usize));

/// Where these lanes touch the same byte unordered.
pub(super) fn conflicts(
    all: &[(usize, Access)],
    lanes: u32,
    course: &Course,
    (flights, stretches): (&Flights, &[usize]),
) -> Vec<Cell> {
    let mut seen: BTreeMap<(usize, Access), (usize, usize)> = BTreeMap::new();
    let mut items = BTreeSet::new();
    for (item, access) in all.iter().filter(|a| a.1.lanes & lanes != 0) {
        let alike = access.alike.clone().filter(|store| holds(store, *item, course, stretches));
        let access = Access { lanes: access.lanes & lanes, alike, ..access.clone() };
        for stretch in flight::stretches(flights, *item, stretches) {
            seen.entry((stretch, access.clone())).or_insert((*item, *item)).1 = *item;
        }
        items.insert(*item);
    }
    let turning = course.turning(stretches, &items);
    let seen: Vec<Seen> = seen.into_iter().collect();
    let alike = seen.chunk_by(|a, b| (a.0.0, a.0.1.mem) == (b.0.0, b.0.1.mem));
    alike.flat_map(|part| sweep(part, turning.contains(&part[0].0.0))).collect()
}

/// Sweeps the accesses of one stretch to one memory from low to high addresses.
fn sweep(part: &[Seen], turns: bool) -> Vec<Cell> {
    let (stretch, mem) = (part[0].0.0, part[0].0.1.mem);
    let open = |(n, ((_, a), _)): (usize, &Seen)| [(a.start, true, n), (a.end, false, n)];
    let mut ends: Vec<(u64, bool, usize)> = part.iter().enumerate().flat_map(open).collect();
    ends.sort_unstable();
    let (mut here, mut out) = (BTreeSet::new(), Vec::new());
    for (i, (start, opens, n)) in ends.iter().enumerate() {
        let _ = if *opens { here.insert(*n) } else { here.remove(n) };
        let Some((end, ..)) = ends.get(i + 1).filter(|e| e.0 > *start) else { continue };
        let all: Vec<&Seen> = here.iter().map(|n| &part[*n]).collect();
        if unordered(&all, turns) {
            let lanes = all.iter().fold(0, |m, a| m | a.0.1.lanes);
            out.push(Cell { stretch, mem, start: *start, end: *end, lanes });
        }
    }
    out
}

/// Whether two different lanes are among those of the masks, one of each.
fn two(a: u32, b: u32) -> bool {
    a != 0 && b != 0 && (a | b).count_ones() > 1
}

/// Whether two of these accesses to one byte conflict.
fn unordered(all: &[&Seen], turns: bool) -> bool {
    let lanes = |write: bool, strong: bool| {
        let alike = |a: &&Access| (a.write, a.strong, a.outlasts) == (write, strong, false);
        all.iter().map(|a| &a.0.1).filter(alike).fold(0, |m, a| m | a.lanes)
    };
    let (weak, strong, read) = (lanes(true, false), lanes(true, true), lanes(false, false));
    let others = strong | read | lanes(false, true);
    two(weak, others)
        || (two(weak, weak) && !one_store(all))
        || two(strong, read)
        || all.iter().filter(|a| a.0.1.outlasts).any(|a| all.iter().any(|k| overtakes(a, k, turns)))
}

/// Whether all weak writes are one store in which lanes write the same.
fn one_store(all: &[&Seen]) -> bool {
    let writes = |a: &&Access| a.write && !a.strong && !a.outlasts;
    let mut stores = all.iter().map(|a| &a.0.1).filter(writes).map(|a| a.alike.as_ref());
    let first = stores.next().flatten();
    first.is_some_and(|first| stores.all(|other| other == Some(first)))
}

/// Whether lanes write the same whenever they come to a store. If what they write is not known, it may be something else the
/// next time in the same stretch.
pub(super) fn holds(store: &Alike, item: usize, course: &Course, stretches: &[usize]) -> bool {
    matches!(store, Alike::Agreed(_)) || !course.is_again(item, &|n| stretches[n] == stretches[item])
}

/// Whether the access `k` of another lane stands before the asynchronous access `a` and conflicts with it.
fn overtakes(a: &Seen, k: &Seen, turns: bool) -> bool {
    let (later, earlier) = (&a.0.1, &k.0.1);
    later != earlier
        && (turns || k.1.0 < a.1.1)
        && (later.write || earlier.write)
        && !(later.strong && earlier.strong)
        && two(later.lanes, earlier.lanes)
}
