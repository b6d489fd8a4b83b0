//! Finds the size in bytes of each box of a tensor map, which the PTX does not state.
//!
//! - A loaded box: `expect_tx` announces a number of bytes to its mbarrier. The copies up to the next announcement share
//!   that number equally. If equal shares do not fit, each copy extends to the next destination.
//! - A box that a copy loads into several CTAs, that is told to an mbarrier of another CTA, or to one that other warps also use: all boxes of one tensor map have one
//!   size. An mbarrier is announced as many bytes in all as copies deliver to it, which is an equation for each mbarrier.
//!   Where they leave a choice, a copy extends to the next destination.
//! - A stored box: the run of bytes at its start that threads store to, up to the start of the next copy; of all written bytes,
//!   if they store none there.

mod shared;

use crate::Refusal;
use crate::specialise::item::{Item, Placed};
use crate::specialise::launch::Here;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// A copy of unknown size: its item in the trace of a warp, and its address in shared memory.
struct Open {
    warp: usize,
    item: usize,
    at: u64,
}

/// Sets the size of every box.
pub(crate) fn measure(places: &[Here], traces: &mut [Vec<Placed>]) -> Result<(), Refusal> {
    shared::measure(places, traces);
    let (groups, stores) = collect(traces);
    let starts: BTreeSet<u64> =
        groups.iter().flat_map(|g| g.1.iter().map(|o| o.at)).chain(stores.iter().map(|o| o.at)).collect();
    let next = |at: u64| starts.range(at + 1..).next().copied();
    for (bytes, copies) in &groups {
        let sizes = share(*bytes, copies, &next).ok_or_else(|| unknown(traces, copies.first()))?;
        for (copy, size) in copies.iter().zip(sizes) {
            resize(traces, copy, size);
        }
    }
    if stores.is_empty() {
        return Ok(());
    }
    let (stored, written) = written(traces);
    for copy in &stores {
        let run = |of: &Touch| of.ranges.iter().find(|r| r.0 <= copy.at && copy.at < r.1).map(|r| r.1);
        let inside = run(&stored).or_else(|| run(&written));
        let end = inside.map(|end| next(copy.at).map_or(end, |n| n.min(end)));
        let size = end.ok_or_else(|| unknown(traces, Some(copy)))? - copy.at;
        resize(traces, copy, size);
    }
    Ok(())
}

/// The bytes of shared memory that threads store to, and those that anything writes.
fn written(traces: &[Vec<Placed>]) -> (Touch, Touch) {
    let nothing = || Touch::spread(Mem::Shared(0), Kind::Data, Vec::new());
    let (mut stored, mut written) = (nothing(), nothing());
    for placed in traces.iter().flatten() {
        match &placed.item {
            Item::Data { write: true, touch, .. } if matches!(touch.mem, Mem::Shared(_)) => {
                stored.ranges.extend(&touch.ranges);
            }
            Item::Op { touches, .. } => {
                let data = touches.iter().filter(|t| matches!(t.mem, Mem::Shared(_)));
                let copied = |k| matches!(k, Kind::Async | Kind::Box { .. } | Kind::Small { writes: true });
                data.filter(|t| copied(t.kind)).for_each(|t| written.ranges.extend(&t.ranges));
            }
            _ => {}
        }
    }
    written.ranges.extend(&stored.ranges);
    for all in [&mut stored, &mut written] {
        all.ranges.retain(|r| r.0 < r.1);
        all.join();
    }
    (stored, written)
}

fn unknown(traces: &[Vec<Placed>], copy: Option<&Open>) -> Refusal {
    let line = copy.and_then(|c| Some(traces.get(c.warp)?.get(c.item)?.line)).unwrap_or(0);
    Refusal::Abstained { what: "a copy through a tensor map whose size cannot be determined".into(), line }
}

/// The copies that load, in groups that share an announcement, and the copies that store.
fn collect(traces: &[Vec<Placed>]) -> (Vec<(u64, Vec<Open>)>, Vec<Open>) {
    let mut groups: Vec<(u64, Vec<Open>)> = Vec::new();
    let mut stores = Vec::new();
    let mut amounts: BTreeMap<(Mem, u64), u64> = BTreeMap::new();
    for placed in traces.iter().flatten() {
        if let Some((place, bytes)) = announced(&placed.item) {
            amounts.entry(place).or_insert(bytes);
        }
    }
    for (warp, trace) in traces.iter().enumerate() {
        let mut open: BTreeMap<(Mem, u64), usize> = BTreeMap::new();
        for (item, placed) in trace.iter().enumerate() {
            if let Some((place, bytes)) = announced(&placed.item) {
                match open.get(&place).map(|g| &mut groups[*g]) {
                    Some(group) if group.1.is_empty() => group.0 += bytes,
                    _ => {
                        open.insert(place, groups.len());
                        groups.push((bytes, Vec::new()));
                    }
                }
            }
            let Item::Op { touches, .. } = &placed.item else { continue };
            let Some(touch) = touches.iter().find(|t| unsized_one(t)) else { continue };
            let at = touch.ranges.first().map_or(0, |r| r.0);
            match touch.kind {
                Kind::Box { reported: Some(place) } => {
                    let group = *open.entry(place).or_insert_with(|| {
                        groups.push((amounts.get(&place).copied().unwrap_or(0), Vec::new()));
                        groups.len() - 1
                    });
                    groups[group].1.push(Open { warp, item, at });
                }
                _ => stores.push(Open { warp, item, at }),
            }
        }
    }
    groups.retain(|g| !g.1.is_empty());
    (groups, stores)
}

/// Whether these are bytes of shared memory that a copy of unknown size touches.
fn unsized_one(touch: &Touch) -> bool {
    let open = touch.ranges.iter().all(|r| r.0 == r.1);
    open && matches!(touch.kind, Kind::Box { .. }) && matches!(touch.mem, Mem::Shared(_))
}

/// The mbarrier and the number of bytes of an announcement.
fn announced(item: &Item) -> Option<((Mem, u64), u64)> {
    let Item::Op { op, touches } = item else { return None };
    let Op::Mbarrier(m) = op.as_ref() else { return None };
    let bytes = match &m.op {
        MbarrierOp::Arrive(a) => a.tx?,
        MbarrierOp::ExpectTx { bytes, .. } => *bytes,
        MbarrierOp::CompleteTx { .. } | MbarrierOp::Wait(_) => return None,
        MbarrierOp::Init { .. } | MbarrierOp::Inval => return None,
    };
    let Operand::Imm(bytes) = bytes else { return None };
    let touch = touches.first()?;
    Some(((touch.mem, touch.ranges.first()?.0), u64::try_from(bytes).ok()?))
}

/// Sizes of the copies of a group that add up to its bytes; `None` if they cannot be determined.
fn share(bytes: u64, copies: &[Open], next: &dyn Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
    let count = copies.len() as u64;
    let room = |copy: &Open| next(copy.at).map(|n| n - copy.at);
    if bytes == 0 {
        return None;
    }
    if bytes.is_multiple_of(count) && copies.iter().all(|c| room(c).is_none_or(|r| bytes / count <= r)) {
        return Some(vec![bytes / count; copies.len()]);
    }
    let rooms: Vec<Option<u64>> = copies.iter().map(room).collect();
    let known: u64 = rooms.iter().flatten().sum();
    match rooms.iter().filter(|r| r.is_none()).count() {
        0 if known == bytes => Some(rooms.into_iter().flatten().collect()),
        1 if known < bytes => Some(rooms.into_iter().map(|r| r.unwrap_or(bytes - known)).collect()),
        _ => None,
    }
}

fn resize(traces: &mut [Vec<Placed>], copy: &Open, size: u64) {
    let Some(Item::Op { touches, .. }) =
        traces.get_mut(copy.warp).and_then(|t| t.get_mut(copy.item)).map(|p| &mut p.item)
    else {
        return;
    };
    for touch in touches.iter_mut().filter(|t| matches!(t.kind, Kind::Box { .. })) {
        touch.ranges.iter_mut().for_each(|r| r.1 = r.0 + size);
    }
}
