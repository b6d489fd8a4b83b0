//! Use of an mbarrier object by an event (PTX ISA 9.2, 9.7.13.15).

use crate::thread::ids::InstanceId;

/// Where an mbarrier object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Object {
    pub(crate) instance: InstanceId,
    pub(crate) offset: u32,
}

/// An mbarrier event: object and effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MbarUse {
    pub(crate) object: Object,
    pub(crate) act: Act,
    /// What the instruction itself gets wrong.
    pub(crate) fault: Option<Fault>,
}

/// A precondition an instruction breaks by its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A count no mbarrier holds.
    Range,
    /// A form for objects of the own CTA on one of another.
    Target,
    /// An `init` or `inval` by several lanes, of which each undoes the one before.
    Repeated,
}

/// What an mbarrier event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Init {
        count: u32,
    },
    Inval,
    /// An arrival, a change of the transaction count, or both.
    Add {
        arrivals: u32,
        tx: i64,
        drops: bool,
        no_complete: bool,
        returns: bool,
    },
    /// Asks whether the phase of this parity is complete.
    Wait {
        odd: bool,
    },
}

impl Act {
    /// `init` and `inval` end what was before.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Act::Init { .. } | Act::Inval)
    }

    /// The same by a form that does not reach the object: nothing arrives there.
    pub(crate) fn lost(self) -> Self {
        match self {
            Act::Add { no_complete, returns, .. } => {
                Act::Add { arrivals: 0, tx: 0, drops: false, no_complete, returns }
            }
            other => other,
        }
    }

    /// Whether the event hands a value to its thread.
    pub(crate) fn answers(&self) -> bool {
        matches!(self, Act::Wait { .. } | Act::Add { returns: true, .. })
    }
}
