//! Use of tensor memory by an event of a tcgen05 instruction (PTX ISA 9.2, 9.7.16).

use moire_program::ir::{MmaKind, ObjectId, ThreadId};
use std::ops::Range;
use std::rc::Rc;

/// What an address in tensor memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Columns that are allocated from start to end.
    Named(ObjectId),
    /// An allocation of the CTA, by number.
    Slot(u32),
}

/// A rectangle of cells in the tensor memory of one CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    /// First thread of the CTA.
    pub(crate) cta: ThreadId,
    pub(crate) home: Home,
    pub(crate) lanes: Range<u32>,
    pub(crate) columns: Range<u32>,
    pub(crate) writes: bool,
}

impl Cells {
    fn meet(&self, other: &Self) -> bool {
        let meet = |a: &Range<u32>, b: &Range<u32>| a.start < b.end && b.start < a.end;
        (self.cta, self.home) == (other.cta, other.home)
            && meet(&self.lanes, &other.lanes)
            && meet(&self.columns, &other.columns)
    }
}

/// The accumulator of a product: where it starts, rows and columns, its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accumulator {
    pub(crate) start: (Option<Home>, u32),
    pub(crate) shape: (u16, u16),
    pub(crate) cells: Vec<Cells>,
}

/// What kind of operation an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Load,
    Store,
    /// Accumulator, the element types.
    Mma {
        d: Rc<Accumulator>,
        kind: MmaKind,
    },
    /// Whether it is `.4x256b`.
    Copy {
        four: bool,
    },
    Shift,
    WaitLoad,
    WaitStore,
    /// Whether it follows the reads of A only.
    Commit {
        reads_only: bool,
    },
    /// Has read every register of the loads whose accesses are these events of its thread.
    Use(Vec<u16>),
    /// Issues and fences.
    Other,
}

/// See [`Emitted::tensor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorUse {
    pub(crate) work: Work,
    /// With `.cta_group::2`.
    pub(crate) pair: bool,
    /// A read of the first factor.
    pub(crate) reads_a: bool,
    pub(crate) cells: Vec<Cells>,
    /// A warp's access to lanes of another.
    pub(crate) wrong_lanes: bool,
    /// Cells outside columns that are allocated from start to end.
    pub(crate) wrong_columns: bool,
    /// An address that no allocation has.
    pub(crate) unallocated: bool,
    /// A mask with a CTA that is none.
    pub(crate) wrong_mask: bool,
    /// Issued by too many lanes, or by too few.
    pub(crate) granularity: Option<&'static str>,
}

/// What two products have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common {
    /// Address, rows and columns of the accumulator.
    pub(crate) shape: bool,
    /// Its address.
    pub(crate) base: bool,
    /// One of its cells.
    pub(crate) cell: bool,
    /// Element types.
    pub(crate) kind: bool,
}

impl TensorUse {
    pub(crate) fn of(work: Work) -> Self {
        TensorUse {
            work,
            pair: false,
            reads_a: false,
            cells: Vec::new(),
            wrong_lanes: false,
            wrong_columns: false,
            unallocated: false,
            wrong_mask: false,
            granularity: None,
        }
    }

    /// Whether both touch a cell and one writes it.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let pair = |a: &Cells, b: &Cells| (a.writes || b.writes) && a.meet(b);
        self.cells.iter().any(|a| other.cells.iter().any(|b| pair(a, b)))
    }

    /// 9.7.16.6.2: pairs that execute in order, two products aside.
    pub(crate) fn pipes(&self, next: &Self) -> bool {
        let pairs = match (&self.work, &next.work) {
            (Work::Copy { .. } | Work::Shift, Work::Mma { .. }) | (Work::Mma { .. }, Work::Shift) => true,
            (Work::Shift, Work::Copy { four }) => *four,
            _ => false,
        };
        pairs && self.pair == next.pair
    }

    /// 9.7.16.6.2: what decides whether two products execute in order.
    pub(crate) fn common(&self, next: &Self) -> Option<Common> {
        match (&self.work, &next.work) {
            (Work::Mma { d, kind }, Work::Mma { d: e, kind: last }) if self.pair == next.pair => {
                let cell = d.cells.iter().any(|a| e.cells.iter().any(|b| a.meet(b)));
                let near = d.cells.iter().any(|a| e.cells.iter().any(|b| a.cta == b.cta));
                let base = near && d.start == e.start;
                Some(Common { shape: base && d.shape == e.shape, base, cell, kind: kind == last })
            }
            _ => None,
        }
    }

    /// Whether this has read every register of the load of that event.
    pub(crate) fn consumes(&self, load: u16) -> bool {
        matches!(&self.work, Work::Use(loads) if loads.contains(&load))
    }

    /// Whether this wait or arrival follows the completion of `earlier`.
    pub(crate) fn tracks(&self, earlier: &Self) -> bool {
        match self.work {
            Work::WaitLoad => earlier.work == Work::Load,
            Work::WaitStore => earlier.work == Work::Store,
            Work::Commit { reads_only: true } => earlier.reads_a && self.pair == earlier.pair,
            Work::Commit { reads_only: false } => {
                let tensor = matches!(earlier.work, Work::Mma { .. } | Work::Copy { .. } | Work::Shift);
                tensor && self.pair == earlier.pair
            }
            _ => false,
        }
    }
}
