//! Asynchronous copies with their operands filled in; boxes of tensor maps become places of their own.
//!
//! If the kernel changes a tensor map in memory, copies keep their reads of it and the tensormap proxy keeps its fences.
//! A map that nobody writes has no part in a race.

use super::Refusal;
use super::access::Place;
use super::effect::Made;
use super::heap::Content;
use super::layout::{Kind, Mem, Touch};
use super::run::{Item, Placed, State, Step, Stored, Warp};
use super::value::{Base, Val};
use moire_program::ir::*;

impl Warp<'_> {
    pub(super) fn copy(&mut self, state: &State, op: &AsyncCopy, mask: u32) -> Result<Step, Refusal> {
        let mut made = Made::default();
        let mut new = op.clone();
        match &mut new {
            AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => self.grouped(state, mask, op)?,
            AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => {}
            AsyncCopy::Prefetch(_) => {
                self.note(
                    self.line(state),
                    "cp.async.bulk.prefetch is ignored: it has no effect on what other threads see",
                );
                return Ok(Step::Next);
            }
            AsyncCopy::Arrive { space, addr, .. } => {
                self.grouped(state, mask, op)?;
                let address = self.address(state, addr);
                *addr =
                    made.touch(self.shared(state, *space, &address, MBARRIER_BYTES, mask, Kind::Barrier)?);
            }
            AsyncCopy::Bulk(bulk) => self.bulk(state, bulk, mask, &mut made)?,
            AsyncCopy::Small(small) => return self.small(state, small, mask),
            AsyncCopy::Remote(write) => return self.remote(state, write, mask),
        }
        self.leave(state, mask, Op::AsyncCopy(new), made)
    }

    fn bulk(
        &mut self,
        state: &State,
        bulk: &mut BulkCopy,
        mask: u32,
        made: &mut Made,
    ) -> Result<(), Refusal> {
        let bytes = match bulk.bytes {
            Some(b) => match self.number(state, b, mask, "the size of a copy")? {
                Operand::Imm(n) => {
                    bulk.bytes = Some(Operand::Imm(n));
                    u32::try_from(n).ok()
                }
                _ => None,
            },
            // As many as the barrier is told to expect; found out when all copies are known.
            None => None,
        };
        let reported = match &mut bulk.done {
            BulkDone::Mbarrier(addr) => {
                let address = self.address(state, addr);
                let mut touch =
                    self.shared(state, Space::SharedCluster, &address, MBARRIER_BYTES, mask, Kind::Barrier)?;
                if bulk.group.is_none() && matches!(bulk.dst, BulkEnd::Bytes { space: Space::SharedCta, .. })
                {
                    touch.mem = Mem::Shared(self.here.cta);
                }
                let place = (touch.mem, touch.ranges[0].0);
                *addr = made.touch(touch);
                Some(place)
            }
            BulkDone::Group => None,
        };
        for end in [&mut bulk.dst, &mut bulk.src] {
            self.end(state, end, (bytes, reported), mask, made)?;
        }
        self.overwritten(state, bulk, bytes, &made.touches);
        if let Some(multicast) = &mut bulk.multicast {
            multicast.mask = self.number(state, multicast.mask, mask, "a mask of CTAs")?;
        }
        if bulk.byte_mask.is_some() || bulk.ignored.is_some() {
            return self.abstain(state, "a bulk copy of some bytes only");
        }
        Ok(())
    }

    /// What a copy writes to shared memory is no number any branch may count on.
    fn overwritten(&mut self, state: &State, bulk: &BulkCopy, bytes: Option<u32>, touches: &[Touch]) {
        let BulkEnd::Bytes { addr: Address { base: Operand::Imm(n), .. }, .. } = bulk.dst else { return };
        let touch = usize::try_from(n).ok().and_then(|n| touches.get(n));
        let (Some(Touch { mem: Mem::Shared(own), ranges, .. }), Some(bytes)) = (touch, bytes) else { return };
        let (at, line) = (u32::try_from(ranges[0].0).unwrap_or(u32::MAX), self.line(state));
        let others = self.here.peers.iter().filter(|p| bulk.multicast.is_some() && *p != own);
        for cta in others.chain([own]).copied() {
            self.out.stores.push(Stored { cta, at, bytes, content: Content::Opaque, line });
        }
    }

    /// One side of a copy of so many bytes, if they are known, that reports to a barrier.
    fn end(
        &mut self,
        state: &State,
        end: &mut BulkEnd,
        (bytes, reported): (Option<u32>, Option<(Mem, u64)>),
        mask: u32,
        made: &mut Made,
    ) -> Result<(), Refusal> {
        match end {
            BulkEnd::Bytes { space, addr } => {
                let address = self.address(state, addr);
                let kind = if bytes.is_some() { Kind::Async } else { Kind::Box { reported } };
                let touch = match self.place(state, *space, &address, mask)? {
                    Place::In(mem, at) => match at.one(mask) {
                        Some(at) => Touch::one(mem, at, bytes.unwrap_or(0), kind),
                        None => return self.abstain(state, "a copy whose address differs from lane to lane"),
                    },
                    Place::Private => return self.abstain(state, "a copy of private memory"),
                };
                *addr = made.touch(touch);
            }
            BulkEnd::Tensor(tensor) => {
                let (mem, at) = self.boxed(state, tensor, mask)?;
                tensor.map = self.map_read(state, tensor, mask)?.map(|touch| made.touch(touch));
                let addr = made.touch(Touch::one(mem, at, 0, Kind::Box { reported }));
                tensor.tile = Some(Tile { addr, bytes: 0 });
                let all = tensor.coordinates.iter_mut().chain(&mut tensor.offsets);
                all.for_each(|c| *c = Operand::Imm(0));
            }
        }
        Ok(())
    }

    /// The tensor map, if it lies where a thread could change it.
    fn map_read(&self, state: &State, tensor: &TensorBox, mask: u32) -> Result<Option<Touch>, Refusal> {
        let Some(map) = tensor.map.as_ref().map(|m| self.address(state, m)) else { return Ok(None) };
        Ok(match self.place(state, Space::Generic, &map, mask)? {
            Place::In(mem, at) => at.one(mask).map(|at| Touch::one(mem, at, TENSORMAP_BYTES, Kind::Map)),
            Place::Private => None,
        })
    }

    /// Fences of the tensormap proxy and what changes tensor maps; the new content of a field is not looked at.
    pub(super) fn tensormap(&mut self, state: &State, op: &ProxyOrder, mask: u32) -> Result<Step, Refusal> {
        let mut made = Made::default();
        let mut new = op.clone();
        let mut at = |space: Space, addr: &mut Address, kind: Kind| {
            let address = self.address(state, addr);
            match self.place(state, space, &address, mask)? {
                Place::In(mem, at) => match at.one(mask) {
                    Some(at) => *addr = made.touch(Touch::one(mem, at, TENSORMAP_BYTES, kind)),
                    None => {
                        return self.abstain(state, "a tensor map whose address differs from lane to lane");
                    }
                },
                Place::Private => return Ok(false),
            }
            Ok(true)
        };
        let seen = match &mut new {
            ProxyOrder::TensormapAcquire { addr, .. } => at(Space::Generic, addr, Kind::Map)?,
            ProxyOrder::CopyTensormap { dst, src, .. } => {
                at(Space::SharedCta, src, Kind::Map)? && at(Space::Global, dst, Kind::Async)?
            }
            ProxyOrder::ReplaceTensormap { space, addr, value, .. } => {
                *value = Operand::Imm(0);
                at(*space, addr, Kind::Async)?
            }
            _ => true,
        };
        // Nobody changes a tensor map among the parameters.
        if seen { self.leave(state, mask, Op::ProxyOrder(new), made) } else { Ok(Step::Next) }
    }

    /// Which box of which map: a place of its own for each choice of coordinates.
    fn boxed(&mut self, state: &State, tensor: &TensorBox, mask: u32) -> Result<(Mem, u64), Refusal> {
        let map = tensor.map.as_ref().map(|m| self.address(state, m)).unwrap_or(Val::same(0));
        let which = match &map {
            Val::Known(l) => l.one(mask),
            Val::Based(Base::Param(n), l) => l.one(mask).map(|o| u64::from(*n) << 40 | o),
            Val::Based(Base::Variable(n), l) => l.one(mask).map(|o| (1 << 56) | u64::from(*n) << 40 | o),
            _ => None,
        };
        let Some(which) = which else {
            return self.abstain(state, format!("a tensor map that depends on {}", self.reason(&map)));
        };
        let mut at: u64 = 0;
        for c in &tensor.coordinates {
            let value = self.value(state, *c);
            let known = value.known().and_then(|l| l.one(mask));
            if known.is_none() {
                self.note(self.line(state), "a coordinate of a tensor map is not known: taken as 0");
            }
            at = at.wrapping_mul(0x1_0003).wrapping_add(known.unwrap_or(0) & 0xffff_ffff);
        }
        // Far enough apart for any box.
        Ok((Mem::Boxes(which), (at & 0xff_ffff_ffff) << 20))
    }
}

/// Tensor maps nobody writes have no part in any race: their reads and their fences go.
pub(super) fn drop_constant_maps(traces: &mut [Vec<Placed>]) {
    let touches = |item: &Item| match item {
        Item::Op { touches, .. } => touches.clone(),
        Item::Data { write: true, touch, .. } => vec![touch.clone()],
        _ => Vec::new(),
    };
    let written: Vec<Touch> =
        traces.iter().flatten().flat_map(|p| touches(&p.item)).filter(|t| t.kind.may_write()).collect();
    let meets = |t: &Touch, w: &Touch| {
        t.mem == w.mem && t.ranges.iter().any(|r| w.ranges.iter().any(|s| r.0 < s.1 && s.0 < r.1))
    };
    let constant = |t: &Touch| t.kind == Kind::Map && !written.iter().any(|w| meets(t, w));
    let mut kept = false;
    for placed in traces.iter_mut().flatten() {
        let Item::Op { op, touches } = &mut placed.item else { continue };
        let gone = |a: &Address| matches!(a.base, Operand::Imm(n) if usize::try_from(n).ok().and_then(|n| touches.get(n)).is_some_and(constant));
        if let Op::AsyncCopy(AsyncCopy::Bulk(copy)) = &mut **op {
            for end in [&mut copy.dst, &mut copy.src] {
                if let BulkEnd::Tensor(tensor) = end {
                    tensor.map = tensor.map.filter(|map| !gone(map));
                    kept |= tensor.map.is_some();
                }
            }
            touches.iter_mut().filter(|t| constant(t)).for_each(|t| t.ranges.clear());
        }
    }
    let fence = |p: &Placed| match &p.item {
        Item::Op { op, touches } => match &**op {
            Op::ProxyOrder(ProxyOrder::TensormapAcquire { .. }) => touches.iter().all(constant),
            Op::ProxyOrder(ProxyOrder::TensormapRelease { .. }) => !kept,
            _ => false,
        },
        _ => false,
    };
    traces.iter_mut().for_each(|t| t.retain(|p| !fence(p)));
}
