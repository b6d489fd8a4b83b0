//! Sizes of boxes that several CTAs or warps share: copies with multicast, copies told to an mbarrier of another CTA, and copies of
//! several warps that are told to one mbarrier.

use super::{announced, unsized_one};
use crate::specialise::item::{Item, Placed};
use crate::specialise::launch::Here;
use crate::specialise::touch::{Kind, Mem};
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// A copy of a box.
struct Copy {
    warp: usize,
    item: usize,
    line: u32,
    /// Which tensor map.
    map: Mem,
    /// Where it starts in shared memory.
    at: u64,
    /// The mbarriers that it is told to: CTA and address.
    told: Vec<(u32, u64)>,
    /// Whether it belongs to one CTA alone.
    alone: bool,
}

/// The bytes that an mbarrier is announced are those that the boxes of these tensor maps bring, so many times each.
#[derive(Clone, Debug)]
struct Equation {
    bytes: u64,
    times: BTreeMap<Mem, u64>,
}

/// Sets the sizes of all boxes, if some are shared by CTAs or warps and the announcements determine them.
pub(super) fn measure(places: &[Here], traces: &mut [Vec<Placed>]) {
    let copies = copies(places, traces);
    let mut warps: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    let own =
        |c: &Copy| c.told.iter().all(|place| *warps.entry(*place).or_insert(c.warp) == c.warp) && c.alone;
    if copies.iter().all(own) {
        return;
    }
    let Some(sizes) = solved(equations(traces, &copies), &rooms(&copies)) else { return };
    for copy in &copies {
        let Some(Item::Op { touches, .. }) = traces[copy.warp].get_mut(copy.item).map(|p| &mut p.item) else {
            continue;
        };
        let Some(size) = sizes.get(&copy.map) else { continue };
        for touch in touches.iter_mut().filter(|t| matches!(t.kind, Kind::Box { .. })) {
            touch.ranges.iter_mut().for_each(|r| r.1 = r.0 + size);
        }
    }
}

/// The copies that are told to mbarriers.
fn copies(places: &[Here], traces: &[Vec<Placed>]) -> Vec<Copy> {
    let mut out = Vec::new();
    for (warp, (here, trace)) in places.iter().zip(traces).enumerate() {
        for (item, placed) in trace.iter().enumerate() {
            let Item::Op { op, touches } = &placed.item else { continue };
            let Op::AsyncCopy(AsyncCopy::Bulk(bulk)) = &**op else { continue };
            let boxed =
                touches.iter().find_map(|t| if let Mem::Boxes(_) = t.mem { Some(t.mem) } else { None });
            let (Some(map), Some(touch)) = (boxed, touches.iter().find(|t| unsized_one(t))) else { continue };
            let Kind::Box { reported: Some((Mem::Shared(home), mbarrier)) } = touch.kind else { continue };
            let told: Vec<(u32, u64)> =
                tellers(here, bulk, home).into_iter().map(|cta| (cta, mbarrier)).collect();
            let alone = told == [(here.cta, mbarrier)];
            let at = touch.ranges.first().map_or(0, |r| r.0);
            out.push(Copy { warp, item, line: placed.line, map, at, told, alone });
        }
    }
    out
}

/// The CTAs whose mbarriers a copy is told to; `home` is that of its operand. For a pair it is the one of the same parity.
fn tellers(here: &Here, bulk: &BulkCopy, home: u32) -> Vec<u32> {
    let Some(Multicast { mask: Operand::Imm(mask), .. }) = bulk.multicast else { return vec![home] };
    let rank = here.peers.iter().position(|p| *p == home).unwrap_or(0);
    let teller = |to: usize| if bulk.group == Some(CtaGroup::Two) { to & !1 | rank & 1 } else { to };
    (0..here.peers.len())
        .filter(|to| mask >> to & 1 == 1)
        .filter_map(|to| here.peers.get(teller(to)).copied())
        .collect()
}

/// An equation for each mbarrier. What a warp does in one line counts once: the next time it is another phase, or another way.
fn equations(traces: &[Vec<Placed>], copies: &[Copy]) -> Vec<Equation> {
    let mut all: BTreeMap<(u32, u64), Equation> = BTreeMap::new();
    let mut of = |place: (u32, u64), change: &dyn Fn(&mut Equation)| {
        change(all.entry(place).or_insert_with(|| Equation { bytes: 0, times: BTreeMap::new() }));
    };
    let each = traces.iter().enumerate().flat_map(|(warp, t)| t.iter().map(move |p| (warp, p)));
    let announced: BTreeSet<_> =
        each.filter_map(|(warp, p)| announced(&p.item).map(|found| (warp, p.line, found))).collect();
    for (.., ((mem, at), bytes)) in announced {
        if let Mem::Shared(cta) = mem {
            of((cta, at), &|e| e.bytes += bytes);
        }
    }
    let mut seen = BTreeSet::new();
    for copy in copies.iter().filter(|c| seen.insert((c.warp, c.line, c.at, c.map, c.told.clone()))) {
        copy.told.iter().for_each(|place| of(*place, &|e| *e.times.entry(copy.map).or_default() += 1));
    }
    all.into_values().filter(|e| !e.times.is_empty() && e.bytes > 0).collect()
}

/// For each tensor map the least number of bytes from a destination of its boxes to the next destination.
fn rooms(copies: &[Copy]) -> BTreeMap<Mem, u64> {
    let starts: BTreeSet<u64> = copies.iter().map(|c| c.at).collect();
    let mut out: BTreeMap<Mem, u64> = BTreeMap::new();
    for copy in copies {
        if let Some(next) = starts.range(copy.at + 1..).next() {
            let room = out.entry(copy.map).or_insert(u64::MAX);
            *room = (*room).min(next - copy.at);
        }
    }
    out
}

/// Sizes that satisfy all equations. Where these leave a choice, the map with the least room gets it.
fn solved(equations: Vec<Equation>, rooms: &BTreeMap<Mem, u64>) -> Option<BTreeMap<Mem, u64>> {
    let mut sizes: BTreeMap<Mem, u64> = BTreeMap::new();
    let maps: BTreeSet<Mem> = equations.iter().flat_map(|e| e.times.keys().copied()).collect();
    loop {
        settle(&equations, &mut sizes)?;
        let open = maps.iter().filter(|m| !sizes.contains_key(m));
        let Some((room, map)) = open.filter_map(|m| Some((*rooms.get(m)?, *m))).min() else { break };
        sizes.insert(map, room);
    }
    let whole = |e: &Equation| {
        e.times.iter().map(|(m, n)| Some(n * sizes.get(m)?)).sum::<Option<u64>>() == Some(e.bytes)
    };
    let fits = |(map, size): (&Mem, &u64)| rooms.get(map).is_none_or(|room| size <= room);
    (equations.iter().all(whole) && sizes.iter().all(fits)).then_some(sizes)
}

/// Finds the sizes that equations with one unknown give. `None` if one has no solution.
fn settle(equations: &[Equation], sizes: &mut BTreeMap<Mem, u64>) -> Option<()> {
    loop {
        let before = sizes.len();
        for equation in equations {
            let known: u64 = equation.times.iter().filter_map(|(m, n)| Some(n * sizes.get(m)?)).sum();
            let mut open = equation.times.iter().filter(|(m, _)| !sizes.contains_key(m));
            if let (Some((map, times)), None) = (open.next(), open.next()) {
                let left = equation
                    .bytes
                    .checked_sub(known)
                    .filter(|left| *left > 0 && left.is_multiple_of(*times))?;
                sizes.insert(*map, left / times);
            }
        }
        if sizes.len() == before {
            return Some(());
        }
    }
}
