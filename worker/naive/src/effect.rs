//! Relations between tcgen05 events: which touch the same cells, which pipeline, which follow which.
//!
//! Cells are compared one by one: a lane is a bit, a column a number. Which pairs pipeline and what a wait or a commit
//! follows is the table of the PTX ISA (9.2, 9.7.16.6.2), read pair by pair.

use moire_program::ir::{CopyShape, ObjectId, Tcgen05};

/// What an address in tensor memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Allocated from start to end.
    Named(ObjectId),
    /// An allocation, by number.
    Allocated(u32),
}

/// Some lanes of one column of tensor memory. A CTA is named by its first thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) cta: usize,
    pub(super) block: Block,
    pub(super) column: u32,
    pub(super) lanes: u128,
    pub(super) written: bool,
}

/// A tcgen05 event, as far as its relation to other events depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Number of the instruction in its path.
    pub(super) instruction: usize,
    pub(super) op: Tcgen05,
    /// Of a product: where the accumulator starts, its rows and columns, its cells.
    pub(super) accumulator: Option<Block>,
    pub(super) start: u32,
    pub(super) shape: Option<(u16, u16)>,
    pub(super) result: Vec<Column>,
    pub(super) columns: Vec<Column>,
    /// Reads the first factor.
    pub(super) first_factor: bool,
    /// After its issue and outside program order.
    pub(super) later: bool,
    pub(super) flags: Vec<&'static str>,
    /// Numbers of loads whose registers have all been read at this point. Such an event belongs to no tcgen05 instruction.
    pub(super) spent: Vec<usize>,
}

impl Effect {
    /// An instruction that touches nothing yet.
    pub(super) fn of(instruction: usize, op: &Tcgen05) -> Effect {
        Effect {
            instruction,
            op: op.clone(),
            accumulator: None,
            start: 0,
            shape: None,
            result: Vec::new(),
            columns: Vec::new(),
            first_factor: false,
            later: false,
            flags: Vec::new(),
            spent: Vec::new(),
        }
    }

    pub(super) fn tensor(&self) -> bool {
        matches!(self.op, Tcgen05::Mma(_) | Tcgen05::Copy { .. } | Tcgen05::Shift { .. })
    }

    /// `later` events of one thread belong to the issue of their instruction.
    pub(super) fn issues(&self, other: &Effect) -> bool {
        !self.later && other.later && self.instruction == other.instruction
    }

    /// Parts of one instruction, in one thread.
    pub(super) fn one_with(&self, other: &Effect) -> bool {
        self.instruction == other.instruction
    }

    /// Of an earlier instruction of the same thread.
    pub(super) fn precedes(&self, other: &Effect) -> bool {
        self.instruction < other.instruction
    }

    /// Whether both touch a cell that one of them writes.
    pub(super) fn clashes(&self, other: &Effect) -> bool {
        let clash = |a: &Column, b: &Column| shared(a, b) && (a.written || b.written);
        self.columns.iter().any(|a| other.columns.iter().any(|b| clash(a, b)))
    }

    /// Whether this executes before `next` if it is issued before. Pairs of products are left to
    /// [`Effect::products`].
    pub(super) fn pipelines(&self, next: &Effect) -> bool {
        let pairs = matches!(
            (&self.op, &next.op),
            (Tcgen05::Copy { .. } | Tcgen05::Shift { .. }, Tcgen05::Mma(_))
                | (Tcgen05::Mma(_), Tcgen05::Shift { .. })
                | (Tcgen05::Shift { .. }, Tcgen05::Copy { shape: CopyShape::S4x256b, .. })
        );
        pairs && self.later && next.later && self.op.group() == next.op.group()
    }

    /// Whether both are accesses of products of the same CTA group.
    pub(super) fn products(&self, next: &Effect) -> bool {
        let both = matches!((&self.op, &next.op), (Tcgen05::Mma(_), Tcgen05::Mma(_)));
        both && self.later && next.later && self.op.group() == next.op.group()
    }

    pub(super) fn same_base(&self, next: &Effect) -> bool {
        let near = self.result.iter().any(|a| next.result.iter().any(|b| a.cta == b.cta));
        near && (self.accumulator, self.start) == (next.accumulator, next.start)
    }

    pub(super) fn same_shape(&self, next: &Effect) -> bool {
        self.same_base(next) && self.shape == next.shape
    }

    pub(super) fn same_cell(&self, next: &Effect) -> bool {
        self.result.iter().any(|a| next.result.iter().any(|b| shared(a, b)))
    }

    pub(super) fn same_kind(&self, next: &Effect) -> bool {
        matches!((&self.op, &next.op), (Tcgen05::Mma(a), Tcgen05::Mma(b)) if a.kind == b.kind)
    }

    /// Whether the registers of that load have all been read here.
    pub(super) fn spends(&self, load: &Effect) -> bool {
        load.later && matches!(load.op, Tcgen05::Load(_)) && self.spent.contains(&load.instruction)
    }

    /// Whether this wait, or this arrival of a commit, comes after the end of an earlier instruction of its thread.
    pub(super) fn follows(&self, earlier: &Effect) -> bool {
        earlier.later
            && self.spent.is_empty()
            && match &self.op {
                Tcgen05::WaitLoad => matches!(earlier.op, Tcgen05::Load(_)),
                Tcgen05::WaitStore => matches!(earlier.op, Tcgen05::Store(_)),
                Tcgen05::Commit(commit) => {
                    let tracked = if commit.reads_only { earlier.first_factor } else { earlier.tensor() };
                    self.later && tracked && Some(commit.group) == earlier.op.group()
                }
                Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => false,
                Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::Copy { .. } | Tcgen05::Shift { .. } => false,
                Tcgen05::Mma(_) | Tcgen05::FenceBefore | Tcgen05::FenceAfter => false,
            }
    }

    /// First threads of the CTAs whose tensor memory it touches.
    pub(super) fn ctas(&self) -> Vec<usize> {
        self.columns.iter().map(|c| c.cta).collect()
    }

    /// Columns of allocations: first thread of the CTA, number of the allocation, columns from its start.
    pub(super) fn allocated(&self) -> Vec<(usize, u32, u32)> {
        let of = |c: &Column| match c.block {
            Block::Allocated(slot) => Some((c.cta, slot, c.column + 1)),
            Block::Named(_) => None,
        };
        self.columns.iter().filter_map(of).collect()
    }
}

fn shared(a: &Column, b: &Column) -> bool {
    (a.cta, a.block, a.column) == (b.cta, b.block, b.column) && a.lanes & b.lanes != 0
}
