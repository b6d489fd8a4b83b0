//! Asynchronous copies: their accesses, groups, and the transactions they report (PTX ISA 9.2, 9.7.9.25, 9.7.9.13).

use super::launch::{Unstarted, reaching};
use super::mbarrier::{How, alive, used};
use super::memory::{access, admits, overwritten};
use crate::carrier::{Carrier, Class, DEPTH, Group, row};
use crate::engine::{At, Engine, address, home, known, object_at, published};
use crate::finding::Stop;
use crate::layout::Span;
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Object, Via, What};
use crate::rows::{self, Rows, both};
use crate::state::{Added, Completion, State};
use moire_program::ir::{
    Address, AsyncCopy, BulkCopy, BulkDone, BulkEnd, CtaGroup, Operand, RemoteOrder, RemoteWrite, Scope,
    SmallCopy, SmallPart, TENSORMAP_BYTES, TensorBox,
};

/// Bytes of an answer of launch control.
const CANCEL_BYTES: u32 = 16;

/// Where a copy goes in one CTA.
struct Target {
    data: u128,
    done: Option<Object>,
}

/// An instruction of the family.
pub(super) fn copy(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &AsyncCopy) -> Result<(), Stop> {
    s.threads[at.thread].copies += u32::from(e.mode.instances);
    match op {
        AsyncCopy::Small(small) => small_copy(e, s, at, small),
        AsyncCopy::Commit => close(e, s, at, Group::Small),
        AsyncCopy::BulkCommit => close(e, s, at, Group::Bulk),
        AsyncCopy::Wait(groups) => await_groups(e, s, at, Group::Small, *groups + 1, false),
        AsyncCopy::WaitAll => await_groups(e, s, at, Group::Small, 0, false),
        AsyncCopy::BulkWait { groups, reads_only } => {
            await_groups(e, s, at, Group::Bulk, *groups + 1, *reads_only)
        }
        AsyncCopy::Arrive { noinc, addr, .. } => arrive(e, s, at, *noinc, addr),
        AsyncCopy::Bulk(bulk) => bulk_copy(e, s, at, bulk),
        AsyncCopy::Prefetch(_) => Ok(()),
        AsyncCopy::Remote(write) => remote(e, s, at, write),
    }
}

/// The bytes at an address, which must be there.
fn bytes_at(e: &Engine<'_>, at: At<'_>, value: u128, bytes: u32) -> Result<Span, Stop> {
    let span = e
        .layout
        .locate(value, bytes)
        .filter(|span| admits(moire_program::ir::Space::Generic, e.layout.space(span)));
    span.ok_or_else(|| at.abstain("a copy from or to outside every object"))
}

fn small_copy(e: &mut Engine<'_>, s: &mut State, at: At<'_>, copy: &SmallCopy) -> Result<(), Stop> {
    let whole = u32::from(copy.bytes);
    let read = match copy.part {
        SmallPart::All => whole,
        SmallPart::Bytes(bytes) => u32::try_from(known(e, s, at, bytes)?).unwrap_or(whole).min(whole),
        SmallPart::IgnoredWhen(guard) => {
            let ignored = (known(e, s, at, Operand::Reg(guard.reg))? != 0) != guard.negated;
            if ignored { 0 } else { whole }
        }
    };
    let mut accesses = Vec::new();
    if read > 0 {
        let span = bytes_at(e, at, address(e, s, at, &copy.src)?, read)?;
        accesses.push(Access { span, writes: false, via: Via::Generic, part: AccessKind::Copy });
    }
    let span = bytes_at(e, at, address(e, s, at, &copy.dst)?, whole)?;
    accesses.push(Access { span, writes: true, via: Via::Generic, part: AccessKind::Copy });
    grouped(e, s, at, &accesses, Group::Small)
}

/// Accesses that join the open group of a thread.
fn grouped(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    accesses: &[Access],
    group: Group,
) -> Result<(), Stop> {
    let open = e.carriers.first(Carrier::Copies(at.thread, group, 0));
    let owners: Vec<Option<usize>> = accesses.iter().map(|a| e.layout.owner(&a.span)).collect();
    if let Some(record) = reaching(e, s, at, &owners, ("copy", None), Unstarted::Lifetime)? {
        s.rows.set(open, record);
    }
    for record in access(e, s, at, accesses)? {
        s.rows.set(open, record);
    }
    written(e, s, accesses);
    Ok(())
}

fn written(e: &Engine<'_>, s: &mut State, accesses: &[Access]) {
    accesses.iter().filter(|a| a.writes).for_each(|a| overwritten(e, s, &a.span));
}

/// Closes the open group. The oldest two that are told apart become one.
pub(super) fn close(e: &mut Engine<'_>, s: &mut State, at: At<'_>, group: Group) -> Result<(), Stop> {
    let rows: Vec<usize> =
        (0..=DEPTH).map(|n| e.carriers.first(Carrier::Copies(at.thread, group, n))).collect();
    let last = rows.len() - 1;
    s.rows.add_row(rows[last], rows[last - 1]);
    for n in (1..last).rev() {
        let younger = s.rows.get(rows[n - 1]);
        s.rows.replace(rows[n], &younger);
    }
    s.rows.replace(rows[0], &vec![0; s.rows.words]);
    Ok(())
}

/// Waits for all groups but the `kept` youngest, the open one counted.
pub(super) fn await_groups(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    group: Group,
    kept: u32,
    reads_only: bool,
) -> Result<(), Stop> {
    if kept >= DEPTH {
        return Err(at.abstain("a wait that leaves eight groups or more"));
    }
    let first = e.carriers.thread(at.thread);
    let kept = if e.has(Planted::AllGroups) { 0 } else { kept };
    for n in kept..=DEPTH {
        let row = e.carriers.first(Carrier::Copies(at.thread, group, n));
        let mut done = s.rows.get(row);
        if reads_only {
            done = both(&done, &e.universe.sets.reads);
        }
        s.rows.add(first + row::BASE, &both(&done, &e.universe.sets.memory));
        s.rows.add(first + row::FACTS, &done);
        let left = rows::without(&s.rows.get(row), &done);
        s.rows.replace(row, &left);
    }
    Ok(())
}

/// `cp.async.mbarrier.arrive`: arrives when the copies so far are complete.
fn arrive(e: &mut Engine<'_>, s: &mut State, at: At<'_>, noinc: bool, addr: &Address) -> Result<(), Stop> {
    let value = address(e, s, at, addr)?;
    let of = object_at(e, at, value)?;
    if !alive(e, s, at, of, How::Ordinary)? {
        return Ok(());
    }
    let lanes = i64::from(at.lanes);
    let class = Class { scope: Scope::Cta, cta: at.cta, release: None };
    if !noinc {
        let mut vector = published(e, s, at.thread);
        (row::BASE..e.carriers.vector()).for_each(|l| vector.replace(l, &vec![0; s.rows.words]));
        let added = Added { arrivals: 0, tx: lanes, drops: false, observes: true };
        super::mbarrier::add(e, s, at.place(), of, vec![(class, vector)], added)?;
    }
    let mut vector = Rows::new(s.rows.words);
    vector.add(row::FACTS, &s.rows.get(e.carriers.thread(at.thread) + row::FACTS));
    for n in 0..=DEPTH {
        let row = e.carriers.first(Carrier::Copies(at.thread, Group::Small, n));
        vector.add(row::BASE, &s.rows.get(row));
        vector.add(row::FACTS, &s.rows.get(row));
    }
    // Copies that the thread has waited for are complete as well.
    let base = s.rows.get(e.carriers.thread(at.thread) + row::BASE);
    let own = both(&both(&base, &e.universe.sets.copies), &e.universe.sets.generic);
    for record in rows::members(&own) {
        if e.universe.keys[record].thread == at.thread {
            vector.set(row::BASE, record);
        }
    }
    let (arrivals, tx) = if noinc { (at.lanes, 0) } else { (0, -lanes) };
    let class = Class { release: Some(Scope::Cta), cta: stands(e, at, of), ..class };
    let added = Added { arrivals, tx, drops: false, observes: true };
    let completion = Completion { place: at.place(), of, class, added };
    finish(e, s, at, completion, vector).map(|_| ())
}

/// The CTA in which an asynchronous operation on an mbarrier stands for scopes (Q4).
pub(super) fn stands(e: &Engine<'_>, at: At<'_>, of: Object) -> usize {
    if e.settings.stands_at_issue { at.cta } else { home(e, of) }
}

/// Completes an asynchronous operation: at once, or later where every order is tried. Returns the record of the use.
pub(super) fn finish(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    completion: Completion,
    mut vector: Rows,
) -> Result<Option<usize>, Stop> {
    if !alive(e, s, at, completion.of, How::Detached)? {
        return Ok(None);
    }
    let used = used(e, s, at, completion.of, true)?;
    if let Some(record) = used {
        vector.set(row::BASE, record);
        vector.set(row::FACTS, record);
    }
    if e.mode.every_order || e.mode.schedule.late {
        s.pending.push((completion, vector));
        return Ok(used);
    }
    super::mbarrier::add(
        e,
        s,
        completion.place,
        completion.of,
        vec![(completion.class, vector)],
        completion.added,
    )?;
    Ok(used)
}

fn end_of(e: &Engine<'_>, s: &State, at: At<'_>, end: &BulkEnd) -> Result<u128, Stop> {
    match end {
        BulkEnd::Bytes { addr, .. } => address(e, s, at, addr),
        BulkEnd::Tensor(TensorBox { tile: Some(tile), .. }) => address(e, s, at, &tile.addr),
        BulkEnd::Tensor(_) => Err(at.abstain("a box of a tensor at an unknown place")),
    }
}

fn bulk_copy(e: &mut Engine<'_>, s: &mut State, at: At<'_>, copy: &BulkCopy) -> Result<(), Stop> {
    if copy.relaxed.is_some() {
        return Err(at.abstain("a bulk copy that is strong"));
    }
    let tile = |end: &BulkEnd| match end {
        BulkEnd::Tensor(TensorBox { tile, .. }) => tile.map(|t| t.bytes),
        BulkEnd::Bytes { .. } => None,
    };
    let bytes = match copy.bytes {
        Some(bytes) => u32::try_from(known(e, s, at, bytes)?).ok(),
        None => tile(&copy.src).or(tile(&copy.dst)),
    };
    let bytes = bytes.filter(|b| *b > 0).ok_or_else(|| at.abstain("a copy of unknown size"))?;
    let targets = targets(e, s, at, copy)?;
    let mut accesses = Vec::new();
    for end in [&copy.src, &copy.dst] {
        if let BulkEnd::Tensor(TensorBox { map: Some(map), .. }) = end {
            let span = bytes_at(e, at, address(e, s, at, map)?, TENSORMAP_BYTES)?;
            accesses.push(Access { span, writes: false, via: Via::Map, part: AccessKind::Copy });
        }
    }
    let span = bytes_at(e, at, end_of(e, s, at, &copy.src)?, bytes)?;
    accesses.push(Access { span, writes: false, via: Via::Async, part: AccessKind::Copy });
    let part = if copy.reduce.is_some() { AccessKind::Reduction } else { AccessKind::Copy };
    for target in &targets {
        let span = bytes_at(e, at, target.data, bytes)?;
        accesses.push(Access { span, writes: true, via: Via::Async, part });
    }
    if copy.done == BulkDone::Group {
        return grouped(e, s, at, &accesses, Group::Bulk);
    }
    reported(e, s, at, &accesses, &targets, bytes)
}

/// Accesses whose completion is reported to an mbarrier of each target.
fn reported(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    accesses: &[Access],
    targets: &[Target],
    bytes: u32,
) -> Result<(), Stop> {
    let mut vector = Rows::new(s.rows.words);
    let first = e.carriers.thread(at.thread);
    vector.add(row::FACTS, &s.rows.get(first + row::FACTS));
    if e.settings.cumulative_copies {
        (row::BASE..e.carriers.vector()).for_each(|l| vector.add(l, &s.rows.get(first + l)));
    }
    let reads = accesses.iter().filter(|a| !a.writes);
    let sources: Vec<Option<usize>> = reads.map(|a| e.layout.owner(&a.span)).collect();
    let mut reached = Vec::new();
    for target in targets {
        let written = bytes_at(e, at, target.data, 1)?;
        let owners = [&sources[..], &[e.layout.owner(&written), target.done.map(|d| home(e, d))]].concat();
        reached.push(reaching(e, s, at, &owners, ("copy", target.done), Unstarted::Lifetime)?);
    }
    let slots = settled_slots(e, s, at, accesses);
    let records = access(e, s, at, accesses)?;
    written(e, s, accesses);
    let only = targets.len() == 1;
    for (target, reached) in targets.iter().zip(reached) {
        let Some(of) = target.done else { continue };
        let there = e.layout.owner(&bytes_at(e, at, target.data, 1)?);
        let mut vector = vector.clone();
        reached.into_iter().for_each(|record| vector.set(row::FACTS, record));
        for record in &records {
            let What::Memory(access) = &e.universe.keys[*record].what else { continue };
            if e.has(Planted::EmptyCopy) {
                continue;
            }
            if only || !access.writes || e.layout.owner(&access.span) == there {
                vector.set(row::BASE, *record);
                vector.set(row::FACTS, *record);
            }
        }
        vector.add(e.carriers.fenced(home(e, of)), &slots);
        let class = Class { scope: Scope::Cluster, cta: stands(e, at, of), release: Some(Scope::Cluster) };
        let tx = -i64::from(bytes) * i64::from(at.lanes);
        let added = Added { arrivals: 0, tx, drops: false, observes: false };
        finish(e, s, at, Completion { place: at.place(), of, class, added }, vector)?;
    }
    Ok(())
}

/// Accesses to the address of an allocation that a copy overwrites in plain order (TQ32). What comes after the copy comes
/// after them.
fn settled_slots(e: &Engine<'_>, s: &State, at: At<'_>, accesses: &[Access]) -> Vec<u64> {
    let mut out = vec![0; s.rows.words];
    if !e.settings.slot_in_order {
        return out;
    }
    let known = both(&s.rows.get(e.carriers.thread(at.thread) + row::BASE), &e.universe.sets.slots);
    for record in rows::members(&both(&known, &s.live)) {
        let What::Memory(slot) = &e.universe.keys[record].what else { continue };
        if accesses.iter().any(|a| a.writes && a.span.meets(&slot.span)) {
            rows::insert(&mut out, record);
        }
    }
    out
}

fn targets(e: &Engine<'_>, s: &State, at: At<'_>, copy: &BulkCopy) -> Result<Vec<Target>, Stop> {
    let data = end_of(e, s, at, &copy.dst)?;
    let done = match &copy.done {
        BulkDone::Mbarrier(addr) => Some(address(e, s, at, addr)?),
        BulkDone::Group => None,
    };
    let Some(multicast) = copy.multicast else {
        let done = done.map(|d| object_at(e, at, d)).transpose()?;
        return Ok(vec![Target { data, done }]);
    };
    let mask = known(e, s, at, multicast.mask)?;
    let ranks = if multicast.wide { 32 } else { 16 };
    // In a pair the mbarrier of the CTA of the same parity is told as the one that the instruction names.
    let ours = |of: u128| (0..32).find(|rank| e.layout.mapped(of, *rank, at.thread) == Some(of));
    let parity = done.filter(|_| copy.group == Some(CtaGroup::Two)).and_then(ours).map(|rank| rank % 2);
    let teller = |rank: u128| parity.map_or(rank, |parity| rank - rank % 2 + parity);
    let named = (0..ranks).filter(|rank| mask >> rank & 1 == 1);
    named.map(|rank| there(e, at, (data, rank), done.map(|d| (d, teller(rank))))).collect()
}

/// The target of a copy: its destination and its mbarrier, each in the CTA of a rank.
fn there(e: &Engine<'_>, at: At<'_>, data: (u128, u128), done: Option<(u128, u128)>) -> Result<Target, Stop> {
    let lacks = || at.abstain("a copy to a CTA that is not there");
    let map = |(address, rank)| e.layout.mapped(address, rank, at.thread).ok_or_else(lacks);
    let done = done.map(|d| map(d).and_then(|d| object_at(e, at, d))).transpose()?;
    Ok(Target { data: map(data)?, done })
}

fn remote(e: &mut Engine<'_>, s: &mut State, at: At<'_>, write: &RemoteWrite) -> Result<(), Stop> {
    let RemoteOrder::Mbarrier(done) = &write.order else {
        return Err(at.abstain("an asynchronous store that is strong"));
    };
    if write.op.is_some() || write.ty.packed() {
        return Err(at.abstain("red.async"));
    }
    let each = write.ty.bytes();
    let count = u32::try_from(write.src.len()).unwrap_or(u32::MAX);
    let start = address(e, s, at, &write.addr)?;
    let mut accesses = Vec::new();
    for n in 0..count {
        let span = bytes_at(e, at, start + u128::from(each * n), each)?;
        if !admits(write.space, e.layout.space(&span)) {
            return Err(at.abstain("an address outside the state space of the access"));
        }
        accesses.push(Access { span, writes: true, via: Via::Generic, part: AccessKind::Copy });
    }
    let value = address(e, s, at, done)?;
    let targets = [Target { data: start, done: Some(object_at(e, at, value)?) }];
    reported(e, s, at, &accesses, &targets, each * count)
}

/// `clusterlaunchcontrol.try_cancel`, multicast or not: writes its answer and reports to an mbarrier.
pub(super) fn try_cancel(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (multicast, addr, mbarrier): (bool, &Address, &Address),
) -> Result<(), Stop> {
    s.threads[at.thread].copies += u32::from(e.mode.instances);
    let (data, done) = (address(e, s, at, addr)?, address(e, s, at, mbarrier)?);
    let targets = if multicast {
        let ranks = e.layout.clusters[at.cta].len() as u128;
        (0..ranks)
            .map(|rank| there(e, at, (data, rank), Some((done, rank))))
            .collect::<Result<Vec<_>, _>>()?
    } else {
        vec![Target { data, done: Some(object_at(e, at, done)?) }]
    };
    let mut accesses = Vec::new();
    for target in &targets {
        let span = bytes_at(e, at, target.data, CANCEL_BYTES)?;
        accesses.push(Access { span, writes: true, via: Via::Async, part: AccessKind::Copy });
    }
    reported(e, s, at, &accesses, &targets, CANCEL_BYTES)
}
