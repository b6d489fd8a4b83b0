//! Runs asynchronous copies. Each box of a tensor map becomes its own place.
//!
//! If the kernel changes a tensor map in memory, copies keep their reads of it, and fences of the tensormap proxy stay. No
//! race can involve a map that is never written.

use super::place::Place;
use super::remote::remote;
use super::small::{grouped, small};
use super::told::assumed_alike;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::item::Content;
use crate::specialise::known::value::{Base, Val, Why};
use crate::specialise::practice::Practice;
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;

pub(super) fn copy(step: &mut Executing<'_, '_>, op: &AsyncCopy) -> Result<Then, Refusal> {
    if let AsyncCopy::Bulk(bulk) = op
        && let Some(groups) = apart(step, bulk)
    {
        // Lanes with addresses of their own.
        groups.into_iter().try_for_each(|lanes| copy(&mut step.only(lanes), op).map(drop))?;
        return Ok(Then::Next);
    }
    let mut made = Made::default();
    let mut new = op.clone();
    match &mut new {
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => grouped(step, op)?,
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => {}
        AsyncCopy::Prefetch(_) => {
            step.note("cp.async.bulk.prefetch is ignored: it has no effect on what other threads see");
            return Ok(Then::Next);
        }
        AsyncCopy::Arrive { space, addr, .. } => {
            grouped(step, op)?;
            let address = step.address(addr);
            *addr = made.touch(step.shared(*space, &address, MBARRIER_BYTES, Kind::Barrier)?);
        }
        AsyncCopy::Bulk(copy) => bulk(step, copy, &mut made)?,
        AsyncCopy::Small(copy) => return small(step, copy),
        AsyncCopy::Remote(write) => return remote(step, write),
    }
    step.leave(Op::AsyncCopy(new), made)
}

/// The lanes by the addresses of their copies, if these differ.
fn apart(step: &Executing<'_, '_>, bulk: &BulkCopy) -> Option<Vec<u32>> {
    let ends = [&bulk.dst, &bulk.src].into_iter();
    let ends = ends.filter_map(|end| if let BulkEnd::Bytes { addr, .. } = end { Some(addr) } else { None });
    let groups = ends.map(|addr| step.alike(&step.address(addr)));
    groups.into_iter().find(|groups| groups.len() > 1)
}

fn bulk(step: &mut Executing<'_, '_>, bulk: &mut BulkCopy, made: &mut Made) -> Result<(), Refusal> {
    if step.mask.count_ones() > 1 && !step.relies(Practice::Once) {
        return step.abstain("a bulk copy that several lanes of a warp issue, each for itself");
    }
    let bytes = match bulk.bytes {
        Some(b) => match step.number(b, "the size of a copy")? {
            Operand::Imm(n) => {
                bulk.bytes = Some(Operand::Imm(n));
                u32::try_from(n).ok()
            }
            _ => None,
        },
        // `residual::boxes` finds the size when all copies are known.
        None => None,
    };
    let reported = match &mut bulk.done {
        BulkDone::Mbarrier(addr) => {
            let address = step.address(addr);
            let mut touch = step.shared(Space::SharedCluster, &address, MBARRIER_BYTES, Kind::Barrier)?;
            if bulk.group.is_none() && matches!(bulk.dst, BulkEnd::Bytes { space: Space::SharedCta, .. }) {
                touch.mem = Mem::Shared(step.warp.here.cta);
            }
            let place = (touch.mem, touch.ranges[0].0);
            *addr = made.touch(touch);
            Some(place)
        }
        BulkDone::Group => None,
    };
    for end in [&mut bulk.dst, &mut bulk.src] {
        one_end(step, end, (bytes, reported), made)?;
    }
    arriving(step, bulk, bytes, &made.touches)?;
    if let Some(multicast) = &mut bulk.multicast {
        multicast.mask = step.number(multicast.mask, "a mask of CTAs")?;
    }
    if bulk.byte_mask.is_some() || bulk.ignored.is_some() {
        return step.abstain("a bulk copy of some bytes only");
    }
    Ok(())
}

/// Tells other warps which shared memory a copy of known size overwrites: no branch can depend on a number there.
fn arriving(
    step: &mut Executing<'_, '_>,
    bulk: &BulkCopy,
    bytes: Option<u32>,
    touches: &[Touch],
) -> Result<(), Refusal> {
    let BulkEnd::Bytes { addr: Address { base: Operand::Imm(n), .. }, .. } = bulk.dst else { return Ok(()) };
    let touch = usize::try_from(n).ok().and_then(|n| touches.get(n));
    let (Some(Touch { mem: Mem::Shared(own), ranges, .. }), Some(bytes)) = (touch, bytes) else {
        return Ok(());
    };
    for cta in step.receivers(*own, bulk.multicast.is_some()) {
        step.stored(cta, ranges[0].0, u64::from(bytes), Content::Opaque)?;
    }
    Ok(())
}

/// Resolves one side of a copy, given its size, if known, and the barrier that it reports to.
fn one_end(
    step: &mut Executing<'_, '_>,
    end: &mut BulkEnd,
    (bytes, reported): (Option<u32>, Option<(Mem, u64)>),
    made: &mut Made,
) -> Result<(), Refusal> {
    match end {
        BulkEnd::Bytes { space, addr } => {
            let address = step.address(addr);
            let kind = if bytes.is_some() { Kind::Async } else { Kind::Box { reported } };
            let touch = match step.place(*space, &address)? {
                Place::In(mem, at) => match at.one(step.mask) {
                    Some(at) => Touch::one(mem, at, bytes.unwrap_or(0), kind),
                    None => return step.abstain("a copy whose address differs from lane to lane"),
                },
                Place::Private => return step.abstain("a copy of private memory"),
            };
            *addr = made.touch(touch);
        }
        BulkEnd::Tensor(tensor) => {
            let (mem, at) = boxed(step, tensor)?;
            tensor.map = map_read(step, tensor)?.map(|touch| made.touch(touch));
            let addr = made.touch(Touch::one(mem, at, 0, Kind::Box { reported }));
            tensor.tile = Some(Tile { addr, bytes: 0 });
            let all = tensor.coordinates.iter_mut().chain(&mut tensor.offsets);
            all.for_each(|c| *c = Operand::Imm(0));
        }
    }
    Ok(())
}

/// The read of the tensor map, if a thread could change the map.
fn map_read(step: &Executing<'_, '_>, tensor: &TensorBox) -> Result<Option<Touch>, Refusal> {
    let Some(map) = tensor.map.as_ref().map(|m| step.address(m)) else { return Ok(None) };
    Ok(match step.place(Space::Generic, &map)? {
        Place::In(mem, at) => at.one(step.mask).map(|at| Touch::one(mem, at, TENSORMAP_BYTES, Kind::Map)),
        Place::Private => None,
    })
}

/// Runs fences of the tensormap proxy and changes of tensor maps. The new content of a field does not matter.
pub(super) fn tensormap(step: &mut Executing<'_, '_>, op: &ProxyOrder) -> Result<Then, Refusal> {
    let mut made = Made::default();
    let mut new = op.clone();
    let mut at = |space: Space, addr: &mut Address, kind: Kind| {
        let address = step.address(addr);
        match step.place(space, &address)? {
            Place::In(mem, at) => match at.one(step.mask) {
                Some(at) => *addr = made.touch(Touch::one(mem, at, TENSORMAP_BYTES, kind)),
                None => {
                    return step.abstain("a tensor map whose address differs from lane to lane");
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
        ProxyOrder::TensormapRelease { .. } | ProxyOrder::AsyncSpace(_) => true,
        ProxyOrder::AsyncRestricted { .. } | ProxyOrder::Restricted { .. } => true,
        ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => true,
    };
    // No thread can change a tensor map among the parameters.
    if seen { step.leave(Op::ProxyOrder(new), made) } else { Ok(Then::Next) }
}

/// Bits of the place of a box that its coordinates decide.
const PLACE_BITS: u32 = 39;
/// Bits of the bytes of a box: far enough apart for any of them.
const BOX_BITS: u32 = 20;
/// The place of a box whose coordinates are different each time. All boxes of its tensor map are put there (`every`).
pub(in crate::specialise) const SOME_BOX: u64 = 1 << (PLACE_BITS + 1 + BOX_BITS);

/// The place of a box, different for each map and each choice of coordinates: a hash of them, so that two boxes get one
/// place once in 2^39 pairs. A box with an unknown coordinate gets a place of its own. No race can be about it.
fn boxed(step: &mut Executing<'_, '_>, tensor: &TensorBox) -> Result<(Mem, u64), Refusal> {
    let map = tensor.map.as_ref().map(|m| step.address(m)).unwrap_or(Val::same(0));
    let which = match &map {
        Val::Known(l) => {
            let round = step.round();
            let map = round.kernel.map();
            let same = |at| round.launch.queued.map(map, round.launch.actual.same_map(map, at));
            l.one(step.mask).map(same)
        }
        Val::Based(Base::Param(n), l) => l.one(step.mask).map(|o| u64::from(*n) << 40 | o),
        Val::Based(Base::Variable(n), l) => l.one(step.mask).map(|o| (1 << 56) | u64::from(*n) << 40 | o),
        _ => None,
    };
    let Some(which) = which else {
        return step.abstain(format!("a tensor map that depends on {}", step.warp.reason(&map)));
    };
    // Words that are taken to be alike need not be.
    let alike = assumed_alike(step);
    let coordinates: Vec<Val> = tensor.coordinates.iter().map(|c| step.value(*c)).collect();
    let one = |c: &Val| c.known().and_then(|l| l.one(step.mask)).filter(|_| !alike);
    let known: Option<Vec<u64>> = coordinates.iter().map(one).collect();
    let place = match known {
        Some(all) => all.iter().fold(0, |at, c| mixed(at ^ (c & 0xffff_ffff))) >> (64 - PLACE_BITS),
        None if step.round().plan.is_some() && (alike || coordinates.iter().any(moves)) => {
            SOME_BOX >> BOX_BITS
        }
        None => {
            step.note(
                "a coordinate of a tensor map is unknown: it is assumed that no other box overlaps this one",
            );
            step.warp.unknown_boxes += 1;
            let warp = u64::from(step.warp.out.warp) & 0x3f_ffff;
            1 << PLACE_BITS | warp << 16 | step.warp.unknown_boxes & 0xffff
        }
    };
    Ok((Mem::Boxes(which), place << BOX_BITS))
}

/// Whether a coordinate may be another one each time a loop runs that is proved for every trip count.
fn moves(coordinate: &Val) -> bool {
    !matches!(coordinate, Val::Known(_) | Val::Unknown(Why::Param(..)))
}

/// Mixes the bits of a number (splitmix64, Steele, Lea, Flood, OOPSLA 2014).
fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
