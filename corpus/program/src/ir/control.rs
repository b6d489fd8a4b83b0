//! Election of a lane, exchanges among lanes, launch control of grids and clusters, and instructions without a meaning here.
//!
//! PTX ISA 9.2, 9.7.13.14 (`elect.sync`), 9.7.13.16 (`griddepcontrol`), 9.7.13.17 (`clusterlaunchcontrol`), 9.7.20.

use super::parts::{Part, Role, parts_of};
use super::{Address, Collective, Op, Operand, Placement, Program, Reg, Space};
use std::collections::BTreeSet;

/// One such instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// `elect.sync d|p, mask`: one lane of the mask, always the same, gets a true predicate.
    Elect {
        /// Receives the lane, unless the sink `_`.
        dst: Option<Reg>,
        /// Whether it is this one.
        pred: Reg,
        /// Lanes taking part.
        mask: Operand,
    },
    /// `vote.sync`, `shfl.sync`, `match.sync`, `redux.sync`
    Collective(Collective),
    /// `griddepcontrol.launch_dependents`
    LaunchDependents,
    /// `griddepcontrol.wait`: the grids this one depends on are complete and their writes visible.
    WaitDependencies,
    /// `clusterlaunchcontrol.try_cancel.async`: asks for the work of a cluster that has not started.
    TryCancel {
        /// `.multicast::cluster::all`: answers every CTA of the cluster, data and mbarrier.
        multicast: bool,
        /// Generic or `.shared::cta`.
        space: Space,
        /// Receives the answer, 16 bytes.
        addr: Address,
        /// Completes 16 bytes of transactions.
        mbarrier: Address,
    },
    /// `clusterlaunchcontrol.query_cancel`: reads an answer.
    QueryCancel {
        /// What of it.
        ask: CancelQuery,
        /// Destinations: a predicate, one coordinate, or four of which each may be the sink `_`.
        dst: Vec<Option<Reg>>,
        /// 128-bit register with the answer.
        src: Operand,
    },
    /// `repeat N {`: what follows up to the matching `}` is executed so often. Litmus texts only.
    Repeat(Trips),
    /// The `}` of a `repeat`.
    EndRepeat,
    /// Nothing that the model sees.
    Ignored(Ignored),
}

/// How often a `repeat` is executed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trips {
    /// So often.
    Number(u32),
    /// Any number of times, the same wherever the name stands. A `repeat` inside another one may have another number each
    /// time it is entered.
    Free {
        /// The name of the number.
        name: String,
        /// The least number.
        least: u32,
        /// So many times fewer: a loop whose first rounds stand in front of it. At most `least`.
        less: u32,
    },
}

impl Program {
    /// Whether a grid may start before the grids ahead of it on its stream are complete: one of its threads has a
    /// `griddepcontrol.wait`, so it was launched as a dependent. False for a grid with none ahead of it.
    ///
    /// PTX ISA 9.2, 9.7.13.16. When the earlier grids say `launch_dependents` makes no difference to memory: only
    /// `griddepcontrol.wait` makes their operations visible.
    pub fn starts_early(&self, grid: &Placement) -> bool {
        let stream = |p: &Placement| (p.host, p.gpu, p.stream);
        let waits = |op: &Op| matches!(op, Op::Control(Control::WaitDependencies));
        let of_stream = || self.threads.iter().filter(|t| stream(&t.place) == stream(grid));
        let own = || of_stream().filter(|t| t.place.grid == grid.grid);
        !grid.host
            && of_stream().any(|t| t.place.grid < grid.grid)
            && own().any(|t| t.body.iter().any(|i| waits(&i.op)))
    }

    /// The grid of this stream which is the last one up to this grid that does not start early: it, and so this grid, too, starts
    /// when all grids before it are complete.
    pub fn starts_behind(&self, grid: &Placement) -> u16 {
        let stream = |p: &Placement| (p.host, p.gpu, p.stream);
        let places = self.threads.iter().map(|t| &t.place).filter(|p| stream(p) == stream(grid));
        let grids: BTreeSet<u16> = places.map(|p| p.grid).filter(|n| *n <= grid.grid).collect();
        let late = |n: &&u16| !self.starts_early(&Placement { grid: **n, ..*grid });
        grids.iter().rev().find(late).copied().unwrap_or(0)
    }
}

/// What is asked of the answer of `try_cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CancelQuery {
    /// `.is_canceled`
    IsCanceled,
    /// `.get_first_ctaid`
    FirstCta,
    /// `.get_first_ctaid::x`, `::y`, `::z`
    FirstCtaAxis(u8),
}

/// Instructions that are read and have no effect on memory or registers. They do not synchronise either, but `setmaxnreg.inc`
/// waits for registers of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// `setmaxnreg.inc`, `setmaxnreg.dec`
    SetMaxRegisters {
        /// `.inc` instead of `.dec`.
        inc: bool,
        /// Registers a thread.
        count: u16,
    },
    /// `nanosleep.u32`
    Nanosleep(Operand),
    /// `pmevent`
    PerformanceEvent(u8),
    /// `prefetch.global.L2`
    Prefetch(Address),
    /// `prefetch.tensormap`
    PrefetchTensormap(Address),
}

impl Ignored {
    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        match self {
            Ignored::SetMaxRegisters { .. } => "setmaxnreg",
            Ignored::Nanosleep(_) => "nanosleep",
            Ignored::PerformanceEvent(_) => "pmevent",
            Ignored::Prefetch(_) => "prefetch",
            Ignored::PrefetchTensormap(_) => "prefetch.tensormap",
        }
    }
}

impl Control {
    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        match self {
            Control::Elect { .. } => "elect.sync",
            Control::Collective(collective) => collective.name(),
            Control::LaunchDependents => "griddepcontrol.launch_dependents",
            Control::WaitDependencies => "griddepcontrol.wait",
            Control::TryCancel { .. } => "clusterlaunchcontrol.try_cancel",
            Control::QueryCancel { .. } => "clusterlaunchcontrol.query_cancel",
            Control::Repeat(_) => "repeat",
            Control::EndRepeat => "the end of a repeat",
            Control::Ignored(what) => what.name(),
        }
    }
}

parts_of!(Control, |control, see| match control {
    Control::Elect { dst, pred, mask } => {
        if let Some(dst) = dst {
            see(Part::Write(dst));
        }
        see(Part::Write(pred));
        see(Part::Source(mask, Role::Data));
    }
    Control::Collective(collective) => collective.each(see),
    Control::TryCancel { addr, mbarrier, .. } => {
        addr.each(see);
        mbarrier.each(see);
    }
    Control::QueryCancel { dst, src, .. } => {
        for dst in dst.into_iter().flatten() {
            see(Part::Write(dst));
        }
        see(Part::Source(src, Role::Data));
    }
    Control::Ignored(Ignored::Nanosleep(time)) => see(Part::Source(time, Role::Known)),
    Control::Ignored(Ignored::Prefetch(addr) | Ignored::PrefetchTensormap(addr)) => addr.each(see),
    Control::Ignored(Ignored::SetMaxRegisters { .. } | Ignored::PerformanceEvent(_))
    | Control::Repeat(_)
    | Control::EndRepeat
    | Control::LaunchDependents
    | Control::WaitDependencies => {}
});
