//! Loads on a promise: `ld.global.nc` and `ldu` read memory that is read-only while the kernel runs (PTX ISA 9.2, 9.7.9.8
//! and 9.7.9.9). The memory model does not cover them otherwise (8.1), so a launch that writes what they read is abstained from.
//!
//! Such a load goes through a cache that stores do not reach. So it is taken to read through the texture proxy where the promise is
//! broken: a store that no proxy fence hands over races with it. What is then found stands.

use super::item::{Item, Manner, Placed, Trace};
use super::residual::apart::uses;
use super::touch::{Mem, Touch};
use crate::Refusal;
use std::collections::BTreeMap;

/// Writes of one memory: first byte, end, line.
pub(super) type Writes = BTreeMap<Mem, Vec<(u64, u64, u32)>>;

/// Refuses a launch that breaks the promise of a load, and marks the reads of such loads.
pub(super) fn kept(traces: &mut [Trace]) -> Result<(), Refusal> {
    if traces.iter().all(|t| t.promised.is_empty()) {
        return Ok(());
    }
    let mut writes = Writes::new();
    traces.iter().flat_map(|t| &t.items).for_each(|placed| add(&mut writes, placed, &|_, writes| writes));
    writes.values_mut().for_each(join);
    let all = traces.iter().flat_map(|t| &t.promised);
    let found: BTreeMap<u32, u32> = all.filter_map(|read| Some((read.3, broken(&writes, read)?))).collect();
    for placed in traces.iter_mut().flat_map(|t| &mut t.items).filter(|p| found.contains_key(&p.line)) {
        if let Item::Data { write: false, manner: manner @ Manner::Weak, .. } = &mut placed.item {
            *manner = Manner::Broken;
        }
    }
    match found.into_iter().next() {
        Some((line, by)) => Err(refusal(line, by)),
        None => Ok(()),
    }
}

pub(super) fn add(writes: &mut Writes, placed: &Placed, of: &dyn Fn(&Touch, bool) -> bool) {
    for (touch, _) in uses(&placed.item).into_iter().filter(|u| of(u.0, u.1)) {
        let all = writes.entry(touch.mem).or_default();
        all.extend(touch.ranges.iter().map(|r| (r.0, r.1, placed.line)));
    }
}

/// Sorts writes and joins those that overlap; the line of the first stays.
pub(super) fn join(all: &mut Vec<(u64, u64, u32)>) {
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let overlaps = next.0 < last.1;
        last.1 = if overlaps { last.1.max(next.1) } else { last.1 };
        overlaps
    });
}

/// The line of a write to some of the bytes.
pub(super) fn broken(writes: &Writes, (mem, start, end, _): &(Mem, u64, u64, u32)) -> Option<u32> {
    let all = writes.get(mem)?;
    let last = all.get(all.partition_point(|w| w.0 < *end).checked_sub(1)?)?;
    (*start < last.1).then_some(last.2)
}

/// Refuses what several grids do if one writes what another one, which may run at the same time, reads on a promise.
pub(super) fn across(readers: &[Trace], writers: &[Trace]) -> Option<Refusal> {
    let mut writes = Writes::new();
    writers.iter().flat_map(|t| &t.items).for_each(|placed| add(&mut writes, placed, &|_, writes| writes));
    writes.values_mut().for_each(join);
    let mut all = readers.iter().flat_map(|t| &t.promised);
    all.find_map(|read| Some(refusal(read.3, broken(&writes, read)?)))
}

/// Whether some of these warps touch a byte of a memory that others touch.
pub(super) fn met(ahead: &[Trace], behind: &[Trace], of: &dyn Fn(Mem) -> bool) -> bool {
    let mut all = Writes::new();
    let about = |touch: &Touch, _: bool| of(touch.mem);
    ahead.iter().flat_map(|t| &t.items).for_each(|placed| add(&mut all, placed, &about));
    all.values_mut().for_each(join);
    let own = behind.iter().flat_map(|t| &t.items).flat_map(|p| uses(&p.item)).map(|used| used.0);
    let mut runs = own.flat_map(|touch| touch.ranges.iter().map(|r| (touch.mem, r.0, r.1, 0)));
    runs.any(|run| broken(&all, &run).is_some())
}

fn refusal(line: u32, by: u32) -> Refusal {
    let what = format!(
        "a load that is defined only for memory that is read-only while the kernel runs: line {by} writes it"
    );
    Refusal::Abstained { what, line }
}
