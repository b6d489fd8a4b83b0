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
//!
//! Nor is such a launch clean for sure (`uneven`): threads whose words differ take different ways to a barrier, and rows that are
//! apart meet. So it is clean only if warps that have something in common come to the same words in the same order, and if one word
//! decides the places in memory that is written. CTAs that have nothing in common may read words of their own; that they have nothing in common with others is
//! noted (`each_its_own`).

use super::actual::Actual;
use super::item::{Note, Placed, Trace};
use super::known::depends::Slices;
use super::known::heap::Heap;
use super::known::region::{END, pointers, pointing};
use super::launch::{Here, Launch};
use super::promised::{Writes, add, broken, join};
use super::residual::apart::{groups, uses};
use super::step::place::SOMEWHERE;
use super::touch::Mem;
use super::word::{Bytes, Common, Pointer, Told, Way, Word, join_told};
use crate::Refusal;
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
pub(super) fn taken(kernel: &Kernel, traces: &mut [Trace]) -> Vec<Note> {
    let mut told: BTreeMap<usize, Told> = BTreeMap::new();
    for (pc, more) in traces.iter().flat_map(|t| t.course.told()) {
        join_told(told.entry(*pc).or_default(), more);
    }
    let alike = |load: &usize| told.get(load).into_iter().flatten().filter(|t| *t.1).map(|t| *t.0);
    let several = several(traces);
    let mut notes = Vec::new();
    for (pc, (shared, loads)) in kernel.led().places() {
        let pointers: BTreeSet<Pointer> = loads.iter().flat_map(alike).collect();
        let line = kernel.body[*pc].line;
        let meets = !pointers.is_disjoint(&several) && (*shared || is_written(traces, line));
        for trace in traces.iter_mut().filter(|t| !pointers.is_empty() && t.course.is_reached(*pc)) {
            trace.loose.insert((line, !shared));
            let text = "words that are assumed to be alike decide where this access is: with others it may be elsewhere";
            notes.push(Note::new(line, text));
            for pointer in pointers.intersection(&several).filter(|_| meets) {
                trace.common.entry((*pointer, Way::Place)).or_insert((line, Vec::new()));
            }
        }
    }
    notes
}

/// The pointers behind which several words have the number of all.
fn several(traces: &[Trace]) -> BTreeSet<Pointer> {
    let mut words: BTreeMap<Pointer, BTreeSet<(Mem, u64)>> = BTreeMap::new();
    for ((pointer, way), (_, all)) in traces.iter().flat_map(|t| &t.common) {
        if !matches!(way, Way::Heard(_)) {
            words.entry(*pointer).or_default().extend(all);
        }
    }
    words.into_iter().filter(|(_, all)| all.len() > 1).map(|(pointer, _)| pointer).collect()
}

/// Whether some warp writes memory in which an access of this line is.
fn is_written(traces: &[Trace], line: u32) -> bool {
    let memory = |mem: Mem| if let Mem::Along(n, ..) = mem { Mem::Param(n) } else { mem };
    let of = |p: &Placed| uses(&p.item).into_iter().map(|u| (memory(u.0.mem), u.1)).collect::<Vec<_>>();
    let items = || traces.iter().flat_map(|t| &t.items);
    let here: BTreeSet<Mem> = items().filter(|p| p.line == line).flat_map(of).map(|u| u.0).collect();
    items().flat_map(of).any(|(mem, writes)| writes && here.contains(&mem))
}

/// Why a launch is not clean in which words have the number of all: with others, threads that have something in common may go
/// different ways, or accesses meet.
pub(super) fn uneven(places: &[Here], items: &[Vec<Placed>], alike: &[Common]) -> Option<Refusal> {
    let refusal = |line: u32| {
        let what = "words that are assumed to be alike and need not be: threads that work together read different ones, or they decide \
                    where an access is (give each its value)";
        Refusal::Abstained { what: what.into(), line }
    };
    if alike.iter().all(Common::is_empty) {
        return None;
    }
    let sure = |key: &(Pointer, Way)| matches!(key.1, Way::Lanes | Way::Place);
    let mut all = alike.iter().flatten();
    let one = all.find(|(key, _)| sure(key)).map(|(_, found)| found.0);
    one.or_else(|| groups(places, items).iter().find_map(|warps| differ(places, warps, alike))).map(refusal)
}

/// What is taken for granted of words that CTAs with nothing in common read, each its own: with other words they may have something in
/// common, as in `if (flag[b]) out[b] else out[b ^ 1]`.
pub(super) fn each_its_own(places: &[Here], alike: &[Common]) -> Option<Note> {
    let warps: Vec<usize> = (0..places.len()).collect();
    let line = differ(places, &warps, alike)?;
    let text = "CTAs read different words that are assumed to be alike here: it is assumed that with others, too, these CTAs have nothing in common";
    Some(Note::new(line, text))
}

/// The line at which one of these warps comes to other words than another one; copies of a CTA are taken together.
fn differ(places: &[Here], warps: &[usize], alike: &[Common]) -> Option<u32> {
    let mut all: BTreeMap<(Pointer, Way), BTreeMap<usize, Vec<(Mem, u64)>>> = BTreeMap::new();
    for warp in warps {
        for (key, (_, words)) in &alike[*warp] {
            let copied = key.1 == Way::Copied;
            let owner = if copied { places[*warp].cta as usize } else { *warp };
            let own = all.entry(*key).or_default().entry(owner).or_default();
            own.extend(words);
            if copied {
                own.sort_unstable();
                own.dedup();
            }
        }
    }
    let differs = |of: &BTreeMap<usize, Vec<(Mem, u64)>>| of.values().collect::<BTreeSet<_>>().len() > 1;
    let key = all.into_iter().find(|(_, of)| differs(of))?.0;
    warps.iter().find_map(|warp| alike[*warp].get(&key)).map(|found| found.0)
}
