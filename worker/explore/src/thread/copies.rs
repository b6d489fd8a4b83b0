//! Asynchronous copies as events: the issue, in program order; behind it the accesses and what tells of their completion.
//!
//! PTX ISA 9.2, 9.7.9.25 (copies, groups), 9.7.9.13 (`st.async`), 8.9.1. A read of
//! the source is an event without a source of its own, since its data is not kept; a write is a write, of unknown
//! data (`event::deps`) unless it is a `st.async` or a `red.async`. The completion of a multicast copy in a CTA tells of the
//! bytes written there.
//!
//! `cp.async.mbarrier.arrive` without `.noinc` raises the pending count now and arrives later, which leaves the phase
//! open in between: one transaction expected now and completed later says the same.

use super::access;
use super::event::Family;
use super::event::copy::CopyUse;
use super::event::deps::Deps;
use super::event::labels::{labels, rmw_labels, scope_set, store_labels};
use super::event::mbarrier::{Act, MbarUse, Object};
use super::event::{Emitted, Kind};
use super::footprint::{CANCEL_BYTES, box_of};
use super::layout::Access;
use super::machine::Machine;
use super::rmw;
use super::trace::{TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use std::rc::Rc;

/// Labels of an access of a copy.
const READ: [usize; 4] = [sets::COPY_ACCESS, sets::M, sets::R, sets::WEAK];
const WRITE: [usize; 3] = [sets::COPY_ACCESS, sets::M, sets::W];

/// Where a copy goes in one CTA.
struct Target {
    data: Value,
    mbarrier: Option<Value>,
}

pub(crate) fn copy<V: View>(
    m: &mut Machine<'_, V>,
    op: &AsyncCopy,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    match op {
        AsyncCopy::Small(copy) => return small_copy(m, copy, instr, pc),
        AsyncCopy::Commit => m.copies.small.commit(),
        AsyncCopy::BulkCommit => m.copies.bulk.commit(),
        AsyncCopy::Prefetch(_) => {}
        AsyncCopy::Wait(groups) => copy_wait(m, m.copies.small.complete(*groups), false, instr, pc),
        AsyncCopy::WaitAll => copy_wait(m, m.copies.small.all(), false, instr, pc),
        AsyncCopy::BulkWait { groups, reads_only } => {
            copy_wait(m, m.copies.bulk.complete(*groups), *reads_only, instr, pc);
        }
        AsyncCopy::Arrive { noinc, addr, .. } => return copy_arrive(m, *noinc, addr, instr, pc),
        AsyncCopy::Bulk(copy) => return bulk(m, copy, instr, pc),
        AsyncCopy::Remote(write) => return remote(m, write, instr, pc),
    }
    Ok(())
}

pub(crate) fn copy_wait<V: View>(
    m: &mut Machine<'_, V>,
    units: Vec<u16>,
    reads_only: bool,
    instr: &Instr,
    pc: usize,
) {
    let mut event = m.blank(instr, pc, Kind::Fence, labels(&[sets::COPY_WAIT]), None);
    event.family = Family::Copy(Rc::new(CopyUse::Follows { units, reads_only, part: None }));
    m.events.push(Some(event));
}

pub(crate) fn copy_issue<V: View>(m: &mut Machine<'_, V>, named: &[usize], instr: &Instr, pc: usize) {
    let event = m.blank(instr, pc, Kind::Fence, labels(named), None);
    m.events.push(Some(event));
}

/// A detached read of the source, through the proxy of the set named.
pub(crate) fn copy_read<V: View>(
    m: &mut Machine<'_, V>,
    (address, bytes): (Value, u32),
    proxy: usize,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let access = m.layout.locate(m.program, address, bytes);
    let access = access.ok_or_else(|| m.wrong(instr, "a copy from outside every object"))?;
    let mut event = m.blank(instr, pc, Kind::Fence, labels(&READ) | labels(&[proxy]), None);
    event.needs.addr = m.needs(instr);
    detach(m, &mut event, access, false);
    m.events.push(Some(event));
    Ok(())
}

/// A detached write of unknown data.
pub(crate) fn copy_write<V: View>(
    m: &mut Machine<'_, V>,
    (address, bytes): (Value, u32),
    named: &[usize],
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let access = m.layout.resolve(m.program, address, bytes);
    let access = access.ok_or_else(|| m.wrong(instr, "a copy to outside every object"))?;
    let mut event = m.blank(instr, pc, Kind::Write, labels(&WRITE) | labels(named), None);
    (event.value, event.needs.data) = (Some(0), Deps::UNKNOWN);
    event.needs.addr = m.needs(instr);
    detach(m, &mut event, access, true);
    m.events.push(Some(event));
    Ok(())
}

fn detach<V: View>(m: &Machine<'_, V>, event: &mut Emitted, access: Access, writes: bool) {
    event.access = Some(access);
    event.ctas.home = m.layout.instances[access.instance].owner;
    event.detached = true;
    event.family = Family::Copy(Rc::new(CopyUse::Access { writes }));
}

/// A change of an mbarrier that this instruction causes, at once or later.
fn copy_count<V: View>(
    m: &mut Machine<'_, V>,
    address: Value,
    (arrivals, tx): (u32, i64),
    (named, scope): (&[usize], Scope),
    follows: Option<CopyUse>,
    (instr, pc): (&Instr, usize),
) -> Result<(), TraceEnd> {
    let access = m.layout.locate(m.program, address, MBARRIER_BYTES);
    let access = access.ok_or_else(|| m.wrong(instr, "an mbarrier outside every object"))?;
    if access.offset % MBARRIER_BYTES != 0 {
        return Err(m.wrong(instr, "an mbarrier that is not aligned to 8 bytes"));
    }
    let home = m.layout.instances[access.instance].owner;
    if home.is_none() {
        return Err(m.wrong(instr, "an mbarrier outside shared memory"));
    }
    let object = Object { instance: access.instance, offset: access.offset };
    // Every lane issues the instruction.
    let lanes = m.lanes.count();
    let (arrivals, tx) = (arrivals * lanes, tx * i64::from(lanes));
    let act = Act::Add { arrivals, tx, drops: false, no_complete: false, returns: false };
    let kind = Kind::Mbarrier(MbarUse { object, act, fault: None });
    let scoped = scope_set(scope);
    let labels = labels(&[sets::MBAR, scoped]) | labels(named);
    let mut event = m.blank(instr, pc, kind, labels, Some(scope));
    event.access = Some(access);
    event.needs.addr = m.needs(instr);
    event.detached = follows.is_some();
    event.ctas.home = home.filter(|_| event.detached);
    if let Some(follows) = follows {
        event.family = Family::Copy(Rc::new(follows));
    }
    m.events.push(Some(event));
    Ok(())
}

/// The transactions of this instruction complete at an mbarrier. Where it is told to several mbarriers, `of` is the destination
/// that this one is told about; otherwise it tells of everything. The data may be in another CTA (`.cta_group::2`).
fn complete<V: View>(
    m: &mut Machine<'_, V>,
    address: Value,
    (bytes, of): (u32, Option<Value>),
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let owner = |at| m.layout.instances[m.layout.locate(m.program, at, 1)?.instance].owner;
    let part = of.and_then(owner);
    let follows = CopyUse::Follows { units: vec![m.unit], reads_only: false, part };
    let named = [sets::MBAR_COMPLETE, sets::COPY_DONE, sets::REL];
    let place = (instr, pc);
    copy_count(m, address, (0, -i64::from(bytes)), (&named, Scope::Cluster), Some(follows), place)
}

fn bulk<V: View>(m: &mut Machine<'_, V>, copy: &BulkCopy, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
    let bytes = match copy.bytes {
        Some(bytes) => u32::try_from(m.now(bytes)?)
            .map_err(|_| m.wrong(instr, "a copy of more bytes than any object has"))?,
        None => {
            let tile = box_of(&copy.src).or(box_of(&copy.dst));
            tile.ok_or_else(|| m.wrong(instr, "a box of a tensor of unknown size"))?.bytes
        }
    };
    if bytes == 0 {
        return Err(m.wrong(instr, "a copy of no bytes"));
    }
    let targets = targets(m, copy, instr)?;
    copy_issue(m, &[sets::COPY_ISSUE], instr, pc);
    for end in [&copy.src, &copy.dst] {
        if let BulkEnd::Tensor(TensorBox { map: Some(map), .. }) = end {
            let map = m.address_now(map)?;
            copy_read(m, (map, TENSORMAP_BYTES), sets::TMAP, instr, pc)?;
        }
    }
    let source = end_now(m, &copy.src, instr)?;
    copy_read(m, (source, bytes), sets::ASYNC, instr, pc)?;
    let order = match copy.relaxed {
        _ if copy.reduce.is_some() => vec![sets::WEAK, sets::COPY_REDUCE],
        None => vec![sets::WEAK],
        Some(scope) => vec![sets::RLX, scope_set(scope)],
    };
    let named = [order, vec![sets::ASYNC]].concat();
    for target in &targets {
        copy_write(m, (target.data, bytes), &named, instr, pc)?;
        if let (Some(scope), Some(Some(event))) = (copy.relaxed, m.events.last_mut()) {
            event.scope = Some(scope);
        }
    }
    let several = targets.len() > 1;
    for target in &targets {
        match target.mbarrier {
            Some(mbarrier) => complete(m, mbarrier, (bytes, several.then_some(target.data)), instr, pc)?,
            None => m.copies.bulk.add(m.unit),
        }
    }
    Ok(())
}

fn end_now<V: View>(m: &Machine<'_, V>, end: &BulkEnd, instr: &Instr) -> Result<Value, TraceEnd> {
    match end {
        BulkEnd::Bytes { addr, .. } => m.address_now(addr),
        BulkEnd::Tensor(tensor) => match &tensor.tile {
            Some(tile) => m.address_now(&tile.addr),
            None => Err(m.wrong(instr, "a box of a tensor at an unknown place")),
        },
    }
}

/// Destinations in the order of their CTAs.
fn targets<V: View>(m: &Machine<'_, V>, copy: &BulkCopy, instr: &Instr) -> Result<Vec<Target>, TraceEnd> {
    let data = end_now(m, &copy.dst, instr)?;
    let mbarrier = match &copy.done {
        BulkDone::Mbarrier(addr) => Some(m.address_now(addr)?),
        BulkDone::Group => None,
    };
    let Some(multicast) = copy.multicast else { return Ok(vec![Target { data, mbarrier }]) };
    let mask = m.now(multicast.mask)?;
    let ranks = if multicast.wide { 32 } else { 16 };
    let pair = copy.group == Some(CtaGroup::Two);
    (0..ranks)
        .filter(|rank| mask >> rank & 1 == 1)
        .map(|rank| target(m, data, (mbarrier, pair), rank, instr))
        .collect()
}

/// The destination in the CTA of a rank, and the mbarrier there. Of a pair it is that of the CTA whose rank is odd, or even, as
/// the rank of the CTA in which the mbarrier of the operand lies (PTX ISA 9.2, 9.7.9.27.1.2).
fn target<V: View>(
    m: &Machine<'_, V>,
    data: Value,
    (mbarrier, pair): (Option<Value>, bool),
    rank: Value,
    instr: &Instr,
) -> Result<Target, TraceEnd> {
    let there = |address, rank| m.layout.mapped(m.program, address, rank, m.thread);
    let lacks = || m.wrong(instr, "a copy to a CTA that is not there");
    let data = there(data, rank).ok_or_else(lacks)?;
    let parity = |of: Value| (0..32).find(|rank| there(of, *rank) == Some(of)).map(|rank| rank & 1);
    let of = |at: Value| if pair { rank & !1 | parity(at).unwrap_or(rank & 1) } else { rank };
    let mbarrier = mbarrier.map(|m| there(m, of(m)).ok_or_else(lacks)).transpose()?;
    Ok(Target { data, mbarrier })
}

fn small_copy<V: View>(
    m: &mut Machine<'_, V>,
    copy: &SmallCopy,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let whole = u32::from(copy.bytes);
    let read = match copy.part {
        SmallPart::All => whole,
        SmallPart::Bytes(bytes) => u32::try_from(m.now(bytes)?).unwrap_or(whole).min(whole),
        SmallPart::IgnoredWhen(guard) => {
            let ignored = (m.now(Operand::Reg(guard.reg))? != 0) != guard.negated;
            if ignored { 0 } else { whole }
        }
    };
    let (dst, src) = (m.address_now(&copy.dst)?, m.address_now(&copy.src)?);
    copy_issue(m, &[sets::COPY_ISSUE], instr, pc);
    if read > 0 {
        copy_read(m, (src, read), sets::GEN, instr, pc)?;
    }
    copy_write(m, (dst, whole), &[sets::WEAK, sets::GEN], instr, pc)?;
    m.copies.small.add(m.unit);
    Ok(())
}

fn copy_arrive<V: View>(
    m: &mut Machine<'_, V>,
    noinc: bool,
    addr: &Address,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let address = m.address_now(addr)?;
    let place = (instr, pc);
    let later = if noinc { (1, 0) } else { (0, -1) };
    if noinc {
        copy_issue(m, &[sets::COPY_ISSUE], instr, pc);
    } else {
        let named = [sets::MBAR_EXPECT, sets::RLX, sets::COPY_ISSUE];
        copy_count(m, address, (0, 1), (&named, Scope::Cta), None, place)?;
    }
    let follows = CopyUse::Follows { units: m.copies.small.all(), reads_only: false, part: None };
    let named = [sets::MBAR_ARRIVE, sets::COPY_DONE, sets::REL];
    copy_count(m, address, later, (&named, Scope::Cta), Some(follows), place)
}

fn remote<V: View>(
    m: &mut Machine<'_, V>,
    write: &RemoteWrite,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    if write.op.is_some() && m.lanes.count() > 1 {
        return Err(m.wrong(instr, "a read-modify-write by several lanes at once"));
    }
    let mbarrier = match &write.order {
        RemoteOrder::Mbarrier(addr) => Some(m.address_now(addr)?),
        _ => None,
    };
    m.address_now(&write.addr)?;
    copy_issue(m, &[sets::COPY_ISSUE], instr, pc);
    let first = m.events.len();
    remote_accesses(m, write, instr, pc)?;
    for at in first..m.events.len() {
        let Some(mut event) = m.events[at].take() else { continue };
        remote_access(m, &mut event, instr);
        m.events[at] = Some(event);
    }
    let mut unsure = std::mem::take(&mut m.unsure);
    for event in unsure.iter_mut().filter(|e| e.unit == m.unit) {
        remote_access(m, event, instr);
    }
    m.unsure = unsure;
    let bytes = write.ty.bytes() * u32::try_from(write.src.len()).expect("a vector has few elements");
    match mbarrier {
        Some(mbarrier) => complete(m, mbarrier, (bytes, None), instr, pc),
        None => Ok(()),
    }
}

fn remote_access<V: View>(m: &Machine<'_, V>, event: &mut Emitted, instr: &Instr) {
    event.needs.addr = event.needs.addr.with(m.needs(instr));
    event.labels |= labels(&[sets::COPY_ACCESS]);
    if let Some(access) = event.access {
        detach(m, event, access, event.labels >> sets::W & 1 == 1);
    }
}

fn remote_accesses<V: View>(
    m: &mut Machine<'_, V>,
    write: &RemoteWrite,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let (order, update, scope) = match write.order {
        RemoteOrder::Mbarrier(_) => (StoreOrder::Weak, RmwOrder::Relaxed, Scope::Cluster),
        RemoteOrder::Release(scope) => (StoreOrder::Release(scope), RmwOrder::Release, scope),
        RemoteOrder::MmioRelease => (StoreOrder::MmioRelease, RmwOrder::Release, Scope::Sys),
    };
    match write.op {
        None => {
            let labels = store_labels(order, Proxy::Generic);
            access::store(m, instr, pc, labels, write.space, write.ty, &write.src, &write.addr)
        }
        Some(op) => {
            let labels = rmw_labels(update, scope, Proxy::Generic, true);
            rmw::reduce(m, instr, pc, labels, scope, (op, write.ty, write.space), &write.addr, write.src[0])
        }
    }
}

/// Launch control, and what has no meaning here.
pub(crate) fn launch_control<V: View>(
    m: &mut Machine<'_, V>,
    control: &Control,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    match control {
        Control::TryCancel { multicast, addr, mbarrier, .. } => {
            return try_cancel(m, *multicast, (addr, mbarrier), instr, pc);
        }
        Control::QueryCancel { dst, .. } => m.forget(dst.iter().flatten().copied()),
        Control::WaitDependencies => {
            if m.program.starts_early(&m.program.threads[m.thread.index()].place) {
                let event = m.blank(instr, pc, Kind::Fence, labels(&[sets::GRID_WAIT]), None);
                m.events.push(Some(event));
            }
        }
        Control::Ignored(_) | Control::LaunchDependents => {}
        Control::Elect { .. } | Control::Collective(_) | Control::Repeat(_) | Control::EndRepeat => {
            return Err(m.wrong(instr, control.name()));
        }
    }
    Ok(())
}

/// `clusterlaunchcontrol.try_cancel`: the answer is written by the async proxy.
pub(crate) fn try_cancel<V: View>(
    m: &mut Machine<'_, V>,
    multicast: bool,
    (addr, mbarrier): (&Address, &Address),
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let (data, mbarrier) = (m.address_now(addr)?, m.address_now(mbarrier)?);
    let mut targets = vec![Target { data, mbarrier: Some(mbarrier) }];
    if multicast {
        let ranks = (0..32).map_while(|rank| target(m, data, (Some(mbarrier), false), rank, instr).ok());
        targets = ranks.collect();
    }
    copy_issue(m, &[sets::COPY_ISSUE], instr, pc);
    for target in &targets {
        copy_write(m, (target.data, CANCEL_BYTES), &[sets::WEAK, sets::ASYNC], instr, pc)?;
    }
    let several = targets.len() > 1;
    for target in &targets {
        if let Some(mbarrier) = target.mbarrier {
            complete(m, mbarrier, (CANCEL_BYTES, several.then_some(target.data)), instr, pc)?;
        }
    }
    Ok(())
}
