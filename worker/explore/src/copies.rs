//! Asynchronous copies as events: the issue, in program order; behind it the accesses and what tells of their completion.
//!
//! PTX ISA 9.2, 9.7.9.25 (copies, groups), 9.7.9.13 (`st.async`), 8.9.1; digest `ptx-memory-model.md` section 6. A read of
//! the source is an event without a source of its own, since its data is not kept; a write is a write, of unknown
//! data (`unknown`) unless it is a `st.async` or a `red.async`. The completion of a multicast copy in a CTA tells of the
//! bytes written there.
//!
//! `cp.async.mbarrier.arrive` without `.noinc` raises the pending count now and arrives later, which leaves the phase
//! open in between: one transaction expected now and completed later says the same.

use crate::event::*;
use crate::interp::{Machine, TraceEnd, View};
use crate::mbarrier::{Act, MbarUse, Object};
use crate::memory::Access;
use crate::unknown::{mark, must_know};
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use std::rc::Rc;

/// What an event has to do with asynchronous copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyUse {
    /// An access of one.
    Access {
        /// A write.
        writes: bool,
    },
    /// A wait for them, or what tells an mbarrier that they are complete.
    Follows {
        /// Which instructions of the thread.
        units: Vec<u16>,
        /// Only their reads.
        reads_only: bool,
        /// Only what is written in the CTA of this thread, and the reads.
        part: Option<ThreadId>,
    },
}

/// Whether `y` comes after the completion of the access `x` of the same thread.
pub(crate) fn tracked(x: &Emitted, y: &Emitted) -> bool {
    let Some(CopyUse::Access { writes }) = x.copy.as_deref() else { return false };
    let Some(CopyUse::Follows { units, reads_only, part }) = y.copy.as_deref() else { return false };
    units.contains(&x.unit) && !(*reads_only && *writes) && !(*writes && part.is_some() && *part != x.home)
}

/// Copies of one kind in the order of the thread: those not committed yet, and the groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    open: Vec<u16>,
    closed: Vec<Vec<u16>>,
}

impl Groups {
    pub(crate) fn add(&mut self, unit: u16) {
        self.open.push(unit);
    }

    pub(crate) fn commit(&mut self) {
        self.closed.push(std::mem::take(&mut self.open));
    }

    /// What is complete when at most so many groups are pending.
    pub(crate) fn complete(&self, pending: u32) -> Vec<u16> {
        let left = usize::try_from(pending).unwrap_or(usize::MAX);
        self.closed.iter().rev().skip(left).flatten().copied().collect()
    }

    fn all(&self) -> Vec<u16> {
        self.closed.iter().flatten().chain(&self.open).copied().collect()
    }
}

/// What a run knows of the copies so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    small: Groups,
    bulk: Groups,
    pub(crate) products: Groups,
}

/// Bytes an instruction of this family writes, as far as the text says; `None` when it does not.
pub(crate) fn written(op: &Op) -> Option<Vec<(Address, u32)>> {
    let sized = |o: &Operand| if let Operand::Imm(n) = o { u32::try_from(*n).ok() } else { None };
    Some(match op {
        Op::AsyncCopy(AsyncCopy::Small(copy)) => vec![(copy.dst, u32::from(copy.bytes))],
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => {
            let bytes = match (&copy.bytes, box_of(&copy.src).or(box_of(&copy.dst))) {
                (Some(bytes), _) => sized(bytes)?,
                (None, Some(tile)) => tile.bytes,
                (None, None) => return None,
            };
            match &copy.dst {
                BulkEnd::Bytes { addr, .. } => vec![(*addr, bytes)],
                BulkEnd::Tensor(tensor) => tensor.tile.iter().map(|t| (t.addr, t.bytes)).collect(),
            }
        }
        Op::AsyncCopy(AsyncCopy::Remote(write)) => {
            let size = write.ty.bytes();
            let elements = 0..u32::try_from(write.src.len()).ok()?;
            let at = |i: u32| i32::try_from(i * size).ok().and_then(|o| write.addr.offset.checked_add(o));
            elements.filter_map(|i| Some((Address { offset: at(i)?, ..write.addr }, size))).collect()
        }
        Op::Control(Control::TryCancel { addr, .. }) => vec![(*addr, CANCEL_BYTES)],
        Op::ProxyOrder(ProxyOrder::CopyTensormap { dst, .. }) => vec![(*dst, TENSORMAP_BYTES)],
        Op::ProxyOrder(ProxyOrder::ReplaceTensormap { addr, .. }) => vec![(*addr, TENSORMAP_BYTES)],
        _ => vec![],
    })
}

/// Whether an instruction may write memory of other CTAs than its addresses name.
pub(crate) fn spreads(op: &Op) -> bool {
    match op {
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) => copy.multicast.is_some(),
        Op::Control(Control::TryCancel { multicast, .. }) => *multicast,
        _ => false,
    }
}

fn box_of(end: &BulkEnd) -> Option<Tile> {
    if let BulkEnd::Tensor(tensor) = end { tensor.tile } else { None }
}

/// Bytes `try_cancel` writes.
const CANCEL_BYTES: u32 = 16;

/// Labels of an access of a copy.
const READ: [usize; 4] = [sets::COPY_ACCESS, sets::M, sets::R, sets::WEAK];
const WRITE: [usize; 3] = [sets::COPY_ACCESS, sets::M, sets::W];

/// Where a copy goes in one CTA.
struct Target {
    data: Value,
    mbarrier: Option<Value>,
}

impl<V: View> Machine<'_, V> {
    pub(crate) fn copy(&mut self, op: &AsyncCopy, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        match op {
            AsyncCopy::Small(copy) => return self.small_copy(copy, instr, pc),
            AsyncCopy::Commit => self.copies.small.commit(),
            AsyncCopy::BulkCommit => self.copies.bulk.commit(),
            AsyncCopy::Prefetch(_) => {}
            AsyncCopy::Wait(groups) => self.copy_wait(self.copies.small.complete(*groups), false, instr, pc),
            AsyncCopy::WaitAll => self.copy_wait(self.copies.small.all(), false, instr, pc),
            AsyncCopy::BulkWait { groups, reads_only } => {
                self.copy_wait(self.copies.bulk.complete(*groups), *reads_only, instr, pc);
            }
            AsyncCopy::Arrive { noinc, addr, .. } => return self.copy_arrive(*noinc, addr, instr, pc),
            AsyncCopy::Bulk(copy) => return self.bulk(copy, instr, pc),
            AsyncCopy::Remote(write) => return self.remote(write, instr, pc),
        }
        Ok(())
    }

    pub(crate) fn copy_wait(&mut self, units: Vec<u16>, reads_only: bool, instr: &Instr, pc: usize) {
        let mut event = self.blank(instr, pc, Kind::Fence, labels(&[sets::COPY_WAIT]), None);
        event.copy = Some(Rc::new(CopyUse::Follows { units, reads_only, part: None }));
        self.events.push(Some(event));
    }

    pub(crate) fn copy_issue(&mut self, named: &[usize], instr: &Instr, pc: usize) {
        let event = self.blank(instr, pc, Kind::Fence, labels(named), None);
        self.events.push(Some(event));
    }

    /// A value that must be known now.
    fn now(&self, operand: Operand) -> Result<Value, TraceEnd> {
        let state = self.operand(operand);
        state.value.ok_or(TraceEnd::Pending(state.deps))
    }

    pub(crate) fn address_now(&self, addr: &Address) -> Result<Value, TraceEnd> {
        let state = self.address(addr);
        state.value.ok_or(TraceEnd::Pending(state.deps))
    }

    fn wrong(&self, instr: &Instr, what: &str) -> TraceEnd {
        TraceEnd::Unsupported(what.into(), instr.line)
    }

    /// A detached read of the source, through the proxy of the set named.
    pub(crate) fn copy_read(
        &mut self,
        (address, bytes): (Value, u32),
        proxy: usize,
        instr: &Instr,
        pc: usize,
    ) -> Result<(), TraceEnd> {
        let access = self.layout.locate(self.program, address, bytes);
        let access = access.ok_or_else(|| self.wrong(instr, "a copy from outside every object"))?;
        let mut event = self.blank(instr, pc, Kind::Fence, labels(&READ) | labels(&[proxy]), None);
        event.addr = self.needs(instr);
        self.detach(&mut event, access, false);
        self.events.push(Some(event));
        Ok(())
    }

    /// A detached write of unknown data.
    pub(crate) fn copy_write(
        &mut self,
        (address, bytes): (Value, u32),
        named: &[usize],
        instr: &Instr,
        pc: usize,
    ) -> Result<(), TraceEnd> {
        let access = self.layout.resolve(self.program, address, bytes);
        let access = access.ok_or_else(|| self.wrong(instr, "a copy to outside every object"))?;
        let mut event = self.blank(instr, pc, Kind::Write, labels(&WRITE) | labels(named), None);
        (event.value, event.data) = (Some(0), mark());
        event.addr = self.needs(instr);
        self.detach(&mut event, access, true);
        self.events.push(Some(event));
        Ok(())
    }

    /// What the operands of an instruction depend on, data aside.
    fn needs(&self, instr: &Instr) -> Deps {
        must_know(instr).iter().fold([0; 4], |d, r| join(d, self.regs[r.index()].deps))
    }

    fn detach(&self, event: &mut Emitted, access: Access, writes: bool) {
        event.access = Some(access);
        event.home = self.layout.instances[access.instance as usize].owner;
        event.detached = true;
        event.copy = Some(Rc::new(CopyUse::Access { writes }));
    }

    /// A change of an mbarrier that this instruction causes, at once or later.
    fn copy_count(
        &mut self,
        address: Value,
        (arrivals, tx): (u32, i64),
        (named, scope): (&[usize], Scope),
        follows: Option<CopyUse>,
        (instr, pc): (&Instr, usize),
    ) -> Result<(), TraceEnd> {
        let access = self.layout.locate(self.program, address, MBARRIER_BYTES);
        let access = access.ok_or_else(|| self.wrong(instr, "an mbarrier outside every object"))?;
        if access.offset % MBARRIER_BYTES != 0 {
            return Err(self.wrong(instr, "an mbarrier that is not aligned to 8 bytes"));
        }
        let home = self.layout.instances[access.instance as usize].owner;
        if home.is_none() {
            return Err(self.wrong(instr, "an mbarrier outside shared memory"));
        }
        let object = Object { instance: access.instance, offset: access.offset };
        // Every lane issues the instruction.
        let lanes = self.lanes.count();
        let (arrivals, tx) = (arrivals * lanes, tx * i64::from(lanes));
        let act = Act::Add { arrivals, tx, drops: false, no_complete: false, returns: false };
        let kind = Kind::Mbarrier(MbarUse { object, act, fault: None });
        let scoped = scope_set(scope);
        let labels = labels(&[sets::MBAR, scoped]) | labels(named);
        let mut event = self.blank(instr, pc, kind, labels, Some(scope));
        event.access = Some(access);
        event.addr = self.needs(instr);
        event.detached = follows.is_some();
        event.home = home.filter(|_| event.detached);
        event.copy = follows.map(|mut f| {
            if let CopyUse::Follows { part: Some(part), .. } = &mut f {
                *part = home.unwrap_or(*part);
            }
            Rc::new(f)
        });
        self.events.push(Some(event));
        Ok(())
    }

    /// The transactions of this instruction complete at an mbarrier. Where that is the only one they are all of them,
    /// even if it is in another CTA than the data (`.cta_group::2`).
    fn complete(
        &mut self,
        address: Value,
        (bytes, only): (u32, bool),
        instr: &Instr,
        pc: usize,
    ) -> Result<(), TraceEnd> {
        let part = (!only).then_some(self.thread);
        let follows = CopyUse::Follows { units: vec![self.unit], reads_only: false, part };
        let named = [sets::MBAR_COMPLETE, sets::COPY_DONE, sets::REL];
        let place = (instr, pc);
        self.copy_count(address, (0, -i64::from(bytes)), (&named, Scope::Cluster), Some(follows), place)
    }

    fn bulk(&mut self, copy: &BulkCopy, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let bytes = match copy.bytes {
            Some(bytes) => u32::try_from(self.now(bytes)?).unwrap_or(u32::MAX),
            None => {
                let tile = box_of(&copy.src).or(box_of(&copy.dst));
                tile.ok_or_else(|| self.wrong(instr, "a box of a tensor of unknown size"))?.bytes
            }
        };
        if bytes == 0 {
            return Err(self.wrong(instr, "a copy of no bytes"));
        }
        let targets = self.targets(copy, instr)?;
        self.copy_issue(&[sets::COPY_ISSUE], instr, pc);
        for end in [&copy.src, &copy.dst] {
            if let BulkEnd::Tensor(TensorBox { map: Some(map), .. }) = end {
                let map = self.address_now(map)?;
                self.copy_read((map, TENSORMAP_BYTES), sets::TMAP, instr, pc)?;
            }
        }
        let source = self.end_now(&copy.src, instr)?;
        self.copy_read((source, bytes), sets::ASYNC, instr, pc)?;
        let order = match copy.relaxed {
            _ if copy.reduce.is_some() => vec![sets::WEAK, sets::COPY_REDUCE],
            None => vec![sets::WEAK],
            Some(scope) => vec![sets::RLX, scope_set(scope)],
        };
        let named = [order, vec![sets::ASYNC]].concat();
        for target in &targets {
            self.copy_write((target.data, bytes), &named, instr, pc)?;
            if let (Some(scope), Some(Some(event))) = (copy.relaxed, self.events.last_mut()) {
                event.scope = Some(scope);
            }
        }
        for target in &targets {
            match target.mbarrier {
                Some(mbarrier) => self.complete(mbarrier, (bytes, targets.len() == 1), instr, pc)?,
                None => self.copies.bulk.add(self.unit),
            }
        }
        Ok(())
    }

    fn end_now(&self, end: &BulkEnd, instr: &Instr) -> Result<Value, TraceEnd> {
        match end {
            BulkEnd::Bytes { addr, .. } => self.address_now(addr),
            BulkEnd::Tensor(tensor) => match &tensor.tile {
                Some(tile) => self.address_now(&tile.addr),
                None => Err(self.wrong(instr, "a box of a tensor at an unknown place")),
            },
        }
    }

    /// Destinations in the order of their CTAs.
    fn targets(&self, copy: &BulkCopy, instr: &Instr) -> Result<Vec<Target>, TraceEnd> {
        let data = self.end_now(&copy.dst, instr)?;
        let mbarrier = match &copy.done {
            BulkDone::Mbarrier(addr) => Some(self.address_now(addr)?),
            BulkDone::Group => None,
        };
        let Some(multicast) = copy.multicast else { return Ok(vec![Target { data, mbarrier }]) };
        let mask = self.now(multicast.mask)?;
        let ranks = if multicast.wide { 32 } else { 16 };
        (0..ranks)
            .filter(|rank| mask >> rank & 1 == 1)
            .map(|rank| self.target(data, mbarrier, rank, instr))
            .collect()
    }

    fn target(
        &self,
        data: Value,
        mbarrier: Option<Value>,
        rank: Value,
        instr: &Instr,
    ) -> Result<Target, TraceEnd> {
        let there = |address| self.layout.mapped(self.program, address, rank, self.thread);
        let lacks = || self.wrong(instr, "a copy to a CTA that is not there");
        let data = there(data).ok_or_else(lacks)?;
        let mbarrier = mbarrier.map(|m| there(m).ok_or_else(lacks)).transpose()?;
        Ok(Target { data, mbarrier })
    }

    fn small_copy(&mut self, copy: &SmallCopy, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let whole = u32::from(copy.bytes);
        let read = match copy.part {
            SmallPart::All => whole,
            SmallPart::Bytes(bytes) => u32::try_from(self.now(bytes)?).unwrap_or(whole).min(whole),
            SmallPart::IgnoredWhen(guard) => {
                let ignored = (self.now(Operand::Reg(guard.reg))? != 0) != guard.negated;
                if ignored { 0 } else { whole }
            }
        };
        let (dst, src) = (self.address_now(&copy.dst)?, self.address_now(&copy.src)?);
        self.copy_issue(&[sets::COPY_ISSUE], instr, pc);
        if read > 0 {
            self.copy_read((src, read), sets::GEN, instr, pc)?;
        }
        self.copy_write((dst, whole), &[sets::WEAK, sets::GEN], instr, pc)?;
        self.copies.small.add(self.unit);
        Ok(())
    }

    fn copy_arrive(&mut self, noinc: bool, addr: &Address, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let address = self.address_now(addr)?;
        let place = (instr, pc);
        let later = if noinc { (1, 0) } else { (0, -1) };
        if noinc {
            self.copy_issue(&[sets::COPY_ISSUE], instr, pc);
        } else {
            let named = [sets::MBAR_EXPECT, sets::RLX, sets::COPY_ISSUE];
            self.copy_count(address, (0, 1), (&named, Scope::Cta), None, place)?;
        }
        let follows = CopyUse::Follows { units: self.copies.small.all(), reads_only: false, part: None };
        let named = [sets::MBAR_ARRIVE, sets::COPY_DONE, sets::REL];
        self.copy_count(address, later, (&named, Scope::Cta), Some(follows), place)
    }

    fn remote(&mut self, write: &RemoteWrite, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        if write.op.is_some() && self.lanes.count() > 1 {
            return Err(self.wrong(instr, "a read-modify-write by several lanes at once"));
        }
        let mbarrier = match &write.order {
            RemoteOrder::Mbarrier(addr) => Some(self.address_now(addr)?),
            _ => None,
        };
        self.address_now(&write.addr)?;
        self.copy_issue(&[sets::COPY_ISSUE], instr, pc);
        let first = self.events.len();
        self.remote_accesses(write, instr, pc)?;
        for at in first..self.events.len() {
            let Some(mut event) = self.events[at].take() else { continue };
            self.remote_access(&mut event, instr);
            self.events[at] = Some(event);
        }
        let mut unsure = std::mem::take(&mut self.unsure);
        for event in unsure.iter_mut().filter(|e| e.unit == self.unit) {
            self.remote_access(event, instr);
        }
        self.unsure = unsure;
        let bytes = write.ty.bytes() * u32::try_from(write.src.len()).unwrap_or(u32::MAX);
        match mbarrier {
            Some(mbarrier) => self.complete(mbarrier, (bytes, true), instr, pc),
            None => Ok(()),
        }
    }

    fn remote_access(&self, event: &mut Emitted, instr: &Instr) {
        event.addr = join(event.addr, self.needs(instr));
        event.labels |= labels(&[sets::COPY_ACCESS]);
        if let Some(access) = event.access {
            self.detach(event, access, event.labels >> sets::W & 1 == 1);
        }
    }

    fn remote_accesses(&mut self, write: &RemoteWrite, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let (order, update, scope) = match write.order {
            RemoteOrder::Mbarrier(_) => (StoreOrder::Weak, RmwOrder::Relaxed, Scope::Cluster),
            RemoteOrder::Release(scope) => (StoreOrder::Release(scope), RmwOrder::Release, scope),
            RemoteOrder::MmioRelease => (StoreOrder::MmioRelease, RmwOrder::Release, Scope::Sys),
        };
        match write.op {
            None => {
                let labels = store_labels(order, Proxy::Generic);
                self.store(instr, pc, labels, write.space, write.ty, &write.src, &write.addr)
            }
            Some(op) => {
                let labels = rmw_labels(update, scope, Proxy::Generic, true);
                self.reduce(instr, pc, labels, scope, (op, write.ty, write.space), &write.addr, write.src[0])
            }
        }
    }

    /// Launch control, and what has no meaning here.
    pub(crate) fn launch_control(&mut self, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        match &instr.op {
            Op::Control(Control::TryCancel { multicast, addr, mbarrier, .. }) => {
                return self.try_cancel(*multicast, (addr, mbarrier), instr, pc);
            }
            Op::Control(Control::QueryCancel { dst, .. }) => self.forget(dst.iter().flatten().copied()),
            Op::Control(Control::Ignored(_) | Control::LaunchDependents | Control::WaitDependencies) => {}
            op => return Err(self.wrong(instr, op.extended().unwrap_or("this instruction"))),
        }
        Ok(())
    }

    /// `clusterlaunchcontrol.try_cancel`: the answer is written by the async proxy.
    pub(crate) fn try_cancel(
        &mut self,
        multicast: bool,
        (addr, mbarrier): (&Address, &Address),
        instr: &Instr,
        pc: usize,
    ) -> Result<(), TraceEnd> {
        let (data, mbarrier) = (self.address_now(addr)?, self.address_now(mbarrier)?);
        let mut targets = vec![Target { data, mbarrier: Some(mbarrier) }];
        if multicast {
            let ranks = (0..32).map_while(|rank| self.target(data, Some(mbarrier), rank, instr).ok());
            targets = ranks.collect();
        }
        self.copy_issue(&[sets::COPY_ISSUE], instr, pc);
        for target in &targets {
            self.copy_write((target.data, CANCEL_BYTES), &[sets::WEAK, sets::ASYNC], instr, pc)?;
        }
        for target in &targets {
            if let Some(mbarrier) = target.mbarrier {
                self.complete(mbarrier, (CANCEL_BYTES, targets.len() == 1), instr, pc)?;
            }
        }
        Ok(())
    }
}

/// The set of operations of a scope.
pub(crate) fn scope_set(scope: Scope) -> usize {
    match scope {
        Scope::Cta => sets::CTA,
        Scope::Cluster => sets::CLUSTER,
        Scope::Gpu => sets::GPU,
        Scope::Sys => sets::SYS,
    }
}
