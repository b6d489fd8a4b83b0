//! Memory while warps are run ahead: words that decide branches, and the stores there.
//!
//! Stores to a word that an ordered or atomic access touches are kept as numbers. If such a store has unknown data and
//! something depends on the word, the kernel is abstained from.

use crate::specialise::item::{Content, Handed, Stored, Trace};
use crate::specialise::touch::Mem;
use crate::specialise::word::{Bytes, Told, join_told};
use std::collections::{BTreeMap, BTreeSet};

/// The stores of all warps in the previous round, and the words that decided something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heap {
    /// By CTA and first byte: size, content, line and warp of each store.
    stores: BTreeMap<(u32, u32), BTreeSet<(u32, Content, u32, u32)>>,
    /// Bytes of shared memory that decide something: CTA, first byte, end.
    wanted: BTreeSet<(u32, u32, u32)>,
    /// Bytes of global memory that ordered accesses touch.
    asked: BTreeSet<(Mem, u64, u64)>,
    /// Those of them that get data whose value is not followed.
    opaque: BTreeSet<(Mem, u64, u64)>,
    /// Memory with relaxed accesses that are not kept as words.
    relaxed: BTreeSet<Mem>,
    /// How counters hand out places in a memory.
    ticketed: BTreeSet<(Mem, Handed)>,
    /// By CTA the warps that ask for the work of other clusters, with the addresses of each answer and of its mbarrier, in order.
    asks: BTreeMap<u32, BTreeMap<u32, Vec<(u64, u64)>>>,
    /// Numbers stored in bytes of global memory that ordered accesses touch; none if one of them is not known.
    numbers: BTreeMap<(Mem, u64, u64), Option<BTreeSet<u64>>>,
    /// Words of global memory whose numbers are not those of the launch (`words`).
    changed: BTreeSet<Bytes>,
    /// Bytes of shared memory into which words of global memory come: CTA, first byte, end, and the pointers.
    told: BTreeMap<(u32, u32, u32), Told>,
}

/// Most stores kept for one place; with more, the place may hold anything.
const KEPT: usize = 64;

impl Heap {
    pub(crate) fn absorb(&mut self, trace: &Trace) {
        self.wanted.extend(&trace.wanted);
        self.asked.extend(&trace.asked);
        self.opaque.extend(&trace.opaque);
        self.ticketed.extend(&trace.ticketed);
        self.relaxed.extend(&trace.relaxed);
        trace.told.iter().for_each(|(at, told)| join_told(self.told.entry(*at).or_default(), told));
        for (cta, answer, mbarrier) in &trace.asks {
            self.asks.entry(*cta).or_default().entry(trace.warp).or_default().push((*answer, *mbarrier));
        }
        for (place, number) in &trace.numbers {
            let all = self.numbers.entry(*place).or_insert_with(|| Some(BTreeSet::new()));
            *all = all.take().zip(*number).and_then(|(mut all, number)| {
                all.insert(number);
                (all.len() <= KEPT).then_some(all)
            });
        }
        for Stored { cta, at, bytes, content, line } in &trace.stores {
            let all = self.stores.entry((*cta, *at)).or_default();
            if all.len() < KEPT {
                all.insert((*bytes, *content, *line, trace.warp));
            } else {
                all.insert((*bytes, Content::Opaque, 0, 0));
            }
        }
    }

    /// The words whose numbers are not those of the launch.
    pub(crate) fn changed(&self) -> &BTreeSet<Bytes> {
        &self.changed
    }

    /// Sets the words whose numbers are not those of the launch.
    pub(crate) fn change(&mut self, words: BTreeSet<Bytes>) {
        self.changed = words;
    }

    /// Whether these bytes of global memory are a word whose number may be that of the launch.
    pub(crate) fn keeps(&self, word: Bytes) -> bool {
        !self.changed.contains(&word) && !self.asked(word.0, word.1, word.2)
    }

    /// The pointers behind which the words are that come into these bytes of shared memory.
    pub(crate) fn told(&self, cta: u32, at: u32, bytes: u32) -> Told {
        let mut out = Told::new();
        let meets = |w: &(u32, u32, u32)| w.0 == cta && w.1 < at.saturating_add(bytes) && at < w.2;
        self.told.iter().filter(|(w, _)| meets(w)).for_each(|(_, told)| join_told(&mut out, told));
        out
    }

    /// The mbarrier that tells of the answers to an address of a CTA. None if several warps ask, or several mbarriers tell.
    pub(crate) fn told_by(&self, cta: u32, at: u64) -> Option<u64> {
        let (_, asks) = self.asks.get(&cta)?.iter().next().filter(|_| self.asks[&cta].len() == 1)?;
        let mut all = asks.iter().filter(|a| a.0 == at).map(|a| a.1);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// The number among all answers to a CTA of the `n`-th one that goes to an address.
    pub(crate) fn answer(&self, cta: u32, at: u64, n: usize) -> Option<usize> {
        let asks = self.asks.get(&cta)?.values().next()?;
        let mut all = asks.iter().enumerate().filter(|(_, a)| a.0 == at).map(|a| a.0);
        all.nth(n)
    }

    /// Whether no round was before.
    pub(crate) fn is_new(&self) -> bool {
        self.stores.is_empty() && self.wanted.is_empty()
    }

    /// The number of entries that a lookup may visit.
    pub(crate) fn size(&self) -> usize {
        self.stores.len() + self.wanted.len() + self.asked.len() + self.opaque.len() + self.numbers.len()
    }

    /// Whether a branch or an address depends on some of these bytes.
    pub(crate) fn wanted(&self, cta: u32, at: u32, bytes: u32) -> bool {
        self.wanted.iter().any(|w| w.0 == cta && w.1 < at.saturating_add(bytes) && at < w.2)
    }

    /// Whether an ordered access touches some of these bytes of global memory.
    pub(crate) fn asked(&self, mem: Mem, start: u64, end: u64) -> bool {
        self.asked.iter().any(|a| a.0 == mem && a.1 < end && start < a.2)
    }

    /// Whether only one counter hands out places in this memory, in one way, and all accesses to it are weak. A relaxed one, or an
    /// atomic one, would not race with stores that stand for relaxed ones.
    pub(crate) fn hands_out(&self, mem: Mem, handed: Handed) -> bool {
        let words = match mem {
            Mem::Shared(cta) => self.wanted(cta, 0, u32::MAX),
            _ => self.asked(mem, 0, u64::MAX),
        };
        let alone = self.ticketed.iter().all(|other| other.0 != mem || other.1 == handed);
        alone && !words && !self.relaxed.contains(&mem)
    }

    /// Whether some of these bytes of global memory get data whose value is not followed.
    pub(crate) fn opaque(&self, mem: Mem, start: u64, end: u64) -> bool {
        self.opaque.iter().any(|a| a.0 == mem && a.1 < end && start < a.2)
    }

    /// The numbers that these bytes of memory behind a parameter may hold, if it is zero at the start. None if some access
    /// stores there what is not known, or stores other bytes together with some of these.
    pub(crate) fn numbers(&self, mem: Mem, start: u64, end: u64) -> Option<BTreeSet<u64>> {
        if !matches!(mem, Mem::Param(_)) || self.opaque(mem, start, end) {
            return None;
        }
        let mut out = BTreeSet::from([0]);
        for ((_, from, to), numbers) in self.numbers.range((mem, 0, 0)..(mem, end, 0)) {
            if *to > start {
                out.extend(numbers.as_ref().filter(|_| (*from, *to) == (start, end))?);
            }
        }
        Some(out)
    }

    /// The possible contents of these bytes; empty if nothing writes them.
    pub(crate) fn contents(&self, cta: u32, at: u32, bytes: u32) -> BTreeSet<Content> {
        let mut out = BTreeSet::new();
        for ((_, start), all) in self.stores.range((cta, 0)..=(cta, at.saturating_add(bytes - 1))) {
            for (length, content, ..) in all {
                if start.saturating_add(*length) <= at {
                    continue;
                }
                let whole = *start <= at && at + bytes <= start + length;
                out.insert(match content {
                    Content::Known(v) if whole && *length <= 8 => {
                        let shifted = v >> (8 * (at - start)).min(63);
                        Content::Known(if bytes >= 8 { shifted } else { shifted & ((1 << (8 * bytes)) - 1) })
                    }
                    kept
                    @ (Content::Allocation | Content::Address(..) | Content::Held | Content::Word(_))
                        if *start == at && *length == bytes =>
                    {
                        *kept
                    }
                    _ => Content::Opaque,
                });
            }
        }
        out
    }

    /// The lines that store some of these bytes.
    pub(crate) fn lines(&self, cta: u32, at: u32, bytes: u32) -> BTreeSet<u32> {
        let all = self.stores.range((cta, 0)..=(cta, at.saturating_add(bytes - 1)));
        let meet = |start: u32, length: u32| start.saturating_add(length) > at;
        all.flat_map(|((_, start), all)| all.iter().filter(|s| meet(*start, s.0)).map(|s| s.2)).collect()
    }

    /// Whether one of these lines stores to a word that decides something.
    pub(crate) fn steers(&self, lines: &[u32]) -> bool {
        let all = self.stores.iter().filter(|_| !lines.is_empty());
        let of = |((cta, at), all): (&(u32, u32), &BTreeSet<(u32, Content, u32, u32)>)| {
            all.iter().any(|s| lines.contains(&s.2) && self.wanted(*cta, *at, s.0))
        };
        all.into_iter().any(of)
    }

    /// The other warps, by their numbers in the launch, that store as many bytes at the same place by the same line.
    pub(crate) fn others(&self, stored: &Stored, warp: u32) -> BTreeSet<u32> {
        let all = self.stores.get(&(stored.cta, stored.at)).into_iter().flatten();
        let alike = all.filter(|s| (s.0, s.2) == (stored.bytes, stored.line) && s.3 != warp);
        alike.map(|s| s.3).collect()
    }

    /// Whether another warp stores the same number at the same place by the same line.
    pub(crate) fn repeated(&self, stored: &Stored, warp: u32) -> bool {
        let all = self.stores.get(&(stored.cta, stored.at));
        matches!(stored.content, Content::Known(_))
            && all.is_some_and(|all| {
                all.iter()
                    .any(|s| (s.0, s.1, s.2) == (stored.bytes, stored.content, stored.line) && s.3 != warp)
            })
    }
}
