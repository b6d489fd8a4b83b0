//! Use of a barrier by an event (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3), or of a rendezvous of lanes that orders nothing.

use moire_program::ir::{Exchange, Program, Scope, ThreadId};

/// A barrier event: which object, how many arrivals it wants, what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierUse {
    pub(crate) object: BarrierObject,
    /// The number of arrivals of a phase, if the instruction names one.
    pub(crate) count: Option<u32>,
    /// Counts as an arrival.
    pub(crate) arrives: bool,
    /// Blocks until its phase is complete.
    pub(crate) waits: bool,
    /// The lanes whose predicate, given to `bar.red` or a vote, holds.
    pub(crate) votes: u32,
    /// What each lane gives to another collective.
    pub(crate) given: u32,
    /// Of a shuffle: the lane or distance, and the clamp.
    pub(crate) from: [u32; 2],
}

/// Identity of a barrier; the CTA, cluster or warp is that of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BarrierObject {
    /// CTA barrier: its number, its instance (Dat3M dialect), and its count unless that is all threads. Phases with
    /// different counts are kept apart; the model relation `bar-mixed` finds those that must not overlap.
    Cta {
        id: i64,
        instance: Option<u32>,
        count: Option<u32>,
    },
    Cluster,
    /// Warp barrier: only arrivals with the same mask are of one phase.
    Warp {
        mask: u32,
    },
    /// Collective instruction of a warp: only equal forms with equal masks are of one phase.
    Collective {
        form: Form,
        mask: u32,
    },
}

/// Which collective instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    Elect,
    Exchange(Exchange),
    /// One that the whole warp executes, by name.
    Aligned(&'static str),
}

/// Whether two threads share barriers of this kind.
pub(crate) fn meet(program: &Program, object: &BarrierObject, a: ThreadId, b: ThreadId) -> bool {
    let (p, q) = (&program.threads[a.index()].place, &program.threads[b.index()].place);
    match object {
        BarrierObject::Cta { .. } => p.same_cta(q),
        BarrierObject::Cluster => p.includes(Scope::Cluster, q),
        BarrierObject::Warp { .. } | BarrierObject::Collective { .. } => {
            a == b || (p.same_cta(q) && p.warp == q.warp && p.lane().is_some() && q.lane().is_some())
        }
    }
}

/// Whether a thread is among those a barrier waits for.
pub(crate) fn names(program: &Program, object: &BarrierObject, thread: ThreadId) -> bool {
    let code = &program.threads[thread.index()];
    let lanes = code.place.lanes();
    if let BarrierObject::Collective { form: Form::Aligned(name), .. } = object {
        return code.body.iter().any(|i| i.op.extended() == Some(*name));
    }
    !matches!(object, BarrierObject::Warp { mask } | BarrierObject::Collective { mask, .. } if mask & lanes == 0)
}
