//! Fences of the async and tensormap proxies that name a space, a side or a range, and what changes tensor maps.
//!
//! PTX ISA 9.2 to 9.4, fence page (membar / fence) and 9.7.9.28 (tensormap.replace). A one-sided fence takes part in
//! release and acquire patterns, so it is generic as well.

use crate::copies::scope_set;
use crate::event::{Emitted, Kind, labels};
use crate::interp::{Machine, TraceEnd, View};
use crate::memory::Access;
use crate::unknown::mark;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;

/// The accesses a proxy fence is about; all of them where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// Memory other than shared.
    Global,
    /// Shared memory of the CTA of the fence.
    Own,
    /// All shared memory.
    Shared,
    /// These bytes.
    Bytes(Access),
}

/// Whether the fence `f` is about the access `x`; `own`: in the CTA of the fence.
pub(crate) fn covers(f: &Emitted, x: &Emitted, own: impl Fn(ThreadId) -> bool) -> bool {
    let Some(access) = x.access else { return false };
    if f.labels >> sets::PF & 1 == 0 {
        return false;
    }
    match f.covers {
        None => true,
        Some(Covers::Global) => x.owner.is_none(),
        Some(Covers::Own) => x.owner.is_some_and(own),
        Some(Covers::Shared) => x.owner.is_some(),
        Some(Covers::Bytes(range)) => range.overlaps(&access),
    }
}

fn side_set(side: Side) -> usize {
    match side {
        Side::Acquire => sets::ACQ,
        Side::Release => sets::REL,
    }
}

impl<V: View> Machine<'_, V> {
    pub(crate) fn proxy_order(&mut self, op: &ProxyOrder, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
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
                self.fence_of(&named, None, Some(covers), instr, pc);
            }
            ProxyOrder::AsyncRestricted { side, restrict, scope } => {
                let covers = if *restrict == Restrict::SharedCta { Covers::Own } else { Covers::Shared };
                let read = (*restrict == Restrict::SharedClusterRead).then_some(sets::PF_READ);
                let named =
                    fence.into_iter().chain([sets::GEN, sets::PF_CLUSTER, side_set(*side)]).chain(read);
                let named: Vec<usize> = named.collect();
                self.fence_of(&named, Some(*scope), Some(covers), instr, pc);
            }
            ProxyOrder::Restricted { side, .. } => {
                let named = [sets::F, sets::MF, sets::GEN, sets::RESTRICTED, side_set(*side)];
                self.fence_of(&named, Some(Scope::Cluster), None, instr, pc);
            }
            ProxyOrder::TensormapRelease { scope } => {
                let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::REL];
                self.fence_of(&named, Some(*scope), None, instr, pc);
            }
            ProxyOrder::TensormapAcquire { scope, addr } => {
                let access = self.map_at(addr, instr)?;
                let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::ACQ];
                self.fence_of(&named, Some(*scope), Some(Covers::Bytes(access)), instr, pc);
            }
            ProxyOrder::CopyTensormap { scope, dst, src } => {
                let access = self.map_at(src, instr)?;
                let named = [sets::M, sets::R, sets::WEAK, sets::GEN];
                let mut read = self.blank(instr, pc, Kind::Fence, labels(&named), None);
                read.access = Some(access);
                self.events.push(Some(read));
                self.map_written(dst, instr, pc)?;
                let named = [sets::F, sets::PF, sets::TMAP, sets::GEN, sets::REL];
                self.fence_of(&named, Some(*scope), None, instr, pc);
            }
            ProxyOrder::ReplaceTensormap { addr, .. } => self.map_written(addr, instr, pc)?,
            ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. } => {
                return Err(TraceEnd::Unsupported(op.name().into(), instr.line));
            }
        }
        Ok(())
    }

    fn fence_of(
        &mut self,
        named: &[usize],
        scope: Option<Scope>,
        covers: Option<Covers>,
        instr: &Instr,
        pc: usize,
    ) {
        let scoped: Vec<usize> = named.iter().copied().chain(scope.map(scope_set)).collect();
        let mut event = self.blank(instr, pc, Kind::Fence, labels(&scoped), scope);
        event.covers = covers;
        self.events.push(Some(event));
    }

    fn map_at(&self, addr: &Address, instr: &Instr) -> Result<Access, TraceEnd> {
        let address = self.address_now(addr)?;
        let access = self.layout.locate(self.program, address, TENSORMAP_BYTES);
        access.ok_or_else(|| TraceEnd::Unsupported("a tensor map outside every object".into(), instr.line))
    }

    /// A weak write, in program order, of a tensor map nobody reads as data.
    fn map_written(&mut self, addr: &Address, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let address = self.address_now(addr)?;
        let access = self.layout.resolve(self.program, address, TENSORMAP_BYTES);
        let access = access
            .ok_or_else(|| TraceEnd::Unsupported("a tensor map outside every object".into(), instr.line))?;
        let named = [sets::M, sets::W, sets::WEAK, sets::GEN];
        let mut event = self.blank(instr, pc, Kind::Write, labels(&named), None);
        event.access = Some(access);
        (event.value, event.data) = (Some(0), mark());
        self.events.push(Some(event));
        Ok(())
    }
}
