//! What a thread does to mbarriers and barriers if all its waits are answered with yes: an upper bound of what it can do.
//!
//! Computed where the answers are known (`prune::outlook`), and kept with the run it starts from.

use super::event::barrier::BarrierUse;
use super::event::lanes::Arms;
use super::event::mbarrier::MbarUse;
use super::may_arrive::MayArrive;

/// Operations of one thread on mbarriers and barriers from its start to its end, its waits answered with yes.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunAhead {
    /// It does these in this order and nothing else before.
    pub(crate) items: Vec<Item>,
    /// What it may do next, where that is not all.
    pub(crate) rest: Option<MayArrive>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) index: u16,
    pub(crate) operation: Operation,
    pub(crate) arms: Arms,
    /// By all lanes of the thread, so that it is ordered with all others.
    pub(crate) whole: bool,
}

/// What it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Mbarrier(MbarUse),
    /// With so many lanes, and so many waits of the thread at the same barrier before it.
    Barrier {
        used: BarrierUse,
        lanes: u32,
        waits: u32,
    },
}
