//! Memory instructions of a tile block: one instruction, one memory operation an element, ordered by tokens.
//!
//! Tile IR specification, chapter 7 (memory model): elements of one instruction are unordered, program order alone orders
//! nothing, tokens do. A thread that stands for a tile block runs these, register arithmetic and branches; tiles have
//! been taken apart into elements before. A token is a register that holds no value: the engines keep for it what came
//! before. `if` is masks: an element whose mask is zero has no event, and that is all its condition does, whereas a
//! branch would order everything behind it.

use super::parts::{Part, Role, parts_of};
use super::{Address, AtomOp, LoadOrder, Operand, Reg, RmwOrder, Scope, StoreOrder, Ty};

/// One instruction of a tile block that concerns memory or its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileOp {
    /// `load_*_tko`, `store_*_tko`, `atomic_*_tko`
    Access(Box<TileAccess>),
    /// `make_token`, `join_tokens`, the tokens of an `if`
    Token(TileToken),
}

/// A memory instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileAccess {
    /// What it does, how strong, with whom.
    pub kind: TileKind,
    /// Of each element; one memory operation each, so neither packed nor 128 bits wide.
    pub ty: Ty,
    /// In row-major order, which orders nothing.
    pub elements: Vec<TileElement>,
    /// The token it waits for.
    pub after: Option<Reg>,
    /// The token it makes.
    pub token: Option<Reg>,
}

/// What a memory instruction does; of the orders only those that Tile IR has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileKind {
    /// Reads.
    Load(LoadOrder),
    /// Writes.
    Store(StoreOrder),
    /// Reads and writes, `cas` only where the comparison holds.
    Rmw {
        /// Arithmetic.
        op: AtomOp,
        /// Order.
        order: RmwOrder,
        /// Scope.
        scope: Scope,
    },
}

/// One element of a memory instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileElement {
    /// Where.
    pub addr: Address,
    /// Nothing happens where it is zero.
    pub mask: Option<Reg>,
    /// What was read. Where the mask is zero: `a` for a load, unknown data without it, and zero for an atomic.
    pub dst: Option<Reg>,
    /// Value stored, operand of the arithmetic, value compared with, padding of a load.
    pub a: Option<Operand>,
    /// For `cas`: the new value.
    pub b: Option<Operand>,
}

/// An instruction about tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileToken {
    /// `dst` stands for everything the others stand for; of none: the beginning.
    Join {
        /// The new token.
        dst: Reg,
        /// Any number of tokens.
        from: Vec<Reg>,
    },
    /// What an `if` yields.
    Choose {
        /// The new token.
        dst: Reg,
        /// The condition.
        when: Reg,
        /// Where it is not zero.
        yes: Reg,
        /// Where it is zero.
        no: Reg,
    },
}

impl TileOp {
    /// Name, as in Tile IR.
    pub fn name(&self) -> &'static str {
        match self {
            TileOp::Access(access) => match access.kind {
                TileKind::Load(_) => "load_ptr_tko",
                TileKind::Store(_) => "store_ptr_tko",
                TileKind::Rmw { op: AtomOp::Cas, .. } => "atomic_cas_tko",
                TileKind::Rmw { .. } => "atomic_rmw_tko",
            },
            TileOp::Token(_) => "join_tokens",
        }
    }

    /// Registers it writes that are tokens.
    pub fn token(&self) -> Option<Reg> {
        match self {
            TileOp::Access(access) => access.token,
            TileOp::Token(TileToken::Join { dst, .. } | TileToken::Choose { dst, .. }) => Some(*dst),
        }
    }

    /// Whether it writes memory whatever is read.
    pub fn always_writes(&self) -> bool {
        let writes = |a: &TileAccess| match a.kind {
            TileKind::Load(_) => false,
            TileKind::Store(_) => true,
            TileKind::Rmw { op, .. } => op != AtomOp::Cas,
        };
        matches!(self, TileOp::Access(a) if writes(a) && a.elements.iter().any(|e| e.mask.is_none()))
    }
}

parts_of!(TileElement, |element, see| {
    let TileElement { addr, mask, dst, a, b } = element;
    addr.each(see);
    for operand in [a, b].into_iter().flatten() {
        see(Part::Source(operand, Role::Known));
    }
    if let Some(mask) = mask {
        see(Part::Read(mask, Role::Known));
    }
    if let Some(dst) = dst {
        see(Part::Write(dst));
    }
});

parts_of!(TileAccess, |access, see| {
    let TileAccess { elements, after, token, .. } = access;
    for element in elements {
        element.each(see);
    }
    if let Some(after) = after {
        see(Part::Read(after, Role::Known));
    }
    if let Some(token) = token {
        see(Part::Write(token));
    }
});

parts_of!(TileToken, |token, see| match token {
    TileToken::Join { dst, from } => {
        for token in from {
            see(Part::Read(token, Role::Known));
        }
        see(Part::Write(dst));
    }
    TileToken::Choose { dst, when, yes, no } => {
        for read in [when, yes, no] {
            see(Part::Read(read, Role::Known));
        }
        see(Part::Write(dst));
    }
});

parts_of!(TileOp, |op, see| match op {
    TileOp::Access(access) => access.each(see),
    TileOp::Token(token) => token.each(see),
});
