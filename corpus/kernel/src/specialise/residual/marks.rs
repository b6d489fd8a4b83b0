//! Marks: what stores of agreed numbers race with.
//!
//! Such stores are weak. They are relaxed in the program, so that stores of the same numbers by the same line do not race
//! with each other. That alone would hide the races with other stores of agreed numbers and with strong accesses, and an
//! acquire could read from them. So each order of lanes has a mark of its own for each such store: it writes its mark behind
//! the store, and each other access that races with the store reads the mark first. Mark and reader are unordered
//! exactly if the accesses are. Weak accesses need no marks: they race with relaxed stores, too.
//!
//! So are stores of numbers that are not known, if lanes that write one byte write the same, and the lanes run in several
//! orders. In shared memory warps may agree on known numbers, else only the lanes of one warp. Accesses of other CTAs to global memory
//! need no marks either: a store that is relaxed for its CTA races with them.

use crate::specialise::item::{Agreed, Item, Manner, Placed};
use crate::specialise::lanes::Strand;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::{Access, Op};
use std::collections::{BTreeMap, BTreeSet};

/// A store of agreed numbers: the CTA whose marks are used, the memory, the warp if only its lanes agree, and the store.
type Store = (u32, Mem, Option<usize>, Agreed);

/// The orders of lanes that make each store, and of each store its number.
type Stores = BTreeMap<Store, (u32, BTreeSet<usize>)>;

/// Adds the marks. Says whether there are any. `ctas` has the CTA of each order of lanes.
pub(super) fn mark(strands: &mut [Strand], ctas: &[u32]) -> bool {
    let mut stores = Stores::new();
    for (at, strand) in strands.iter().enumerate() {
        for store in strand.items.iter().filter_map(|p| store(p, ctas[at], strand.warp)) {
            stores.entry(store).or_default().1.insert(at);
        }
    }
    let rivalled = |(store, (_, by)): &(&Store, &(u32, BTreeSet<usize>))| {
        let rival = |at: usize, p: &Placed| {
            rivals(p, ctas[at], strands[at].warp, store) && by.iter().any(|b| *b != at)
        };
        strands.iter().enumerate().any(|(at, s)| s.items.iter().any(|p| rival(at, p)))
    };
    let kept: BTreeSet<Store> = stores.iter().filter(rivalled).map(|s| s.0.clone()).collect();
    stores.retain(|store, _| kept.contains(store));
    (0..).zip(stores.values_mut()).for_each(|(n, store)| store.0 = n);
    for (at, strand) in strands.iter_mut().enumerate() {
        let all = std::mem::take(&mut strand.items);
        let marked = all.into_iter().flat_map(|p| around(p, at, (ctas[at], strand.warp), &stores));
        strand.items = marked.collect();
    }
    !stores.is_empty()
}

/// The store of agreed numbers that an item is.
fn store(placed: &Placed, cta: u32, warp: usize) -> Option<Store> {
    let (touch, agreed) = placed.agreed()?;
    Some(match word(touch.mem) {
        shared @ Mem::Shared(of) => (of, shared, placed.is_parted().then_some(warp), agreed),
        global => (cta, global, Some(warp), agreed),
    })
}

/// The memory whose copy this may be.
fn word(mem: Mem) -> Mem {
    match mem {
        Mem::Copy(cta, _) => Mem::Shared(cta),
        other => other,
    }
}

/// Whether an item races with a store of agreed numbers although that is relaxed: another store of agreed numbers, or a strong
/// access.
fn rivals(placed: &Placed, cta: u32, warp: usize, one: &Store) -> bool {
    let (of, mem, _, agreed) = one;
    let near = |t: &Touch| word(t.mem) == *mem && (mem.cta().is_some() || cta == *of);
    let over = |t: &Touch| near(t) && t.ranges.iter().any(|r| r.0 < agreed.end && agreed.start < r.1);
    match store(placed, cta, warp) {
        Some(other) => other != *one && placed.agreed().is_some_and(|a| over(a.0)),
        None => strong(&placed.item).iter().any(over),
    }
}

/// The data that an item touches strongly.
fn strong(item: &Item) -> &[Touch] {
    match item {
        Item::Data { manner: Manner::Relaxed(_), touch, .. } => std::slice::from_ref(touch),
        Item::Op { op, touches } => {
            let plain = matches!(op.as_ref(), Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. });
            if plain && op.access().is_some_and(Access::is_strong) { touches } else { &[] }
        }
        _ => &[],
    }
}

/// An item of an order of lanes with the marks that it reads and writes.
fn around(placed: Placed, at: usize, (cta, warp): (u32, usize), stores: &Stores) -> Vec<Placed> {
    let own = store(&placed, cta, warp).and_then(|s| Some((s.0, stores.get(&s)?.0)));
    let (mask, lanes, line) = (placed.mask, placed.lanes, placed.line);
    let access =
        |write, touch| Placed { item: Item::Data { write, manner: Manner::Weak, touch }, mask, lanes, line };
    let read = |(one, (n, by)): (&Store, &(u32, BTreeSet<usize>))| {
        let others = by.iter().copied().filter(|b| *b != at);
        let marks = marks(one.0, *n, others).filter(|_| rivals(&placed, cta, warp, one))?;
        Some(access(false, marks))
    };
    let mut out: Vec<Placed> = stores.iter().filter_map(read).collect();
    let mark = own.and_then(|(of, n)| marks(of, n, [at])).map(|touch| access(true, touch));
    out.push(placed);
    out.extend(mark);
    out
}

/// The marks of some orders of lanes for store `n`.
fn marks(cta: u32, n: u32, by: impl IntoIterator<Item = usize>) -> Option<Touch> {
    let ranges: Vec<(u64, u64)> = by.into_iter().map(|at| (at as u64, at as u64 + 1)).collect();
    let mut touch = Touch { mem: Mem::Mark(cta, n), ranges, kind: Kind::Data, by: Vec::new() };
    touch.join();
    (!touch.ranges.is_empty()).then_some(touch)
}
