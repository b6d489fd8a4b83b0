//! Words of global memory that decide something and that the launch only reads: parameters that stand in memory.
//!
//! The length of a sequence or the number of tiles often comes to a kernel by way of a pointer. A weak load reads it, a guard
//! depends on it, and no warp of the launch writes it. Then every read of it has the number that the host has put there, so it is
//! a number of the launch as that of a parameter is. A word has a number of its own (`--param 5[8]=3`), or that of all words
//! behind its pointer (`--param 5[]=3`), which is chosen as that of a parameter is (`sweep`). It is tried where a kernel cannot be run
//! ahead for any data.
//!
//! Other words are data, and what they decide is abstained from: those that an item of some warp may write, those that an ordered or
//! atomic access touches (they are 0 at the start), those that are read with different first or last bytes, and those at an address
//! that data decides. Which words are written shows once all warps have run: each round knows those of the rounds before.
//!
//! Assumed: different pointers point to different memory, also where they are fields of structures (`fields`).
//!
//! Words that have one number for all may have different ones in truth. So a race at an address that is computed from such a word
//! is not sure (`loose`), and a box of a tensor map at such a coordinate is one at an unknown coordinate (`boxed`). What they decide
//! belongs to the coverage, as what a parameter decides (`Met::told`).

use super::actual::Actual;
use super::item::{Note, Trace};
use super::known::depends::Slices;
use super::known::heap::Heap;
use super::known::region::{END, pointers, pointing};
use super::launch::Launch;
use super::led::Led;
use super::promised::{Writes, add, broken, join};
use super::step::place::SOMEWHERE;
use super::touch::Mem;
use super::word::{Bytes, Pointer, Told, Word, join_told};
use crate::ptx::Kernel;
use std::collections::{BTreeMap, BTreeSet};

impl Launch {
    /// The same launch with numbers for words. Fields that are pointers get memories of their own.
    #[must_use]
    pub fn telling(&self, kernel: &Kernel) -> Launch {
        let mut out = self.clone();
        out.words.get_or_insert_default();
        let known = |place: &Pointer| {
            self.fields.contains_key(place)
                || self.params.contains_key(&place.0)
                || self.actual.bytes.contains_key(&place.0)
                || self.actual.pointers.contains_key(place)
        };
        let fields = fields(kernel).into_iter().filter(|place| !known(place));
        let memories = (0..u16::MAX).skip(kernel.params.len()).filter(|n| !self.actual.is_memory(*n));
        out.actual.pointers.extend(fields.zip(memories).map(|(place, memory)| (place, (memory, 0))));
        out
    }

    /// The pointer to a memory, and where it points in there.
    pub(super) fn pointer(&self, memory: u16) -> (Pointer, u64) {
        let all = self.actual.pointers.iter().filter(|(_, to)| to.0 == memory);
        all.map(|(place, to)| (*place, to.1))
            .min_by_key(|p| p.1)
            .unwrap_or(((self.queued.param(memory), 0), 0))
    }

    /// The number of a word of so many bytes, and whether it is that of all words behind the pointer.
    pub(super) fn word(&self, (pointer, start): (Pointer, u64), at: u64, bytes: u32) -> Option<(u64, bool)> {
        let words = self.words.as_ref()?;
        let of = |at: Option<u64>| words.get(&Word { pointer, at });
        let own = of(Some(at.checked_sub(start)?));
        let cut = |v: &u64| v & u64::MAX.checked_shr(64 - 8 * bytes.clamp(1, 8)).unwrap_or(u64::MAX);
        own.map(|v| (cut(v), false)).or_else(|| Some((cut(of(None)?), true)))
    }
}

impl Actual {
    fn is_memory(&self, n: u16) -> bool {
        self.pointers.values().any(|to| to.0 == n)
    }
}

/// The fields of structures that are pointers: some address is computed from one of them alone.
fn fields(kernel: &Kernel) -> BTreeSet<Pointer> {
    let slices = Slices::new(kernel);
    let (mut alone, mut among) = (BTreeSet::new(), BTreeSet::new());
    for (pc, reg) in pointing(kernel) {
        let found = pointers(kernel, &slices, (pc, reg));
        if found.len() == 1 { alone.extend(found) } else { among.extend(found) }
    }
    let field = |place: &Pointer| kernel.params.get(usize::from(place.0)).is_some_and(|p| p.array);
    alone.difference(&among).copied().filter(field).collect()
}

/// The words that are none, after all: some item may write them, or they are read with other first or last bytes.
pub(super) fn changed(heap: &Heap, traces: &[Trace]) -> BTreeSet<Bytes> {
    let mut out = heap.changed().clone();
    let fixed: BTreeSet<Bytes> = traces.iter().flat_map(|t| t.fixed.iter().copied()).collect();
    if fixed.is_empty() {
        return out;
    }
    let mut writes = Writes::new();
    traces.iter().flat_map(|t| &t.items).for_each(|placed| add(&mut writes, placed, &|_, writes| writes));
    let anywhere = |(mem, all): (&Mem, &Vec<(u64, u64, u32)>)| match mem {
        Mem::Along(n, ..) => Some((Mem::Param(*n), all[0].2)),
        Mem::Param(_) => all.iter().find(|w| w.0 >= SOMEWHERE).map(|w| (*mem, w.2)),
        _ => None,
    };
    let anywhere: Vec<(Mem, u32)> = writes.iter().filter_map(anywhere).collect();
    anywhere.into_iter().for_each(|(mem, line)| writes.entry(mem).or_default().push((0, END, line)));
    writes.values_mut().for_each(join);
    let written = fixed.iter().filter(|w| broken(&writes, &(w.0, w.1, w.2, 0)).is_some());
    out.extend(written.copied());
    for (a, b) in fixed.iter().zip(fixed.iter().skip(1)).filter(|(a, b)| a.0 == b.0 && b.1 < a.2) {
        out.extend([*a, *b]);
    }
    out
}

/// Notes the accesses at addresses that are computed from words with the number of all: where they are is not sure.
pub(super) fn taken(kernel: &Kernel, led: &Led, traces: &mut [Trace]) -> Vec<Note> {
    let mut told: BTreeMap<usize, Told> = BTreeMap::new();
    for (pc, more) in traces.iter().flat_map(|t| t.course.told()) {
        join_told(told.entry(*pc).or_default(), more);
    }
    let alike = |load: &usize| told.get(load).is_some_and(|told| told.values().any(|common| *common));
    let mut notes = Vec::new();
    let places = led.places().iter().filter(|(_, (_, loads))| loads.iter().any(alike));
    for (pc, (shared, _)) in places {
        let line = kernel.body[*pc].line;
        for trace in traces.iter_mut().filter(|t| t.course.is_reached(*pc)) {
            trace.loose.insert((line, !shared));
            let text = "words that are assumed to be alike decide where this access is: with others it may be elsewhere";
            notes.push(Note::new(line, text));
        }
    }
    notes
}
