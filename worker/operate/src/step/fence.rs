//! Fences of memory and of proxies (PTX ISA 9.2, 9.7.13.4).

use super::launch::reach_out;
use super::mbarrier::include;
use super::memory::{access, overwritten};
use crate::carrier::{Carrier, Own, row};
use crate::engine::{At, Engine, deliver, span, vector};
use crate::finding::Stop;
use crate::record::{Access, AccessKind, Via, What};
use crate::rows::{add, both, without};
use crate::state::State;
use moire_program::ir::{Address, FenceOrder, Proxy, ProxyFence, ProxyOrder, Scope, Space, TENSORMAP_BYTES};

/// `fence` of an order and a scope.
pub(super) fn fence(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (order, scope): (FenceOrder, Scope),
) -> Result<(), Stop> {
    let (acquires, releases) = match order {
        FenceOrder::Acquire => (true, false),
        FenceOrder::Release => (false, true),
        FenceOrder::AcqRel => (true, true),
        FenceOrder::Sc => return Err(at.abstain("fence.sc")),
    };
    if acquires {
        acquire(e, s, at, scope);
    }
    if releases {
        release(e, s, at, scope);
    }
    Ok(())
}

/// `fence.proxy.*` without a space: the async proxy has a part here.
pub(super) fn proxies(e: &mut Engine<'_>, s: &mut State, at: At<'_>, kinds: &[ProxyFence]) {
    if kinds.contains(&ProxyFence::Of(Proxy::Async)) {
        let everything = vec![u64::MAX; s.rows.words];
        through(e, s, at, &everything);
    }
}

/// `fence.mbarrier_init`
pub(super) fn mbarrier_init(e: &Engine<'_>, s: &mut State, at: At<'_>) {
    let (first, own) = (e.carriers.thread(at.thread), e.carriers.own(at.thread, Own::Inits));
    s.rows.add_row(e.carriers.own(at.thread, Own::InitsFenced), own);
    let inits = both(&s.rows.get(first + row::BASE), &e.universe.sets.inits);
    s.rows.add(first + row::INITS, &inits);
}

fn release(e: &mut Engine<'_>, s: &mut State, at: At<'_>, scope: Scope) {
    let held = vector(e, s, e.carriers.thread(at.thread));
    let to = e.carriers.first(Carrier::Released(at.thread, scope));
    e.carriers.fences[at.thread].insert(scope);
    for level in row::BASE..e.carriers.vector() {
        s.rows.add(to + level, &held.get(level));
    }
}

fn acquire(e: &mut Engine<'_>, s: &mut State, at: At<'_>, scope: Scope) {
    let first = e.carriers.thread(at.thread);
    for class in e.carriers.taken[at.thread].clone() {
        let release = class.and_then(|c| c.release.map(|r| (r, c.cta)));
        if release.is_some_and(|r| !include(e, r, (scope, at.cta))) {
            continue;
        }
        let from = e.carriers.first(Carrier::Acquired(at.thread, class));
        for level in row::BASE..e.carriers.vector() {
            s.rows.add_row(first + level, from + level);
        }
    }
}

/// `fence.proxy.async` for the records in `covered`.
fn through(e: &mut Engine<'_>, s: &mut State, at: At<'_>, covered: &[u64]) {
    let first = e.carriers.thread(at.thread);
    let base = both(&s.rows.get(first + row::BASE), covered);
    let sets = &e.universe.sets;
    let near = if e.settings.stands_at_issue { &sets.issued[at.cta] } else { &sets.home[at.cta] };
    let left = both(&both(&base, &sets.asynchronous), near);
    let inits = both(&s.rows.get(first + row::BASE), &sets.inits);
    let mut passed = both(&base, &sets.generic);
    add(&mut passed, &both(&both(&base, &sets.copies), &sets.asynchronous));
    add(&mut passed, &both(&s.rows.get(first + row::LEFT), covered));
    add(&mut passed, &left);
    s.rows.add(first + row::LEFT, &left);
    s.rows.add(first + row::INITS, &inits);
    s.rows.add(first + e.carriers.fenced(at.cta), &passed);
}

/// Fences with a space, a direction or a range, and what changes tensor maps.
pub(super) fn ordered(e: &mut Engine<'_>, s: &mut State, at: At<'_>, order: &ProxyOrder) -> Result<(), Stop> {
    match order {
        ProxyOrder::AsyncSpace(space) => {
            let sets = &e.universe.sets;
            let covered = match space {
                Space::SharedCta => both(&sets.shared, &sets.home[at.cta]),
                Space::SharedCluster => sets.shared.clone(),
                _ => without(&sets.memory, &sets.shared),
            };
            through(e, s, at, &covered);
        }
        ProxyOrder::TensormapRelease { scope } => map_release(e, s, at, *scope),
        ProxyOrder::TensormapAcquire { scope, addr } => {
            let map = span(e, s, at, addr, TENSORMAP_BYTES)?;
            let first = e.carriers.thread(at.thread);
            let released = s.rows.get(first + row::MAPS);
            let mut here = vec![0; s.rows.words];
            for record in crate::rows::members(&released) {
                if matches!(&e.universe.keys[record].what, What::Memory(a) if a.span.meets(&map)) {
                    crate::rows::insert(&mut here, record);
                }
            }
            s.rows.add(first + e.carriers.mapped(at.cta), &here);
            acquire(e, s, at, *scope);
        }
        ProxyOrder::CopyTensormap { scope, dst, src } => {
            let from = span(e, s, at, src, TENSORMAP_BYTES)?;
            reach_out(e, s, at, &[e.layout.owner(&from)], "ld")?;
            let read = Access { span: from, writes: false, via: Via::Generic, part: AccessKind::Plain };
            access(e, s, at, &[read])?;
            map_written(e, s, at, dst)?;
            map_release(e, s, at, *scope);
        }
        ProxyOrder::ReplaceTensormap { addr, .. } => map_written(e, s, at, addr)?,
        ProxyOrder::AsyncRestricted { .. }
        | ProxyOrder::Restricted { .. }
        | ProxyOrder::AliasOneSided(_)
        | ProxyOrder::Fabric { .. } => return Err(at.abstain(order.name())),
    }
    Ok(())
}

fn map_release(e: &mut Engine<'_>, s: &mut State, at: At<'_>, scope: Scope) {
    let first = e.carriers.thread(at.thread);
    let sets = &e.universe.sets;
    let written = without(&both(&s.rows.get(first + row::BASE), &sets.generic), &sets.reads);
    s.rows.add(first + row::MAPS, &written);
    release(e, s, at, scope);
}

fn map_written(e: &mut Engine<'_>, s: &mut State, at: At<'_>, addr: &Address) -> Result<(), Stop> {
    let map = span(e, s, at, addr, TENSORMAP_BYTES)?;
    reach_out(e, s, at, &[e.layout.owner(&map)], "st")?;
    let write = Access { span: map, writes: true, via: Via::Generic, part: AccessKind::Plain };
    access(e, s, at, &[write])?;
    overwritten(e, s, &map);
    Ok(())
}

/// What a relaxed arrival at a cluster barrier hands on: inits that a `fence.mbarrier_init` follows.
pub(super) fn fenced_inits(e: &mut Engine<'_>, s: &mut State, thread: usize, cluster: usize) {
    let mut held = crate::rows::Rows::new(s.rows.words);
    let inits = s.rows.get(e.carriers.own(thread, Own::InitsFenced));
    held.add(row::BASE, &inits);
    held.add(row::INITS, &inits);
    deliver(e, s, Carrier::Cluster(cluster, false), &held);
}
