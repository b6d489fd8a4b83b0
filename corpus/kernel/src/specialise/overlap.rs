//! Tensor maps of a launch that happened, and what else reaches the bytes of their tensors.
//!
//! The bytes of a tensor are known, but boxes are told apart by their coordinates only. So a launch in which boxes of different maps,
//! or a box and what a pointer reaches, may be the same bytes, one of them written, is not clean: it is abstained from.

use super::actual::Actual;
use super::item::Trace;
use super::known::map::Map;
use super::residual::apart::uses;
use super::touch::Mem;
use crate::Refusal;
use std::collections::BTreeSet;

/// Bytes of a memory that something reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reached {
    place: (u16, u64, u64),
    by: Mem,
    writes: bool,
    line: u32,
}

impl Reached {
    fn meets(&self, other: &Reached) -> bool {
        let (a, b) = (self.place, other.place);
        self.by != other.by && a.0 == b.0 && a.1 < b.2 && b.1 < a.2 && (self.writes || other.writes)
    }
}

/// Refuses a launch in which a box may be bytes that are reached in another way.
pub(super) fn none(actual: &Actual, map: &Map, traces: &[Trace]) -> Result<(), Refusal> {
    if actual.maps.is_empty() {
        return Ok(());
    }
    let mut reached: BTreeSet<Reached> = BTreeSet::new();
    for placed in traces.iter().flat_map(|t| &t.items) {
        for (touch, writes) in uses(&placed.item) {
            let places: Vec<_> = match touch.mem {
                Mem::Boxes(at) => actual.map_at(map, at).and_then(|m| m.1.tensor).into_iter().collect(),
                Mem::Param(n) => touch.ranges.iter().map(|r| (n, r.0, r.1)).collect(),
                _ => Vec::new(),
            };
            let (by, line) = (touch.mem, placed.line);
            reached.extend(places.into_iter().map(|place| Reached { place, by, writes, line }));
        }
    }
    let boxes = reached.iter().filter(|r| matches!(r.by, Mem::Boxes(_)));
    let mut met = boxes.filter_map(|one| Some((one, reached.iter().find(|r| r.meets(one))?)));
    match met.next() {
        Some((one, other)) => {
            let what = format!(
                "a box of a tensor that line {} reaches in another way, perhaps the same bytes",
                other.line
            );
            Err(Refusal::Abstained { what, line: one.line })
        }
        None => Ok(()),
    }
}
