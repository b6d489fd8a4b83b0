//! What a kernel is to do, before it is written as operations: parameters with a role, and steps of each tile block.
//!
//! Contract: accesses keep to the role of what they touch, which is what makes a kernel free of races: memory that
//! several blocks share is touched by strong accesses of one width whose scopes include all of them; memory that is
//! written weakly belongs to one block, whose accesses to it are chained by tokens; memory that is only read is free.

use moire_tile_ir::{AtomicMode, Order, Predicate, Scalar, Scope};
use std::collections::BTreeSet;

/// Elements between the parts that tile blocks have of one parameter.
pub(super) const STRIDE: u32 = 1_024;

/// Elements of a tile that each have a thread of their own.
pub(super) const THREADS: u32 = 128;

/// Who may do what with the memory of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Strong accesses of all blocks.
    Shared,
    /// Loads.
    ReadOnly,
    /// One block at a time: its accesses follow each other by tokens.
    Private,
    /// Written weakly by one block and read weakly by another that saw a flag.
    Handed,
}

/// A pointer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Param {
    pub(super) elem: Scalar,
    pub(super) role: Role,
}

/// Which element of memory each element of a tile is, from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    InOrder,
    Reversed,
    /// So many further.
    Shifted(u32),
    /// The same, around the end.
    Rotated(u32),
    /// Every other.
    Spread,
    /// Two share one.
    Pairs,
    /// All share one.
    One,
}

impl Mapping {
    /// Of element `i` of `width`.
    pub(super) fn of(self, i: u32, width: u32) -> u32 {
        match self {
            Mapping::InOrder => i,
            Mapping::Reversed => width - 1 - i,
            Mapping::Shifted(k) => i + k,
            Mapping::Rotated(k) => (i + k) % width,
            Mapping::Spread => 2 * i,
            Mapping::Pairs => i / 2,
            Mapping::One => 0,
        }
    }

    /// No two elements share one.
    pub(super) fn injective(self) -> bool {
        !matches!(self, Mapping::Pairs | Mapping::One)
    }
}

/// What the number of the block has to do with the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Fixed,
    /// Each has its own.
    Own,
    /// Counted from the other end.
    Other,
}

/// Which elements are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Where {
    pub(super) param: usize,
    /// Elements before the first.
    pub(super) at: u32,
    /// Elements of the tile; 0 for a scalar.
    pub(super) width: u32,
    pub(super) mapping: Mapping,
    pub(super) turn: Turn,
    /// Elements further in each turn of the loop around it.
    pub(super) step: u32,
    /// The tile has two dimensions.
    pub(super) square: bool,
}

/// Which elements take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    All,
    /// All, said by a constant.
    On,
    /// None, said by a constant.
    Off,
    /// The first so many.
    Below(u32),
    /// Every other.
    Odd,
    /// Where a value that was read is this.
    Read(u8, u64),
}

/// What an access waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    /// The access before.
    Last,
    /// Up to so many before, joined.
    Joined(usize),
    /// Counted from the last.
    Earlier(u8),
    /// A new token.
    New,
}

/// What is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Constant(u64),
    /// Each element another value, from this on.
    Counted(u64),
    /// A value that was read, counted from the last, combined with a constant.
    Read(u8, Combine, u64),
    /// This and the number of the block.
    Block(u64),
}

/// With a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Not,
    Add,
    Xor,
    And,
    Or,
}

/// What becomes of a value that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Stored as it is.
    Plain,
    /// A scalar in so many elements.
    Spread(u32),
    /// After arithmetic.
    Combined(Combine, u64, u32),
    /// One of two constants, by a comparison.
    Chosen(u64, u32),
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Load(Shown),
    Store(Source),
    Rmw(AtomicMode, Source, Shown),
    Cas(u64, Source, Shown),
}

/// How the elements of a tile are reached, where both fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Pointers,
    View {
        /// Values say how long the tensor is, not its type.
        open: bool,
        /// Tiles start one element after the other.
        strided: bool,
    },
}

/// One memory instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) kind: Kind,
    pub(super) place: Where,
    pub(super) via: Via,
    pub(super) order: Order,
    pub(super) scope: Option<Scope>,
    pub(super) mask: Mask,
    pub(super) wait: Wait,
}

/// A part of what a block does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Access(Access),
    /// If a scalar that was read compares so with a constant.
    If {
        read: u8,
        predicate: Predicate,
        with: u64,
        then: Vec<Step>,
        otherwise: Option<Vec<Step>>,
        /// The arms yield a token.
        yields: bool,
        /// Each arm stores its own constant into so many elements.
        marks: Option<u32>,
    },
    For {
        turns: u32,
        body: Vec<Step>,
        /// The last token goes around.
        carries: bool,
    },
    /// Until this load reads that value.
    Spin(Access, u64),
}

/// A whole kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) params: Vec<Param>,
    pub(super) blocks: u32,
    /// Of each block, or of all.
    pub(super) bodies: Vec<Vec<Step>>,
    /// The `if`s that tell blocks apart are inside each other.
    pub(super) nested: bool,
    /// Free of races under every reading.
    pub(super) safe: bool,
}

impl Access {
    pub(super) fn reads(&self) -> bool {
        !matches!(self.kind, Kind::Store(_))
    }

    pub(super) fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Load(_))
    }

    /// It is done to a tile of a view: elements in a row, all of them or the first ones, and no comparison or exchange.
    pub(super) fn through_view(&self) -> bool {
        let fits = match (self.kind, self.mask) {
            (Kind::Load(_) | Kind::Store(_), Mask::Below(_)) => !self.place.square,
            (Kind::Load(_) | Kind::Store(_), Mask::All) => true,
            (Kind::Rmw(mode, ..), Mask::All) => mode != AtomicMode::Xchg,
            _ => false,
        };
        let in_a_row = matches!(self.place.mapping, Mapping::InOrder | Mapping::Spread);
        fits && in_a_row && self.place.width > 0 && self.via != Via::Pointers
    }
}

impl Plan {
    /// One code for all blocks.
    pub(super) fn uniform(&self) -> bool {
        self.bodies.len() == 1
    }

    /// Stores of tiles so narrow that a compiler has several threads make each of their elements: twice as many through
    /// views, where it does so more often.
    pub(super) fn narrow(&self) -> u32 {
        self.bodies.iter().map(|body| narrow(body)).sum()
    }

    /// Some place is written strongly by a block and read strongly by another, whatever happens.
    pub(super) fn communicates(&self) -> bool {
        let mut written = BTreeSet::new();
        let mut read = BTreeSet::new();
        for block in 0..self.blocks {
            let body = if self.uniform() { 0 } else { block as usize };
            for step in self.bodies.get(body).into_iter().flatten() {
                let Step::Access(access) = step else { continue };
                if access.mask != Mask::All || access.order == Order::Weak || never(access.kind) {
                    continue;
                }
                for element in access.place.elements(block, self.blocks) {
                    if access.reads() {
                        read.insert((element, block));
                    }
                    if access.writes() {
                        written.insert((element, block));
                    }
                }
            }
        }
        written.iter().any(|(at, by)| (0..self.blocks).any(|b| b != *by && read.contains(&(*at, b))))
    }
}

fn narrow(steps: &[Step]) -> u32 {
    let of = |access: &Access| {
        let few = (1..THREADS).contains(&access.place.width) && matches!(access.kind, Kind::Store(_));
        u32::from(few) * if access.through_view() { 2 } else { 1 }
    };
    let one = |step: &Step| match step {
        Step::Access(access) | Step::Spin(access, _) => of(access),
        Step::If { then, otherwise, .. } => narrow(then) + narrow(otherwise.as_deref().unwrap_or_default()),
        Step::For { body, .. } => narrow(body),
    };
    steps.iter().map(one).sum()
}

/// It may write nothing new.
fn never(kind: Kind) -> bool {
    matches!(kind, Kind::Cas(..))
}

impl Where {
    /// The elements that block touches.
    pub(super) fn elements(&self, block: u32, blocks: u32) -> Vec<(usize, u32)> {
        let part = match self.turn {
            Turn::Fixed => 0,
            Turn::Own => block,
            Turn::Other => blocks - 1 - block,
        };
        let first = self.at + part * STRIDE;
        let each = |i| (self.param, first + if self.width == 0 { 0 } else { self.mapping.of(i, self.width) });
        (0..self.width.max(1)).map(each).collect()
    }
}

/// Parameters with that role that are touched by the steps.
pub(super) fn touched(steps: &[Step], params: &[Param], role: Role) -> BTreeSet<usize> {
    let of = |a: &Access| {
        let is = params.get(a.place.param).is_some_and(|p| p.role == role);
        is.then_some(a.place.param)
    };
    let mut all = BTreeSet::new();
    for step in steps {
        match step {
            Step::Access(access) | Step::Spin(access, _) => all.extend(of(access)),
            Step::If { then, otherwise, .. } => {
                all.extend(touched(then, params, role));
                all.extend(touched(otherwise.as_deref().unwrap_or_default(), params, role));
            }
            Step::For { body, .. } => all.extend(touched(body, params, role)),
        }
    }
    all
}
