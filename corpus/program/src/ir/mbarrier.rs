//! Operations on mbarrier objects: eight opaque bytes of shared memory that count arrivals and transactions by phase.
//!
//! PTX ISA 9.2, 9.7.13.15 (mbarrier), layout v0. Not represented: layout v1, conditional phases, payload reports.

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

impl Mbarrier {
    /// Source operands other than the address, in the order of the text.
    pub fn operands(&self) -> Vec<Operand> {
        match &self.op {
            MbarrierOp::Init { count } => vec![*count],
            MbarrierOp::Inval => vec![],
            MbarrierOp::Arrive(a) => a.count.iter().chain(&a.tx).copied().collect(),
            MbarrierOp::ExpectTx { bytes, .. } | MbarrierOp::CompleteTx { bytes, .. } => vec![*bytes],
            MbarrierOp::Wait(w) => std::iter::once(w.phase).chain(w.hint).collect(),
        }
    }

    /// Replaces every source operand other than the address.
    pub fn map_operands(&mut self, by: &mut dyn FnMut(Operand) -> Operand) {
        match &mut self.op {
            MbarrierOp::Init { count } => *count = by(*count),
            MbarrierOp::Inval => {}
            MbarrierOp::Arrive(a) => a.count.iter_mut().chain(&mut a.tx).for_each(|o| *o = by(*o)),
            MbarrierOp::ExpectTx { bytes, .. } | MbarrierOp::CompleteTx { bytes, .. } => *bytes = by(*bytes),
            MbarrierOp::Wait(w) => {
                w.phase = by(w.phase);
                w.hint.iter_mut().for_each(|o| *o = by(*o));
            }
        }
    }

    /// The register it writes.
    pub fn dst(&self) -> Option<Reg> {
        match &self.op {
            MbarrierOp::Arrive(a) => a.dst,
            MbarrierOp::Wait(w) => Some(w.dst),
            _ => None,
        }
    }

    /// The register it writes, to be replaced.
    pub fn dst_mut(&mut self) -> Option<&mut Reg> {
        match &mut self.op {
            MbarrierOp::Arrive(a) => a.dst.as_mut(),
            MbarrierOp::Wait(w) => Some(&mut w.dst),
            _ => None,
        }
    }
}
