//! Places in memory: resolves addresses of a state space.

use super::Executing;
use crate::Refusal;
use crate::specialise::known::line::memory;
use crate::specialise::known::map::{LOCALS, PARAMS, RANK_SHIFT, SHARED_WINDOW};
use crate::specialise::known::region::{END, Regions};
use crate::specialise::known::value::{Base, Lanes, Val, Why, lanes};
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::Space;

/// The place of a copy whose address is another one each time. All else that touches this memory is put there, too
/// (`every`).
pub(in crate::specialise) const SOMEWHERE: u64 = END / 2;

/// The memory that the addresses of lanes name.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Memory that other warps see, with the offset of each lane.
    In(Mem, Lanes),
    /// Parameters and local memory, which no other lane sees.
    Private,
}

impl Executing<'_, '_> {
    /// The CTA with this rank in the cluster.
    fn peer(&self, rank: u64) -> Option<u32> {
        usize::try_from(rank).ok().and_then(|r| self.warp.here.peers.get(r)).copied()
    }

    pub(super) fn regions(&self) -> &Regions {
        self.round().kernel.regions()
    }

    /// Whether a guard depends on what this statement loads.
    pub(super) fn steers(&self) -> bool {
        self.regions().steering.contains(&self.state.pc)
    }

    /// The bytes among which those of an access are whose address data decides.
    pub(super) fn somewhere(&self, value: &Val) -> Option<(Mem, u64, u64)> {
        if let Val::Based(Base::Behind(n), _) = value {
            return Some((Mem::Param(*n), 0, END));
        }
        let Val::Unknown(Why::Word(..) | Why::Loaded(_) | Why::Computed(_) | Why::Ticket { .. }) = value
        else {
            return None;
        };
        let (mem, start, end) = *self.regions().of.get(&self.state.pc)?;
        let mem = self.round().launch.memory(mem);
        let own = if mem.cta().is_some() { Mem::Shared(self.warp.here.cta) } else { mem };
        Some((own, start, end))
    }

    /// The same bytes of each CTA of the cluster, if `mapa` made the address.
    pub(super) fn peers(&self, (mem, start, end): (Mem, u64, u64)) -> Vec<(Mem, u64, u64)> {
        match self.regions().ranks.contains_key(&self.state.pc) {
            true => self.warp.here.peers.iter().map(|cta| (Mem::Shared(*cta), start, end)).collect(),
            false => vec![(mem, start, end)],
        }
    }

    /// Whether data decides in which CTA the address is, if `mapa` made it.
    pub(super) fn any_peer(&self) -> bool {
        let ranks = self.regions().ranks.get(&self.state.pc);
        ranks.is_none_or(|all| all.iter().all(|rank| matches!(self.value(*rank), Val::Unknown(_))))
    }

    /// Says that data decides the address of the statement.
    pub(super) fn anywhere(&mut self, address: &Val) {
        let (line, why) = (self.line(), self.warp.reason(address));
        self.note(format!("line {line} accesses any place of its memory: which one depends on {why}"));
    }

    /// The lanes of the step by what they have: a mask for each value, or one if the value is not known.
    pub(super) fn alike(&self, value: &Val) -> Vec<u32> {
        let (Val::Known(each) | Val::Based(_, each)) = value else { return vec![self.mask] };
        let mut out: Vec<(u64, u32)> = Vec::new();
        for lane in lanes(self.mask) {
            let own = each.get(lane);
            match out.iter_mut().find(|(value, _)| *value == own) {
                Some((_, mask)) => *mask |= 1 << lane,
                None => out.push((own, 1 << lane)),
            }
        }
        out.into_iter().map(|(_, mask)| mask).collect()
    }

    /// The lanes of the step by the CTA of the cluster whose shared memory they name.
    pub(super) fn by_rank(&self, space: Space, address: &Val) -> Vec<u32> {
        let Val::Known(known) = address else { return address.parts(self.mask) };
        let of = |at: u64| match space {
            Space::SharedCta | Space::SharedCluster => at >> RANK_SHIFT,
            _ => at.checked_sub(SHARED_WINDOW).map_or(0, |at| 1 + (at >> RANK_SHIFT)),
        };
        self.alike(&Val::Known(known.map(of)))
    }

    /// The place of an address in a state space.
    pub(super) fn place(&self, space: Space, address: &Val) -> Result<Place, Refusal> {
        let known = match &address.of(self.mask) {
            Val::Known(l) => l.clone(),
            Val::Based(Base::Param(n), l) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Param(*n), l.clone()));
            }
            Val::Based(Base::Along(n, line), l) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Along(*n, *line, self.warp.cone), l.clone()));
            }
            Val::Based(Base::Behind(n), _) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Param(*n), Lanes::Same(SOMEWHERE)));
            }
            Val::Based(Base::Variable(n), l) if space != Space::SharedCta => {
                return Ok(Place::In(Mem::Variable(*n), l.clone()));
            }
            parted @ Val::Parted(..) if space != Space::SharedCta && memory(parted).is_some() => {
                let n = memory(parted).unwrap_or_default();
                return Ok(Place::In(Mem::Param(n), Lanes::Same(SOMEWHERE)));
            }
            other => {
                return self.abstain(format!("an address that depends on {}", self.warp.reason(other)));
            }
        };
        let first = known.get(self.mask.trailing_zeros() as usize % 32);
        let mut offset = known.clone();
        match space {
            Space::Generic | Space::Global if (PARAMS..LOCALS * 2).contains(&first) => {
                return Ok(Place::Private);
            }
            Space::Generic if first >= SHARED_WINDOW => offset = known.map(|v| v.wrapping_sub(SHARED_WINDOW)),
            Space::SharedCta | Space::SharedCluster => {}
            _ => return Ok(Place::In(Mem::Absolute, offset)),
        }
        let rank = offset.map(|v| v >> RANK_SHIFT).one(self.mask);
        let cta = rank.and_then(|r| self.peer(r));
        let Some(cta) = cta else {
            return self.abstain("an address of shared memory outside the cluster");
        };
        if space == Space::SharedCta && cta != self.warp.here.cta {
            return self.abstain("an access of .shared::cta with an address of another CTA");
        }
        Ok(Place::In(Mem::Shared(cta), offset.map(|v| v & ((1 << RANK_SHIFT) - 1))))
    }

    /// The touch of shared memory at an address on which all lanes agree.
    pub(super) fn shared(
        &self,
        space: Space,
        address: &Val,
        bytes: u32,
        kind: Kind,
    ) -> Result<Touch, Refusal> {
        match self.place(space, address)? {
            Place::In(mem @ Mem::Shared(_), at) => match at.one(self.mask) {
                Some(at) => Ok(Touch::one(mem, at, bytes, kind)),
                None => self.abstain("an address that differs from lane to lane"),
            },
            _ => self.abstain("an address outside shared memory"),
        }
    }
}
