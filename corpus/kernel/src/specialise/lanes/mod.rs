//! Lanes are threads: which lanes of a warp run in one order in the residual program, and which in orders of their own.
//!
//! PTX knows threads. A warp orders nothing by itself, so a program in which each warp is one thread misses races between
//! its lanes. One thread for each lane would be too many. Here lanes are put together where that changes nothing:
//!
//! - `course`: the paths through the items of a warp, and the meetings that order its lanes;
//! - `access`: where two lanes touch the same byte with no meeting in between;
//! - `flight`: how long a small copy is under way for other lanes;
//! - `order`: whether what only some lanes release or acquire can stand in one order of all;
//! - `answer`: where lanes that ask together rely on one answer;
//! - `late`: where a lane may be late for a wait that another has passed;
//! - `parts`: the lanes that run in one order; most warps are one part, as if they were one thread;
//! - `part`: the items of a part;
//! - `twin`: parts whose lanes conflict with each other are split once more, into one lane and the others.
//!
//! *Why a part is exact.* Its lanes execute the same synchronisation with the same operands. A release or an acquire that
//! only some of them execute has nothing near that another of them touches, so each path of order through it exists in the
//! orders of the lanes as well, by way of a meeting. Joining lanes adds no other order between an access of one lane and
//! anything outside. Inside, two accesses of different lanes that conflict are separated by a meeting, or they are twins.
//!
//! Not told apart yet: values that lanes load by themselves and that steer them (the lanes of a part read the same), and the
//! accesses of a warp to tensor memory, which are those of the part of its first lane.

mod access;
mod answer;
mod course;
mod flight;
mod late;
mod order;
mod part;
mod parts;
mod twin;

use super::item::{Item, Late, Placed};
use super::launch::Here;
use super::touch::Touch;
use crate::Refusal;
pub(super) use answer::steered;
use course::{Course, meetings};
pub(super) use late::{awaited, late};
use parts::Together;

/// Lanes that run in one order.
pub(super) struct Strand {
    /// The warp, by its place among those asked for.
    pub(super) warp: usize,
    pub(super) lanes: u32,
    pub(super) items: Vec<Placed>,
}

impl Strand {
    /// What the name of a warp with these lanes needs behind it: nothing if the strand is all of it.
    pub(super) fn suffix(&self, all: u32) -> String {
        let mut left = self.lanes;
        let mut ranges = Vec::new();
        while left != 0 && self.lanes != all {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            ranges.push(if count == 1 {
                first.to_string()
            } else {
                format!("{first}to{}", first + count - 1)
            });
            left &= !((u32::MAX >> (32 - count)) << first);
        }
        match self.lanes.count_ones() {
            _ if ranges.is_empty() => String::new(),
            1 => format!("_lane{}", ranges.join("_")),
            _ => format!("_lanes{}", ranges.join("_")),
        }
    }
}

/// Most items in the orders of warps that have several.
const ITEMS: usize = 1 << 16;

/// The orders of the lanes of these warps. `contested` says whether bytes are used by several warps, or asynchronously,
/// and written.
pub(super) fn strands(
    warps: &[(&Here, &[Placed], &[Late])],
    contested: &dyn Fn(&Touch) -> bool,
) -> Result<Vec<Strand>, Refusal> {
    let (mut out, mut apart) = (Vec::new(), 0);
    for (warp, (here, items, late)) in warps.iter().enumerate() {
        flight::met(items, here.lanes)?;
        let parts = parts::parts(items, late, here.lanes, contested);
        if let [one] = parts.as_slice()
            && one.cells.is_empty()
        {
            let items = items.iter().filter(|p| !matches!(p.item, Item::Met(_))).cloned().collect();
            out.push(Strand { warp, lanes: here.lanes, items });
            continue;
        }
        let first = out.len();
        let items = parted(items, here.lanes);
        for one in parts {
            let orders = orders(&items, &one, here)?;
            out.extend(orders.into_iter().map(|(lanes, items)| Strand { warp, lanes, items }));
        }
        apart += out[first..].iter().map(|s| s.items.len()).sum::<usize>();
        if apart > ITEMS {
            let what = "lanes of a warp that run apart, with too many instructions in all";
            return Err(Refusal::Bounded(what.to_owned()));
        }
    }
    Ok(out)
}

/// The items as they are in orders of some lanes each: what lanes write alike in several of them is no conflict.
fn parted(items: &[Placed], lanes: u32) -> Vec<Placed> {
    let course = Course::new(items);
    let alike = parts::alike(items, &course, &course.stretches(&meetings(items, lanes)));
    items.iter().enumerate().map(|(n, p)| p.parted(alike.contains(&n))).collect()
}

/// The orders of a part: one, or those of its twin and its rest.
fn orders(items: &[Placed], part: &Together, here: &Here) -> Result<Vec<(u32, Vec<Placed>)>, Refusal> {
    let own = part::of(items, part)?;
    if part.cells.is_empty() {
        return Ok(vec![(part.lanes, own.into_iter().map(|i| i.1).collect())]);
    }
    Ok(twin::twins(&own, part, (here.cta, here.warp)).into())
}
