//! The plan of a kernel, before it becomes operations: parameters with roles, and the steps of each tile block.
//!
//! Contract: accesses respect the role of the memory they touch, which makes a kernel free of races. Memory that several
//! blocks share has only strong accesses of one width, whose scopes include all these blocks. Memory that is written
//! weakly belongs to one block, and tokens order the accesses of that block. Memory that is only read has no restriction.

use moire_tile_ir::{AtomicMode, Order, Predicate, Scalar, Scope};
use std::collections::BTreeSet;

/// Elements between the parts of one parameter that belong to different blocks.
pub(super) const STRIDE: u32 = 1_024;

/// Threads of a block: in a tile of at most this many elements each element has its own.
pub(super) const THREADS: u32 = 128;

/// Elements of four bits: two share a byte, and only views reach them.
pub(super) const HALF: Scalar = Scalar::F4E2M1FN;

/// The accesses that the memory of a parameter allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Strong accesses of all blocks.
    Shared,
    /// Loads.
    ReadOnly,
    /// Accesses of the one block that owns the part, ordered by tokens.
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

/// The element of memory that each element of a tile accesses, counted from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    InOrder,
    Reversed,
    /// In order, this many elements further.
    Shifted(u32),
    /// Shifted, and wrapped around at the end.
    Rotated(u32),
    /// Every other element.
    Spread,
    /// Two elements of the tile share one of memory.
    Pairs,
    /// All elements of the tile share one of memory.
    One,
}

impl Mapping {
    /// The element of memory for element `i` of a tile of `width`.
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

    /// Whether no two elements of the tile share one of memory.
    pub(super) fn injective(self) -> bool {
        !matches!(self, Mapping::Pairs | Mapping::One)
    }
}

/// How the place depends on the number of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It does not.
    Fixed,
    /// Each block accesses its own part.
    Own,
    /// Block `n` accesses the part of the `n`-th block from the end.
    Other,
}

/// The elements of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Where {
    pub(super) param: usize,
    /// Elements of the parameter before the first.
    pub(super) at: u32,
    /// Elements of the tile; 0 for a scalar.
    pub(super) width: u32,
    pub(super) mapping: Mapping,
    pub(super) turn: Turn,
    /// Elements by which the place moves in each iteration of the surrounding loop.
    pub(super) step: u32,
    /// The tile has two dimensions.
    pub(super) square: bool,
}

/// The elements that a mask enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    All,
    /// All, by a constant mask.
    On,
    /// None, by a constant mask.
    Off,
    /// This many, from the first.
    Below(u32),
    /// Those with odd numbers.
    Odd,
    /// Those in which an earlier value read, counted from the last, differs from a constant.
    Read(u8, u64),
}

/// The token that an access waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    /// The token of the previous access.
    Last,
    /// The join of at most this many previous tokens.
    Joined(usize),
    /// An earlier token, counted from the last.
    Earlier(u8),
    /// A new token.
    New,
}

/// The value of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Constant(u64),
    /// Consecutive values, from this one.
    Counted(u64),
    /// An earlier value read, counted from the last, combined with a constant.
    Read(u8, Combine, u64),
    /// The sum of this and the number of the block.
    Block(u64),
}

/// Operations with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Not,
    Add,
    Xor,
    And,
    Or,
}

/// How a value that was read is stored as a result. The last field is the width of the stored tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// As it is.
    Plain,
    /// By a later step.
    Later,
    /// As a scalar repeated in all elements.
    Spread(u32),
    /// Combined with a constant.
    Combined(Combine, u64, u32),
    /// As one of two constants, chosen by a comparison with this one.
    Chosen(u64, u32),
}

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Load(Shown),
    Store(Source),
    Rmw(AtomicMode, Source, Shown),
    Cas(u64, Source, Shown),
}

/// How the elements of a tile are addressed, if both ways fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Pointers,
    View {
        /// The extents of the tensor are values and not part of its type.
        open: bool,
        /// Consecutive tiles start one element apart.
        strided: bool,
        /// The index of the tile grows with an earlier value read: by one if that is odd.
        moved: bool,
    },
    /// A view that gathers and scatters: the elements are rows in any order.
    Rows,
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

/// A step of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockStep {
    Access(Access),
    /// A branch on the comparison of an earlier scalar read with a constant.
    If {
        read: u8,
        predicate: Predicate,
        with: u64,
        then: Vec<BlockStep>,
        otherwise: Option<Vec<BlockStep>>,
        /// The arms yield a token.
        yields: bool,
        /// Each arm stores its own constant into this many elements.
        marks: Option<u32>,
    },
    For {
        turns: u32,
        body: Vec<BlockStep>,
        /// The loop carries the last token from one iteration to the next.
        carries: bool,
    },
    /// Skips the rest of an iteration of the surrounding `for` where the last scalar read is this value; with `twice`, by a
    /// second condition inside the first.
    Skip {
        with: u64,
        twice: bool,
    },
    /// A loop that repeats a load until it reads this value.
    Spin(Access, u64),
    /// A loop that gives what a load reads: at once if it is this value, otherwise at its second turn.
    Tries(Access, u64),
    /// Stores an earlier value read, counted from the last, as a result.
    Show(u8),
    /// Makes a token.
    Fresh,
}

/// A whole kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) params: Vec<Param>,
    pub(super) blocks: u32,
    /// One body for each block, or a single body for all.
    pub(super) bodies: Vec<Vec<BlockStep>>,
    /// The `if`s that distinguish blocks are nested.
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

    /// Whether the access goes through a view: it is drawn so, its elements are in order, its mask enables all of them or
    /// the first ones, and it is no compare-and-swap or exchange.
    pub(super) fn through_view(&self) -> bool {
        if self.via == Via::Rows {
            let moves = matches!(self.kind, Kind::Load(_) | Kind::Store(_));
            return moves && self.mask == Mask::All && !self.place.square && self.place.width > 0;
        }
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
    /// Whether all blocks run the same code.
    pub(super) fn uniform(&self) -> bool {
        self.bodies.len() == 1
    }

    /// Counts the stores of tiles so narrow that a compiler lets several threads store each element. Stores through views
    /// count twice, because compilers do this more often there.
    pub(super) fn narrow(&self) -> u32 {
        self.bodies.iter().map(|body| narrow(body)).sum()
    }

    /// Whether in every execution one block writes some place strongly and another reads it strongly.
    pub(super) fn communicates(&self) -> bool {
        let mut written = BTreeSet::new();
        let mut read = BTreeSet::new();
        for block in 0..self.blocks {
            let body = if self.uniform() { 0 } else { block as usize };
            for step in self.bodies.get(body).into_iter().flatten() {
                let BlockStep::Access(access) = step else { continue };
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

fn narrow(steps: &[BlockStep]) -> u32 {
    let of = |access: &Access| {
        let few = (1..THREADS).contains(&access.place.width) && matches!(access.kind, Kind::Store(_));
        u32::from(few) * if access.through_view() { 2 } else { 1 }
    };
    let one = |step: &BlockStep| match step {
        BlockStep::Access(access) | BlockStep::Spin(access, _) | BlockStep::Tries(access, _) => of(access),
        BlockStep::If { then, otherwise, .. } => {
            narrow(then) + narrow(otherwise.as_deref().unwrap_or_default())
        }
        BlockStep::For { body, .. } => narrow(body),
        BlockStep::Show(_) | BlockStep::Fresh | BlockStep::Skip { .. } => 0,
    };
    steps.iter().map(one).sum()
}

/// Whether the access may fail to write.
fn never(kind: Kind) -> bool {
    matches!(kind, Kind::Cas(..))
}

impl Where {
    /// The elements that `block` accesses.
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

/// Parameters with this role that the steps access.
pub(super) fn touched(steps: &[BlockStep], params: &[Param], role: Role) -> BTreeSet<usize> {
    let of = |a: &Access| {
        let is = params.get(a.place.param).is_some_and(|p| p.role == role);
        is.then_some(a.place.param)
    };
    let mut all = BTreeSet::new();
    for step in steps {
        match step {
            BlockStep::Access(access) | BlockStep::Spin(access, _) | BlockStep::Tries(access, _) => {
                all.extend(of(access));
            }
            BlockStep::If { then, otherwise, .. } => {
                all.extend(touched(then, params, role));
                all.extend(touched(otherwise.as_deref().unwrap_or_default(), params, role));
            }
            BlockStep::For { body, .. } => all.extend(touched(body, params, role)),
            BlockStep::Show(_) | BlockStep::Fresh | BlockStep::Skip { .. } => {}
        }
    }
    all
}
