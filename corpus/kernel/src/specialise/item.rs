//! Items: what is left of a warp that was run ahead, and what it stores on the way.

use super::touch::{Mem, Touch};
use moire_program::ir::{Op, Reg};
use std::collections::BTreeSet;

/// A remark about how the kernel was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// 1-based; 0 when it is about no single line.
    pub line: u32,
    /// The remark, one sentence.
    pub text: String,
}

/// What is left of a warp.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// An instruction. An address that is a number is an index into `touches`.
    Op { op: Box<Op>, touches: Vec<Touch> },
    /// Data moved by ordinary accesses that nothing depends on.
    Data { write: bool, relaxed: bool, touch: Touch },
    /// A place.
    Label(u32),
    /// `bra`
    Jump(u32),
    /// `bra` when the register says so.
    Branch { reg: Reg, to: u32 },
    /// `bra` by the lanes that are not in the mask.
    Others { mask: u32, to: u32 },
    /// `exit`
    Exit,
    /// Copies of a word differ (`agree`): no engine has an answer.
    Differ(Touch),
}

/// An item with the lanes it is for (all that are there when none) and its line.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) item: Item,
    pub(crate) mask: Option<u32>,
    pub(crate) line: u32,
}

/// What some warp stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Content {
    /// A number.
    Known(u64),
    /// The address an allocation of tensor memory returns.
    Allocation,
    /// What an ordered or an atomic access writes: the program that is explored knows it.
    Held,
    /// Anything.
    Opaque,
}

/// A store other warps may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) cta: u32,
    pub(crate) at: u32,
    pub(crate) bytes: u32,
    pub(crate) content: Content,
    pub(crate) line: u32,
}

/// What running a warp ahead gives.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) warp: u32,
    pub(crate) items: Vec<Placed>,
    /// Registers of the items.
    pub(crate) regs: usize,
    pub(crate) stores: Vec<Stored>,
    pub(crate) wanted: BTreeSet<(u32, u32, u32)>,
    pub(crate) asked: BTreeSet<(Mem, u64, u64)>,
    pub(crate) notes: BTreeSet<Note>,
    /// A line that loads a word nothing writes as far as is known.
    pub(crate) starved: Option<u32>,
}
