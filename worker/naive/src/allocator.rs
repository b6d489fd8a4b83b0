//! Allocation of tensor memory: the uses of allocators by one thread, and how the allocators of a candidate can have worked.
//!
//! An instruction that waits is either passed or never passed. Where the columns of a CTA may not suffice, every order of
//! the operations on its allocator is run literally. An order fits the candidate if each allocation that took place finds
//! free columns, and each that did not finds none in the end. (PTX ISA 9.2, 9.7.16.7.)

use super::arith::low;
use super::barriers::{At, Phases, Scene};
use super::event::{Path, Refusal, Stop};
use super::seize::{Seize, Seizure};
use super::state::{Paths, Runner, State};
use super::tags::{bit, store_tags};
use super::tensor;
use moire_cat::vocabulary::sets;
use moire_execution::columns;
use moire_execution::leaf::flag;
use moire_program::ir::{CtaGroup, Operand, StoreOrder, Tcgen05, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// Most orders of one allocator that are run.
const ORDERS: usize = 2_000;

/// Readings of the PTX ISA that the model chooses between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    /// Whether `dealloc` and `relinquish` of a pair may pass without the other CTA.
    pub(super) alone: bool,
    /// Whether they may wait for the other CTA.
    pub(super) together: bool,
    /// Whether a part of an allocation may be deallocated.
    pub(super) partly: bool,
    /// Whether `bar.warp.sync` waits for lanes that have exited.
    pub(super) exited: bool,
}

/// The first thread of the CTA and, for a pair, the first thread of the other CTA.
pub(super) fn both(run: &Runner<'_>, op: &Tcgen05) -> Result<Vec<usize>, Refusal> {
    let own = columns::leader(run.program, run.thread);
    if op.group() != Some(CtaGroup::Two) {
        return Ok(vec![own]);
    }
    let alone = || Refusal::Unsupported("a pair without its other CTA".into());
    Ok(vec![own, columns::peer(run.program, run.thread).ok_or_else(alone)?])
}

/// Adds the path on which the instruction is passed and, if it waits, the one on which it never is.
pub(super) fn allocation(
    run: &Runner<'_>,
    mut s: State,
    op: &Tcgen05,
    todo: &mut Vec<State>,
    out: &mut Paths,
) -> Result<(), Refusal> {
    let own = &run.program.threads[run.thread].place;
    let also = |t: usize| {
        let thread = &run.program.threads[t];
        let near = run.memory.cta[t] == run.memory.cta[run.thread] && thread.place.warp == own.warp;
        near && thread.place.mask != 0 && thread.body.iter().any(|i| i.op.extended() == Some(op.name()))
    };
    // The thread with the lowest lanes does it for the warp.
    let lower = |t: usize| run.program.threads[t].place.lane() < own.lane();
    if own.mask != 0 && (0..run.program.threads.len()).any(|t| lower(t) && also(t)) {
        s.pc += 1;
        todo.push(s);
        return Ok(());
    }
    let ctas = both(run, op)?;
    let count = |s: &State, count: &Operand, exclusive: bool| {
        let n = low(run.operand(s, *count).0, 32);
        let most = columns::most(exclusive);
        (u32::try_from(n).map_or(most, |n| n.min(most)), !columns::countable(n, exclusive))
    };
    let (what, set, exclusive, (columns, wrong)) = match op {
        Tcgen05::Alloc { exclusive, columns: n, .. } => {
            let before = s.events.iter().filter(|e| e.seizes.as_ref().is_some_and(Seize::gets)).count();
            let slot = columns::slot(run.program, run.thread, before, ctas.len() == 2);
            let slot = slot.ok_or(Refusal::TooMany("allocations of tensor memory"))?;
            (Seizure::Get(slot), sets::TC_GET, *exclusive, count(&s, n, *exclusive))
        }
        Tcgen05::Dealloc { exclusive, addr, columns: n, .. } => {
            let at = run.operand(&s, *addr).0;
            let place = u32::try_from(at).ok().filter(|at| at >> 16 == 0).and_then(columns::of_column);
            (Seizure::Put(place), sets::TC_PUT, *exclusive, count(&s, n, *exclusive))
        }
        Tcgen05::Relinquish { .. } => (Seizure::Release, sets::TC_REL, false, (0, false)),
        Tcgen05::Load(_)
        | Tcgen05::Store(_)
        | Tcgen05::WaitLoad
        | Tcgen05::WaitStore
        | Tcgen05::Copy { .. }
        | Tcgen05::Shift { .. }
        | Tcgen05::Mma(_)
        | Tcgen05::Commit(_)
        | Tcgen05::FenceBefore
        | Tcgen05::FenceAfter => return Err(Refusal::Unsupported(format!("an allocation by {}", op.name()))),
    };
    let mut e = run.event(&s, bit(set), None);
    let seize = Seize { what, columns, exclusive, wrong, lanes: tensor::lanes_wrong(run, &s, op), ctas };
    let waits = seize.gets() || seize.pair();
    e.seizes = Some(seize);
    Runner::push(&mut s, e);
    if waits {
        run.end(s.clone(), Stop::AtBarrier, out);
    }
    if let (Tcgen05::Alloc { dst, .. }, Seizure::Get(slot)) = (op, what) {
        let (tags, scope) = store_tags(StoreOrder::Weak);
        let (pieces, address) = run.pieces(&s, Ty::U(32), 1, *dst, false, false)?;
        for piece in &pieces {
            let tags = tags | bit(sets::W) | bit(sets::M) | bit(sets::GEN) | bit(sets::TC_SLOT);
            let mut e = run.event(&s, tags, scope);
            e.address = address;
            run.place(&mut e, piece, Some(u128::from(columns::address(slot))));
            Runner::push(&mut s, e);
        }
    }
    s.pc += 1;
    todo.push(s);
    Ok(())
}

/// An event of an allocator in its candidate; `stuck`: its thread never gets past it.
#[derive(Clone, Copy, Debug)]
struct Use<'a> {
    at: At,
    seize: &'a Seize,
    stuck: bool,
}

fn uses<'a>(paths: &[&'a Path]) -> Vec<Use<'a>> {
    let mut out = Vec::new();
    for (t, path) in paths.iter().enumerate() {
        for (i, event) in path.kept().iter().enumerate() {
            let stuck = path.stop == Stop::AtBarrier && i + 1 == path.events.len();
            out.extend(event.seizes.as_ref().map(|seize| Use { at: (t, i), seize, stuck }));
        }
    }
    out
}

impl Scene<'_> {
    /// All ways in which the allocators can have worked, given how each path ends.
    pub(super) fn allocations(&self, paths: &[&Path]) -> Result<Vec<Phases>, Refusal> {
        let all = uses(paths);
        if all.is_empty() {
            return Ok(vec![Phases::default()]);
        }
        for a in all.iter().filter(|u| u.seize.pair() && u.seize.gets()) {
            if all.iter().any(|b| b.seize.gets() && b.seize.ctas[0] == a.seize.ctas[0] && b.at.0 != a.at.0) {
                return Err(Refusal::Unsupported("allocations of a pair by several warps of a CTA".into()));
            }
        }
        let collective = all.iter().any(|u| u.seize.pair() && !u.seize.gets());
        let modes: Vec<bool> = if collective {
            [(self.readings.alone, false), (self.readings.together, true)]
                .into_iter()
                .filter_map(|(may, mode)| may.then_some(mode))
                .collect()
        } else {
            vec![false]
        };
        let mut out = Vec::new();
        for together in modes {
            let mut ways = self.met(&all, together);
            let mut groups: BTreeSet<Vec<usize>> = BTreeSet::new();
            for u in &all {
                let mut ctas = u.seize.ctas.clone();
                ctas.sort_unstable();
                groups.insert(ctas);
            }
            for ctas in groups {
                let more = self.orders(&all, &ctas)?;
                ways = ways.iter().flat_map(|a| more.iter().map(move |b| a.joined(b))).collect();
            }
            out.extend(ways);
        }
        Ok(out)
    }

    /// Every way in which collective operations wait for each other, each for one that it meets; none if some path does
    /// not end that way.
    fn met(&self, all: &[Use<'_>], together: bool) -> Vec<Phases> {
        let mut out = vec![Phases::default()];
        for u in all.iter().filter(|u| u.seize.pair()) {
            let partners: Vec<&Use<'_>> = all.iter().filter(|v| u.seize.meets(v.seize)).collect();
            if !u.seize.gets() {
                out.iter_mut().for_each(|way| _ = way.phase.insert(u.at, u16::from(together)));
                if u.stuck != (together && partners.is_empty()) {
                    return Vec::new();
                }
                if !together {
                    continue;
                }
            }
            if u.stuck {
                continue;
            }
            if u.seize.gets() && partners.first().is_none_or(|v| v.stuck) {
                return Vec::new();
            }
            let with = |way: &Phases, v: &Use<'_>| {
                let mut way = way.clone();
                way.needs.insert((u.at, v.at));
                way
            };
            if !partners.is_empty() {
                out = out.iter().flat_map(|way| partners.iter().map(move |v| with(way, v))).collect();
            }
        }
        out
    }

    /// The orders in which an allocator, or those of a pair, can have worked.
    fn orders(&self, all: &[Use<'_>], ctas: &[usize]) -> Result<Vec<Phases>, Refusal> {
        let here: Vec<Use<'_>> =
            all.iter().copied().filter(|u| u.seize.ctas.iter().all(|c| ctas.contains(c))).collect();
        let alone = |u: &Use<'_>| u.seize.pair() && !all.iter().any(|v| u.seize.meets(v.seize));
        if !ctas.iter().any(|c| columns::contended(self.program, *c)) {
            let fits = here.iter().all(|u| !u.seize.gets() || u.stuck == alone(u));
            return Ok(if fits { vec![Phases::default()] } else { Vec::new() });
        }
        let todo: Vec<Use<'_>> =
            here.iter().copied().filter(|u| !u.stuck && u.seize.what != Seizure::Release).collect();
        let stuck = here.iter().filter(|u| u.stuck && u.seize.gets() && !alone(u));
        let mut waiting: Vec<Vec<&Seize>> = Vec::new();
        for u in stuck {
            let other = all.iter().filter(|v| u.seize.meets(v.seize)).map(|v| v.seize);
            waiting.push(std::iter::once(u.seize).chain(other).collect());
        }
        let mut out = Vec::new();
        self.extend(&todo, &mut Vec::new(), &waiting, &mut out)?;
        Ok(out)
    }

    fn extend(
        &self,
        todo: &[Use<'_>],
        done: &mut Vec<usize>,
        waiting: &[Vec<&Seize>],
        out: &mut Vec<Phases>,
    ) -> Result<(), Refusal> {
        let before: Vec<&Use<'_>> = done.iter().map(|i| &todo[*i]).collect();
        if done.len() == todo.len() {
            if !waiting.iter().any(|w| w.iter().all(|s| self.free(&before, s))) {
                out.push(ordered(&before));
            }
            return if out.len() > ORDERS { Err(Refusal::TooMany("orders of allocations")) } else { Ok(()) };
        }
        let ready = |i: usize, done: &[usize]| {
            let first =
                |j: usize| todo[j].at.0 != todo[i].at.0 || todo[j].at.1 >= todo[i].at.1 || done.contains(&j);
            !done.contains(&i) && (0..todo.len()).all(first)
        };
        for (i, next) in todo.iter().enumerate() {
            if !ready(i, done) {
                continue;
            }
            if next.seize.gets() && !self.free(&before, next.seize) {
                continue;
            }
            let mut step = vec![i];
            if next.seize.gets() && next.seize.pair() {
                // Both halves at once, from the first on.
                let half = (i + 1..todo.len()).find(|j| todo[*j].seize.meets(next.seize) && ready(*j, done));
                let Some(half) = half.filter(|h| self.free(&before, todo[*h].seize)) else { continue };
                step.push(half);
            }
            done.extend(&step);
            self.extend(todo, done, waiting, out)?;
            done.truncate(before.len());
        }
        Ok(())
    }

    /// Whether the columns of an allocation are free in its CTA after what happened before.
    fn free(&self, before: &[&Use<'_>], seize: &Seize) -> bool {
        let mut taken: BTreeMap<u32, (u32, u32, bool)> = BTreeMap::new();
        for u in before.iter().filter(|u| u.seize.ctas[0] == seize.ctas[0]) {
            match u.seize.what {
                Seizure::Get(slot) => {
                    taken.insert(slot, (u.seize.columns, u.seize.columns, u.seize.exclusive));
                }
                Seizure::Put(Some((slot, _))) => {
                    if let Some((whole, left, _)) = taken.get_mut(&slot) {
                        let back = if self.readings.partly { u.seize.columns } else { *whole };
                        *left = left.saturating_sub(back);
                    }
                }
                Seizure::Put(None) | Seizure::Release => {}
            }
        }
        let total: u32 = taken.values().map(|t| t.1).sum();
        let exclusively = taken.values().any(|t| t.2 && t.1 > 0);
        if seize.exclusive {
            total == 0
        } else {
            !exclusively && total + seize.columns <= columns::most(false)
        }
    }
}

/// Phases and needs that follow from one order of all operations.
fn ordered(order: &[&Use<'_>]) -> Phases {
    let mut out = Phases::default();
    let mut number: BTreeMap<usize, u16> = BTreeMap::new();
    for (i, u) in order.iter().enumerate().filter(|(_, u)| u.seize.gets()) {
        let turn = number.entry(u.seize.ctas[0]).or_insert(0);
        *turn += 1;
        if !u.seize.pair() {
            out.phase.insert(u.at, *turn);
        }
        out.needs.extend(order[..i].iter().filter(|b| b.at.0 != u.at.0).map(|b| (u.at, b.at)));
    }
    out
}

/// Flags that are raised in every order.
pub(super) fn wrongs(
    paths: &[&Path],
    readings: Readings,
    same_cta: &dyn Fn(usize, usize) -> bool,
) -> BTreeSet<&'static str> {
    let all = uses(paths);
    let mut out = BTreeSet::new();
    let find = |cta: usize, slot: u32| {
        let is = |u: &&Use<'_>| !u.stuck && u.seize.what == Seizure::Get(slot) && u.seize.ctas[0] == cta;
        all.iter().find(is).map(|u| u.seize)
    };
    let puts = |cta: usize, slot: u32| {
        let is =
            move |u: &&Use<'_>| u.seize.ctas[0] == cta && !u.seize.gets() && u.seize.slot() == Some(slot);
        all.iter().filter(is)
    };
    for u in &all {
        let s = u.seize;
        out.extend(s.lanes);
        let other = all.iter().any(|v| s.meets(v.seize) && v.seize.columns != s.columns);
        if s.wrong || other {
            out.insert(flag::COUNT);
        }
        match s.what {
            Seizure::Get(slot) if !u.stuck => {
                let over = (0..paths.len()).all(|t| !same_cta(t, s.ctas[0]) || paths[t].stop == Stop::Done);
                let part = |u: &Use<'_>| if readings.partly { u.seize.columns } else { s.columns };
                // Columns that its own thread had already given back are not given back again.
                let before = |v: &Use<'_>| v.at.0 == u.at.0 && v.at.1 < u.at.1;
                let given = puts(s.ctas[0], slot).filter(|v| !v.stuck && !before(v));
                let back: u32 = given.map(part).sum();
                if over && back < s.columns {
                    out.insert(flag::LEAK);
                }
            }
            Seizure::Put(place) => {
                let allocation =
                    place.and_then(|(slot, column)| Some((find(s.ctas[0], slot)?, slot, column)));
                let Some((whole, slot, column)) = allocation else {
                    out.insert(flag::UNALLOCATED);
                    continue;
                };
                let end = column + s.columns;
                let again = puts(s.ctas[0], slot).any(|v| {
                    let Seizure::Put(Some((_, theirs))) = v.seize.what else { return false };
                    let apart = theirs + v.seize.columns <= column || end <= theirs;
                    v.at != u.at && !(readings.partly && apart)
                });
                let exact = (column, s.columns) == (0, whole.columns);
                let fits = exact || (readings.partly && end <= whole.columns);
                if again {
                    out.insert(flag::UNALLOCATED);
                } else if !fits || whole.exclusive != s.exclusive {
                    out.insert(flag::DEALLOC);
                }
            }
            Seizure::Get(_) | Seizure::Release => {}
        }
    }
    for event in paths.iter().flat_map(|p| p.kept()).filter_map(|e| e.effect.as_ref()) {
        for (cta, slot, end) in event.allocated() {
            match find(cta, slot) {
                None => {
                    out.insert(flag::UNALLOCATED);
                }
                Some(whole) if end > whole.columns => {
                    out.insert(flag::COLUMNS);
                }
                Some(_) => {}
            }
        }
    }
    out
}
