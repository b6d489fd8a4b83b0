//! One lane apart from the others of its part, so that conflicts inside the part are seen.
//!
//! Lanes of a part do the same except for the addresses of their data. So whether two of them may race in two places is
//! asked of one lane, the *twin*, and the rest of the part: orders between two lanes are the same for any two, because lanes
//! of a part take part in the same synchronisation (S1 to S5). Which pairs of lanes conflict is a matter of addresses only.
//!
//! That is encoded in memory of their own. A byte that some lanes of the part touch unordered has one place for each lane
//! `m` that touches it, for the case that the twin is `m`: where the lanes `L` touch the byte, the twin touches the place if
//! `m` is among `L`, and the rest does if another lane is. So twin and rest conflict there in exactly the instructions in
//! which two lanes conflict, one of them `m`. Places with the same pattern become one (`residual::layout`).
//!
//! A store in which lanes write the same does not conflict with itself. So each such store `k` has two more places for each lane: in one
//! the twin has the store and the rest everything else, in the other the rest has the store and the twin everything else.
//! What is no such store also has the place that both share.
//!
//! What the part does to others is done by the rest. The twin has only the synchronisation of the part, and these places.

use super::flight;
use super::part::by_the_warp;
use super::parts::Together;
use crate::specialise::item::{Alike, Item, Manner, Placed};
use crate::specialise::known::value::lanes;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::{AsyncCopy, LoadOrder, Op, StoreOrder};
use std::collections::BTreeSet;

/// Bits of the number of a place; the first lane of the part and the warp stand above.
const PLACE_BITS: u32 = 40;

/// Which of the two orders of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Twin,
    Rest,
}

/// The memory of a part of its own.
struct Arena<'p> {
    mem: Mem,
    first: u64,
    part: &'p Together,
    /// The stores in which lanes write the same.
    alike: Vec<Alike>,
}

/// The items of the twin and of the rest. `warp` is the number of the warp in its CTA.
pub(super) fn twins(
    items: &[(usize, Placed)],
    part: &Together,
    (cta, warp): (u32, u32),
) -> [(u32, Vec<Placed>); 2] {
    let lane = part.lanes & part.lanes.wrapping_neg();
    let first = (u64::from(warp) << 5 | u64::from(part.lanes.trailing_zeros())) << PLACE_BITS;
    let alike: BTreeSet<Alike> = items.iter().filter_map(|(n, placed)| alike(*n, placed, part)).collect();
    let arena = Arena { mem: Mem::Lanes(cta), first, part, alike: alike.into_iter().collect() };
    let all = |half, lanes: u32| {
        let items = items.iter().flat_map(|(n, placed)| arena.item(*n, placed, half));
        (lanes, items.map(|p| Placed { lanes, mask: None, ..p }).collect())
    };
    [all(Half::Twin, lane), all(Half::Rest, part.lanes & !lane)]
}

/// The store in which lanes of the part write the same.
fn alike(n: usize, placed: &Placed, part: &Together) -> Option<Alike> {
    placed.alike().filter(|_| part.alike.contains(&n))
}

impl Arena<'_> {
    /// What a half has in place of an item.
    fn item(&self, n: usize, placed: &Placed, half: Half) -> Vec<Placed> {
        let own = self.own(n, placed, half).map(|item| Placed { item, ..placed.clone() });
        let kept = half == Half::Rest || shared(&placed.item);
        kept.then(|| placed.clone()).into_iter().chain(own).collect()
    }

    /// The access to places of the part that stands beside an access to data.
    fn own(&self, n: usize, placed: &Placed, half: Half) -> Option<Item> {
        let (store, weak) = (alike(n, placed, self.part), placed.alike().is_some());
        let (touch, manner, write) = match &placed.item {
            Item::Data { touch, write, .. } if weak => (touch, Manner::Weak, *write),
            Item::Data { touch, manner, write } => (touch, manner.clone(), *write),
            Item::Op { op, touches } => {
                let write = if matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_))) {
                    true
                } else if let Op::Store { order, .. } = &**op {
                    (weak || *order == StoreOrder::Weak).then_some(true)?
                } else {
                    matches!(**op, Op::Load { order: LoadOrder::Weak, .. }).then_some(false)?
                };
                (touches.first()?, Manner::Weak, write)
            }
            _ => return None,
        };
        let touch = self.places(n, (touch, placed.lanes), store.as_ref(), half)?;
        Some(match &placed.item {
            Item::Op { op, .. } if matches!(touch.kind, Kind::Small { .. }) => {
                Item::Op { op: op.clone(), touches: vec![touch] }
            }
            _ => Item::Data { write, manner, touch },
        })
    }

    /// The copies of a place that a half touches with this store, or with something else.
    fn copies(&self, store: Option<&Alike>, half: Half) -> Vec<u64> {
        let own = if half == Half::Twin { [1, 2] } else { [2, 1] };
        let each = (0u64..).zip(&self.alike);
        let each = each.map(|(k, one)| 2 * k + own[usize::from(Some(one) != store)]);
        store.is_none().then_some(0).into_iter().chain(each).collect()
    }

    /// The places that a half touches.
    fn places(
        &self,
        n: usize,
        (touch, by): (&Touch, u32),
        store: Option<&Alike>,
        half: Half,
    ) -> Option<Touch> {
        let mut places = Vec::new();
        let (copies, all) = (self.copies(store, half), 2 * self.alike.len() as u64 + 1);
        let stretches = flight::stretches(&self.part.flights, n, &self.part.stretches);
        for (start, end, by) in touch.by_lanes(by) {
            for (number, cell) in (0u64..).zip(&self.part.cells) {
                let here = stretches.contains(&cell.stretch) && cell.mem == touch.mem;
                if here && cell.start < end && start < cell.end {
                    let touches =
                        |m: &usize| if half == Half::Twin { by >> m & 1 == 1 } else { by & !(1 << m) != 0 };
                    let at = |m: usize, copy: u64| self.first + ((number * all + copy) << 5) + m as u64;
                    let here = lanes(cell.lanes).filter(touches);
                    places.extend(here.flat_map(|m| copies.iter().map(move |c| (at(m, *c), at(m, *c) + 1))));
                }
            }
        }
        let kind = if touch.kind.asynchronous() { touch.kind } else { Kind::Data };
        let mut found = Touch { mem: self.mem, ranges: places, kind, by: Vec::new() };
        found.join();
        (!found.ranges.is_empty()).then_some(found)
    }
}

/// Whether the twin does it too: everything but ordinary accesses to data, and what one lane does for the warp.
fn shared(item: &Item) -> bool {
    let Item::Op { op, .. } = item else { return !matches!(item, Item::Data { .. }) };
    !matches!(**op, Op::AsyncCopy(AsyncCopy::Small(_))) && !by_the_warp(item)
}
