//! Words of global memory that have numbers of the launch (`words`): what a load or a small copy reads, and what of it comes into
//! shared memory.

use super::Executing;
use super::access::Access;
use crate::specialise::item::{Content, Stored};
use crate::specialise::known::region::END;
use crate::specialise::known::value::{Lanes, Val, Why, lanes};
use crate::specialise::led::Led;
use crate::specialise::touch::Mem;
use crate::specialise::word::{Pointer, Told, Way, join_told};
use moire_program::ir::Ty;

/// A word of the launch.
#[derive(Clone, Copy, Debug)]
struct Found {
    pointer: Pointer,
    /// Its first byte.
    at: u64,
    /// Its number, and whether it is that of all words behind the pointer.
    number: Option<(u64, bool)>,
}

impl Found {
    fn told(self) -> Told {
        [(self.pointer, self.number.is_none_or(|n| n.1))].into()
    }
}

impl<'r> Executing<'_, 'r> {
    fn led(&self) -> &'r Led {
        self.round().kernel.led()
    }

    /// The words that each lane reads, if all are words of the launch.
    fn words(&mut self, (mem, at): (Mem, &Lanes), bytes: u32) -> Option<Vec<(usize, Found)>> {
        let Mem::Param(memory) = mem else { return None };
        let (round, mut out) = (self.round(), Vec::new());
        round.launch.words.as_ref()?;
        let pointer = round.launch.pointer(memory);
        for lane in lanes(self.mask) {
            let at = at.get(lane);
            let word = (mem, at, at.saturating_add(u64::from(bytes)));
            if at >= END || at < pointer.1 || !round.heap.keeps(word) {
                return None;
            }
            self.warp.out.fixed.insert(word);
            let number = round.launch.word(pointer, at, bytes);
            out.push((lane, Found { pointer: pointer.0, at, number }));
        }
        Some(out)
    }

    /// Notes that the warp comes to a word with the number of all.
    fn comes_to(&mut self, pointer: Pointer, way: Way, place: (Mem, u64)) {
        let line = self.line();
        let (_, all) = self.warp.out.common.entry((pointer, way)).or_insert((line, Vec::new()));
        if !all.contains(&place) {
            all.push(place);
        }
    }

    /// Notes the words with the number of all that lanes load.
    fn loaded(&mut self, mem: Mem, found: &[(usize, Found)]) {
        let common: Vec<Found> =
            found.iter().map(|f| f.1).filter(|w| w.number.is_some_and(|n| n.1)).collect();
        for word in &common {
            self.comes_to(word.pointer, Way::Read, (mem, word.at));
            if word.at != found[0].1.at {
                self.comes_to(word.pointer, Way::Lanes, (mem, word.at));
            }
        }
    }
}

/// Whether what the statement loads decides something, and words may be numbers of the launch.
pub(super) fn leads(step: &Executing<'_, '_>) -> bool {
    step.round().launch.words.is_some() && step.led().decides(step.state.pc)
}

/// The values of the elements of a load from global memory that decides something, as far as they are words of the launch.
pub(super) fn told(
    step: &mut Executing<'_, '_>,
    access: &Access,
    count: usize,
    (mem, at): (Mem, &Lanes),
) -> Vec<Val> {
    let (pc, bytes) = (step.state.pc, access.ty.bytes());
    if let (Mem::Shared(cta), Some(one)) = (mem, at.one(step.mask)) {
        return (0..count as u64).map(|n| lacking(step, cta, one + n * u64::from(bytes), bytes)).collect();
    }
    if !leads(step) || access.strong || bytes > 8 {
        return Vec::new();
    }
    let line = step.line();
    let mut element = |n: u64| {
        let at = at.map(|at| at.wrapping_add(n * u64::from(bytes)));
        let found = step.words((mem, &at), bytes).filter(|found| !found.is_empty());
        let Some(found) = found else { return Val::Unknown(Why::Loaded(line)) };
        found.iter().for_each(|(_, word)| step.warp.out.course.tell(pc, &word.told()));
        step.loaded(mem, &found);
        value(&found, access.ty)
    };
    (0..count as u64).map(&mut element).collect()
}

/// What a load of shared memory reads that is not known: a word of the launch that has no number, or data.
fn lacking(step: &Executing<'_, '_>, cta: u32, at: u64, bytes: u32) -> Val {
    let contents = u32::try_from(at).map(|at| step.round().heap.contents(cta, at, bytes)).unwrap_or_default();
    let mut all = contents.into_iter();
    match (all.next(), all.next()) {
        (Some(Content::Word((n, at))), None) => Val::Unknown(Why::Word(n, at)),
        _ => Val::Unknown(Why::Loaded(step.line())),
    }
}

/// What lanes read.
fn value(found: &[(usize, Found)], ty: Ty) -> Val {
    if let Some((_, word)) = found.iter().find(|(_, word)| word.number.is_none()) {
        return Val::Unknown(Why::Word(word.pointer.0, word.pointer.1));
    }
    let of = |lane: usize| found.iter().find(|f| f.0 == lane).and_then(|f| f.1.number);
    let shift = 64 - 8 * ty.bytes().clamp(1, 8);
    let whole = |n: u64| match ty {
        Ty::S(_) => ((n << shift).cast_signed() >> shift).cast_unsigned(),
        _ => n,
    };
    Val::Known(Lanes::from_fn(|lane| of(lane).map_or(0, |n| whole(n.0))))
}

/// Whether something that the statement reads is computed from words that have the number of all.
pub(super) fn assumed_alike(step: &Executing<'_, '_>) -> bool {
    let words = step.round().launch.words.is_some();
    words && step.led().told(step.state.pc, step.warp.out.course.told()).into_values().any(|common| common)
}

/// Notes that the statement loads words of the launch from these bytes of shared memory, if some come there.
pub(super) fn heard(step: &mut Executing<'_, '_>, (cta, at, bytes): (u32, u32, u32)) {
    let told = step.round().heap.told(cta, at, bytes);
    step.warp.out.course.tell(step.state.pc, &told);
    for (pointer, _) in told.into_iter().filter(|(_, common)| *common) {
        step.comes_to(pointer, Way::Heard(cta), (Mem::Shared(cta), at.into()));
    }
}

/// Tells other warps that what the statement stores in these bytes of shared memory comes from words of the launch, if it does.
pub(super) fn tell(step: &mut Executing<'_, '_>, (cta, at, bytes): (u32, u32, u32)) {
    if step.round().launch.words.is_none() {
        return;
    }
    let told = step.led().told(step.state.pc, step.warp.out.course.told());
    note(step, (cta, at, bytes), &told);
}

fn note(step: &mut Executing<'_, '_>, (cta, at, bytes): (u32, u32, u32), told: &Told) {
    if !told.is_empty() {
        let all = step.warp.out.told.entry((cta, at, at.saturating_add(bytes))).or_default();
        join_told(all, told);
    }
}

/// Tells other warps the words of the launch that a copy of so many bytes by each lane puts into shared memory, where they decide
/// something, or where that is not known yet. The lanes whose words these are.
pub(super) fn copied(
    step: &mut Executing<'_, '_>,
    (cta, to): (u32, &Lanes),
    from: (Mem, &Lanes),
    bytes: u32,
) -> u32 {
    let wanted = |step: &Executing<'_, '_>, lane: usize| {
        let at = u32::try_from(to.get(lane)).ok()?;
        let heap = step.round().heap;
        (heap.is_new() || heap.wanted(cta, at, bytes)).then_some(at)
    };
    let mut mask = 0;
    for lane in lanes(step.mask).filter(|_| bytes <= 8) {
        let Some(at) = wanted(step, lane) else { continue };
        let Some([(_, word)]) = step.only(1 << lane).words(from, bytes).as_deref().map(|f| [f[0]]) else {
            continue;
        };
        let content = word.number.map_or(Content::Word(word.pointer), |n| Content::Known(n.0));
        let line = step.line();
        step.warp.out.stores.push(Stored { cta, at, bytes, content, line });
        note(step, (cta, at, bytes), &word.told());
        if word.number.is_some_and(|n| n.1) {
            step.comes_to(word.pointer, Way::Copied, (from.0, word.at));
        }
        mask |= 1 << lane;
    }
    mask
}
