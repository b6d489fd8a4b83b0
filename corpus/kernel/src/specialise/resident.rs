//! CTAs that wait for each other.
//!
//! CTAs of one cluster run at the same time (PTX ISA 9.2, 2.2.2). Nothing says so of others: a CTA may start when another one
//! has ended. A loop that polls a word of global memory which another cluster writes ends only if that cluster runs, too.

use super::item::{Item, Note, Placed};
use super::launch::Here;
use super::residual::apart::uses;
use super::touch::{CTA_BITS, Mem, Touch};
use moire_program::ir::{Access, Op};
use std::collections::{BTreeMap, BTreeSet};

/// The lines at which a cluster waits for another one of its grid.
pub(super) fn waits(places: &[Here], items: &[Vec<Placed>]) -> BTreeSet<u32> {
    awaited(places, items, &|writer, here| writer >> CTA_BITS == here.grid && writer != here.unit())
}

/// A line at which a grid waits for one behind it, which may start only when it is complete.
pub(super) fn waits_behind(places: &[Here], items: &[Vec<Placed>]) -> Option<u32> {
    awaited(places, items, &|writer, here| writer >> CTA_BITS > here.grid).into_iter().next()
}

/// The lines at which a cluster waits for one of these.
fn awaited(places: &[Here], items: &[Vec<Placed>], of: &dyn Fn(u32, &Here) -> bool) -> BTreeSet<u32> {
    let writes = writes(places, items);
    let waits = |(here, trace): (&Here, &Vec<Placed>)| -> Vec<u32> {
        let meets = |w: &Write, t: &Touch| of(w.2, here) && t.ranges.iter().any(|r| r.0 < w.1 && w.0 < r.1);
        let by_others = |t: &&Touch| writes.get(&t.mem).is_some_and(|all| all.iter().any(|w| meets(w, t)));
        let awaits = |p: &&Placed| polled(&p.item).iter().any(|t| by_others(&t));
        turning(trace).filter(awaits).map(|p| p.line).collect()
    };
    places.iter().zip(items).flat_map(waits).collect()
}

/// What is taken for granted where a cluster waits for another one.
pub(super) fn taken(waits: &BTreeSet<u32>) -> Option<Note> {
    let text = "CTAs of different clusters wait for each other here: all CTAs of the launch are taken to run at the same time";
    waits.first().map(|line| Note::new(*line, text))
}

/// A write to global memory: first byte, end, cluster (`Here::unit`).
type Write = (u64, u64, u32);

fn writes(places: &[Here], items: &[Vec<Placed>]) -> BTreeMap<Mem, Vec<Write>> {
    let mut out: BTreeMap<Mem, Vec<Write>> = BTreeMap::new();
    for (here, placed) in places.iter().zip(items).flat_map(|(h, t)| t.iter().map(move |p| (h, p))) {
        for (touch, _) in uses(&placed.item).into_iter().filter(|u| u.1 && u.0.mem.cta().is_none()) {
            let all = out.entry(touch.mem).or_default();
            all.extend(touch.ranges.iter().map(|r| (r.0, r.1, here.unit())));
        }
    }
    out.values_mut().for_each(|all| {
        all.sort_unstable();
        all.dedup();
    });
    out
}

/// The items over which a jump leads back.
fn turning(trace: &[Placed]) -> impl Iterator<Item = &Placed> {
    let mut labels = BTreeMap::new();
    let mut inside = vec![false; trace.len()];
    for (at, placed) in trace.iter().enumerate() {
        match placed.item {
            Item::Label(label) => drop(labels.insert(label, at)),
            Item::Jump(to) | Item::Branch { to, .. } | Item::Others { to, .. } => {
                labels.get(&to).into_iter().for_each(|from: &usize| inside[*from..at].fill(true));
            }
            _ => {}
        }
    }
    trace.iter().zip(inside).filter(|(_, inside)| *inside).map(|(placed, _)| placed)
}

/// What a strong read touches.
fn polled(item: &Item) -> &[Touch] {
    match item {
        Item::Op { op, touches } => {
            let reads = matches!(op.as_ref(), Op::Load { .. } | Op::Rmw { .. });
            if reads && op.access().is_some_and(Access::is_strong) { touches } else { &[] }
        }
        _ => &[],
    }
}
