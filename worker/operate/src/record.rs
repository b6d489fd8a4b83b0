//! Records: the accesses and facts whose order a run keeps track of, one bit each.
//!
//! A record stands for a *kind* of access: which thread, what, where. A later instance of the same kind takes the place of
//! the earlier one. That is exact where the earlier instance is known wherever the later one is: accesses in program
//! order, tcgen05 instructions (waits and commits follow all earlier ones) and copies in groups. Copies that report to an
//! mbarrier complete independently, so each of those has an instance number.

use crate::finding::Stop;
use crate::layout::{Layout, Span};
use crate::rows;
use crate::settings::{Accumulator, Pipeline, Settings};
use moire_program::ir::{Exchange, MmaKind, Scope};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How an access reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Via {
    Generic,
    Async,
    Map,
}

/// What an access to memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AccessKind {
    /// An access in program order.
    Plain,
    /// A strong store that nobody reads strongly, at its scope.
    Strong(Scope),
    /// An asynchronous copy.
    Copy,
    /// An asynchronous copy with an operation.
    Reduction,
    /// A warpgroup product.
    Multiplied,
    /// A tensor-core instruction; whether it is the first factor of a product.
    Product { first: bool },
    /// The address that an allocation stores.
    Slot,
    /// A load of such an address after it was stored.
    SlotRead,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub(crate) span: Span,
    pub(crate) writes: bool,
    pub(crate) via: Via,
    pub(crate) part: AccessKind,
}

/// What a cell of tensor memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Home {
    /// A `.tmem` object.
    Named(usize),
    /// An allocation, by number.
    Slot(u32),
}

/// A rectangle of cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cells {
    pub(crate) cta: usize,
    pub(crate) home: Home,
    pub(crate) lanes: Range<u32>,
    pub(crate) columns: Range<u32>,
    pub(crate) writes: bool,
}

impl Cells {
    fn meet(&self, other: &Cells) -> bool {
        let overlap = |a: &Range<u32>, b: &Range<u32>| a.start < b.end && b.start < a.end;
        self.cta == other.cta
            && self.home == other.home
            && overlap(&self.lanes, &other.lanes)
            && overlap(&self.columns, &other.columns)
    }
}

/// The work of an instruction on tensor memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    Load,
    Store,
    Product { kind: MmaKind, start: (Option<Home>, u32), shape: (u16, u16), cells: Vec<Cells> },
    Copy { four: bool },
    Shift,
}

/// All accesses of one instruction to tensor memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tensor {
    pub(crate) work: Work,
    pub(crate) pair: bool,
    pub(crate) cells: Vec<Cells>,
}

impl Tensor {
    /// Whether it is a load or a store of a warp.
    pub(crate) fn moves(&self) -> bool {
        matches!(self.work, Work::Load | Work::Store)
    }

    fn conflicts(&self, other: &Tensor) -> bool {
        let pair = |a: &Cells, b: &Cells| (a.writes || b.writes) && a.meet(b);
        self.cells.iter().any(|a| other.cells.iter().any(|b| pair(a, b)))
    }

    /// Whether the two are a pair that pipelines (PTX ISA 9.2, 9.7.16.6.2).
    fn pipelines(&self, next: &Tensor, settings: &Settings) -> bool {
        if self.pair != next.pair {
            return false;
        }
        match (&self.work, &next.work) {
            (Work::Copy { .. } | Work::Shift, Work::Product { .. })
            | (Work::Product { .. }, Work::Shift)
            | (Work::Shift, Work::Copy { four: true }) => true,
            (
                Work::Product { kind, start, shape, cells },
                Work::Product { kind: kind2, start: start2, shape: shape2, cells: cells2 },
            ) => {
                let near = cells.iter().any(|a| cells2.iter().any(|b| a.cta == b.cta));
                let base = near && start == start2;
                let same = match settings.accumulator {
                    Accumulator::Shape => base && shape == shape2,
                    Accumulator::Base => base,
                    Accumulator::Cell => cells.iter().any(|a| cells2.iter().any(|b| a.meet(b))),
                };
                same && (kind == kind2 || settings.any_kind_pipelines)
            }
            _ => false,
        }
    }
}

/// An mbarrier: the copy of an object and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Object {
    pub(crate) copy: usize,
    pub(crate) offset: u32,
}

/// A barrier of a CTA, by number and count, or of a warp, by mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Barrier {
    Cta {
        cta: usize,
        id: i128,
        part: Option<u32>,
    },
    Warp {
        cta: usize,
        warp: u16,
        mask: u32,
        alone: Option<usize>,
    },
    /// Lanes that exchange values, or elect one of them. No order passes.
    Lanes {
        cta: usize,
        warp: u16,
        mask: u32,
        form: Option<Exchange>,
    },
    /// Threads of a warp at an instruction of this name, which the whole warp executes. No order passes.
    Whole {
        cta: usize,
        warp: u16,
        name: &'static str,
    },
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Memory(Access),
    Tensor(Tensor),
    Init(Object),
    Inval(Object),
    /// An operation on an mbarrier that some instruction invalidates, or an asynchronous one on an mbarrier of a CTA that exits.
    Use(Object),
    /// A wait observed the last complete phase.
    Observed(Object),
    /// A wait observed the phase before the last complete one.
    Passed(Object),
    /// The last wait of a thread.
    Answered(Object),
    /// A transaction count was raised.
    Expected(Object),
    Started(usize),
    /// An access to the memory of another CTA, by the name of the instruction, and the mbarrier that its completion is
    /// reported to: completions at two of them are independent.
    Reaches(usize, &'static str, Option<Object>),
    /// Columns were taken.
    Got {
        cta: usize,
        slot: u32,
        columns: u32,
    },
    Generation(Barrier),
}

/// A record without the row that stands for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The thread; `usize::MAX` for facts that are of no thread.
    pub(crate) thread: usize,
    pub(crate) what: What,
    pub(crate) instance: u32,
}

/// What the records of a program have in common, as sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    pub(crate) memory: Vec<u64>,
    pub(crate) tensor: Vec<u64>,
    /// Facts of the order of execution.
    pub(crate) facts: Vec<u64>,
    pub(crate) inits: Vec<u64>,
    /// Operations on mbarriers.
    pub(crate) lives: Vec<u64>,
    pub(crate) reads: Vec<u64>,
    pub(crate) generic: Vec<u64>,
    pub(crate) copies: Vec<u64>,
    pub(crate) products: Vec<u64>,
    pub(crate) asynchronous: Vec<u64>,
    pub(crate) slots: Vec<u64>,
    pub(crate) shared: Vec<u64>,
    /// By CTA: memory records whose memory it is, or that were issued there if it is nobody's.
    pub(crate) home: Vec<Vec<u64>>,
    /// By CTA: records issued there.
    pub(crate) issued: Vec<Vec<u64>>,
}

/// All records seen so far.
#[derive(Clone, Debug)]
pub(crate) struct Universe {
    pub(crate) words: usize,
    numbers: FxHashMap<Key, usize>,
    pub(crate) keys: Vec<Key>,
    pub(crate) lines: Vec<u32>,
    pub(crate) sets: Sets,
    /// By record: those it conflicts with.
    pub(crate) conflicts: Vec<Vec<u64>>,
    /// By record: those that, issued before it, pipeline with it.
    pub(crate) before: Vec<Vec<u64>>,
}

impl Universe {
    pub(crate) fn new(words: usize, ctas: usize) -> Self {
        let none = vec![0u64; words];
        let sets = Sets {
            memory: none.clone(),
            tensor: none.clone(),
            facts: none.clone(),
            inits: none.clone(),
            lives: none.clone(),
            reads: none.clone(),
            generic: none.clone(),
            copies: none.clone(),
            products: none.clone(),
            asynchronous: none.clone(),
            slots: none.clone(),
            shared: none.clone(),
            home: vec![none.clone(); ctas],
            issued: vec![none; ctas],
        };
        Universe {
            words,
            numbers: FxHashMap::default(),
            keys: Vec::new(),
            lines: Vec::new(),
            sets,
            conflicts: Vec::new(),
            before: Vec::new(),
        }
    }

    /// The number of a record, if it has one.
    pub(crate) fn find(&self, thread: usize, what: What) -> Option<usize> {
        self.numbers.get(&Key { thread, what, instance: 0 }).copied()
    }

    /// The number of a record; a new one gets the next.
    pub(crate) fn number(
        &mut self,
        key: Key,
        line: u32,
        layout: &Layout,
        settings: &Settings,
    ) -> Result<usize, Stop> {
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let number = self.keys.len();
        debug_assert_eq!(number, self.lines.len(), "a line a record");
        debug_assert!(self.conflicts.len() == number && self.before.len() == number, "a row a record");
        if number >= 64 * self.words {
            return Err(Stop::Wider);
        }
        self.enter_sets(number, &key, layout);
        let mut conflicts = vec![0; self.words];
        let mut before = vec![0; self.words];
        for (other, theirs) in self.keys.iter().chain([&key]).enumerate() {
            if conflict(&key, theirs, layout) {
                rows::insert(&mut conflicts, other);
                if other != number {
                    rows::insert(&mut self.conflicts[other], number);
                }
            }
            if ahead(theirs, &key, settings) {
                rows::insert(&mut before, other);
            }
            if other != number && ahead(&key, theirs, settings) {
                rows::insert(&mut self.before[other], number);
            }
        }
        self.conflicts.push(conflicts);
        self.before.push(before);
        self.lines.push(line);
        self.numbers.insert(key.clone(), number);
        self.keys.push(key);
        Ok(number)
    }

    fn enter_sets(&mut self, number: usize, key: &Key, layout: &Layout) {
        let sets = &mut self.sets;
        let enter = |set: &mut Vec<u64>| rows::insert(set, number);
        match &key.what {
            What::Memory(access) => {
                enter(&mut sets.memory);
                let owner = layout.owner(&access.span);
                let issued = layout.cta_of[key.thread];
                enter(&mut sets.home[owner.unwrap_or(issued)]);
                enter(&mut sets.issued[issued]);
                if owner.is_some() {
                    enter(&mut sets.shared);
                }
                if !access.writes {
                    enter(&mut sets.reads);
                }
                match access.via {
                    Via::Generic => enter(&mut sets.generic),
                    Via::Async => enter(&mut sets.asynchronous),
                    Via::Map => {}
                }
                match access.part {
                    AccessKind::Plain | AccessKind::Strong(_) => {}
                    AccessKind::Copy | AccessKind::Reduction | AccessKind::Multiplied => {
                        enter(&mut sets.copies);
                    }
                    AccessKind::Product { .. } => enter(&mut sets.products),
                    AccessKind::Slot | AccessKind::SlotRead => enter(&mut sets.slots),
                }
            }
            What::Tensor(_) => {
                enter(&mut sets.tensor);
                enter(&mut sets.issued[layout.cta_of[key.thread]]);
            }
            What::Init(_) => {
                enter(&mut sets.inits);
                enter(&mut sets.lives);
            }
            What::Inval(_) | What::Use(_) => enter(&mut sets.lives),
            _ => enter(&mut sets.facts),
        }
    }
}

fn conflict(a: &Key, b: &Key, layout: &Layout) -> bool {
    match (&a.what, &b.what) {
        (What::Memory(x), What::Memory(y)) if is_morally_strong((a, x), (b, y), layout) => false,
        (What::Memory(x), What::Memory(y)) => {
            let reductions = x.part == AccessKind::Reduction && y.part == AccessKind::Reduction;
            (x.writes || y.writes) && x.span.meets(&y.span) && !(reductions && x.writes && y.writes)
        }
        (What::Tensor(x), What::Tensor(y)) => x.conflicts(y),
        _ => false,
    }
}

/// Whether two accesses are strong, overlap completely, and each scope includes both threads (PTX ISA 9.2, 8.7.1).
fn is_morally_strong((a, x): (&Key, &Access), (b, y): (&Key, &Access), layout: &Layout) -> bool {
    let (AccessKind::Strong(first), AccessKind::Strong(second)) = (x.part, y.part) else { return false };
    let (one, other) = (layout.cta_of[a.thread], layout.cta_of[b.thread]);
    let needed = match layout.clusters[one].contains(&other) {
        _ if one == other => Scope::Cta,
        true => Scope::Cluster,
        false => Scope::Gpu,
    };
    x.span == y.span && first >= needed && second >= needed
}

/// Whether `x`, issued before `y`, executes before it.
fn ahead(x: &Key, y: &Key, settings: &Settings) -> bool {
    let (What::Tensor(a), What::Tensor(b)) = (&x.what, &y.what) else { return false };
    if settings.moves_in_order && x.thread == y.thread && a.moves() && b.moves() {
        return a.conflicts(b);
    }
    if settings.pipeline == Pipeline::Nothing {
        return false;
    }
    let first_out = settings.first_out && x.thread == y.thread && !a.moves() && !b.moves();
    first_out || a.pipelines(b, settings)
}
