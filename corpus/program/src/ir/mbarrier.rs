//! Operations on mbarrier objects: eight opaque bytes of shared memory that count arrivals and transactions by phase.
//!
//! PTX ISA 9.2, 9.7.13.15 (mbarrier), layout v0. Not represented: layout v1, conditional phases, payload reports.

use super::parts::{Part, Parts, PartsMut, Role, parts_of};
use super::{Address, Operand, Reg, Scope, Space};

/// Bytes of an mbarrier object; it is aligned to as many.
pub const MBARRIER_BYTES: u32 = 8;
/// Greatest arrival count, and greatest magnitude of a transaction count.
pub const MBARRIER_COUNT: u32 = (1 << 20) - 1;

/// One mbarrier instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    /// What it does.
    pub op: MbarrierOp,
    /// State space qualifier.
    pub space: Space,
    /// The object.
    pub addr: Address,
}

/// What an mbarrier instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MbarrierOp {
    /// `mbarrier.init`
    Init {
        /// Arrivals a phase expects.
        count: Operand,
    },
    /// `mbarrier.inval`
    Inval,
    /// `mbarrier.arrive`, `mbarrier.arrive_drop`
    Arrive(MbarrierArrive),
    /// `mbarrier.expect_tx` (relaxed)
    ExpectTx {
        /// Scope.
        scope: Scope,
        /// Added to the transaction count.
        bytes: Operand,
    },
    /// `mbarrier.complete_tx` (relaxed)
    CompleteTx {
        /// Scope.
        scope: Scope,
        /// Taken from the transaction count.
        bytes: Operand,
    },
    /// `mbarrier.test_wait`, `mbarrier.try_wait`
    Wait(MbarrierWait),
}

/// `mbarrier.arrive` in all its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MbarrierArrive {
    /// `arrive_drop`: later phases expect as many arrivals fewer.
    pub drop: bool,
    /// `.noComplete`: must not complete the phase.
    pub no_complete: bool,
    /// `.relaxed` instead of `.release`.
    pub relaxed: bool,
    /// Scope, `.cta` or `.cluster`.
    pub scope: Scope,
    /// Receives the state, unless the sink `_`.
    pub dst: Option<Reg>,
    /// Arrivals; one when absent.
    pub count: Option<Operand>,
    /// `.expect_tx`: added to the transaction count before the one arrival.
    pub tx: Option<Operand>,
}

/// `mbarrier.test_wait` and `mbarrier.try_wait`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MbarrierWait {
    /// `try_wait`: may suspend the thread before it answers.
    pub suspends: bool,
    /// `.relaxed` instead of `.acquire`.
    pub relaxed: bool,
    /// Scope, `.cta` or `.cluster`.
    pub scope: Scope,
    /// Whether the phase asked for is complete.
    pub dst: Reg,
    /// The state or the parity of the phase.
    pub phase: Operand,
    /// `phase` is a parity.
    pub parity: bool,
    /// Time limit of `try_wait`; has no meaning here.
    pub hint: Option<Operand>,
}

parts_of!(Mbarrier, |mbarrier, see| {
    let Mbarrier { op, addr, .. } = mbarrier;
    addr.each(see);
    match op {
        MbarrierOp::Init { count } => see(Part::Source(count, Role::Known)),
        MbarrierOp::Inval => {}
        MbarrierOp::Arrive(MbarrierArrive { dst, count, tx, .. }) => {
            for operand in [count, tx].into_iter().flatten() {
                see(Part::Source(operand, Role::Known));
            }
            if let Some(dst) = dst {
                see(Part::Write(dst));
            }
        }
        MbarrierOp::ExpectTx { bytes, .. } | MbarrierOp::CompleteTx { bytes, .. } => {
            see(Part::Source(bytes, Role::Known));
        }
        MbarrierOp::Wait(MbarrierWait { dst, phase, hint, .. }) => {
            see(Part::Source(phase, Role::Known));
            if let Some(hint) = hint {
                see(Part::Source(hint, Role::Known));
            }
            see(Part::Write(dst));
        }
    }
});

impl Mbarrier {
    /// Source operands other than the address, in the order of the text.
    pub fn operands(&self) -> Vec<Operand> {
        Parts::sources(self).split_off(1)
    }

    /// The register it writes.
    pub fn dst(&self) -> Option<Reg> {
        match &self.op {
            MbarrierOp::Arrive(a) => a.dst,
            MbarrierOp::Wait(w) => Some(w.dst),
            MbarrierOp::Init { .. } | MbarrierOp::Inval => None,
            MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => None,
        }
    }

    /// Replaces every source operand other than the address.
    pub fn map_operands(&mut self, by: &mut dyn FnMut(Operand) -> Operand) {
        let mut behind = false;
        PartsMut::each(self, &mut |part| {
            if let Part::Source(operand, _) = part
                && std::mem::replace(&mut behind, true)
            {
                *operand = by(*operand);
            }
        });
    }

    /// The register it writes, to be replaced.
    pub fn dst_mut(&mut self) -> Option<&mut Reg> {
        match &mut self.op {
            MbarrierOp::Arrive(a) => a.dst.as_mut(),
            MbarrierOp::Wait(w) => Some(&mut w.dst),
            MbarrierOp::Init { .. } | MbarrierOp::Inval => None,
            MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => None,
        }
    }
}
