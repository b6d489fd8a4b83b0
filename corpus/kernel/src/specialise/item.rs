//! The trace of a warp that was run ahead: its residual items, and its stores.

use super::coverage::Course;
use super::known::value::Base;
use super::practice::Practice;
use super::registers::Resize;
use super::touch::{Kind, Mem, Touch};
use super::word::{Bytes, Common, Pointer, Told};
use moire_program::ir::{Op, Operand, Reg, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// A remark about how the kernel was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The line, 1-based; 0 if the remark is about no single line.
    pub line: u32,
    /// The remark, one sentence.
    pub text: String,
    /// The reading of practice that it is about.
    pub practice: Option<Practice>,
}

impl Note {
    /// A remark about no reading.
    pub(crate) fn new(line: u32, text: impl Into<String>) -> Self {
        Note { line, text: text.into(), practice: None }
    }

    /// A remark that a line relies on a reading.
    pub(crate) fn reading(line: u32, practice: Practice) -> Self {
        let text = format!("reading {}: {}", practice.setting(), practice.says());
        Note { line, text, practice: Some(practice) }
    }
}

/// How data is accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Weakly.
    Weak,
    /// A read on the promise that nothing writes there, which is broken (`promised`).
    Broken,
    /// Relaxed, in this scope.
    Relaxed(Scope),
    /// Weakly, and everyone who executes the store writes these numbers ([`Practice::OneValue`]).
    Agreed(Vec<i128>),
    /// Weakly, and lanes that write one byte write the same to it, which is not known. The number tells the instructions of a
    /// warp apart.
    Same(usize),
    /// The same by lanes that run in several orders, once for each, somewhere between these bytes.
    Parted { number: usize, start: u64, end: u64 },
}

impl Manner {
    /// Whether the access is strong.
    pub(crate) fn is_strong(&self) -> bool {
        matches!(self, Manner::Relaxed(_))
    }
}

/// A store of lanes that does not conflict with itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alike {
    /// Of numbers that are known.
    Agreed(Agreed),
    /// Of others, by the number of the instruction: the next time they may be others.
    Same(usize),
}

/// A store of the same numbers by everyone who executes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Agreed {
    pub(crate) line: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) numbers: Vec<i128>,
}

/// A residual item of a warp.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// An instruction. An immediate address is an index into `touches`.
    Op { op: Box<Op>, touches: Vec<Touch> },
    /// An ordinary access to data that nothing depends on.
    Data {
        /// Written, not read.
        write: bool,
        /// How.
        manner: Manner,
        /// Where.
        touch: Touch,
    },
    /// A jump target.
    Label(u32),
    /// `bra`
    Jump(u32),
    /// `bra` if the register is true.
    Branch { reg: Reg, to: u32 },
    /// `bra` of the lanes outside the mask.
    Others { mask: u32, to: u32 },
    /// `repeat N {`, of periods; the label is behind the loop.
    Open { past: u32 },
    /// `}`; the label is at its start.
    Close { again: u32 },
    /// `exit`
    Exit,
    /// These lanes meet, and nothing is ordered: an exchange of registers, or an instruction of the whole warp. Lanes that run
    /// apart wait for each other there.
    Met(u32),
    /// Copies of a word differ (`agree`), so the exploration abstains.
    Differ(Touch),
}

/// An item with its lanes and its line.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) item: Item,
    /// Its lanes, unless these are all lanes that are together there.
    pub(crate) mask: Option<u32>,
    /// Its lanes.
    pub(crate) lanes: u32,
    pub(crate) line: u32,
}

impl Placed {
    /// The store, if its lanes do not conflict in it.
    pub(crate) fn alike(&self) -> Option<Alike> {
        match &self.item {
            Item::Data { manner: Manner::Same(n) | Manner::Parted { number: n, .. }, .. } => {
                Some(Alike::Same(*n))
            }
            _ => self.agreed().map(|a| Alike::Agreed(a.1)),
        }
    }

    /// As it is in an order of some of its lanes: what they store alike is no conflict with the other orders, if each of them
    /// does it once (`alike`).
    pub(crate) fn parted(&self, alike: bool) -> Self {
        let mut out = self.clone();
        if let Item::Data { manner, touch, .. } = &mut out.item
            && let (Manner::Same(number), true) = (&*manner, alike)
            && let (Some(first), Some(last)) = (touch.ranges.first(), touch.ranges.last())
        {
            *manner = Manner::Parted { number: *number, start: first.0, end: last.1 };
        }
        out
    }

    /// Whether it is a store of its warp alone, although all warps of a CTA may agree in shared memory.
    pub(crate) fn is_parted(&self) -> bool {
        matches!(self.item, Item::Data { manner: Manner::Parted { .. }, .. })
    }

    /// The touch of a store of agreed numbers, and what it stores.
    pub(crate) fn agreed(&self) -> Option<(&Touch, Agreed)> {
        let (touch, numbers) = match &self.item {
            Item::Data { manner: Manner::Parted { number, start, end }, touch, .. } => {
                let numbers = i128::try_from(*number).into_iter().collect();
                return Some((touch, Agreed { line: self.line, start: *start, end: *end, numbers }));
            }
            Item::Data { manner: Manner::Agreed(numbers), touch, .. } => (touch, numbers.clone()),
            Item::Op { op, touches } => {
                let (Op::Store { src, .. }, [touch]) = (op.as_ref(), touches.as_slice()) else { return None };
                let number = |s: &Operand| if let Operand::Imm(n) = s { Some(*n) } else { None };
                (touch.kind == Kind::Agreed).then(|| (touch, src.iter().filter_map(number).collect()))?
            }
            _ => return None,
        };
        let [(start, end)] = touch.ranges.as_slice() else { return None };
        Some((touch, Agreed { line: self.line, start: *start, end: *end, numbers }))
    }
}

impl Item {
    /// The memory that it touches.
    pub(crate) fn touches(&self) -> &[Touch] {
        match self {
            Item::Op { touches, .. } => touches,
            Item::Data { touch, .. } | Item::Differ(touch) => std::slice::from_ref(touch),
            Item::Label(_) | Item::Jump(_) | Item::Branch { .. } | Item::Others { .. } => &[],
            Item::Open { .. } | Item::Close { .. } | Item::Exit | Item::Met(_) => &[],
        }
    }

    /// Whether it may write this memory.
    fn may_write(&self, mem: Mem) -> bool {
        let reads = matches!(self, Item::Data { write: false, .. } | Item::Differ(_));
        let writes = |t: &Touch| t.mem.domain() == mem.domain() && t.kind.may_write();
        !reads && self.touches().iter().any(writes)
    }
}

/// Lanes that do something others see while lanes of their warp may still stand at a wait they have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) line: u32,
    acting: u32,
    /// The lanes that may be late for any of those that act.
    waiting: u32,
    /// Each acting lane acts for itself, and the others of them may be late for it.
    each: bool,
}

impl Late {
    /// The case, if it is one: a lane is not late for itself.
    pub(crate) fn new(placed: &Placed, waiting: u32, each: bool) -> Option<Self> {
        let late = Late { line: placed.line, acting: placed.lanes, waiting, each };
        late.parts(u32::MAX).then_some(late)
    }

    /// Whether one of these lanes may be late for another.
    pub(crate) fn parts(self, lanes: u32) -> bool {
        let (acting, waiting) = (self.acting & lanes, self.waiting & lanes);
        acting != 0
            && (waiting & !acting != 0 || self.each && acting.count_ones() > 1 && waiting & acting != 0)
    }
}

/// A stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Content {
    /// A number.
    Known(u64),
    /// A place in the memory of a parameter or a variable: so many bytes behind its start.
    Address(Base, u64),
    /// The address an allocation of tensor memory returns.
    Allocation,
    /// The value of an ordered or atomic write; only the exploration knows it.
    Held,
    /// A word of global memory behind this pointer that has no number yet (`words`).
    Word(Pointer),
    /// Any value.
    Opaque,
}

/// A store that other warps may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) cta: u32,
    pub(crate) at: u32,
    pub(crate) bytes: u32,
    pub(crate) content: Content,
    pub(crate) line: u32,
}

/// How a counter hands out places: where it is, the bytes from one number to the next, and what is added to a number.
pub(crate) type Handed = ((Mem, u64), u64, u64);

/// The result of running a warp ahead.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) warp: u32,
    pub(crate) items: Vec<Placed>,
    /// By the letter: where lanes may be late.
    pub(crate) late: Vec<Late>,
    /// By the letter: a line at which lanes that ask together may get different answers, and do different things.
    pub(crate) steered: Option<u32>,
    /// The number of registers of the items.
    pub(crate) regs: usize,
    pub(crate) stores: Vec<Stored>,
    pub(crate) wanted: BTreeSet<(u32, u32, u32)>,
    pub(crate) asked: BTreeSet<(Mem, u64, u64)>,
    /// Bytes of global memory that get data whose value is not followed, though an ordered access touches them.
    pub(crate) opaque: BTreeSet<(Mem, u64, u64)>,
    /// What ordered and atomic accesses store in global memory: bytes, and the number if it is known.
    pub(crate) numbers: BTreeSet<((Mem, u64, u64), Option<u64>)>,
    /// What is read on the promise that nothing writes it: memory, first byte, end, line.
    pub(crate) promised: BTreeSet<(Mem, u64, u64, u32)>,
    /// Its `setmaxnreg`.
    pub(crate) resized: BTreeSet<Resize>,
    pub(crate) notes: BTreeSet<Note>,
    /// A line that loads a word for which no store is known.
    pub(crate) starved: Option<u32>,
    /// Weak accesses somewhere in a memory: data decides where. The line, and whether the memory is global.
    pub(crate) loose: BTreeSet<(u32, bool)>,
    /// The lines of `cp.async` whose source data decides, and its memory.
    pub(crate) copied: BTreeSet<(u32, Mem)>,
    /// Memory with relaxed accesses at places that differ from lane to lane, or that data decides.
    pub(crate) relaxed: BTreeSet<Mem>,
    /// The stores whose places counters hand out: the memory, the counter, the distance of two numbers, and what is added to one.
    pub(crate) ticketed: BTreeSet<(Mem, Handed)>,
    /// The words from which it draws the number of its CTA (`drawn`), with the line: memory, first byte, end.
    pub(crate) drawn: Vec<(Mem, u64, u64, u32)>,
    /// Words of global memory that have had numbers of the launch, or lack them.
    pub(crate) fixed: BTreeSet<Bytes>,
    /// Bytes of shared memory into which it has put words of global memory: CTA, first byte, end, and the pointers.
    pub(crate) told: BTreeMap<(u32, u32, u32), Told>,
    /// What it does with words that are assumed to be alike.
    pub(crate) common: Common,
    /// Where the answers of its `clusterlaunchcontrol.try_cancel` go, in order: CTA and address of the answer, address of the mbarrier.
    pub(crate) asks: Vec<(u32, u64, u64)>,
    /// A line with an address in tensor memory that is a number (`columns`).
    pub(crate) numbered: Option<u32>,
    /// What it ran.
    pub(crate) course: Course,
}

/// The accesses of all warps to places that data decides. A copy only reads there, so it is none where nothing is written.
pub(crate) fn loose(traces: &[Trace]) -> BTreeSet<(u32, bool)> {
    let written = |mem: Mem| traces.iter().flat_map(|t| &t.items).any(|placed| placed.item.may_write(mem));
    let copied: BTreeSet<(u32, Mem)> = traces.iter().flat_map(|t| t.copied.iter().copied()).collect();
    let copied = copied.into_iter().filter(|(_, mem)| written(*mem)).map(|(line, _)| (line, true));
    traces.iter().flat_map(|t| t.loose.iter().copied()).chain(copied).collect()
}
