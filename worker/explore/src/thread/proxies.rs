//! Fences of the async and tensormap proxies that name a space, a side or a range, and what changes tensor maps.
//!
//! PTX ISA 9.2 to 9.4, fence page (membar / fence) and 9.7.9.28 (tensormap.replace). A one-sided fence takes part in
//! release and acquire patterns, so it is generic as well.

use super::event::Family;
use super::event::Kind;
use super::event::deps::Deps;
use super::event::fence::Covers;
use super::event::labels::{labels, scope_set};
use super::layout::Access;
use super::machine::Machine;
use super::trace::{TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_program::ir::*;

fn side_set(side: Side) -> usize {
    match side {
        Side::Acquire => sets::ACQ,
        Side::Release => sets::REL,
    }
}

pub(crate) fn proxy_order<V: View>(
    m: &mut Machine<'_, V>,
    op: &ProxyOrder,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let fence = [sets::F, sets::PF, sets::ASYNC];
    match op {
        ProxyOrder::AsyncSpace(space) => {
            let covers = match space {
                Space::SharedCta => Covers::Own,
                Space::SharedCluster => Covers::Shared,
                _ => Covers::Global,
            };
            let far = (*space == Space::SharedCluster).then_some(sets::PF_CLUSTER);
            let named: Vec<usize> = fence.into_iter().chain(far).collect();
            fence_of(m, &named, None, Some(covers), instr, pc);
        }
        ProxyOrder::AsyncRestricted { side, restrict, scope } => {
            let covers = if *restrict == Restrict::SharedCta { Covers::Own } else { Covers::Shared };
            let read = (*restrict == Restrict::SharedClusterRead).then_some(sets::PF_READ);
            let named = fence.into_iter().chain([sets::GEN, sets::PF_CLUSTER, side_set(*side)]).chain(read);
            let named: Vec<usize> = named.collect();
            fence_of(m, &named, Some(*scope), Some(covers), instr, pc);
        }
        ProxyOrder::Restricted { side, .. } => {
            let named = [sets::F, sets::MF, sets::GEN, sets::RESTRICTED, side_set(*side)];
            fence_of(m, &named, Some(Scope::Cluster), None, instr, pc);
        }
        ProxyOrder::TensormapRelease { scope } => {
            let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::REL];
            fence_of(m, &named, Some(*scope), None, instr, pc);
        }
        ProxyOrder::TensormapAcquire { scope, addr } => {
            let access = map_at(m, addr, instr)?;
            let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::ACQ];
            fence_of(m, &named, Some(*scope), Some(Covers::Bytes(access)), instr, pc);
        }
        ProxyOrder::CopyTensormap { scope, dst, src } => {
            let access = map_at(m, src, instr)?;
            let named = [sets::M, sets::R, sets::WEAK, sets::GEN];
            let mut read = m.blank(instr, pc, Kind::Fence, labels(&named), None);
            read.access = Some(access);
            m.events.push(Some(read));
            map_written(m, dst, instr, pc)?;
            let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::REL];
            fence_of(m, &named, Some(*scope), None, instr, pc);
        }
        ProxyOrder::ReplaceTensormap { addr, .. } => map_written(m, addr, instr, pc)?,
        ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => {
            return Err(TraceEnd::Unsupported(op.name().into(), instr.line));
        }
    }
    Ok(())
}

fn fence_of<V: View>(
    m: &mut Machine<'_, V>,
    named: &[usize],
    scope: Option<Scope>,
    covers: Option<Covers>,
    instr: &Instr,
    pc: usize,
) {
    let scoped: Vec<usize> = named.iter().copied().chain(scope.map(scope_set)).collect();
    let mut event = m.blank(instr, pc, Kind::Fence, labels(&scoped), scope);
    event.family = covers.map_or(Family::Plain, Family::Fence);
    m.events.push(Some(event));
}

fn map_at<V: View>(m: &Machine<'_, V>, addr: &Address, instr: &Instr) -> Result<Access, TraceEnd> {
    let address = m.address_now(addr)?;
    let access = m.layout.locate(m.program, address, TENSORMAP_BYTES);
    access.ok_or_else(|| TraceEnd::Unsupported("a tensor map outside every object".into(), instr.line))
}

/// A weak write, in program order, of a tensor map that nothing reads as data.
fn map_written<V: View>(
    m: &mut Machine<'_, V>,
    addr: &Address,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let address = m.address_now(addr)?;
    let access = m.layout.resolve(m.program, address, TENSORMAP_BYTES);
    let access = access
        .ok_or_else(|| TraceEnd::Unsupported("a tensor map outside every object".into(), instr.line))?;
    let named = [sets::M, sets::W, sets::WEAK, sets::GEN];
    let mut event = m.blank(instr, pc, Kind::Write, labels(&named), None);
    event.access = Some(access);
    (event.value, event.needs.data) = (Some(0), Deps::UNKNOWN);
    m.events.push(Some(event));
    Ok(())
}
