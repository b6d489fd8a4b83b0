//! How long an asynchronous copy of a lane is under way for the other lanes of its warp.
//!
//! A lane waits for its own copies (PTX ISA, `cp.async.wait_group`, `cp.async.bulk.wait_group`). What another lane does is ordered
//! behind the copy only by a meeting behind that wait. So a copy counts at each item from its own one to the wait that is about it,
//! and in the stretches of these items.
//!
//! Small copies are told apart lane by lane (`access`, `twin`). Bulk copies in groups that several lanes issue, each of its own bytes, are
//! not: where other lanes touch these before they meet, the warp is abstained from.

use super::course::{Course, meetings};
use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::residual::apart::uses;
use crate::specialise::touch::Touch;
use moire_program::ir::{AsyncCopy, BulkDone, Op};
use std::collections::{BTreeMap, BTreeSet};

/// Most groups that are told apart: of more, the wait is found later.
const GROUPS: u32 = 16;

/// For each copy the items that may be executed before the wait for it is over, the wait among them.
pub(super) type Flights = BTreeMap<usize, BTreeSet<usize>>;

/// The flights of the small copies of a warp.
pub(super) fn flights(items: &[Placed], course: &Course) -> Flights {
    flights_of(items, course, |copy| matches!(copy, AsyncCopy::Small(_)))
}

fn flights_of(items: &[Placed], course: &Course, which: impl Fn(&AsyncCopy) -> bool) -> Flights {
    let copies = items.iter().enumerate().filter(|(_, p)| copy(p).is_some_and(&which));
    copies.map(|(at, p)| (at, flight(items, course, at, p.lanes))).collect()
}

fn copy(placed: &Placed) -> Option<&AsyncCopy> {
    let Item::Op { op, .. } = &placed.item else { return None };
    if let Op::AsyncCopy(copy) = &**op { Some(copy) } else { None }
}

fn in_group(copy: &AsyncCopy) -> bool {
    matches!(copy, AsyncCopy::Bulk(copy) if copy.done == BulkDone::Group)
}

/// The items from a copy of these lanes to the waits for it.
fn flight(items: &[Placed], course: &Course, from: usize, lanes: u32) -> BTreeSet<usize> {
    let bulk = copy(&items[from]).is_some_and(in_group);
    let (mut seen, mut work) = (BTreeSet::new(), vec![(from, 0)]);
    while let Some((at, groups)) = work.pop() {
        if !seen.insert((at, groups)) {
            continue;
        }
        if let Some(groups) = behind(&items[at], bulk, lanes, groups) {
            work.extend(course.next(at).iter().map(|next| (*next, groups)));
        }
    }
    seen.into_iter().map(|(at, _)| at).collect()
}

/// The groups since the copy, its own one too, behind an item. None: the copy is over there.
fn behind(placed: &Placed, bulk: bool, lanes: u32, groups: u32) -> Option<u32> {
    let Some(own) = copy(placed).filter(|_| placed.lanes & lanes == lanes) else { return Some(groups) };
    let commits = matches!((own, bulk), (AsyncCopy::Commit, false) | (AsyncCopy::BulkCommit, true));
    let ends = matches!(
        (own, bulk),
        (AsyncCopy::Wait(left), false) | (AsyncCopy::BulkWait { groups: left, .. }, true) if groups > *left
    );
    let ends = ends || !bulk && matches!(own, AsyncCopy::WaitAll);
    if commits { Some((groups + 1).min(GROUPS)) } else { (!ends).then_some(groups) }
}

/// The stretches in which the access of an item happens.
pub(super) fn stretches(flights: &Flights, item: usize, stretches: &[usize]) -> BTreeSet<usize> {
    let later = flights.get(&item).into_iter().flatten();
    later.chain([&item]).map(|at| stretches[*at]).collect()
}

/// Refuses a warp of these lanes in which one touches what another one copies in bulk, before they have met behind its wait.
pub(super) fn met(items: &[Placed], lanes: u32) -> Result<(), Refusal> {
    let grouped = |p: &&Placed| copy(p).is_some_and(in_group);
    if items.iter().filter(grouped).fold(0, |all, p| all | p.lanes).count_ones() < 2 {
        return Ok(());
    }
    // What lanes copy together with the same operands is copied once.
    let own = |at: &usize| items[*at].lanes.count_ones() == 1 || own_bytes(&items[*at]);
    let course = Course::new(items);
    let (flights, met) = (flights_of(items, &course, in_group), course.stretches(&meetings(items, lanes)));
    for copy in flights.keys().copied().filter(own) {
        let here = stretches(&flights, copy, &met);
        let later = |at: usize| at > copy || flights[&copy].contains(&at);
        let meets = (0..items.len()).filter(|at| *at != copy && later(*at) && here.contains(&met[*at]));
        if let Some(at) = { meets }.find(|at| of_others(&items[copy], &items[*at])) {
            let what =
                "lanes that wait each for its own bulk copies, and touch those of others before they meet";
            return Err(Refusal::Abstained { what: what.into(), line: items[at].line });
        }
    }
    Ok(())
}

/// Whether each lane of a copy has bytes of its own.
fn own_bytes(placed: &Placed) -> bool {
    uses(&placed.item).iter().any(|(touch, _)| !touch.by.is_empty())
}

/// Whether a lane of one item touches what another lane of the other one touches, and one of them writes.
fn of_others(a: &Placed, b: &Placed) -> bool {
    let all = uses(&b.item);
    uses(&a.item).iter().any(|(own, writes)| {
        let near = all.iter().filter(|(touch, written)| touch.mem == own.mem && (*writes || *written));
        near.into_iter().any(|(touch, _)| meet((own, a.lanes), (touch, b.lanes)))
    })
}

/// Whether two lanes touch a byte.
fn meet((a, own): (&Touch, u32), (b, others): (&Touch, u32)) -> bool {
    let theirs = b.by_lanes(others);
    a.by_lanes(own).iter().any(|(start, end, lanes)| {
        let near =
            |(from, to, by): &(u64, u64, u32)| from < end && start < to && (lanes | by).count_ones() > 1;
        theirs.iter().any(near)
    })
}
