//! Events as a thread emits them: what they are, their static labels, footprint and dependencies.
//!
//! Contract: all but [`Emitted::value`] is fixed when an event is emitted, whatever reads still get; so two events that are
//! equal but for the value have the same static relations.

pub(crate) mod allocator;
pub(crate) mod barrier;
pub(crate) mod copy;
pub(crate) mod deps;
pub(crate) mod fence;
pub(crate) mod labels;
pub(crate) mod lanes;
pub(crate) mod mbarrier;
pub(crate) mod tensor;

use crate::thread::layout::Access;
use allocator::AllocUse;
use barrier::BarrierUse;
use copy::CopyUse;
use deps::Deps;
use fence::Covers;
use lanes::LaneInfo;
use mbarrier::MbarUse;
use moire_program::ir::{Scope, ThreadId, Value};
use std::rc::Rc;
use tensor::TensorUse;

/// What an event does, as far as the explorer has to place it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Fence,
    Barrier(BarrierUse),
    Mbarrier(MbarUse),
    Allocator(AllocUse),
}

/// The reads of its thread that an event depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) addr: Deps,
    pub(crate) data: Deps,
    pub(crate) ctrl: Deps,
    /// Control dependencies that end where the arms of the branch meet.
    pub(crate) ctrl_reconv: Deps,
}

impl Needs {
    /// Whether the event cannot be before this read has its value.
    pub(crate) fn has(&self, index: u16) -> bool {
        [&self.addr, &self.data, &self.ctrl].into_iter().any(|d| d.has(index))
    }
}

/// The read half that belongs to the write half of a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mate {
    /// Its index.
    pub(crate) read: u16,
    /// Whether what is written depends on what is read.
    pub(crate) uses_value: bool,
}

/// CTAs an event has to do with, each by a thread of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CtaInfo {
    /// The other CTA whose memory it touches, where CTAs start and exit.
    pub(crate) reaches: Option<ThreadId>,
    /// Of an asynchronous event: the CTA whose memory or mbarrier it touches.
    pub(crate) home: Option<ThreadId>,
    /// Of an access to shared memory: the CTA whose memory it is.
    pub(crate) owner: Option<ThreadId>,
}

/// What only events of one family of instructions have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    #[default]
    Plain,
    /// Asynchronous copies.
    Copy(Rc<CopyUse>),
    /// Tensor cores and tensor memory.
    Tensor(Rc<TensorUse>),
    /// Proxy fences that are not about all accesses.
    Fence(Covers),
}

/// What came before an event of a tile block by token order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenInfo {
    pub(crate) all: Deps,
    /// The last steps of that.
    pub(crate) direct: Deps,
}

/// One event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Emitted {
    /// Position among the events of its thread.
    pub(crate) index: u16,
    /// Events of one execution of an instruction share it.
    pub(crate) unit: u16,
    pub(crate) pc: usize,
    pub(crate) line: u32,
    pub(crate) kind: Kind,
    /// A bit per base set of the vocabulary.
    pub(crate) labels: u128,
    pub(crate) scope: Option<Scope>,
    pub(crate) access: Option<Access>,
    /// Value written, once known.
    pub(crate) value: Option<Value>,
    pub(crate) needs: Needs,
    /// Of the write half of a read-modify-write.
    pub(crate) mate: Option<Mate>,
    /// Asynchronous: after its issue, and outside program order.
    pub(crate) detached: bool,
    pub(crate) ctas: CtaInfo,
    pub(crate) lanes: LaneInfo,
    pub(crate) family: Family,
    pub(crate) token: TokenInfo,
}

impl Emitted {
    /// Whether the event is in a base set.
    pub(crate) fn is_in(&self, set: usize) -> bool {
        self.labels >> set & 1 == 1
    }

    /// Whether the two differ in the value written alone.
    pub(crate) fn has_form_of(&self, other: &Emitted) -> bool {
        let Emitted { index, unit, pc, line, kind, labels, scope, access, value: _, needs, .. } = self;
        let Emitted { mate, detached, ctas, lanes, family, token, .. } = self;
        (index, unit, pc, line, kind, labels, scope)
            == (&other.index, &other.unit, &other.pc, &other.line, &other.kind, &other.labels, &other.scope)
            && (access, needs, mate, detached) == (&other.access, &other.needs, &other.mate, &other.detached)
            && (ctas, lanes, family, token) == (&other.ctas, &other.lanes, &other.family, &other.token)
    }

    /// The index of the read half, of the write half of a read-modify-write.
    pub(crate) fn mate(&self) -> Option<u16> {
        self.mate.map(|m| m.read)
    }

    pub(crate) fn copy(&self) -> Option<&CopyUse> {
        if let Family::Copy(used) = &self.family { Some(used) } else { None }
    }

    pub(crate) fn tensor(&self) -> Option<&TensorUse> {
        if let Family::Tensor(used) = &self.family { Some(used) } else { None }
    }

    pub(crate) fn covers(&self) -> Option<Covers> {
        if let Family::Fence(covers) = self.family { Some(covers) } else { None }
    }
}
